/**
 * A lane of a race: one schedule's picture, and its strip of time, at any moment of the race.
 *
 * Left out: the other lanes, who wins, and time itself (race.js).
 */

import { amount } from "./captions.js";
import { secondsOf, unitBytes, workOf } from "./cost.js";
import { made } from "./made.js";
import { Run } from "./schedule.js";
import { Stage } from "./stage.js";

export const NEVER = 1e-12; // seconds: moments closer than this are one

/** One schedule of a race: its picture, its strip of time. */
export class Lane {
  constructor(/** @type {import("./schedule.js").Schedule} */ schedule) {
    this.schedule = schedule;
    this.work = schedule.work ?? workOf(schedule);
    this.error = schedule.error ?? 0;
    this.run = new Run(schedule);
    this.node = made("section", "rs-lane");
    this.node.innerHTML = `<div class="rs-lanehead"><strong></strong><b class="rs-won"></b><span class="rs-muted"></span></div>
      <div class="rs-strip" aria-hidden="true"><div class="rs-steps"></div><i></i></div><div class="rs-stage"></div>`;
    const find = (selector) => /** @type {HTMLElement} */ (this.node.querySelector(selector));
    find("strong").textContent = schedule.title.replace(`${schedule.collective} `, ""); // which the race names
    this.caption = find(".rs-muted");
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
    const share = longest ? this.total / longest : 0;
    this.steps.style.width = `${100 * share}%`;
    this.steps.classList.toggle("rs-fine", this.schedule.steps > 100 * share); // slits would leave nothing of them
    this.steps.replaceChildren(
      ...this.schedule.counts.map((_, k) => {
        const block = document.createElement("u");
        block.style.flexGrow = String((this.ends[k + 1] - this.ends[k]) / (this.total || 1));
        return block;
      }),
    );
  }

  /** The number of the step that is under way at `time`, or has just been finished. */
  stepAt(time) {
    const done = this.doneAt(time);
    return done + Number(done < this.schedule.steps && time > this.ends[done] + NEVER);
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
    const step = this.stepAt(time);
    const flies = step > done;
    if (this.run.step !== step || this.flies !== flies) this.#enter(done, flies);
    if (flies) this.stage.fly((time - this.ends[done]) / (this.ends[done + 1] - this.ends[done]));
    const reached = Math.min(time, this.total);
    this.head.style.left = `${longest ? (100 * reached) / longest : 0}%`;
    this.steps.style.clipPath = `inset(0 ${this.total ? 100 * (1 - reached / this.total) : 0}% 0 0)`; // no step to come
    this.caption.textContent = `step ${this.run.step} of ${this.schedule.steps} · busiest rank sent ${this.busiest}`;
  }

  /** What the rank has sent that has sent most. */
  get busiest() {
    return amount(this.schedule, Math.max(...this.run.sent));
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
