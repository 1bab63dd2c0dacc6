/**
 * Player: one schedule, played. Puts the picture, the sentence, the controls and the counters together.
 *
 * A key or click moves the clock (playback.js); the clock tells every view; a view seeks its Run there, redraws what
 * changed and, where motion is welcome, lets the chunks of that one step fly first. Stills carry the whole lesson:
 * the flight only links two of them.
 */

import { amount, busiest, explain, plural, position, sentence, sourcesOf, story, title } from "./captions.js";
import { guarded } from "./errors.js";
import { VIEWS } from "./labels.js";
import { bestShape, notebookHeight } from "./layout.js";
import { Playback } from "./playback.js";
import { Projector } from "./projector.js";
import { decode, Run } from "./schedule.js";
import { Stage } from "./stage.js";
import { StateTable } from "./table.js";
import { KEYS, listenToKeys, Transport } from "./transport.js";

const LONGEST_FLIGHT = 900; // ms
const SCREEN = "M3 8V3h5v2H5v3zM12 3h5v5h-2V5h-3zM3 12h2v3h3v2H3zM15 12h2v5h-5v-2h3z";

class PlayerView {
  /** @param {{el: HTMLElement, schedule: import("./schedule.js").Schedule, playback: Playback, signal: AbortSignal}} given */
  constructor({ el, schedule, playback, signal }) {
    this.schedule = schedule;
    this.playback = playback;
    this.signal = signal;
    this.run = new Run(schedule);
    /** @type {"row" | "ring"} */
    this.shape = bestShape(schedule);
    this.frame = 0;
    this.#build(el);
    this.stage = new Stage(this.parts.stage, schedule, this.run);
    this.#wire();
    this.run.seek(playback.step);
    this.#measure();
    this.#tell();
  }

  #build(el) {
    const { ranks, chunks, steps } = this.schedule;
    const option = (value) => `<option>${value}</option>`;
    const size = `${plural(ranks, "rank")} · ${plural(chunks, "chunk")} · ${plural(steps, "step")}`;
    el.innerHTML = `<div class="ringside rs-player" role="group">
      <div class="rs-header"><strong class="rs-title"></strong><span class="rs-muted">${size}</span>
        <span class="rs-space"></span>
        <label class="rs-pick"><span>show</span><select class="rs-view">${VIEWS.map(option).join("")}</select></label>
        <label class="rs-pick"><span>as</span><select class="rs-shape">${option("row")}${option("ring")}</select></label>
        <button type="button" class="rs-project" aria-label="projector mode" title="projector mode">
          <svg viewBox="0 0 20 20" aria-hidden="true"><path d="${SCREEN}"/></svg></button>
        <button type="button" class="rs-help" aria-expanded="false" aria-label="keys" title="keys">?</button></div>
      <dl class="rs-keys" hidden>${KEYS.map(([key, what]) => `<dt>${key}</dt><dd>${what}</dd>`).join("")}</dl>
      <div class="rs-stagehost"></div>
      <div class="rs-caption" role="status" aria-live="polite"><b class="rs-where"></b> <span class="rs-sentence"></span>
        <div class="rs-detail"></div></div>
      <pre class="rs-sources" hidden></pre>
      <div class="rs-counters"></div></div>`;
    const find = (selector) => /** @type {any} */ (el.querySelector(selector));
    this.root = el.firstElementChild;
    this.parts = {
      stage: find(".rs-stagehost"),
      where: find(".rs-where"),
      sentence: find(".rs-sentence"),
      detail: find(".rs-detail"),
      counters: find(".rs-counters"),
      view: find(".rs-view"),
      shape: find(".rs-shape"),
      sources: find(".rs-sources"),
      project: find(".rs-project"),
      help: find(".rs-help"),
      keys: find(".rs-keys"),
    };
    find(".rs-title").textContent = title(this.schedule);
    this.root.setAttribute("aria-label", `${title(this.schedule)}, ${plural(ranks, "rank")}`);
    this.parts.shape.value = this.shape;
    this.transport = new Transport(this.schedule, this.playback);
    this.parts.counters.before(this.transport.node);
    this.table = new StateTable(this.schedule, this.run);
    this.root.append(this.table.node);
    this.projector = new Projector(this.root, () => this.#measure(), this.signal);
  }

