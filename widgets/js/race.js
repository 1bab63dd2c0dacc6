/**
 * Race: schedules side by side on one clock, each step as long as it takes on a network.
 *
 * The clock's steps are the moments at which any schedule finishes one of its own; between two of them time runs on
 * evenly, so what flies in a lane flies as long as its step lasts. Sliders for N, latency and bandwidth change the
 * lengths at once, and with them the winner.
 *
 * Left out: what a single step means (Player).
 */

import { amount, plural } from "./captions.js";
import { secondsOf, unitBytes, workOf } from "./cost.js";
import { guarded } from "./errors.js";
import { Frame } from "./frame.js";
import { Playback } from "./playback.js";
import { decode, Run } from "./schedule.js";
import { Stage } from "./stage.js";
import { Transport } from "./transport.js";
import { bytes, seconds } from "./units.js";

const RACE_SECONDS = 15; // a whole race at speed 1
const NEVER = 1e-12; // seconds: moments closer than this are one

/** @type {{name: string, label: string, low: number, high: number, write: (value: number) => string}[]} */
const SLIDERS = [
  { name: "nbytes", label: "N", low: 0, high: 10, write: bytes },
  { name: "alpha", label: "latency", low: -7, high: -2, write: seconds },
  { name: "bandwidth", label: "bandwidth", low: 6, high: 12, write: (value) => `${bytes(value)}/s` },
];

/** On a topology the sliders say how many times as long, or as wide, all its links are. */
const times = (/** @type {number} */ value) => `${Number(value.toPrecision(2))}×`;
const FACTORS = [
  SLIDERS[0],
  { name: "alpha", label: "latency of all links", low: -2, high: 2, write: times },
  { name: "bandwidth", label: "bandwidth of all links", low: -2, high: 2, write: times },
];

/** One schedule of a race: its picture, its strip of time. */
class Lane {
  constructor(/** @type {import("./schedule.js").Schedule} */ schedule) {
    this.schedule = schedule;
    this.work = schedule.work ?? workOf(schedule);
    this.run = new Run(schedule);
    this.node = document.createElement("section");
    this.node.className = "rs-lane";
    this.node.innerHTML = `<div class="rs-lanehead"><strong></strong><span class="rs-muted"></span><b class="rs-won"></b></div>
      <div class="rs-strip" aria-hidden="true"><div class="rs-steps"></div><i></i></div><div class="rs-stage"></div>`;
    const find = (selector) => /** @type {HTMLElement} */ (this.node.querySelector(selector));
    find("strong").textContent = schedule.title;
    this.told = find(".rs-muted");
    this.won = find(".rs-won");
    this.steps = find(".rs-steps");
    this.head = find(".rs-strip i");
    this.host = find(".rs-stage");
    this.stage = new Stage(this.host, schedule, this.run);
    this.ends = [0];
    this.flies = false;
    /** @type {Iterable<number>} */
    this.pending = [];
  }

  get total() {
    return this.ends[this.ends.length - 1];
  }

  /** Steps last as long as N and the network say. */
  measure(nbytes, network) {
    this.ends = [0];
    for (const step of secondsOf(this.work, unitBytes(this.schedule, nbytes), network))
      this.ends.push(this.total + step);
  }

  drawStrip(longest) {
    this.steps.style.width = `${longest ? (100 * this.total) / longest : 0}%`;
    this.steps.replaceChildren(
      ...this.schedule.counts.map((_, k) => {
        const block = document.createElement("u");
        block.style.flexGrow = String((this.ends[k + 1] - this.ends[k]) / (this.total || 1));
        return block;
      }),
    );
  }

  /** Steps that are finished at `time`. */
  doneAt(time) {
    let done = 0;
    while (done < this.schedule.steps && this.ends[done + 1] <= time + NEVER) done++;
    return done;
  }

