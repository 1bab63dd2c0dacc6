/**
 * What measured calls come to: when each was under way, when it blocked its rank, and what was hidden behind other work;
 * and that in words, of one call, of a call of all ranks, of a run as a whole.
 *
 * A call is under way from its begin until the library is done with it. It blocks its rank twice: until the call itself
 * returns, and while somebody waits for it. Under way but not holding is overlap: the rank computed meanwhile.
 * If nobody is known to have waited, the wait was perhaps inside torch's C++: from the call's return until the library
 * was done it is unsure what the rank did, and that time is never called overlap. The wait for DDP's buckets is known.
 *
 * Ranks on one machine have one clock. Times of two machines may be wrong against each other, by no more than the two
 * clocks' errors: what is told of several ranks is what holds whatever is true within them.
 *
 * Pure arithmetic on seconds. Left out: pixels, and where the words stand (timeline.js).
 */

import { bytes, plural, rankNames, seconds } from "./words.js";

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
 * @typedef {{ranks: number[], error: number}} Clock of one machine, as Python sends it
 * @typedef {(rank: number, other: number) => number} Wrong seconds by which times of two ranks may be wrong against each other
 *
 * @typedef {{from: number, until: number, blocked: Span[], waits: Span[], unsure: Span[], lane: number}} Stay
 * @typedef {Measured & Stay & {number: number}} Call
 */

const NAMED = 3; // ranks that waited are named; of more only the one that waited longest

const LANES = 3;

const NEEDS_ALL = /^(all_reduce|all_gather|reduce_scatter|(monitored_)?barrier|recv)/; // over for nobody before all have come
const EXACT = () => 0;

/** @returns {Wrong} */
export function wrongBy(/** @type {Clock[]} */ clocks) {
  const machine = (/** @type {number} */ rank) => clocks.find(({ ranks }) => ranks.includes(rank));
  return (rank, other) => {
    const [here, there] = [machine(rank), machine(other)];
    return here && there && here !== there ? here.error + there.error : 0;
  };
}

/** When one call was under way and blocked its rank. @returns {Stay} */
export function stayOf(/** @type {Measured} */ { op, times: [begun, issued, waits, waited, done] }) {
  const calling = issued === null ? [] : [[begun, issued]];
  const waiting = waits === null || waited === null ? [] : [[waits, waited]];
  const until = Math.max(done ?? waited ?? issued ?? begun, begun);
  const unsure = waits === null && issued !== null && until > issued ? [[issued, until]] : [];
  const blocked = [...calling, ...waiting];
  // Nothing is left to wait for when a monitored_barrier returns: all have come.
  const stay = { from: begun, until, blocked, waits: op === "monitored_barrier" ? calling : waiting, unsure, lane: 0 };
  return /** @type {Stay} */ (stay);
}

/**
 * Which sides of a call may have come last (one, if the clocks tell), and when the others surely waited for that: until
 * it came, if they were not done before (a root may have sent and gone). `close`: whether somebody waited lies within
 * the clocks' errors.
 * @template {Stay & {op: string, rank: number}} Side @param {Side[]} sides
 */
