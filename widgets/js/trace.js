/**
 * Where the content of one cell came from: the transfers that brought it, back to what ranks had of their own; and that
 * in words, hop by hop, for recorded runs with lines of code.
 *
 * Walks backwards from the cell and looks only at what is wanted: slots, and how many times each went into the cell.
 * Step by step that undoes what a Run does: transfers within a rank first, the last one first, then the messages, all of
 * which read what was there before the step. The sentence is that of collectives/trace.py, word for word. Left out:
 * drawing (messages.js).
 */

import { originOf, symbolOf } from "./cell.js";
import { range, unpack } from "./schedule.js";

/**
 * @typedef {{step: number, part: import("./schedule.js").Transfer, from: number, to: number, times: number}} Hop one chunk
 *   of a transfer, from slot to slot (of new data both are the one it was put into); `step` counts from 1, and what it
 *   brought is `times` times in the cell
 * @typedef {{slot: number, step: number, origins: Map<number, number>, hops: Hop[]}} Trace of a slot after a step: whose
 *   data is in it how many times (see Cell), and the hops, oldest first
 * @typedef {import("./schedule.js").Schedule} Schedule
 */

const NAMED = 6; // hops, and origins, that the sentence names

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
  for (const [each, times] of wanted) for (const [origin, held] of run.begin[each].terms) add(origins, origin, held * times);
  return { slot, step, origins, hops: hops.reverse() };
}

/** Which of the `count` slots from `first` on are wanted, as distances, the last one first; looks through what is fewer. */
function covered(/** @type {Map<number, number>} */ wanted, /** @type {number} */ first, /** @type {number} */ count) {
  if (count <= wanted.size) return range(count).reverse();
  return [...wanted.keys()].map((slot) => slot - first).filter((i) => i >= 0 && i < count).sort((a, b) => b - a);
}

/** What the cells on a trace held when a message took it from them, for the last time. @returns {Map<number, import("./cell.js").Cell>} */
export function sentOn(/** @type {import("./schedule.js").Run} */ run, /** @type {Trace} */ { hops }) {
  const sent = hops.filter(({ part }) => part.src !== part.dst);
  return new Map(sent.map(({ from, step }) => [from, run.heldBefore(from, step)]));
}

/** "rank 2's chunk 1 = b1 + c1: from rank 1 in step 1 (line 6)." */
export function retrace(/** @type {Schedule} */ schedule, /** @type {Trace} */ { slot, hops, origins }) {
  const { buffers } = schedule;
  const { buffer, rank, chunk } = unpack(slot, schedule.ranks, schedule.chunks);
  const place = `rank ${rank}'s chunk ${chunk}${buffers[1] ? ` of '${buffers[buffer]}'` : ""}`;
  const named = hops.slice(0, NAMED).map((hop) => hopOf(schedule, hop));
  if (hops.length > NAMED) named.push(`and ${hops.length - NAMED} more hop${hops.length > NAMED + 1 ? "s" : ""}`);
  const how = named.join(", ") || (origins.size ? "there from the start" : "");
  return `${place} ${contentOf(origins, hops)}${how && ": "}${how}.`;
}

/** "= a0 + 2 b0", or "is made of a0, b0" where it is no sum. */
function contentOf(/** @type {Trace["origins"]} */ origins, /** @type {Trace["hops"]} */ hops) {
  if (!origins.size) return "holds nothing";
  const all = [...origins].sort(([one], [other]) => one - other);
  const parts = all.slice(0, NAMED).map(([origin, times]) => `${times > 1 ? `${times} ` : ""}${symbolOf(origin)}`);
  if (all.length > NAMED) parts.push(`${all.length - NAMED} more`);
  const adds = hops.every(({ part }) => !part.averages && (part.sign === "" || part.sign === "+"));
  return adds ? `= ${parts.join(" + ")}` : `is made of ${parts.join(", ")}`;
}

/** "from rank 1 in step 1 (line 6)", "within rank 2 in step 3", "computed by rank 0 in step 2" */
function hopOf(/** @type {Schedule} */ schedule, /** @type {Trace["hops"][number]} */ { step, part }) {
  const { src, dst, made } = part;
  const how = made ? `${made} ${made === "computed" ? "by" : "on"}` : src === dst ? "within" : "from";
  const lines = [...new Set(linesOf(schedule, step, src).map(([, line]) => line))].sort((a, b) => a - b);
  const written = lines.length ? ` (line${lines.length > 1 ? "s" : ""} ${lines.join(" and ")})` : "";
  return `${how} rank ${src} in step ${step}${written}`;
}

/** What a rank's code sent in a step (from 1): [rank, line, code]; nothing of an algorithm. */
function linesOf(/** @type {Schedule} */ schedule, /** @type {number} */ step, /** @type {number} */ rank) {
  return (schedule.sources?.[step - 1] ?? []).filter(([sender]) => sender === rank);
}

/** The lines of code on a trace, each with its steps: "line 7: dist.send(...)  (steps 1, 2, 3)" */
export function sourcesOn(/** @type {Schedule} */ schedule, /** @type {Trace} */ { hops }) {
  /** @type {Map<string, Set<number>>} */
  const lines = new Map();
  for (const { step, part } of hops) {
    for (const [, line, code] of linesOf(schedule, step, part.src)) {
      const key = `line ${line}: ${code}`;
      lines.set(key, (lines.get(key) ?? new Set()).add(step));
    }
  }
  return [...lines].map(([words, steps]) => `${words}  (step${steps.size > 1 ? "s" : ""} ${[...steps].join(", ")})`);
}
