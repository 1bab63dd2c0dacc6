/**
 * One step's chunks under way: frame by frame, and the cells written when they have landed.
 *
 * Left out: what flies and where (stage.js), and when a step is taken (playback.js).
 */

/** One step's chunks under way. */
export class Flight {
  constructor(/** @type {import("./stage.js").Stage} */ stage) {
    this.stage = stage;
    this.animation = 0;
    /** @type {number[] | null} slots to write on landing */
    this.landing = null;
  }

  /** Lets the step just done fly for `long` milliseconds. False if it has too much to fly. */
  start(/** @type {number[]} */ changed, /** @type {number} */ long) {
    if (!this.stage.takeOff()) return false;
    this.landing = changed;
    const begin = performance.now();
    const draw = (/** @type {number} */ now) => {
      const t = Math.min(1, Math.max(0, (now - begin) / long));
      this.stage.fly(t);
      if (t < 1) this.animation = requestAnimationFrame(draw);
      else this.land();
    };
    this.stage.fly(0);
    this.animation = requestAnimationFrame(draw);
    return true;
  }

  /** Ends the flight now, if there is one. */
  land() {
    if (!this.landing) return;
    cancelAnimationFrame(this.animation);
    this.stage.land();
    this.stage.write(this.landing);
    this.landing = null;
  }
}
