/**
 * What a Timeline says: of one rank's call, of the call of all ranks that it is one side of, and of a run as a whole.
 *
 * Left out: the arithmetic (spans.js), and where the words stand (timeline.js).
 */

import { plural } from "./captions.js";
import { meeting, totals } from "./spans.js";
import { bytes, seconds } from "./units.js";

/** @typedef {import("./spans.js").Measured & import("./spans.js").Stay & {number: number}} Call */

const NAMED = 3; // ranks that waited are named; of more only the one that waited longest

/** One call in measured seconds. */
export function describe(/** @type {Call} */ call) {
  const whom = call.peer === null ? "" : `${{ send: " to", recv: " from" }[call.op] ?? " with root"} rank ${call.peer}`;
  const what = `Rank ${call.rank}: ${call.op}${whom}, ${bytes(call.bytes)}${call.line ? `, line ${call.line}` : ""}.`;
  const { away, held, hidden } = totals([call]);
  const share = away > 0 ? Math.round((100 * hidden) / away) : 0;
  const rest = call.unsure.length
    ? "nobody waited for it in Python, so what the rank did meanwhile, its own work or a wait inside torch, is not known"
    : `${share} % of it was hidden behind the rank's own work`;
  return `${what} Began at ${seconds(call.from)}, under way for ${seconds(away)}; it held the rank for ${seconds(held)}, and ${rest}.`;
}

/** Who came last to a call of several ranks, and who waited for that rank; `sides` are those that are drawn. */
export function compare(/** @type {Call[]} */ sides) {
  const [{ label, sides: count, match }] = sides;
  if (match === null) return "The other side of this message was not recorded.";
  const lacking = count > sides.length ? ` Only ${sides.length} of its ${plural(count, "rank")} are drawn.` : "";
  if (sides.length === 1) return count === 1 ? `${label}: no other rank takes part.` : `${label}.${lacking}`;
  const { last, seconds: waited, unsure } = meeting(sides);
  const late = last.from - Math.min(...sides.map(({ from }) => from));
  const told = sides
    .map(({ rank }, i) => ({ rank, long: waited[i] }))
    .filter(({ long }) => long > 0)
    .sort((a, b) => b.long - a.long);
  const unknown = "whether others waited for it inside torch is not known";
  const who = told.length ? waits(told) + (unsure ? `; ${unknown}` : "") : unsure ? unknown : "no rank waited for it";
  return `${label}: rank ${last.rank} came last, ${seconds(late)} after the first; ${who}.${lacking}`;
}

/** "rank 0 waited 1.2 ms for it, rank 1 900 µs"; of many "7 ranks waited for it, rank 0 longest: 1.2 ms" */
function waits(/** @type {{rank: number, long: number}[]} */ told) {
  const [{ rank, long }, ...others] = told;
  if (others.length >= NAMED) return `${told.length} ranks waited for it, rank ${rank} longest: ${seconds(long)}`;
  const more = others.map((other) => `, rank ${other.rank} ${seconds(other.long)}`);
  return `rank ${rank} waited ${seconds(long)} for it${more.join("")}`;
}

/** The rank that was held longest; `ranks` are the calls of each, `end` is the end of the run in seconds. */
export function overview(/** @type {Call[][]} */ ranks, /** @type {number} */ end) {
  if (!ranks.some((calls) => calls.length)) return "No rank called torch.distributed while this was recorded.";
  const sums = ranks.map((calls) => totals(calls));
  const most = sums.reduce((best, sum, rank) => (sum.held > sums[best].held ? rank : best), 0);
  const { away, held, hidden } = sums[most];
  const known = ranks[most].some(({ unsure }) => unsure.length) ? "at least " : "";
  return `Rank ${most} was held longest: ${seconds(held)} of ${seconds(end)}. Its calls were under way for ${seconds(away)}, of which ${known}${seconds(hidden)} were hidden behind its own work. Choose a call with the arrow keys or the mouse.`;
}
