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
    /** @type {Set<object>} */
    this.watching = new Set();
    this.timer = 0;
    this.listeners = new Set();
    model.on("change:step", () => this.#changed());
    model.on("change:playing", () => this.#changed());
  }

  get step() {
    return Math.max(0, Math.min(this.model.get("step"), this.steps));
  }

  get playing() {
    return this.model.get("playing");
  }

  /** Milliseconds from one step to the next. */
  get pace() {
    return (STEP_SECONDS * 1000) / this.speed;
  }

  /** Calls `listener` after every change of step, playing or speed, until `signal` ends. */
  listen(/** @type {() => void} */ listener, /** @type {AbortSignal} */ signal) {
    this.listeners.add(listener);
    signal.addEventListener("abort", () => this.listeners.delete(listener));
  }

  go(/** @type {number} */ step) {
    this.#set({ step: Math.max(0, Math.min(step, this.steps)), playing: false });
  }

  /** Playing takes the first step at once; from the end it begins again at the start. */
  toggle() {
    if (this.playing) return this.#set({ playing: false });
    const step = this.step === this.steps ? 0 : this.step + 1;
    return this.#set({ step, playing: step < this.steps });
  }

  setSpeed(/** @type {number} */ speed) {
    this.speed = speed;
    clearTimeout(this.timer);
    this.timer = 0;
    this.#changed();
  }

  /** A view says whether it can be seen. */
  seen(/** @type {object} */ view, /** @type {boolean} */ visible) {
    if (visible) this.watching.add(view);
    else this.watching.delete(view);
    this.#wind();
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
    const step = Math.min(this.step + 1, this.steps);
    this.#set({ step, playing: step < this.steps });
    this.#wind();
  }
}