export function meeting(sides, /** @type {Wrong} */ wrong = EXACT) {
  const last = sides.reduce((latest, side) => (side.from > latest.from ? side : latest));
  const before = (/** @type {Span[]} */ spans, /** @type {number} */ end) =>
    spans.filter(([from]) => from < end).map(([from, until]) => [from, Math.min(until, end)]);
  const found = sides.map((side) => {
    const sure = Math.max(...sides.map((other) => other.from - wrong(other.rank, side.rank))); // all came no earlier
    const late = Math.max(...sides.map((other) => other.from + wrong(other.rank, side.rank)));
    const stayed = side.until > late || (late > sure && NEEDS_ALL.test(side.op));
    const awaited = /** @type {Span[]} */ (stayed ? before(side.waits, sure) : []);
    const close = !awaited.length && late > sure && side.until > sure && before(side.waits, late).length > 0;
    return { awaited, close, unsure: before(side.unsure, late).length > 0 };
  });
  const perhaps = (side) =>
    wrong(side.rank, last.rank) > 0 && sides.every((other) => other.from - side.from <= wrong(other.rank, side.rank));
  return {
    lasts: sides.filter((side) => side === last || perhaps(side)),
    awaited: found.map(({ awaited }) => awaited),
    seconds: found.map(({ awaited }) => lengthOf(awaited)),
    unsure: found.some(({ unsure }) => unsure),
    close: found.some(({ close }) => close),
  };
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

/** Seconds that some of these calls (of one rank) were under way, that they blocked it, and that were surely hidden. */
export function totals(/** @type {Stay[]} */ stays) {
  const blocked = stays.flatMap((stay) => stay.blocked);
  const busy = lengthOf([...blocked, ...stays.flatMap((stay) => stay.unsure)]);
  /** @type {Span[]} */
  const flights = stays.map(({ from, until }) => [from, until]);
  const hidden = lengthOf([...flights, ...blocked]) - busy;
  return { away: lengthOf(flights), blocked: lengthOf(blocked), hidden };
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
  const { away, blocked, hidden } = totals([call]);
  const share = away > 0 ? Math.round((100 * hidden) / away) : 0;
  const rest = call.unsure.length
    ? "nobody waited for it in Python, so what the rank did meanwhile, its own work or a wait inside torch, is not known"
    : `${share} % of it was hidden behind the rank's own work`;
  const { latency, transfer = 0 } = call;
  const parts = latency === undefined ? "" : ` On this network: ${seconds(latency)} latency, then ${seconds(transfer)} for its bytes.`;
  return `${what}${parts} Began at ${seconds(call.from)}, under way for ${seconds(away)}; it blocked the rank for ${seconds(blocked)}, and ${rest}.`;
}

/** Who entered last to a call of several ranks, and who waited for that rank; `sides` are those that are drawn. */
export function compare(/** @type {Call[]} */ sides, /** @type {Wrong} */ wrong = EXACT) {
  const [{ label, sides: count, match }] = sides;
  if (match === null) return "The other side of this message was not recorded.";
  const lacking = count > sides.length ? ` Only ${sides.length} of its ${plural(count, "rank")} are drawn.` : "";
  if (sides.length === 1) return count === 1 ? `${label}: no other rank takes part.` : `${label}.${lacking}`;
  const { lasts, seconds: waited, unsure, close } = meeting(sides, wrong);
  const waiting = sides
    .map(({ rank }, i) => ({ rank, long: waited[i], least: lasts.some((last) => wrong(last.rank, rank)) ? "at least " : "" }))
    .filter(({ long }) => long > 0)
    .sort((a, b) => b.long - a.long);
  const unknown = "whether others waited for it inside torch is not known";
  const none = close ? "whether a rank waited for it, their clocks do not tell" : "no rank waited for it";
  const who = waiting.length ? waits(waiting) + (unsure ? `; ${unknown}` : "") : unsure ? unknown : none;
  return `${label}: ${order(sides, lasts, wrong)}; ${who}.${lacking}`;
}

/** "rank 2 entered last, 1.2 ms after the first", as far as the clocks tell; each of `lasts` may have been it. */
function order(/** @type {Call[]} */ sides, /** @type {Call[]} */ lasts, /** @type {Wrong} */ wrong) {
  const [last] = lasts;
  if (lasts.length > 1) {
    const ranks = lasts.map(({ rank }) => rank);
    const error = Math.max(...ranks.map((rank) => wrong(last.rank, rank)));
    return `one of ${rankNames(ranks)} entered last, and their clocks, right to ± ${seconds(error)}, do not tell which`;
  }
  const first = sides.reduce((earliest, side) => (side.from < earliest.from ? side : earliest));
  const error = wrong(last.rank, first.rank);
  return `rank ${last.rank} entered last, ${seconds(last.from - first.from)}${error ? ` ± ${seconds(error)}` : ""} after the first`;
}

/** "rank 0 waited 1.2 ms for it, rank 1 900 µs"; of many "7 ranks waited for it, rank 0 longest: 1.2 ms" */
function waits(/** @type {{rank: number, long: number, least: string}[]} */ waiting) {
  const [{ rank, long, least }, ...others] = waiting;
  if (others.length >= NAMED) {
    return `${waiting.length} ranks waited for it, rank ${rank} longest: ${least}${seconds(long)}`;
  }
  const more = others.map((other) => `, rank ${other.rank} ${other.least}${seconds(other.long)}`);
  return `rank ${rank} waited ${least}${seconds(long)} for it${more.join("")}`;
}

/** The rank that was blocked longest; `ranks` are the calls of each, `end` is the end of the run in seconds. */
export function overview(/** @type {Call[][]} */ ranks, /** @type {number} */ end) {
  if (!ranks.some((calls) => calls.length)) return "No rank called torch.distributed while this was recorded.";
  const sums = ranks.map((calls) => totals(calls));
  const most = sums.reduce((best, sum, rank) => (sum.blocked > sums[best].blocked ? rank : best), 0);
  const { away, blocked, hidden } = sums[most];
  const known = ranks[most].some(({ unsure }) => unsure.length) ? "at least " : "";
  const overlap = hidden > away / 100 || known ? `, of which ${known}${seconds(hidden)} were hidden behind its own work` : "";
  return `Rank ${most} was blocked longest: ${seconds(blocked)} of ${seconds(end)}. Its calls were under way for ${seconds(away)}${overlap}. Choose a call with the arrow keys or the mouse.`;
}

/** " · 2 machines, their clocks ± 412 µs": the most by which times of two machines may be wrong against each other. */
export function accuracy(/** @type {Clock[]} */ clocks) {
  const [most, next] = clocks.map(({ error }) => error).sort((a, b) => b - a);
  return next === undefined ? "" : ` · ${plural(clocks.length, "machine")}, their clocks ± ${seconds(most + next)}`;
}

/** The same call on all ranks, in their order, by its number. @returns {Map<number, Call[]>} */
export function matchesOf(/** @type {Call[][]} */ ranks) {
  const found = new Map();
  for (const call of ranks.flat()) if (call.match !== null) found.set(call.match, [...(found.get(call.match) ?? []), call]);
  return found;
}