  /** Shows the moment `time` of a race that lasts `longest`. */
  show(time, longest) {
    const done = this.doneAt(time);
    const flies = done < this.schedule.steps && time > this.ends[done] + NEVER;
    if (this.run.step !== done + Number(flies) || this.flies !== flies) this.#enter(done, flies);
    if (flies) this.stage.fly((time - this.ends[done]) / (this.ends[done + 1] - this.ends[done]));
    this.head.style.left = `${longest ? (100 * Math.min(time, this.total)) / longest : 0}%`;
    const busiest = amount(this.schedule, Math.max(...this.run.sent));
    this.told.textContent = `step ${done} of ${this.schedule.steps} · busiest rank sent ${busiest}`;
  }

  /** The state after `done` steps, and the next one under way if `flies`. */
  #enter(done, flies) {
    this.stage.land();
    const touched = this.run.seek(done);
    this.stage.write(new Set([...this.pending, ...touched]));
    this.pending = flies ? this.run.seek(done + 1) : [];
    this.stage.showStep();
    this.flies = flies;
    if (flies) this.stage.takeOff();
  }
}

class RaceView {
  /** @type {Transport} */ transport;
  /** @type {HTMLInputElement[]} */ sliders;
  /** @type {number} seconds of the slowest */ longest;
  /** @type {number[]} seconds at which a step of some schedule ends */ moments;

  constructor({ el, model, schedules, playback, signal }) {
    this.model = model;
    this.playback = playback;
    this.lanes = schedules.map((schedule) => new Lane(schedule));
    this.animation = 0;
    this.width = 0;
    this.projected = false;
    this.shape = schedules.every((schedule) => schedule.local) ? "machines" : "row";
    const topology = model.get("topology");
    this.dials = topology ? FACTORS : SLIDERS;
    const { collective, ranks } = schedules[0];
    const reacts = { press: (key) => this.transport.press(key), resized: () => this.#measure() };
    const size = [plural(ranks, "rank"), topology].filter(Boolean).join(" · ");
    const given = { name: "rs-race", title: `Race: ${collective}`, size };
    this.frame = new Frame(el, given, reacts, signal);
    this.#build();
    playback.listen(() => this.#moved(), signal);
    for (const { name } of this.dials) model.on(`change:${name}`, () => this.#settle());
    const resized = new ResizeObserver(() => this.#measure());
    resized.observe(this.frame.root);
    const seen = new IntersectionObserver(([entry]) => playback.seen(this, entry.isIntersecting));
    seen.observe(this.frame.root);
    signal.addEventListener("abort", () => {
      cancelAnimationFrame(this.animation);
      resized.disconnect();
      seen.disconnect();
      playback.seen(this, false);
    });
    this.#settle();
    this.#measure();
  }

  #build() {
    const { body } = this.frame;
    const slider = ({
      name,
      label,
      low,
      high,
    }) => `<label class="rs-slider"><span>${label} <b data-of="${name}"></b></span>
      <input type="range" data-name="${name}" min="${low}" max="${high}" step="0.05"></label>`;
    body.innerHTML = `<div class="rs-sliders">${this.dials.map(slider).join("")}</div><div class="rs-lanes"></div>
      <div class="rs-caption" role="status" aria-live="polite"></div>`;
    this.frame.find(".rs-lanes").append(...this.lanes.map((lane) => lane.node));
    this.caption = this.frame.find(".rs-caption");
    this.transport = new Transport({ phases: [], steps: 0 }, this.playback);
    body.append(this.transport.node);
    this.sliders = [...body.querySelectorAll("[data-name]")];
    for (const input of this.sliders) {
      input.addEventListener("input", () => {
        this.model.set(input.dataset.name, 10 ** Number(input.value));
        this.model.save_changes();
      });
      input.addEventListener("keydown", (event) => event.key !== "Tab" && event.stopPropagation()); // its own arrows
    }
  }

  /** Works out all lengths and moments anew; the race stays at the moment it shows. */
  #settle() {
    const nbytes = this.model.get("nbytes");
    const network = {
      alpha: this.model.get("alpha"),
      beta: 1 / this.model.get("bandwidth"),
      gamma: this.model.get("gamma"),
    };
    const share = this.longest ? this.time / this.longest : null;
    for (const lane of this.lanes) lane.measure(nbytes, network);
    this.longest = Math.max(...this.lanes.map((lane) => lane.total));
    const ends = this.lanes.flatMap((lane) => lane.ends).sort((a, b) => a - b);
    this.moments = ends.filter((end, i) => i === 0 || end > ends[i - 1] + NEVER);
    for (const lane of this.lanes) lane.drawStrip(this.longest);
    this.sliders.forEach((input, i) => {
      const { name, write } = this.dials[i];
      input.value = String(Math.log10(this.model.get(name)));
      input.setAttribute("aria-valuetext", write(this.model.get(name)));
      this.frame.find(`[data-of=${name}]`).textContent = write(this.model.get(name));
    });
    this.#nameWinner();
    const { playback } = this;
    playback.steps = this.moments.length - 1;
    playback.secondsAfter = (step) => {
      const next = this.moments[Math.min(step + 1, this.moments.length - 1)];
      return this.longest ? (RACE_SECONDS * (next - this.moments[step])) / this.longest : 0;
    };
    if (share !== null && playback.step > 0) {
      const at = this.moments.findIndex((moment) => moment >= share * this.longest - NEVER);
      playback.go(at < 0 ? playback.steps : at);
    }
    this.#moved();
  }

  get time() {
    return this.moments[this.playback.step] ?? 0;
  }

  #nameWinner() {
    const best = Math.min(...this.lanes.map((lane) => lane.total));
    for (const lane of this.lanes) {
      const wins = lane.total <= best + NEVER;
      lane.node.classList.toggle("rs-wins", wins);
      const times = best ? lane.total / best : 1;
      lane.won.textContent = `${seconds(lane.total)}${wins ? " · fastest" : ` · ${Number(times.toPrecision(2))}× as long`}`;
    }
  }

  /** The clock has come to a moment: show it, and let time run on towards the next one while it plays. */
  #moved() {
    cancelAnimationFrame(this.animation);
    const { playback, time } = this;
    this.#show(time);
    const done = this.lanes.map(
      (lane) => `${lane.schedule.title} ${lane.doneAt(time)} of ${lane.schedule.steps} steps`,
    );
    const words = `${seconds(time)}: ${done.join(", ")}.`;
    this.caption.textContent = words;
    this.transport.update(`moment ${playback.step} of ${playback.steps}`, words);
    this.frame.root.dataset.step = String(playback.step);
    if (playback.playing && this.#welcomesMotion()) this.#run();
  }

  #run() {
    const begin = performance.now();
    const from = this.time;
    const to = this.moments[Math.min(this.playback.step + 1, this.playback.steps)];
    const { pace } = this.playback;
    const draw = (now) => {
      const share = pace ? Math.min(1, Math.max(0, (now - begin) / pace)) : 1;
      this.#show(from + (to - from) * share);
      if (share < 1 && this.playback.playing) this.animation = requestAnimationFrame(draw);
    };
    this.animation = requestAnimationFrame(draw);
  }

