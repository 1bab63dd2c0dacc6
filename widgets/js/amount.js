/**
 * Reads a number as a student writes it: 6, "six", "6 N", "2(p-1)", "N - N/4", "75 %", "half", "log2(p)", "12 messages".
 * N is the unit of what is asked and counts as 1, p is the number of ranks. Words behind the number are its unit and are
 * left away.
 *
 * Nothing is evaluated as a program. `course/teach/amount.py` reads the same, written again to hold this one against.
 */

const TOKEN =
  /\s*(?:(\d[\d,_]*(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)|(log2?|ceil|sqrt)\b|(\*\*|[-+*/^()×·÷−%])|([A-Za-zµ]\w*))/y;
const WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split(" ");
/** @type {[RegExp, string][]} words that say by how much the number before them is multiplied */
const FACTORS = [
  [/\bhalf\b/gi, "/2"],
  [/\bthirds?\b/gi, "/3"],
  [/\bquarters?\b/gi, "/4"],
  [/\bthousand\b/gi, "*1e3"],
  [/\bmillion\b/gi, "*1e6"],
  [/\bbillion\b/gi, "*1e9"],
  [/\bper ?cent\b/gi, "%"],
];
const NUMBER_WORD = new RegExp(`\\b(?:${WORDS.join("|")})\\b`, "gi");

/** The number; null if it is none. */
export function readNumber(/** @type {string} */ said, /** @type {number} */ p) {
  try {
    const value = new Reader(inDigits(said), p).all();
    return Number.isFinite(value) ? value : null;
  } catch (error) {
    if (error instanceof NoNumber || error instanceof RangeError) return null; // RangeError: thousands of brackets
    throw error;
  }
}

/** With digits instead of words: "three quarters" is "3 /4", "half" is "1 /2". */
export function inDigits(/** @type {string} */ said) {
  const counted = said.trim().replace(/^(?:an?\s+)?(?=(?:half|third|quarter)\b)/i, "1 ");
  const numbers = counted.replace(NUMBER_WORD, (word) => String(WORDS.indexOf(word.toLowerCase())));
  return FACTORS.reduce((text, [word, factor]) => text.replace(word, factor), numbers);
}

class NoNumber extends Error {}

class Reader {
  constructor(/** @type {string} */ text, /** @type {number} */ p) {
    this.p = p;
    /** @type {RegExpExecArray[]} */
    this.tokens = [];
    const spaced = text.replace(/(\d)([pN])\b/g, "$1 $2"); // 2p, 6N
    TOKEN.lastIndex = 0;
    while (TOKEN.lastIndex < spaced.length) {
      const match = TOKEN.exec(spaced);
      if (!match) throw new NoNumber(text);
      this.tokens.push(match);
    }
  }

  all() {
    const value = this.#sum();
    while (this.tokens[0]?.[4]) this.tokens.shift(); // a unit
    if (this.tokens.length) throw new NoNumber("more than a number");
    return value;
  }

  /** The next token if it is one of these. */
  #sign(/** @type {string[]} */ ...signs) {
    if (signs.includes(this.tokens[0]?.[3])) return /** @type {RegExpExecArray} */ (this.tokens.shift())[3];
    return "";
  }

  /** @returns {number} */
  #sum() {
    let value = this.#product();
    for (let sign; (sign = this.#sign("+", "-", "−")); ) {
      const next = this.#product();
      value = sign === "+" ? value + next : value - next;
    }
    return value;
  }

  /** @returns {number} */
  #product() {
    let value = this.#power();
    while (this.tokens.length) {
      const sign = this.#sign("*", "/", "×", "·", "÷");
      const [, , call, mark, word] = this.tokens[0] ?? [];
      if (sign) value = "*×·".includes(sign) ? value * this.#power() : value / this.#power();
      else if (call || mark === "(" || word === "p" || word === "N") value *= this.#power(); // 2(p - 1), 3 N
      else return value;
    }
    return value;
  }

  /** @returns {number} */
  #power() {
    const sign = this.#sign("-", "+", "−");
    if (sign) return sign === "+" ? this.#power() : -this.#power();
    const value = this.#inPercent();
    if (!this.#sign("^", "**")) return value;
    const exponent = this.#power();
    if (Math.abs(exponent) > 64) throw new NoNumber("too large");
    return value ** exponent;
  }

  /** An atom; "75 %" is 0.75. */
  #inPercent() {
    const value = this.#atom();
    return this.#sign("%") ? value / 100 : value;
  }

  /** @returns {number} */
  #atom() {
    if (this.#sign("(")) {
      const value = this.#sum();
      if (!this.#sign(")")) throw new NoNumber("a bracket is open");
      return value;
    }
    const token = this.tokens.shift();
    if (token?.[1]) {
      const number = token[1].replace(/_/g, "");
      return Number(number.replace(/,/g, /^\d{1,3}(,\d{3})+(\.\d+)?$/.test(number) ? "" : "."));
    }
    if (token?.[2]) {
      const inside = this.#atom();
      return { log: Math.log2, log2: Math.log2, ceil: Math.ceil, sqrt: Math.sqrt }[token[2]]?.(inside) ?? NaN;
    }
    if (token?.[4] === "N") return 1;
    if (token?.[4] === "p") return this.p;
    throw new NoNumber("nothing there");
  }
}
