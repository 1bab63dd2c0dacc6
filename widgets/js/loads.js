/**
 * What schedules put on the links of a topology, step by step, and which links that makes the busiest.
 *
 * Left out: the picture (topology.js).
 */

import { range } from "./schedule.js";
import { bytes, plural } from "./words.js";

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

/** What schedules put on the links of a topology. */
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

/** ": 8 of 64 links are the bottleneck"; "" where nothing was sent. */
export function bottleneck(/** @type {Use} */ use) {
  const top = busiestLinks(use).length;
  const used = use.seconds.filter(Boolean).length;
  if (!top) return "";
  if (top === used) return `: all ${plural(used, "link")} are equally busy`;
  return `: ${top} of ${plural(used, "link")} ${top > 1 ? "are" : "is"} the bottleneck`;
}

/** How much went where, in words. @returns {[string, string][]} */
export function carriedIn(/** @type {Use} */ use, /** @type {import("./wiring.js").Room} */ { ranks, kind, links }) {
  const carried = (/** @type {number} */ from, /** @type {number} */ to) =>
    bytes(use.bytes.slice(from, to).reduce((all, one) => all + one, 0));
  if (kind !== "machines") return [["over all links", carried(0, links.length)]];
  const nics = 2 * ranks; // behind the GPUs' links, half of which lead out too
  return [["inside machines", carried(0, ranks)], ["between machines", carried(nics, (nics + links.length) / 2)]];
}
