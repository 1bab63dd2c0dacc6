/**
 * Player: one schedule, played. Puts the picture, the sentence, the controls and the counters together.
 *
 * A key or click moves the clock (playback.js); the clock tells every view; a view seeks its Run there, redraws what
 * changed and, where motion is welcome, lets the chunks of that one step fly first. Stills carry the whole lesson:
 * the flight only links two of them.
 */

import { gateOf } from "./asking.js";
import { placeOf, titleOf } from "./captions.js";
import { guarded } from "./errors.js";
import { Flight } from "./flight.js";
import { Frame } from "./frame.js";
import { greet, still } from "./greet.js";
import { VIEWS } from "./labels.js";
import { Playback } from "./playback.js";
import { reserve } from "./reserve.js";
import { readable, roomOf } from "./room.js";
import { decode, Run } from "./schedule.js";
import { Stage } from "./stage.js";
import { shapesOf, survey } from "./survey.js";
import { StateTable } from "./table.js";
import { NUMBERS, Telling, TOLD } from "./telling.js";
import { KEYS, Transport } from "./transport.js";
import { plural, ranksOf } from "./words.js";

const LONGEST_FLIGHT = 900; // ms

/** @type {[string, string]} */
const TRACE = ["Enter", "trace: where the content of that cell came from (or click a cell); Esc or a second time ends it"];
/** @type {[string, string]} */
const ANSWER = ["1 … 9 ⌫", "at the question: choose an answer, in projector mode count a hand, the last one back; Enter: check"];
const AFTER = KEYS.findIndex(([key]) => key === "[ ]") + 1;

class PlayerView {
  /** @type {Frame} */ frame;
  /** @type {HTMLElement} */ root;
  /** @type {string} what the header says beside the title */ size;
  /** @type {Record<string, any>} */ parts;
  /** @type {Transport} */ transport;
  /** @type {StateTable} */ table;
  /** @type {import("./predict.js").Gate} where there is a question */ gate;
  /** @type {import("./room.js").Given} */ room;
  /** @type {number | null} the slot that the pointer was pressed on */ pressed = null;

  /**
   * @param {{model: any, el: HTMLElement, schedule: import("./schedule.js").Schedule, playback: Playback,
   *          signal: AbortSignal}} given
   */
  constructor({ model, el, schedule, playback, signal }) {
    this.model = model;
    this.schedule = schedule;
    this.playback = playback;
    this.signal = signal;
    this.run = new Run(schedule);
    this.shapes = shapesOf(schedule, survey(schedule));
    this.shape = this.shapes[0];
    this.#build(el);
    this.stage = new Stage(this.parts.stage, schedule, this.run);
    this.parts.view.value = this.stage.view;
    this.telling = new Telling(this.frame, schedule, this.stage);
    this.flight = new Flight(this.stage);
    if (model.get("question")) this.#ask();
    this.#wire();
    this.#measure();
  }

  #build(el) {
    const { ranks, chunks, steps } = this.schedule;
    const option = (value) => `<option>${value}</option>`;
    const picks = `<span class="rs-means">stripe: whose data<span>, dashed: sent, bold: new</span></span>
      <label class="rs-pick"><span>show</span><select class="rs-view">${VIEWS.map(option).join("")}</select></label>
      <label class="rs-pick" ${this.shapes.length > 1 ? "" : "hidden"}><span>as</span>
        <select class="rs-shape">${this.shapes.map(option).join("")}</select></label>`;
    const facts = [ranksOf(ranks), plural(chunks, "chunk"), plural(steps, "step"), placeOf(this.schedule)];
    this.size = facts.filter(Boolean).join(" · ");
    const open = () => this.stage.tracing !== null;
    const blanked = () => this.playback.pause();
    const reacts = { press: (key) => this.#press(key), resized: () => this.#measure(), open, blanked };
    const keys = KEYS.toSpliced(AFTER, 0, TRACE, ...(this.model.get("question") ? [ANSWER] : []));
    this.frame = new Frame(el, { name: "rs-player", title: this.schedule.title, size: this.size, picks, keys }, reacts, this.signal);
    this.frame.body.innerHTML = `<div class="rs-stage"></div>${TOLD}${NUMBERS}`;
    this.root = this.frame.root;
    /** @type {Record<string, any>} */
    this.parts = Object.fromEntries(["stage", "view", "shape"].map((name) => [name, this.frame.find(`.rs-${name}`)]));
    this.parts.shape.value = this.shape;
    this.transport = new Transport(this.schedule, this.playback);
    this.frame.find(".rs-foot").before(this.transport.node);
    this.table = new StateTable(this.schedule, this.run);
    this.root.append(this.table.node);
  }

