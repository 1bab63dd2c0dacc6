/**
 * Race: schedules side by side on one clock, each step as long as it takes on a network.
 *
 * The clock's steps are the moments at which any schedule finishes one of its own; between two of them time runs on
 * evenly, so what flies in a lane flies as long as its step lasts. Sliders for N, latency and bandwidth change the
 * lengths at once, and with them the winner, who is named when all have come to their end.
 *
 * Left out: what a single step means (Player), and a lane by itself (lane.js).
 */

import { behindQuestion } from "./asking.js";
import { wholeOf } from "./captions.js";
import { guarded } from "./errors.js";
import { Frame } from "./frame.js";
import { greet } from "./greet.js";
import { Lane, NEVER } from "./lane.js";
import { layOut } from "./layout.js";
import { made } from "./made.js";
import { Playback } from "./playback.js";
import { decode } from "./schedule.js";
import { Transport } from "./transport.js";
import { bytes, ranksOf, seconds } from "./words.js";

const RACE_SECONDS = 15; // a whole race at speed 1
const ALIKE = 1e-9; // of the shortest time: a race decided by less is a tie

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

class RaceView {
  /** @type {Transport} */ transport;
  /** @type {HTMLElement} */ told;
  /** @type {HTMLInputElement[]} */ sliders;
  /** @type {Element[]} of a table that is heard, one per lane */ rows;
  /** @type {number} seconds of the slowest */ longest;
  /** @type {number[]} seconds at which a step of some schedule ends */ moments;