  #wire() {
    const { signal, parts, root } = this;
    this.playback.listen(() => this.#moved(), signal);
    listenToKeys(root, (key) => this.#press(key));
    parts.view.addEventListener("change", () => this.#show(parts.view.value));
    parts.shape.addEventListener("change", () => this.#reshape(parts.shape.value));
    parts.help.addEventListener("click", () => this.#help());
    parts.project.addEventListener("click", () => this.projector.toggle());
    parts.stage.addEventListener("click", (event) => this.#click(event));
    parts.stage.addEventListener("pointermove", (event) => this.#point(event));
    parts.stage.addEventListener("pointerleave", () => this.#detail());

    const resized = new ResizeObserver(() => this.#measure());
    resized.observe(parts.stage);
    const seen = new IntersectionObserver(([entry]) => this.playback.seen(this, entry.isIntersecting));
    seen.observe(root);
    signal.addEventListener("abort", () => {
      cancelAnimationFrame(this.frame);
      resized.disconnect();
      seen.disconnect();
      this.playback.seen(this, false);
    });
  }

  #press(key) {
    if (key === "?") this.#help();
    else if (key === "v") this.#show(VIEWS[(VIEWS.indexOf(this.stage.view) + 1) % VIEWS.length]);
    else if (key === "ArrowUp" || key === "ArrowDown") this.#follow("rank", key === "ArrowDown" ? 1 : -1);
    else if (key === "[" || key === "]") this.#follow("chunk", key === "]" ? 1 : -1);
    else if (key === "p") this.projector.toggle();
    else if (key === "b" && this.projector.on) this.projector.blank();
    else return this.transport.press(key);
    return true;
  }

  /** The clock has moved: the words and numbers at once, the cells when what flies has landed. */
  #moved() {
    const { run, playback, stage } = this;
    if (run.step !== playback.step) {
      this.#land();
      const forward = playback.step === run.step + 1;
      const changed = run.seek(playback.step);
      stage.showStep();
      if (forward && this.#welcomesMotion() && stage.takeOff()) this.#fly([...changed]);
      else stage.write(changed);
      this.table.update(changed);
    }
    this.#tell();
  }

  #fly(changed) {
    const long = Math.min(LONGEST_FLIGHT, this.playback.pace * 0.6);
    const begin = performance.now();
    this.landing = changed;
    const draw = (now) => {
      const t = Math.min(1, Math.max(0, (now - begin) / long));
      this.stage.fly(t);
      if (t < 1) this.frame = requestAnimationFrame(draw);
      else this.#land();
    };
    this.stage.fly(0);
    this.frame = requestAnimationFrame(draw);
  }

  #land() {
    if (!this.landing) return;
    cancelAnimationFrame(this.frame);
    this.stage.land();
    this.stage.write(this.landing);
    this.landing = null;
  }

  #welcomesMotion() {
    return this.playback.watching.has(this) && !matchMedia("(prefers-reduced-motion: reduce)").matches;
  }

  /** Sentence, counters and scrubber. */
  #tell() {
    const { schedule, run, parts } = this;
    const words = sentence(schedule, run);
    parts.where.textContent = `${position(schedule, run.step)}.`.replace(/^./, (letter) => letter.toUpperCase());
    parts.sentence.textContent = words;
    this.transport.update(words);
    const top = busiest(run);
    const whole = run.sent.reduce((sum, value) => sum + value, 0);
    const who = top.all
      ? "every rank"
      : top.ranks.length > 2
        ? `${top.ranks.length} ranks`
        : top.ranks.map((rank) => `rank ${rank}`).join(", ");
    const counters = [
      ["steps", `${run.step} of ${schedule.steps}`],
      ["messages", `${run.messages}`],
      ["sent in all", amount(schedule, whole)],
      ["busiest", top.ranks.length ? `${who}, sent ${amount(schedule, top.most)}` : "nobody yet"],
    ];
    parts.counters.replaceChildren(...counters.map(([name, value]) => counter(name, value)));
    const sources = sourcesOf(schedule, run);
    parts.sources.hidden = schedule.sources === null;
    parts.sources.textContent = sources.join("\n");
    this.root.dataset.step = String(run.step);
    this.#detail();
  }

  /** A line about what is pointed at, else about what is followed. */
  #detail(slot = null) {
    const { schedule, run, stage } = this;
    const { rank, chunk } = stage;
    const followed = rank !== null && chunk !== null ? run.slot(0, rank, chunk) : null;
    const cell = slot ?? followed;
    const words = cell !== null ? explain(schedule, run, cell) : rank !== null ? story(schedule, run, rank) : "";
    this.parts.detail.textContent = words;
  }

  /** A click follows the chunk of a cell, or lets it go; the keyboard is in the player afterwards. */
  #click(event) {
    const slot = this.stage.slotAt(event);
    const chunk = slot === null ? null : slot % this.schedule.chunks;
    this.stage.chunk = chunk === this.stage.chunk ? null : chunk;
    this.stage.showStep();
    this.transport.scrubber.focus({ preventScroll: true });
  }

  #point(event) {
    const slot = this.stage.slotAt(event);
    if (slot !== null) this.#detail(slot);
  }

  #show(view) {
    this.#land();
    this.parts.view.value = view;
    this.stage.show(view);
  }

  #reshape(shape) {
    this.shape = shape;
    this.#draw();
  }

  #follow(what, by) {
    const places = this.schedule[`${what}s`] + 1; // one of them: nobody
    const now = this.stage[what] ?? -1;
    const next = ((now + 1 + by + places) % places) - 1;
    this.stage[what] = next < 0 ? null : next;
    this.stage.showStep();
    this.#detail();
  }

  #help() {
    const { keys, help } = this.parts;
    keys.hidden = !keys.hidden;
    help.setAttribute("aria-expanded", String(!keys.hidden));
  }

  /** Draws anew if there is other room than before. */
  #measure() {
    const { stage } = this.parts;
    const { on } = this.projector;
    const width = Math.floor(stage.clientWidth);
    const tall = on ? Math.max(stage.clientHeight, 200) : notebookHeight(width);
    if (width === 0 || (width === this.room?.width && tall === this.room.tall)) return;
    this.room = { width, tall, scale: on ? 1.5 : 1 };
    this.#draw();
  }

  #draw() {
    this.#land();
    this.stage.resize({ ...this.room, shape: this.shape });
  }
}

function counter(name, value) {
  const node = document.createElement("span");
  node.innerHTML = "<span class='rs-muted'></span> <b></b>";
  node.children[0].textContent = name;
  node.children[1].textContent = value;
  return node;
}

export default () => {
  /** @type {Playback} */
  let playback;
  return {
    initialize({ model }) {
      playback = new Playback(model, model.get("meta").counts.length);
    },
    render({ model, el, signal }) {
      return guarded(el, () => {
        const schedule = decode(model.get("meta"), model.get("data"));
        new PlayerView({ el, schedule, playback, signal });
      });
    },
  };
};