  #wire() {
    const { model, playback, signal, parts, root } = this;
    playback.listen(() => this.#moved(), signal);
    parts.view.addEventListener("change", () => this.#show(parts.view.value));
    parts.shape.addEventListener("change", () => this.#reshape(parts.shape.value));
    // Not "click", which a browser leaves out when what was pressed is drawn anew before it is released.
    parts.stage.addEventListener("pointerdown", (event) => (this.pressed = this.stage.slotAt(event)));
    parts.stage.addEventListener("pointerup", (event) => this.#release(event));
    parts.stage.addEventListener("pointermove", (event) => this.#point(event));
    parts.stage.addEventListener("pointerleave", () => this.telling.detail());

    playback.attend(this, root, [parts.stage], () => this.#measure(), signal, () => greet(model, root, () => playback.begin()));
    signal.addEventListener("abort", () => {
      this.flight.land();
      this.telling.own.show(this.root, []);
    });
  }

  #press(key) {
    if (this.gate?.press(key)) return true;
    if (key === "v") this.#show(VIEWS[(VIEWS.indexOf(this.stage.view) + 1) % VIEWS.length]);
    else if (key === "ArrowUp" || key === "ArrowDown") this.#follow("rank", key === "ArrowDown" ? 1 : -1);
    else if (key === "Enter" && this.stage.followed !== null) this.#pick(this.stage.followed);
    else if (key === "Escape") this.#trace(null);
    else if (key === "[" || key === "]") this.#follow("chunk", key === "]" ? 1 : -1);
    else return this.transport.press(key);
    return true;
  }

  /** The clock has moved: the words and numbers at once, the cells when what flies has landed. */
  #moved() {
    const { run, playback, stage } = this;
    if (!this.room) return; // not to be seen yet: `#draw` will catch up
    if (run.step !== playback.step) {
      this.flight.land();
      const forward = playback.step === run.step + 1;
      const changed = run.seek(playback.step);
      stage.showStep();
      const long = Math.min(LONGEST_FLIGHT, playback.pace * 0.6);
      const flies = forward && stage.tracing === null && this.#welcomesMotion() && this.flight.start([...changed], long);
      if (!flies) stage.write(changed);
      this.table.update(changed);
    }
    this.#tell();
  }

  #welcomesMotion() {
    return this.playback.watching.has(this) && !still();
  }

  /** The words, the scrubber. */
  #tell() {
    this.transport.update(...this.telling.tell());
    if (!this.root.classList.contains("rs-closed")) this.frame.entitle(...titleOf(this.schedule, this.run, this.size));
    this.root.dataset.step = String(this.run.step);
  }

  /** A press on a cell traces it, or chooses it at a gate; the keyboard is in the player afterwards. */
  #release(event) {
    const slot = this.stage.slotAt(event);
    if (event.button !== 0 || slot !== this.pressed) return;
    this.transport.scrubber.focus({ preventScroll: true });
    if (slot !== null) return this.#pick(slot);
    this.stage.chunk = null;
    return this.#trace(null);
  }

