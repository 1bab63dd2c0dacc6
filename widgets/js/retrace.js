/**
 * What a trace says: the cell, and hop by hop how its content came there; for recorded runs with lines of code.
 *
 * The sentence is that of collectives/trace.py, word for word. Left out: the walk itself (trace.js).
 */

import { symbolOf } from "./cell.js";
import { unpack } from "./schedule.js";

/**
 * @typedef {import("./schedule.js").Schedule} Schedule
 * @typedef {import("./trace.js").Trace} Trace
 */

const TOLD = 6; // hops, and origins, that the sentence names

/** "rank 2's chunk 1 = b1 + c1: from rank 1 in step 1 (line 6)." */
export function retrace(/** @type {Schedule} */ schedule, /** @type {Trace} */ { slot, hops, origins }) {
  const { buffers } = schedule;
  const { buffer, rank, chunk } = unpack(slot, schedule.ranks, schedule.chunks);
  const place = `rank ${rank}'s chunk ${chunk}${buffers[1] ? ` of '${buffers[buffer]}'` : ""}`;
  const told = hops.slice(0, TOLD).map((hop) => hopOf(schedule, hop));
  if (hops.length > TOLD) told.push(`and ${hops.length - TOLD} more hop${hops.length > TOLD + 1 ? "s" : ""}`);
  const how = told.join(", ") || (origins.size ? "there from the start" : "");
  return `${place} ${contentOf(origins, hops)}${how && ": "}${how}.`;
}

/** "= a0 + 2 b0", or "is made of a0, b0" where it is no sum. */
function contentOf(/** @type {Trace["origins"]} */ origins, /** @type {Trace["hops"]} */ hops) {
  if (!origins.size) return "holds nothing";
  const all = [...origins].sort(([one], [other]) => one - other);
  const parts = all.slice(0, TOLD).map(([origin, times]) => `${times > 1 ? `${times} ` : ""}${symbolOf(origin)}`);
  if (all.length > TOLD) parts.push(`${all.length - TOLD} more`);
  const adds = hops.every(({ part }) => part.sign === "" || part.sign === "+");
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
