/**
 * What measured calls come to: when each was under way, when it held its rank, and what was hidden behind other work;
 * and that in words, of one call, of a call of all ranks, of a run as a whole.
 *
 * A call is under way from its begin until the library is done with it. It holds its rank twice: until the call itself
 * returns, and while somebody waits for it. Under way but not holding is overlap: the rank computed meanwhile.
 * If nobody is known to have waited, the wait was perhaps inside torch's C++: from the call's return until the library
 * was done it is unsure what the rank did, and that time is never called overlap. The wait for DDP's buckets is known.
 *
 * Pure arithmetic on seconds. Left out: pixels, and where the words stand (timeline.js).
 */

import { bytes, plural, seconds } from "./words.js";

/**
 * @typedef {[number, number]} Span begin and end in seconds
 * @typedef {object} Measured one call as Python sends it (widgets/timeline.py)
 * @property {number} rank
 * @property {string} op
 * @property {number | null} peer
 * @property {number} bytes
 * @property {number} line
 * @property {string} code
 * @property {number | null} match number of the call of all ranks that it is one side of
 * @property {string} label what that is called; "" where there is none
 * @property {number} sides how many ranks it takes
 * @property {string} part what it carries for the library: "bucket 0"; "" if that is not known
 * @property {number} [latency] seconds of a message on a network that was played
 * @property {number} [transfer] seconds of its bytes on that network's links
 * @property {[number, ...(number | null)[]]} times begun, issued, wait begun, wait ended, library done
 *
 * @typedef {{from: number, until: number, held: Span[], waits: Span[], unsure: Span[], lane: number}} Stay
 * @typedef {Measured & Stay & {number: number}} Call
 */

const NAMED = 3; // ranks that waited are named; of more only the one that waited longest

const LANES = 3;

/** When one call was under way and held its rank. @returns {Stay} */
export function stayOf(/** @type {Measured} */ { op, times: [begun, issued, waits, waited, done] }) {
  const calling = issued === null ? [] : [[begun, issued]];
  const waiting = waits === null || waited === null ? [] : [[waits, waited]];
  const until = Math.max(done ?? waited ?? issued ?? begun, begun);
  const unsure = waits === null && issued !== null && until > issued ? [[issued, until]] : [];
  const held = [...calling, ...waiting];
  // Nothing is left to wait for when a monitored_barrier returns: all have come.
  const stay = { from: begun, until, held, waits: op === "monitored_barrier" ? calling : waiting, unsure, lane: 0 };
  return /** @type {Stay} */ (stay);
}

/**
 * Which side of a call came last, and when the others waited for it: until it came, if they were not done before
 * (a root may have sent and gone).
 * @template {Stay} Side @param {Side[]} sides
 */
export function meeting(sides) {
  const last = sides.reduce((latest, side) => (side.from > latest.from ? side : latest));
  const before = (/** @type {Span[]} */ spans) =>
    spans.filter(([from]) => from < last.from).map(([from, until]) => [from, Math.min(until, last.from)]);
  const awaited = sides.map(({ waits, until }) => /** @type {Span[]} */ (until > last.from ? before(waits) : []));
  const unsure = sides.some((side) => before(side.unsure).length);
  return { last, awaited, seconds: awaited.map(lengthOf), unsure };
}

/** Puts stays that are under way together into different lanes; at most three, then they share. @returns {number} lanes */
export function spread(/** @type {Stay[]} */ stays) {
  const free = [];
  for (const stay of [...stays].sort((a, b) => a.from - b.from)) {
    let lane = free.findIndex((end) => end <= stay.from);
    if (lane < 0) lane = free.length < LANES ? free.length : free.indexOf(Math.min(...free));
    stay.lane = lane;
    free[lane] = Math.max(free[lane] ?? 0, stay.until);
  }
  return Math.max(free.length, 1);
}

/** Spans in order, those that touch or overlap made one. @returns {Span[]} */
export function union(/** @type {Span[]} */ spans) {
  /** @type {Span[]} */
  const made = [];
  for (const [from, until] of [...spans].sort((a, b) => a[0] - b[0])) {
    const last = made[made.length - 1];
    if (last && from <= last[1]) last[1] = Math.max(last[1], until);
    else made.push([from, until]);
  }
  return made;
}