  #show(time) {
    if (!this.width) return; // it has no room yet: `#measure` will show it
    for (const lane of this.lanes) lane.show(time, this.longest);
  }

  #welcomesMotion() {
    return this.playback.watching.has(this) && !matchMedia("(prefers-reduced-motion: reduce)").matches;
  }

  #measure() {
    const width = Math.floor(this.lanes[0].host.clientWidth);
    const { on } = this.frame.projector;
    if (!width || (width === this.width && on === this.projected)) return;
    [this.width, this.projected] = [width, on];
    for (const lane of this.lanes) {
      lane.stage.resize({ width, tall: on ? 330 : 300, shape: this.shape, scale: on ? 1.5 : 1 });
      if (lane.flies) lane.stage.takeOff();
    }
    this.#show(this.time);
  }
}

export default () => {
  /** @type {Playback} one for all views, made with the first */
  let playback;
  return {
    render({ model, el, signal }) {
      return guarded(el, () => {
        playback ??= new Playback(model, 1);
        const data = model.get("data");
        let offset = data.byteOffset;
        const schedules = model.get("metas").map((meta) => {
          const length = 16 * meta.counts.reduce((sum, count) => sum + count, 0);
          offset += length;
          return decode(meta, new DataView(data.buffer, offset - length, length));
        });
        new RaceView({ el, model, schedules, playback, signal });
      });
    },
  };
};
