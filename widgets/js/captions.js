/**
 * What a widget says: where in the schedule it stands, what the step does, what a cell holds, how much was sent.
 *
 * The sentence of a step comes from Python with the schedule; here are the words around it. People count steps from 1,
 * ranks and chunks from 0. Left out: where the words appear (player.js, stage.js).
 */

import { range, unpack } from "./schedule.js";
import { bytes, plural, rankNames, ranksOf } from "./words.js";

/** What several ranks' data become, by the sign of the operation. @type {Record<string, string>} */
const RESULTS = { "+": "sum", "×": "product", max: "maximum", min: "minimum", avg: "average" };

/** @typedef {import("./schedule.js").Schedule} Schedule @typedef {import("./schedule.js").Run} Run */

/**
 * "step 2 of 6, reduce-scatter"; "step 2" with `steps` null, where nobody is to know yet.
 *
 * @param {Schedule} schedule @param {number} step @param {number | null} steps
 */
export function position(schedule, step, steps = schedule.steps) {
  if (steps === null) return step === 0 ? "before step 1" : `step ${step}`;
  if (step === 0) return `before step 1 of ${steps}`;
  let end = 0;
  const name = schedule.phases.find(([, count]) => step <= (end += count))?.[0];
  return `step ${step} of ${steps}${name ? `, ${name}` : ""}`;
}

/** The one sentence of a step. */
export function sentence(/** @type {Schedule} */ schedule, /** @type {Run} */ run) {
  if (run.step > 0) return [schedule.captions[run.step - 1], news(run), stuckAt(schedule, run.step)].filter(Boolean).join(" ");
  // A rank holds data if any of its buffers does: of an out-of-place run the one that is filled may come first.
  const holding = new Set(
    schedule.start.flatMap((given) => (given === "own" ? range(schedule.ranks) : given.map(([rank]) => rank))),
  );
  if (schedule.stale) return "Nothing has been sent yet. Dim: what will be written over.";
  if (holding.size === schedule.ranks) return "Every rank holds its own data; nothing has been sent yet.";
  if (holding.size !== 1) {
    return `${plural(holding.size, "rank")} of ${schedule.ranks} hold data; nothing has been sent yet.`;
  }
  return `Only rank ${[...holding][0]} holds data; nothing has been sent yet.`;
}

/** Who can never go on, after the last step of a run that ended so; else "". */
export function stuckAt(/** @type {Schedule} */ { steps, stuck_words: words }, /** @type {number} */ step) {
  return (step === steps && words) || "";
}

/** What ranks have made themselves in a step, unless its sentence from Python says it: "New data: computed by rank 1." */
function news({ moved, step, schedule }) {
  /** @type {Map<string, Set<number>>} */
  const ways = new Map();
  for (const { made, dst } of moved) {
    if (made && !schedule.captions[step - 1].includes(made)) ways.set(made, (ways.get(made) ?? new Set()).add(dst));
  }
  const clauses = [...ways].map(([made, ranks]) => {
    const who = ranks.size > 4 ? plural(ranks.size, "rank") : rankNames([...ranks].sort((a, b) => a - b));
    return `${made} ${made === "computed" ? "by" : "on"} ${who}`;
  });
  return clauses.length ? `New data: ${clauses.join("; ")}.` : "";
}

/** Whether the result ends where the input was, and which buffers are neither; "" where no result is promised. */
export function placeOf(/** @type {Schedule} */ { buffers, start, result }) {
  if (result === null) return "";
  const input = buffers[start.findIndex((cells) => cells.length)]; // the first that holds anything
  const scratch = buffers.filter((name) => name !== input && name !== result);
  const place = result === input ? "in place" : `out of place: ${input} → ${result}`;
  return scratch.length ? `${place}, scratch: ${scratch.join(", ")}` : place;
}

