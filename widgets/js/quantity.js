/**
 * Reads seconds and bytes with their units: "3 ms", "0.003 s", "3 milliseconds", "12 MB", "12e6", "50 GB/s", "96 Mbit".
 * Bits are turned into bytes. Of every other unit it reads what amount.js reads.
 *
 * A small b is a byte in "40 kb" and "1.4 mb": a student who types these means bytes and saved the shift key. Behind a
 * capital, as in the "400 Gb/s" of a network card, it is a bit. `note` says how it was read.
 */

import { inDigits, readNumber } from "./amount.js";

const SECONDS = { n: 1e-9, u: 1e-6, µ: 1e-6, μ: 1e-6, m: 1e-3, "": 1 };
const PREFIX = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12, ki: 2 ** 10, mi: 2 ** 20, gi: 2 ** 30, ti: 2 ** 40 };
const LONG = {
  nano: "n", micro: "u", milli: "m", kilo: "k", mega: "M", giga: "G", tera: "T",
  kibi: "Ki", mebi: "Mi", gibi: "Gi",
};
const LONG_NAME = new RegExp(`^(${Object.keys(LONG).join("|")})(?=sec|bit|byte)`, "i");
const UNIT = /^(.*?)\s*([µμA-Za-z]+)$/s;

/** @typedef {{factor: number, bits?: boolean, note?: string}} Unit */
/** @type {Record<string, {named: (name: string) => Unit | null, size: number}>} */
const MEASURES = {
  s: { named: secondsIn, size: 1 },
  bytes: { named: bytesIn, size: 1 },
  "bytes/s": { named: bytesIn, size: 1 },
  GB: { named: bytesIn, size: 1e9 },
};

/** Whether a number in that unit is written with a prefix of its own, as in "3 ms". */
export function takesPrefix(/** @type {string} */ unit) {
  return MEASURES[unit]?.size === 1;
}

/**
 * The value in `unit`, whether the unit that it needs was left away, whether bits were said, and how the unit was read if
 * that is not certain; null if it is no number, or one of another unit.
 *
 * @returns {{value: number, bare: boolean, bits: boolean, note: string} | null}
 */
export function readQuantity(/** @type {string} */ said, /** @type {string} */ unit, /** @type {number | null} */ p) {
  const digits = inDigits(said);
  const measure = MEASURES[unit];
  if (!measure) return found(readNumber(unit === "%" ? digits.replace(/%/g, "") : digits, p ?? NaN), { factor: 1 });
  const typed = digits.replace(/\s*(\/|p(?:er)?\s*)s(ec(ond)?)?$/, (per) => (unit.endsWith("/s") ? "" : per));
  const [, number, name = ""] = UNIT.exec(typed) ?? [];
  const named = name === "p" ? null : measure.named(name);
  if (named) return found(readNumber(number, p ?? NaN), { ...named, factor: named.factor / measure.size });
  const word = /[A-Za-zµμ]/.test(typed.replace(/e[-+]?\d|log2?|sqrt|ceil|p/gi, "")); // a unit of something else
  return found(word ? null : readNumber(typed, p ?? NaN), { factor: 1 }, takesPrefix(unit));
}

function found(/** @type {number | null} */ number, /** @type {Unit} */ { factor, bits = false, note = "" }, bare = false) {
  return number === null ? null : { value: number * factor, bare, bits, note };
}

/** "milliseconds" is "mseconds": a long prefix made short. */
function short(/** @type {string} */ name) {
  return name.replace(LONG_NAME, (long) => /** @type {Record<string, string>} */ (LONG)[long.toLowerCase()]);
}

/** @returns {Unit | null} */
function secondsIn(/** @type {string} */ name) {
  if (/^min(ute)?s?$/i.test(name)) return { factor: 60 };
  const [, prefix] = /^([nuµμm]?)(?:s|secs?|seconds?)$/.exec(short(name).toLowerCase()) ?? [];
  return prefix === undefined ? null : { factor: /** @type {Record<string, number>} */ (SECONDS)[prefix] };
}

/** MB, mb, MiB, megabytes are bytes; Mbit and Mb are bits. @returns {Unit | null} */
function bytesIn(/** @type {string} */ name) {
  const [, prefix, word] = /^([kmgt]?i?)(b|bits?|bytes?)$/i.exec(short(name)) ?? [];
  const size = /** @type {Record<string, number>} */ (PREFIX)[(prefix ?? "none").toLowerCase()];
  if (size === undefined) return null;
  if (/^bit/i.test(word)) return { factor: size / 8, bits: true };
  if (word !== "b") return { factor: size };
  const bits = `Here ${name} means bits; bytes are ${prefix}B.`;
  if (/^[KMGT]/.test(prefix)) return { factor: size / 8, bits: true, note: bits };
  const proper = prefix.replace(/^([mgt]|k(?=i))/, (letter) => letter.toUpperCase());
  return { factor: size, note: `Here ${name} means ${proper}B, bytes; bits are ${proper}bit.` };
}
