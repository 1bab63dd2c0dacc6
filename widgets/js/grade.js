/**
 * Judges an answer: whether it is right, and why, in sentences.
 *
 * What is right, the wrong answers that people really give, and the reason of each come from Python
 * (course/questions); here is how they are found and told. What matches no known wrong answer is told how far off it is.
 *
 * Left out: how an answer is given (answers.js), and how a number is read (amount.js, quantity.js).
 */

import { bytes, plural, seconds } from "./words.js";
import { readQuantity, takesPrefix } from "./quantity.js";

/**
 * @typedef {{text: string, why: string, step?: number | null}} Answer
 * @typedef {object} Question
 * @property {"cells" | "messages" | "steps" | "busiest" | "choose" | "statement" | "line" | "number" | "order"} kind
 * @property {string} text
 * @property {string} [name] of a question of the course
 * @property {boolean} [sealed] what is right is withheld (course/teach/withhold.py): an answer is kept and not judged
 * @property {number} [step] cells: counted from 1
 * @property {string} [why] cells, order
 * @property {Answer[]} [answers] choose, statement, line: in the order in which they are shown
 * @property {number | number[]} [right] choose, statement, line: the number of the right one, or of each of them
 * @property {boolean} [room] choose: hands are counted, in projector mode or not
 * @property {Answer} [is] number: what is right
 * @property {Answer[]} [wrong] number: formulas; order: "b, a", by their place in `lines`, where a stands before b
 * @property {string} [unit] number
 * @property {number | null} [p] number
 * @property {number} [within] number: share
 * @property {string[]} [lines] order: as they are shown
 * @property {number[]} [order] order: the places in `lines`, as it should be
 *
 * @typedef {{right: boolean, words: string[], step?: number | null}} Verdict
 * @typedef {NonNullable<ReturnType<typeof readQuantity>>} Quantity
 */

const EXACT = 1e-9;
const ROUNDED = 0.005; // as a share: three digits of a number that has more
const NEAR = 1.05; // a ratio that two digits would show as 1

/** Of the answer with that number in the list; null: skipped. @returns {Verdict} */
export function judgeChoice(/** @type {Question} */ question, /** @type {number | null} */ said) {
  const answers = question.answers ?? [];
  const rights = isRight(question);
  const right = answers[rights[0]] ?? { why: "" };
  const named = (/** @type {number} */ i) => (question.kind === "line" ? `line ${i + 1}` : quoted(answers[i].text));
  const known = answers[rights[0]] ? stop(named(rights[0])) : "none of these.";
  const it = question.kind === "choose" ? `Right is ${known}` : `It is ${known}`;
  if (said === null) return { right: false, words: [join(it, right.why)], step: right.step };
  if (rights.includes(said)) {
    return { right: true, words: [join(`You said ${named(said)}, and that is right.`, answers[said].why)], step: answers[said].step };
  }
  const wrong = answers[said];
  const mine = join(`You said ${stop(named(said))}`, wrong.why);
  return { right: false, words: [mine, join(it, right.why)], step: wrong.step ?? right.step };
}

/** The numbers of the right answers. */
export function isRight(/** @type {Question} */ { right }) {
  return Array.isArray(right) ? right : [right ?? -1];
}

/**
 * Of a number as it was typed; null if it cannot be read, or only its unit is missing.
 * @returns {Verdict | null}
 */
export function judgeNumber(/** @type {Question} */ question, /** @type {string | null} */ said) {
  const { unit = "", p = null, within = 0, wrong = [] } = question;
  const answer = /** @type {Answer} */ (question.is);
  const is = valueOf(question, answer.text);
  const shown = inUnit(is, unit);
  if (said === null) return { right: false, words: [join(`It is ${shown}.`, answer.why)], step: answer.step };
  const read = readQuantity(said, unit, p);
  if (!read) return null;
  const close = (/** @type {number} */ other) => isAbout(read.value, other, within);
  if (close(is)) {
    const told = isAbout(read.value, is, ROUNDED) ? "and that is right" : `and that is close enough: it is ${shown}`;
    const words = join(`You said ${saidOf(said, read, unit)}, ${told}.`, read.note);
    return { right: true, words: [join(words, answer.why)], step: answer.step };
  }
  const known = wrong.find(({ text }) => close(valueOf(question, text)));
  if (!known && read.bare && prefixMissing(read.value, is, within)) return null;
  const why = known?.why ?? howFar(read.value, is, question);
  const mine = join(`You said ${stop(saidOf(said, read, unit))}`, read.note);
  return { right: false, words: [join(mine, why), join(`It is ${shown}.`, answer.why)], step: known?.step ?? answer.step };
}

/** Of lines in an order: their places in `lines`. @returns {Verdict} */
export function judgeOrder(/** @type {Question} */ question, /** @type {number[] | null} */ said) {
  const { order = [], wrong = [], why = "" } = question;
  const right = said !== null && order.every((place, i) => said[i] === place);
  if (right) return { right, words: [join("That is the order.", why)] };
  const at = (/** @type {number} */ place) => said?.indexOf(place) ?? 0;
  const known = said && wrong.find(({ text }) => {
    const [later, earlier] = text.split(",").map(Number);
    return at(later) < at(earlier);
  });
  const first = order.findIndex((place, i) => said?.[i] !== place);
  const until = first ? `Up to line ${first} it is right.` : "The first line is another one.";
  const mine = said === null ? [] : [known ? known.why : until];
  return { right, words: [...mine, join("This is the order.", why)], step: known ? known.step : null };
}

