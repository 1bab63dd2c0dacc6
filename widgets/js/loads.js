/**
 * What schedules put on the links of a topology: sums over steps, the busiest links, amounts in one unit.
 *
 * Python has worked out the bytes and the busy seconds of every link for each kind of step; steps that look alike to
 * the network are one kind. Left out: where the links are (wiring.js) and how they look (topology.js).
 */

import { range } from "./schedule.js";

/**
 * @typedef {object} Run one schedule
 * @property {string} title
 * @property {number[]} order of which kind each step is
 * @property {number[]} seconds how long each step takes
 * @property {[string, number][]} phases
 * @property {string[]} captions
 * @typedef {{bytes: Float64Array, seconds: Float64Array}} Use per link: carried, and busy for
 */

const ALIKE = 1e-9; // relative: links closer than this are equally busy
const UNITS = ["B", "kB", "MB", "GB", "TB"];

export class Loads {
  /**
   * @param {Run[]} runs
   * @param {DataView} data per run and kind of step: the bytes of every link, then the seconds
   * @param {number} links
   */
  constructor(runs, data, links) {
    this.runs = runs;
    this.links = links;
    let from = 0;
    /** @type {Float64Array[]} */
    this.kinds = runs.map(({ order }) => {
      const length = 2 * links * (Math.max(-1, ...order) + 1);
      const numbers = Float64Array.from(range(length), (i) => data.getFloat64(from + 8 * i, true));
      from += 8 * length;
      return numbers;
    });
    /** The most bytes that any link carries in all steps of any run, and in a single one. */
    this.largest = { all: 1, one: 1 };
    runs.forEach(({ order }, run) => {
      this.largest.all = Math.max(this.largest.all, ...this.use(run, 0, order.length).bytes);
      for (const step of range(order.length)) {
        this.largest.one = Math.max(this.largest.one, ...this.use(run, step, step + 1).bytes);
      }
    });
  }

  /** What the steps [from, to) of a run put on every link. @returns {Use} */
  use(/** @type {number} */ run, /** @type {number} */ from, /** @type {number} */ to) {
    const { links } = this;
    const use = { bytes: new Float64Array(links), seconds: new Float64Array(links) };
    for (const kind of this.runs[run].order.slice(from, to)) {
      for (let link = 0; link < links; link++) {
        use.bytes[link] += this.kinds[run][2 * kind * links + link];
        use.seconds[link] += this.kinds[run][(2 * kind + 1) * links + link];
      }
    }
    return use;
  }
}

/** The links that are busy for the longest time; none where nothing was sent. @returns {number[]} */
export function busiestLinks(/** @type {Use} */ { seconds }) {
  const most = Math.max(...seconds);
  return most ? range(seconds.length).filter((link) => seconds[link] >= most * (1 - ALIKE)) : [];
}

/** A unit in which `most` bytes have one to three digits, and how numbers are written in it. */
export function unitFor(/** @type {number} */ most) {
  const power = Math.min(Math.floor(Math.log10(most) / 3), UNITS.length - 1);
  const write = (/** @type {number} */ value) => {
    const inUnit = value / 1000 ** power;
    return inUnit < 0.01 ? "&lt;.01" : String(Number(inUnit.toPrecision(inUnit < 0.1 ? 1 : 3)));
  };
  return { name: UNITS[power], write };
}
