/**
 * Where the content of one cell came from: the transfers that brought it, back to what ranks had of their own.
 *
 * Walks backwards from the cell and looks only at what is wanted: slots, and how many times each went into the cell.
 * Step by step that undoes what a Run does: transfers within a rank first, the last one first, then the messages, all of
 * which read what was there before the step. Left out: words (captions.js) and drawing (stage.js).
 */

import { originOf } from "./cell.js";
import { range } from "./schedule.js";

/**
 * @typedef {{step: number, part: import("./schedule.js").Transfer, from: number, to: number, times: number}} Hop one chunk
 *   of a transfer, from slot to slot (of new data both are the one it was put into); `step` counts from 1, and what it
 *   brought is `times` times in the cell
 * @typedef {{slot: number, step: number, origins: Map<number, number>, hops: Hop[]}} Trace of a slot after a step: whose
 *   data is in it how many times (see Cell), and the hops, oldest first
 */

/**
 * @param {import("./schedule.js").Run} run which has carried out these steps @param {number} slot
 * @returns {Trace}
 */
export function trace(run, slot, step = run.step) {
  const { knowledge } = run.schedule;
  /** @type {Map<number, number>} */
  const origins = new Map();
  /** @type {Hop[]} */
  const hops = [];
  const add = (/** @type {Map<number, number>} */ to, /** @type {number} */ key, /** @type {number} */ times) => {
    to.set(key, knowledge ? 1 : (to.get(key) ?? 0) + times);
  };
  /** Which slots' content goes into the cell, and how many times. @type {Map<number, number>} */
  let wanted = new Map([[slot, 1]]);
  for (let k = step; k > 0; k--) {
    const { transfers } = run.done[k - 1];
    /** @type {Map<number, number>} what messages have read: it was there before the step */
    const read = new Map();
    for (const part of transfers.toReversed()) {
      const within = part.src === part.dst;
      const first = run.slot(part.dstBuffer, part.dst, part.dstChunk);
      for (const i of within ? range(part.count).reverse() : covered(wanted, first, part.count)) {
        const to = first + i;
        const times = wanted.get(to);
        if (!times) continue;
        const from = part.made ? to : run.slot(part.srcBuffer, part.src, part.chunk + i);
        hops.push({ step: k, part, from, to, times });
        if (!part.sign) wanted.delete(to);
        if (part.made) add(origins, originOf(part.src, part.chunk + i), times);
        else add(within ? wanted : read, from, times);
      }
    }
    for (const [each, times] of read) add(wanted, each, times);
  }
  for (const [each, times] of wanted) for (const origin of run.begin[each].origins) add(origins, origin, times);
  return { slot, step, origins, hops: hops.reverse() };
}

/** Which of the `count` slots from `first` on are wanted, as distances, the last one first; looks through what is fewer. */
function covered(/** @type {Map<number, number>} */ wanted, /** @type {number} */ first, /** @type {number} */ count) {
  if (count <= wanted.size) return range(count).reverse();
  return [...wanted.keys()].map((slot) => slot - first).filter((i) => i >= 0 && i < count).sort((a, b) => b - a);
}
