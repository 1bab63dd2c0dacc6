/**
 * What one chunk of one buffer holds, in symbols: `c1` is what rank 2 had in its chunk 1 at the start, `a0+b0` a sum.
 *
 * A Cell is a multiset of such origins and the sign of the operation that combined them. From it come the symbol, the
 * set of ranks, the number that stands for it, and its colour. Left out: how a cell gets there (schedule.js).
 */

/** a for rank 0, b for rank 1, ... z, aa, ab, ... */
export function letter(/** @type {number} */ rank) {
  let name = "";
  for (let left = rank + 1; left > 0; left = Math.floor((left - 1) / 26)) {
    name = String.fromCharCode(97 + ((left - 1) % 26)) + name;
  }
  return name;
}

const SPAN = 2 ** 20; // an origin is rank * SPAN + chunk, so that sorting numbers sorts origins
const rankOf = (/** @type {number} */ origin) => Math.floor(origin / SPAN);

/** What [number, times] become, by the sign of the operation. @type {Record<string, (terms: [number, number][]) => number>} */
const RESULTS_OF = {
  "+": (terms) => terms.reduce((all, [one, times]) => all + times * one, 0),
  "×": (terms) => terms.reduce((all, [one, times]) => all * one ** times, 1),
  max: (terms) => Math.max(...terms.map(([one]) => one)),
  min: (terms) => Math.min(...terms.map(([one]) => one)),
  avg: (terms) => Number((RESULTS_OF["+"](terms) / terms.reduce((all, [, times]) => all + times, 0)).toPrecision(6)),
};

const SPELLED = 3; // times that a symbol is written out in a sum: a1+a1+a1, then 4·a1
const MANY = 1000;

/** Rank and chunk as one number. */
export function originOf(/** @type {number} */ rank, /** @type {number} */ chunk) {
  return rank * SPAN + chunk;
}

/** @returns {string} "c1" */
export function symbolOf(/** @type {number} */ origin) {
  return letter(rankOf(origin)) + (origin % SPAN);
}

/** What one chunk of one buffer holds: the origins, sorted, of all that was combined in it; by "," if in several ways. */
export class Cell {
  /**
   * @param {number[]} origins each once @param {string | null} value what a real run held here
   * @param {number[] | null} times how often each is in here; null: once
   */
  constructor(origins, value = null, sign = "+", times = null) {
    this.origins = origins;
    this.value = value;
    this.sign = sign;
    this.times = times;
    /** @type {number[] | undefined} */
    this.ranks = undefined;
    /** @type {number | undefined} */
    this.chunk = undefined;
  }

  /** The ranks whose data is in here, each once, in order. */
  get contributors() {
    return (this.ranks ??= [...new Set(this.origins.map(rankOf))]);
  }

  /** The chunk number that all the data in here had at first: its colour. -1: several, or empty. */
  get kind() {
    const first = this.origins.length ? this.origins[0] % SPAN : -1;
    return (this.chunk ??= this.origins.every((origin) => origin % SPAN === first) ? first : -1);
  }

  /** What is in here, and how often. @returns {[number, number][]} */
  get terms() {
    return this.origins.map((origin, i) => [origin, this.times?.[i] ?? 1]);
  }

  /** @returns {string} "a0+b0"; "" when empty */
  get symbol() {
    return this.combined(this.terms.flatMap(([origin, times]) => this.repeated(symbolOf(origin), times)));
  }

  /** @returns {string} "a+b", "max(a,b)" */
  combined(/** @type {string[]} */ names) {
    return names[1] && this.sign[1] ? `${this.sign}(${names})` : names.join(this.sign);
  }

  /** ["a1"], ["a1", "a1"], ["4·a1"], of a product ["a1^4"]; ["many·a1"] for thousands */
  repeated(/** @type {string} */ name, /** @type {number} */ times) {
    if (times <= SPELLED) return new Array(times).fill(name);
    const shown = times < MANY ? times : "many";
    return [this.sign === "×" ? `${name}^${shown}` : `${shown}·${name}`];
  }

  /** @returns {string} "{0,1,3}"; "" when empty */
  get set() {
    return this.origins.length ? `{${this.contributors.join(",")}}` : "";
  }

  /** Whether every rank's part comes from chunk `chunk`, and only once. */
  isSumOf(/** @type {number} */ chunk) {
    return !this.times && this.kind === chunk && this.contributors.length === this.origins.length;
  }

  /** The value of a real run, else the number that stands for the symbol: with base 10, rank 2's chunk 1 is 21. */
  number(/** @type {number} */ base) {
    if (this.value !== null || !this.origins.length) return this.value ?? "";
    /** @type {[number, number][]} */
    const terms = this.terms.map(([origin, times]) => [rankOf(origin) * base + (origin % SPAN), times]);
    const alone = terms.length === 1 && !this.times;
    const result = alone ? terms[0][0] : RESULTS_OF[this.sign]?.(terms);
    return result === undefined ? "?" : String(result);
  }

  /** The sum divided by the number of its terms. @returns {Cell} */
  averaged() {
    return new Cell(this.origins, null, this.sign === "+" ? "avg" : this.sign, this.times);
  }

  /** @returns {Cell} */
  with(/** @type {Cell} */ other, /** @type {string} */ sign, /** @type {boolean} */ knowledge) {
    const [origins, times] = merged(this, other);
    const same = [this, other].every((cell) => !(cell.origins[1] || cell.times) || cell.sign === sign);
    const cell = new Cell(origins, null, same ? sign : ",", knowledge ? null : times);
    if (this.origins.length && other.origins.length) cell.chunk = this.kind === other.kind ? this.kind : -1; // in no time
    return cell;
  }
}

/** The origins of both cells, each once, and how often each is in there (null: once). @returns {[number[], number[] | null]} */
function merged(/** @type {Cell} */ one, /** @type {Cell} */ other) {
  const all = [...one.origins, ...other.origins].sort((a, b) => a - b);
  if (!one.times && !other.times && all.every((origin, i) => origin !== all[i - 1])) return [all, null];
  /** @type {Map<number, number>} */
  const counts = new Map(all.map((origin) => [origin, 0]));
  for (const [origin, times] of [...one.terms, ...other.terms]) counts.set(origin, (counts.get(origin) ?? 0) + times);
  return [[...counts.keys()], [...counts.values()]];
}

/** What every buffer holds before the first step. @returns {Cell[]} */
export function startOf(/** @type {import("./schedule.js").Meta} */ { start, ranks, chunks, start_values: values, stale }) {
  const empty = new Cell([]);
  const cells = start.flatMap((given) => {
    const buffer = new Array(ranks * chunks).fill(empty);
    if (given === "own") return buffer.map((_, i) => new Cell([originOf(Math.floor(i / chunks), i % chunks)]));
    for (const [rank, chunk, ...pairs] of given) {
      const parts = Array.from({ length: pairs.length / 2 }, (_, i) => new Cell([originOf(pairs[2 * i], pairs[2 * i + 1])]));
      buffer[rank * chunks + chunk] = parts.reduce((all, part) => all.with(part, "+", false));
    }
    return buffer;
  });
  for (const [rank, buffer, chunk, value] of [...(values ?? []), ...(stale ?? [])]) {
    const slot = (buffer * ranks + rank) * chunks + chunk;
    const { origins, sign, times } = cells[slot];
    cells[slot] = new Cell(origins, value, sign, times);
  }
  return cells;
}