/** What one cell holds, in words: "rank 2, chunk 1: a1+b1+c1, the sum of 3 ranks" */
export function explain(/** @type {Schedule} */ schedule, /** @type {Run} */ run, /** @type {number} */ slot) {
  const { chunks, ranks, buffers } = schedule;
  const { buffer, rank, chunk } = unpack(slot, ranks, chunks);
  const cell = run.cells[slot];
  const wrong = schedule.framed === slot ? "Wrong here: " : "";
  const where = `${wrong}rank ${rank}${buffers[1] ? `, ${buffers[buffer]}` : ""}, chunk ${chunk}`;
  if (!cell.origins.length) return cell.value === null ? `${where}: empty` : `${where}: ${cell.value}, which will be written over`;
  const whose = cell.contributors.length === 1 ? `rank ${cell.contributors[0]}'s own` : sumOf(cell, ranks);
  const value = cell.value === null ? "" : `, the value ${cell.value}`;
  return `${where}: ${shorten(cell.symbol, 60)}, ${whose}${value}${since(run, slot, rank)}`;
}

/** How a cell came to what it holds: "; from rank 1 in step 3" */
function since(run, slot, rank) {
  const { step, part } = run.lastWrite(slot) ?? {};
  if (!part) return "";
  if (part.made) return `; ${madeBy(part)} in step ${step}`;
  const verb = part.averages ? "divided" : ({ "": "copied", "+": "added" }[part.sign] ?? "combined");
  return part.src === rank
    ? `; ${verb} within the rank in step ${step}`
    : `; ${verb} from rank ${part.src} in step ${step}`;
}

/** @returns {string} "computed by rank 1 itself", "changed outside torch on rank 1" */
function madeBy({ made, dst }) {
  return made === "computed" ? `computed by rank ${dst} itself` : `${made} on rank ${dst}`;
}

/**
 * The lines of code that send, of all steps in their order in the cell, with the ranks that were at each in the step just
 * done. @returns {import("./own-lines.js").Lit[]}
 */
export function codeOf(/** @type {Schedule} */ { sources }, /** @type {Run} */ { step }) {
  /** @type {Map<string, import("./own-lines.js").Lit>} */
  const lines = new Map();
  (sources ?? []).forEach((sent, k) => {
    for (const [rank, line, code] of sent) {
      const key = `${line} ${code}`;
      const lit = lines.get(key) ?? { line, code, ranks: [] };
      if (k + 1 === step) lit.ranks.push(rank);
      lines.set(key, lit);
    }
  });
  return [...lines.values()].sort((one, other) => one.line - other.line);
}

/** "line 7: dist.send(...)  (rank 1)": which ranks were at it, unless all. */
export function wordsOf(/** @type {import("./own-lines.js").Lit} */ { line, code, ranks }, /** @type {number} */ all) {
  return `line ${line}: ${code}${ranks.length % all ? `  (${rankNames(ranks)})` : ""}`;
}

function sumOf(cell, ranks) {
  const { length } = cell.contributors;
  return `the ${RESULTS[cell.sign] ?? "combination"} of ${length === ranks ? "all" : `${length} of`} ${ranks} ranks`;
}

/** What a rank sent and received in the step just done. */
export function story(/** @type {Schedule} */ schedule, /** @type {Run} */ run, /** @type {number} */ rank) {
  const clauses = [];
  for (const part of run.moved) if (part.made && part.dst === rank) clauses.push(`has new data (${part.made})`);
  for (const { src, dst, sign, parts } of run.latest) {
    const what = schedule.chunks > 1 ? ` ${chunksOf(parts)}` : "";
    if (src === rank && !run.effect) clauses.push(`sends${what} to rank ${dst}`);
    if (dst === rank) clauses.push(`${{ "": "receives", "+": "adds" }[sign] ?? "combines"}${what} from rank ${src}`);
  }
  const others = run.step === schedule.steps ? (schedule.stuck ?? []).filter(([from]) => from === rank).map(([, to]) => to ?? -1) : [];
  if (others.length) clauses.unshift(others[0] < 0 ? "was refused: its call does not fit" : `waits forever for ${rankNames(others)}`);
  const more = clauses.length > 4 ? ` and ${clauses.length - 4} more` : "";
  const now = clauses.length ? clauses.slice(0, 4).join(", ") + more : run.step ? "is idle in this step" : "has not begun";
  const total = `sent ${amount(schedule, run.sent[rank])}, received ${amount(schedule, run.received[rank])} so far`;
  return `Rank ${rank} ${now}${run.effect ? ", as the library's effect" : ""}; ${hidden(schedule) === "all" ? UNSEEN : total}.`;
}

