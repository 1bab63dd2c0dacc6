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

/** What numbers become, by the sign of the operation. @type {Record<string, (numbers: number[]) => number>} */
const RESULTS_OF = {
  "+": (numbers) => numbers.reduce((all, one) => all + one, 0),
  "×": (numbers) => numbers.reduce((all, one) => all * one, 1),
  max: (numbers) => Math.max(...numbers),
  min: (numbers) => Math.min(...numbers),
  avg: (numbers) => Number((RESULTS_OF["+"](numbers) / numbers.length).toPrecision(6)),
};

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
  /** @param {number[]} origins @param {string | null} value what a real run held here */
  constructor(origins, value = null, sign = "+") {
    this.origins = origins;
    this.value = value;
    this.sign = sign;
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

  /** @returns {string} "a0+b0"; "" when empty */
  get symbol() {
    return this.combined(this.origins.map(symbolOf));
  }

  /** @returns {string} "a+b", "max(a,b)" */
  combined(/** @type {string[]} */ names) {
    return names[1] && this.sign[1] ? `${this.sign}(${names})` : names.join(this.sign);
  }

  /** @returns {string} "{0,1,3}"; "" when empty */
  get set() {
    return this.origins.length ? `{${this.contributors.join(",")}}` : "";
  }

  /** Whether every rank's part comes from chunk `chunk`, and only once. */
  isSumOf(/** @type {number} */ chunk) {
    return this.kind === chunk && this.contributors.length === this.origins.length;
  }

  /** The value of a real run, else the number that stands for the symbol: with base 10, rank 2's chunk 1 is 21. */
  number(/** @type {number} */ base) {
    if (this.value !== null || !this.origins.length) return this.value ?? "";
    const numbers = this.origins.map((origin) => rankOf(origin) * base + (origin % SPAN));
    const result = numbers[1] === undefined ? numbers[0] : RESULTS_OF[this.sign]?.(numbers);
    return result === undefined ? "?" : String(result);
  }

  /** @returns {Cell} */
  with(/** @type {Cell} */ other, /** @type {string} */ sign, /** @type {boolean} */ knowledge) {
    const all = [...this.origins, ...other.origins].sort((a, b) => a - b);
    const same = [this, other].every((cell) => !cell.origins[1] || cell.sign === sign);
    const cell = new Cell(knowledge ? [...new Set(all)] : all, null, same ? sign : ",");
    if (this.origins.length && other.origins.length) cell.chunk = this.kind === other.kind ? this.kind : -1; // in no time
    return cell;
  }
}