  #pick(/** @type {number} */ slot) {
    return this.#atGate() ? this.#choose(slot) : this.#trace(slot === this.stage.tracing ? null : slot);
  }

  /** Shows where the content of a cell came from, in this step and those that follow; null ends it. */
  #trace(/** @type {number | null} */ slot) {
    this.flight.land();
    this.stage.tracing = slot;
    this.stage.showStep();
    this.telling.detail();
  }

  /** Whether the picture stands before a closed gate that asks for cells. */
  #atGate() {
    return this.playback.step === this.playback.limit && this.gate?.asksCells;
  }

  #choose(slot) {
    this.gate.choose(slot);
    this.stage.choose(this.gate.chosen);
  }

  /**
   * Puts the question in front: until it is answered or skipped nothing can be seen that tells. An answer opens the way
   * and goes to the step that shows it.
   */
  #ask() {
    const { schedule, playback, frame, model } = this;
    this.gate = gateOf(model, { schedule, room: () => frame.projector.on }, (answer) => this.#opened(answer), this.signal);
    frame.find(".rs-transport").before(this.gate.node);
    if (this.gate.open) return;
    playback.limit = this.gate.limit;
    const remind = () => this.gate.remind();
    playback.halted.add(remind);
    this.signal.addEventListener("abort", () => playback.halted.delete(remind));
    this.root.classList.add("rs-closed", this.gate.asksCells ? "rs-asks-cells" : "rs-asks-words");
    frame.entitle(this.gate.asksCells ? schedule.title : "Your guess first", ranksOf(schedule.ranks));
  }

  #opened(/** @type {any} */ answer) {
    if (!this.gate) return; // it was answered before this view was there
    this.root.classList.remove("rs-closed");
    this.playback.release();
    if (answer.step) this.playback.go(answer.step);
    if (!this.room) return;
    this.telling.hold();
    this.room.tall = 0; // what was drawn hid something
    this.#measure();
  }

  #point(event) {
    const slot = this.stage.slotAt(event);
    if (slot !== null) this.telling.detail(slot);
  }

  #show(view) {
    this.flight.land();
    this.parts.view.value = view;
    this.stage.show(view);
  }

  #reshape(shape) {
    this.shape = shape;
    this.reshaped = true;
    this.#draw();
  }

  /** The next rank, or the next chunk; with a rank followed, through all its buffers. After the last one: nobody. */
  #follow(/** @type {"rank" | "chunk"} */ what, /** @type {number} */ by) {
    const { stage, schedule } = this;
    const { chunks, ranks, buffers } = schedule;
    const next = (/** @type {number} */ now, /** @type {number} */ count) => ((now + by + count + 2) % (count + 1)) - 1;
    if (what === "rank") {
      const rank = next(stage.rank ?? -1, ranks);
      stage.rank = rank < 0 ? null : rank;
    } else {
      const now = stage.chunk === null ? -1 : stage.buffer * chunks + stage.chunk;
      const place = next(now, stage.rank === null ? chunks : chunks * buffers.length);
      stage.buffer = Math.max(0, Math.floor(place / chunks));
      stage.chunk = place < 0 ? null : place % chunks;
    }
    stage.showStep();
    this.telling.detail();
  }

  /** Draws anew if there is other room than before. */
  #measure() {
    const { stage } = this.parts;
    const width = Math.floor(stage.clientWidth);
    if (width && width !== this.room?.width) {
      reserve(this.frame.find(".rs-header"), [titleOf(this.schedule, {}, this.size)]); // it is longer than at the end
      this.telling.hold();
    }
    const room = roomOf(this.frame, stage, this.schedule.ranks, this.gate?.node);
    if (width === 0 || (width === this.room?.width && room.tall === this.room.tall)) return;
    this.room = room;
    this.#draw();
  }

  #draw() {
    this.flight.land();
    this.table.update(this.run.seek(this.playback.step));
    this.parts.shape.value = this.#readable();
    this.stage.resize({ ...this.room, shape: this.parts.shape.value });
    this.#tell();
  }

  /** What a question hides, ring or tree, is a row, as its places would tell the way. */
  #readable() {
    const { room, schedule, shape, root } = this;
    if (root.classList.contains("rs-asks-words") && root.classList.contains("rs-closed") && !schedule.local) return "row";
    return this.reshaped && room.scale === 1 ? shape : readable(schedule, room, shape, this.stage.view);
  }
}

export default () => {
  /** @type {Playback} one for all views, made with the first */
  let playback;
  return {
    render({ model, el, signal }) {
      return guarded(el, () => {
        playback ??= new Playback(model, model.get("meta").counts.length);
        const schedule = decode(model.get("meta"), model.get("data"));
        new PlayerView({ model, el, schedule, playback, signal });
      });
    },
  };
};