function lengthOf(/** @type {Span[]} */ spans) {
  return union(spans).reduce((sum, [from, until]) => sum + until - from, 0);
}

/** Seconds that some of these calls (of one rank) were under way, that they held it, and that were surely hidden. */
export function totals(/** @type {Stay[]} */ stays) {
  const held = stays.flatMap((stay) => stay.held);
  const busy = lengthOf([...held, ...stays.flatMap((stay) => stay.unsure)]);
  /** @type {Span[]} */
  const flights = stays.map(({ from, until }) => [from, until]);
  const hidden = lengthOf([...flights, ...held]) - busy;
  return { away: lengthOf(flights), held: lengthOf(held), hidden };
}

/** Round moments between two times, `most` at most, and the decimals that tell them apart, in s, ms or µs. */
export function ticks(/** @type {number} */ from, /** @type {number} */ until, /** @type {number} */ most) {
  const rough = Math.max((until - from) / most, 1e-9);
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = size * ([1, 2, 5].find((times) => times * size >= rough) ?? 10);
  const [unit, name] = step >= 0.1 ? [1, "s"] : step >= 1e-4 ? [1e-3, "ms"] : [1e-6, "µs"];
  const decimals = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
  const found = [];
  for (let k = Math.ceil(from / step); k * step <= until; k++) {
    found.push({ at: k * step, label: `${((k * step) / unit).toFixed(decimals)} ${name}` });
  }
  return found;
}

/** One call in measured seconds. */
export function describe(/** @type {Call} */ call) {
  const whom = call.peer === null ? "" : `${{ send: " to", recv: " from" }[call.op] ?? " with root"} rank ${call.peer}`;
  const part = call.part && ` of ${call.part}`;
  const what = `Rank ${call.rank}: ${call.op}${part}${whom}, ${bytes(call.bytes)}${call.line ? `, line ${call.line}` : ""}.`;
  const { away, held, hidden } = totals([call]);
  const share = away > 0 ? Math.round((100 * hidden) / away) : 0;
  const rest = call.unsure.length
    ? "nobody waited for it in Python, so what the rank did meanwhile, its own work or a wait inside torch, is not known"
    : `${share} % of it was hidden behind the rank's own work`;
  const { latency, transfer = 0 } = call;
  const parts = latency === undefined ? "" : ` On this network: ${seconds(latency)} latency, then ${seconds(transfer)} for its bytes.`;
  return `${what}${parts} Began at ${seconds(call.from)}, under way for ${seconds(away)}; it held the rank for ${seconds(held)}, and ${rest}.`;
}

/** Who came last to a call of several ranks, and who waited for that rank; `sides` are those that are drawn. */
export function compare(/** @type {Call[]} */ sides) {
  const [{ label, sides: count, match }] = sides;
  if (match === null) return "The other side of this message was not recorded.";
  const lacking = count > sides.length ? ` Only ${sides.length} of its ${plural(count, "rank")} are drawn.` : "";
  if (sides.length === 1) return count === 1 ? `${label}: no other rank takes part.` : `${label}.${lacking}`;
  const { last, seconds: waited, unsure } = meeting(sides);
  const late = last.from - Math.min(...sides.map(({ from }) => from));
  const waiting = sides
    .map(({ rank }, i) => ({ rank, long: waited[i] }))
    .filter(({ long }) => long > 0)
    .sort((a, b) => b.long - a.long);
  const unknown = "whether others waited for it inside torch is not known";
  const who = waiting.length ? waits(waiting) + (unsure ? `; ${unknown}` : "") : unsure ? unknown : "no rank waited for it";
  return `${label}: rank ${last.rank} came last, ${seconds(late)} after the first; ${who}.${lacking}`;
}

/** "rank 0 waited 1.2 ms for it, rank 1 900 µs"; of many "7 ranks waited for it, rank 0 longest: 1.2 ms" */
function waits(/** @type {{rank: number, long: number}[]} */ waiting) {
  const [{ rank, long }, ...others] = waiting;
  if (others.length >= NAMED) return `${waiting.length} ranks waited for it, rank ${rank} longest: ${seconds(long)}`;
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