/** @returns {string} "chunk 2", "chunks 0-3", "chunks 0, 4 and 5" */
export function chunksOf(/** @type {import("./schedule.js").Transfer[]} */ parts) {
  const ranges = parts.map(({ chunk, count }) => (count === 1 ? `${chunk}` : `${chunk}-${chunk + count - 1}`));
  const shown = ranges.length > 3 ? [...ranges.slice(0, 3), "more"] : ranges;
  const last = shown.pop();
  const several = parts.length > 1 || parts[0].count > 1;
  return `chunk${several ? "s" : ""} ${shown.length ? `${shown.join(", ")} and ` : ""}${last}`;
}

/** How much N is, as Run counts. */
export function wholeOf(/** @type {Schedule} */ { chunk_bytes: sizes, chunks }) {
  return sizes ? sizes.reduce((sum, size) => sum + size, 0) : chunks;
}

/** An amount that was sent (as Run counts it): "1.5 N", or "64 MB" where N or the chunks' sizes are known. */
export function amount(/** @type {Schedule} */ schedule, /** @type {number} */ sent) {
  const { nbytes, chunk_bytes: sizes } = schedule;
  const whole = wholeOf(schedule);
  if (nbytes === null && !sizes) return sent ? `${digits(sent / whole)} N` : "0";
  return bytes(nbytes === null ? sent : (sent * nbytes) / whole);
}

/** Three digits, or all of a whole number. */
export function digits(/** @type {number} */ value) {
  return String(value >= 100 ? Math.round(value) : Number(value.toPrecision(3)));
}

/** Which ranks have sent most: their numbers, and how much. Nobody before anything was sent. */
export function busiest(/** @type {Run} */ run) {
  const most = Math.max(...run.sent);
  const ranks = range(run.sent.length).filter((rank) => most > 0 && run.sent[rank] === most);
  return { most, ranks, all: ranks.length === run.sent.length };
}

const UNSEEN = "bytes inside the library are not seen";

/** Of how many steps the messages are hidden inside a library. */
function hidden(/** @type {Schedule} */ { effects, steps }) {
  const unseen = effects.filter(Boolean).length;
  return unseen && (unseen === steps ? "all" : "some");
}

/** Which ranks have sent most, and how much: ["every rank", "1.5 N"]; null before anything was sent. */
function most(/** @type {Schedule} */ schedule, /** @type {Run} */ run) {
  const top = busiest(run);
  const some = top.ranks.length > 2 ? `${top.ranks.length} ranks` : rankNames(top.ranks);
  return top.most ? [top.all ? "every rank" : some, amount(schedule, top.most)] : null;
}

/** Title and size of a Player: its goal; at the end what it came to, in the place of how large it is. @returns {[string, string]} */
export function titleOf(/** @type {Schedule} */ schedule, /** @type {any} */ run, /** @type {string} */ size) {
  const { steps, stuck, title, goal } = schedule;
  const sent = run.step === steps && !stuck && !hidden(schedule) && most(schedule, run);
  return sent ? [`${title}: ${sent.join(" sent ")}`, ranksOf(schedule.ranks)] : [title + (goal ? `: ${goal}` : ""), size];
}

/** Names and values of the counters under a picture. @returns {[string, string][]} */
export function counters(/** @type {Schedule} */ schedule, /** @type {Run} */ run) {
  const top = most(schedule, run);
  const sent = run.sent.reduce((sum, value) => sum + value, 0);
  const steps = `${run.step} of ${schedule.steps}`;
  if (hidden(schedule) === "all") return [["steps", steps], ["", UNSEEN]];
  const idle = run.latest.length && !run.effect;
  return [
    ["steps", steps],
    ["idle", idle ? `${schedule.ranks - run.busy.size} of ${plural(schedule.ranks, "rank")}` : "–"],
    ["messages", `${run.messages}${hidden(schedule) ? ", the library's are not seen" : ""}`],
    ["sent in all", amount(schedule, sent)],
    ["busiest", top?.join(", sent ") ?? "no rank yet"],
  ];
}

export function shorten(/** @type {string} */ text, /** @type {number} */ room) {
  return text.length > room ? `${text.slice(0, room - 1)}…` : text;
}