  constructor({ el, model, schedules, playback, signal }) {
    this.model = model;
    this.playback = playback;
    this.lanes = schedules.map((schedule) => new Lane(schedule));
    const most = Math.max(...this.lanes.map(({ stage, schedule }) => stage.survey.most / wholeOf(schedule)));
    for (const { stage, schedule } of this.lanes) stage.survey.most = most * wholeOf(schedule); // bars of one scale
    this.animation = 0;
    this.width = 0;
    this.tall = 0;
    /** @type {import("./survey.js").Shape} */
    this.shape = schedules.every((schedule) => schedule.local) ? "machines" : "row";
    const topology = model.get("topology");
    this.dials = model.get("measured") ? [] : topology ? FACTORS : SLIDERS;
    const { collective, ranks } = schedules[0];
    const reacts = { press: (key) => this.transport.press(key), resized: () => this.#measure(), blanked: () => playback.pause() };
    const size = [ranksOf(ranks), topology].filter(Boolean).join(" · ");
    this.title = `Race: ${collective}`;
    const given = { name: "rs-race", title: this.title, size };
    this.frame = new Frame(el, given, reacts, signal);
    this.#build();
    playback.listen(() => this.#moved(), signal);
    for (const { name } of this.dials) model.on(`change:${name}`, () => this.#settle());
    const all = [this.frame.root, ...this.lanes.map(({ host }) => host)];
    playback.attend(this, all[0], all, () => this.#measure(), signal, () => greet(model, all[0], () => {}));
    signal.addEventListener("abort", () => cancelAnimationFrame(this.animation));
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
    const across = this.crowded ? Math.ceil(this.lanes.length / 2) : this.lanes.length;
    body.innerHTML = `<div class="rs-sliders">${this.dials.map(slider).join("")}</div><div class="rs-lanes${this.crowded ? " rs-crowded" : ""}" style="--rs-across:${across};--rs-down:${Math.ceil(this.lanes.length / across)}"></div>
      <div class="rs-hidden"><table><caption>How far every schedule is</caption>
        <thead><tr><th scope="col">schedule</th><th scope="col">steps</th><th scope="col">busiest rank sent</th>
          <th scope="col">took</th></tr></thead>
        <tbody>${"<tr><th scope='row'></th><td></td><td></td><td></td></tr>".repeat(this.lanes.length)}</tbody></table></div>`;
    this.rows = [...body.querySelectorAll("tbody tr")];
    this.lanes.forEach(({ schedule }, i) => (this.rows[i].children[0].textContent = schedule.title));
    this.frame.find(".rs-lanes").append(...this.lanes.map((lane) => lane.node));
    this.transport = new Transport({ phases: [], steps: 0 }, this.playback);
    this.told = made("div", "rs-caption");
    this.told.innerHTML = `<b></b><span class="rs-hidden"></span>`;
    this.told.role = "status";
    this.transport.node.prepend(this.told);
    body.append(this.transport.node);
    this.sliders = [...body.querySelectorAll("[data-name]")];
    for (const input of this.sliders) {
      input.addEventListener("input", () => {
        this.model.set(input.dataset.name, 10 ** Number(input.value));
        this.model.save_changes();
      });
      input.addEventListener("keydown", (event) => /^(Arrow|Home|End)/.test(event.key) && event.stopPropagation()); // its own
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

  /** Who is there says how long it took; who is fastest, and by how much, shows at the end, before it who is ahead. */
  #nameWinner(time) {
    const winner = this.lanes.reduce((best, lane) => (lane.total < best.total ? lane : best));
    const best = winner.total;
    const within = (lane) => (lane === winner ? 0 : lane.error + winner.error);
    const alike = (lane) => lane.total <= best * (1 + ALIKE) + NEVER + within(lane);
    const ended = this.playback.step === this.playback.steps;
    const close = this.lanes.some((lane) => lane.error) ? "too close to tell" : "tie";
    const tied = this.lanes.filter(alike).length > 1;
    const first = tied ? close : "fastest";
    const second = this.lanes.filter((lane) => lane !== winner).reduce((one, other) => (other.total < one.total ? other : one));
    const next = second.total;
    const won = tied ? `${this.title}: ${close}` : `${winner.schedule.title} wins: ${second.schedule.title} takes ${longer(next / best)}`;
    const ahead = tied ? close : `${winner.schedule.title} is ahead`;
    this.frame.entitle(!time || next === Infinity ? this.title : ended ? won : `Not over yet: ${ahead}`);
    for (const lane of this.lanes) {
      lane.node.classList.toggle("rs-wins", ended && alike(lane));
      const place = ended && ` · ${alike(lane) ? first : longer(lane.total / best)}`;
      const took = seconds(lane.total) + (lane.error ? ` ± ${seconds(lane.error)}` : "");
      lane.won.textContent = lane.total <= time + NEVER ? took + (place || "") : "";
    }
  }

  /** The clock has come to a moment: show it, and let time run on towards the next one while it plays. */
  #moved() {
    cancelAnimationFrame(this.animation);
    const { playback, time } = this;
    this.#show(time);
    this.#nameWinner(time);
    this.lanes.forEach((lane, i) => {
      const steps = `${lane.stepAt(time)} of ${lane.schedule.steps}`;
      const told = [steps, lane.busiest, lane.won.textContent || "under way"];
      told.forEach((words, column) => (this.rows[i].children[column + 1].textContent = words));
    });
    const words = this.#tell(time);
    words.forEach((part, i) => (this.told.children[i].textContent = part));
    this.transport.update(`moment ${playback.step} of ${playback.steps}`, words.join(""));
    this.frame.root.dataset.step = String(playback.step);
    if (playback.playing && this.#welcomesMotion()) this.#run();
  }

  /** Whether lanes are so many that they stand in two lines, each as flat as it can be. */
  get crowded() {
    return this.lanes.length > 4;
  }

  /** How high a lane is in a notebook: two lines of them fit on a laptop with the controls. */
  #low() {
    if (this.lanes.length < 3 || innerHeight > 900 || this.frame.root.clientWidth < 900) return 300;
    return this.crowded ? 170 : 195;
  }

  /** The time, and at which step all are. */
  #tell(/** @type {number} */ time) {
    const done = this.lanes.map((lane) => `${lane.schedule.title} step ${lane.stepAt(time)} of ${lane.schedule.steps}`);
    return [seconds(time), `: ${done.join(", ")}.`];
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
    const { on } = this.frame.projector;
    const hosts = this.lanes.map((lane) => lane.host);
    const width = Math.floor(hosts[0].clientWidth);
    const tall = on ? Math.min(...hosts.map((host) => host.clientHeight)) : this.#low();
    if (!width || (width === this.width && tall === this.tall)) return;
    [this.width, this.tall] = [width, tall];
    const room = { width, tall, scale: on ? 1.5 : 1 };
    const fits = ({ schedule }) => layOut(schedule, { ...room, shape: this.shape }).height <= tall;
    const shape = on && !this.lanes.every(fits) ? "row" : this.shape;
    for (const lane of this.lanes) {
      lane.stage.resize({ ...room, shape });
      if (lane.flies) lane.stage.takeOff();
    }
    this.#show(this.time);
  }
}

/** @returns {string} "2.5× as long", or "4 % longer" where that says more */
function longer(/** @type {number} */ times) {
  if (times >= 1.095) return `${Number(times.toPrecision(2))}× as long`;
  return `${Number((100 * (times - 1)).toPrecision(1))} % longer`;
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
        behindQuestion({ model, el, signal }, (at) => void new RaceView({ el: at, model, schedules, playback, signal }));
      });
    },
  };
};
