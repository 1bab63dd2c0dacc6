/**
 * The clock of one widget: which step it stands at, whether it plays, how fast.
 *
 * One per model, so that two views of a widget never count twice. `step` and `playing` are the model's traits, so Python
 * reads and sets them too. The clock holds while no view can be seen.
 */

export const SPEEDS = [0.25, 0.5, 1, 2, 4, 8, 16];

const STEP_SECONDS = 1.8; // at speed 1: time to read a sentence

export class Playback {
  /** @param {any} model @param {number} steps */
  constructor(model, steps) {
    this.model = model;
    this.steps = steps;
    this.speed = 1;
    this.loop = false; // from the end it goes on at the start
    this.limit = Infinity; // a gate that is still closed: no step beyond it
    /** @type {Set<() => void>} called when somebody wants to go beyond it */
    this.halted = new Set();
    /** Seconds from a step to the next one, at speed 1. */
    this.secondsAfter = (/** @type {number} */ _step) => STEP_SECONDS;
    /** @type {Set<object>} */
    this.watching = new Set();
    this.timer = 0;
    this.listeners = new Set();
    model.on("change:step", () => this.#changed());
    model.on("change:playing", () => this.#changed());
  }

  get step() {
    return Math.max(0, Math.min(this.model.get("step"), this.last));
  }

  /** The last step that may be seen. */
  get last() {
    return Math.min(this.steps, this.limit);
  }

  get playing() {
    return this.model.get("playing");
  }

  /** Milliseconds from one step to the next. */
  get pace() {
    const long = this.step === this.steps ? STEP_SECONDS : this.secondsAfter(this.step);
    return (long * 1000) / this.speed;
  }

  /** Calls `listener` after every change of step, playing or speed, until `signal` ends. */
  listen(/** @type {() => void} */ listener, /** @type {AbortSignal} */ signal) {
    this.listeners.add(listener);
    signal.addEventListener("abort", () => this.listeners.delete(listener));
  }

  /** A gate has opened. */
  release() {
    this.limit = Infinity;
    this.#changed();
  }

  go(/** @type {number} */ step) {
    this.#set({ step: Math.max(0, Math.min(step, this.last)), playing: false });
    if (Math.min(step, this.steps) > this.limit) for (const tell of this.halted) tell();
  }

  /** Playing takes the first step at once; from the end it begins again at the start. */
  toggle() {
    if (this.playing) return this.pause();
    if (this.step === this.limit) return this.go(this.step + 1);
    const step = this.step === this.steps ? 0 : this.step + 1;
    return this.#set({ step, playing: this.loop || step < this.last });
  }

  /** Plays from the start after a moment to look at it. */
  begin() {
    if (this.step === 0 && this.steps) this.#set({ playing: true });
  }

  pause() {
    if (this.playing) this.#set({ playing: false });
  }

  setSpeed(/** @type {number} */ speed) {
    this.speed = speed;
    clearTimeout(this.timer);
    this.timer = 0;
    this.#changed();
  }

  setLoop(/** @type {boolean} */ loop) {
    this.loop = loop;
    this.#changed();
  }

  /** Until `signal`: it plays only while a view's root is in sight; `resized` when a node has another size. */
  attend(/** @type {any} */ view, root, /** @type {HTMLElement[]} */ nodes, resized, signal, sighted = () => {}) {
    const seen = (/** @type {boolean} */ visible) => {
      if (visible) this.watching.add(view);
      else this.watching.delete(view);
      this.#wind();
    };
    const sizes = new ResizeObserver(resized);
    for (const node of nodes) sizes.observe(node);
    const sight = new IntersectionObserver(([entry]) => {
      seen(entry.isIntersecting);
      sighted();
    });
    sight.observe(root);
    signal.addEventListener("abort", () => {
      sizes.disconnect();
      sight.disconnect();
      seen(false);
    });
  }

  #set(values) {
    for (const [name, value] of Object.entries(values)) this.model.set(name, value);
    this.model.save_changes();
  }

  #changed() {
    this.#wind();
    for (const listener of this.listeners) listener();
  }

  #wind() {
    const runs = this.playing && this.watching.size > 0;
    if (!runs) {
      clearTimeout(this.timer);
      this.timer = 0;
    } else if (!this.timer) {
      this.timer = setTimeout(() => this.#tick(), this.pace);
    }
  }

  #tick() {
    this.timer = 0;
    const { last } = this;
    const step = this.loop && this.step >= last ? 0 : Math.min(this.step + 1, last);
    this.#set({ step, playing: this.loop || step < last });
    this.#wind();
  }
}