/** What is right about a formula of the question. @returns {number} */
function valueOf(/** @type {Question} */ { unit = "", p = null }, /** @type {string} */ text) {
  return readQuantity(text, unit, p)?.value ?? NaN;
}

/** Whether it is the same number: whole ones exactly, others as they are rounded, or within the share that is given. */
export function isAbout(/** @type {number} */ said, /** @type {number} */ is, within = 0) {
  const share = within || (Number.isInteger(is) ? EXACT : ROUNDED);
  return Math.abs(said - is) <= share * Math.abs(is);
}

/** A bare number that is right in ms, or in MB. */
function prefixMissing(/** @type {number} */ said, /** @type {number} */ is, /** @type {number} */ within) {
  return [1e3, 1e6, 1e9, 1e12].some((prefix) => isAbout(said * prefix, is, within) || isAbout(said / prefix, is, within));
}

/** How far off a number is that nobody has foreseen; of seconds and bytes by the slips that are usual. */
function howFar(/** @type {number} */ said, /** @type {number} */ is, /** @type {Question} */ { unit = "", p = null, within = 0 }) {
  const whole = !takesPrefix(unit) && Number.isInteger(said) && Number.isInteger(is) && Math.abs(said - is) < 1000;
  if (!(said > 0 && is > 0)) return whole ? apart(said - is) : "";
  const high = said > is;
  const ratio = high ? said / is : is / said;
  if (whole) return apart(said - is);
  if (ratio < NEAR) return `That is close, but too ${high ? "high" : "low"}.`;
  const times = `${Number(ratio.toPrecision(2))} times too ${high ? "high" : "low"}`;
  const slipped = (/** @type {number} */ by) => isAbout(ratio, by, Math.max(within, 0.01));
  if (takesPrefix(unit)) {
    const byRank = p !== null && p > 1 && slipped(p);
    if (byRank && p === 8) return `That is ${times}: is it for one rank, or for all 8? Or bits for bytes?`;
    if (byRank) return `That is a factor of p = ${p} too ${high ? "high" : "low"}: is it for one rank, or for all of them?`;
    if (slipped(8)) return `That is 8 times too ${high ? "high" : "low"}: a byte has 8 bits.`;
    if ([1e3, 1e6, 1e9].some(slipped)) return `That is ${times}: look at the prefixes (k is 1000, M a million).`;
  }
  return `That is ${times}.`;
}

function apart(/** @type {number} */ by) {
  return `That is ${Math.abs(by)} too ${by > 0 ? "many" : "few"}.`;
}

/** "2(p-1), which is 6 messages": what was typed, with what it comes to if that is not to be seen. */
function saidOf(/** @type {string} */ said, /** @type {Quantity} */ { value, bare, bits }, /** @type {string} */ unit) {
  const typed = said.trim();
  const shown = inUnit(value, unit);
  if (shown.startsWith(`${typed} `)) return shown; // 6, of messages
  const number = typed.replace(/[eE][-+](?=\d)|^[-−+]|\/s$/g, ""); // a sign, an exponent and "GB/s" are no formula
  const formula = /[-+*/^()×·÷−]|(^|[^a-z])p\b/i.test(number) || (unit !== "%" && number.includes("%"));
  return formula || bare || bits ? `${typed}, which is ${shown}` : typed;
}

/** "6 messages", "1.5 N", "3 ms", "12 MB" */
export function inUnit(/** @type {number} */ value, /** @type {string} */ unit) {
  if (unit === "s") return seconds(value);
  if (unit === "bytes") return bytes(value);
  if (unit === "bytes/s") return `${bytes(value)}/s`;
  const number = digits(value);
  if (value === 1 && /[a-z]{2}s$/.test(unit)) return plural(1, unit.replace(/(?<=ch)es$|s$/, ""));
  return unit ? `${number} ${unit}` : number;
}

/** A whole number and one of four digits as they are, others with three digits. */
function digits(/** @type {number} */ value) {
  const whole = Math.round(value);
  if (Math.abs(value) >= 1000 || isAbout(value, whole, EXACT)) return String(whole);
  const four = Number(value.toPrecision(4));
  return String(isAbout(value, four, EXACT) ? four : Number(value.toPrecision(3)));
}

/** A sentence's end, unless it has one. */
function stop(/** @type {string} */ words) {
  return /[.!?]$/.test(words) ? words : `${words}.`;
}

/** A single word or number as it is, several words in quotes, without the end of their sentence. */
function quoted(/** @type {string} */ words) {
  return /^\S+$/.test(words) ? words : `“${words.replace(/\.$/, "")}”`;
}

function join(/** @type {string} */ words, /** @type {string} */ more) {
  return more ? `${words} ${more}` : words;
}
