/**
 * Reads seconds and bytes with their units: "3 ms", "0.003 s", "3000 us", "12 MB", "12e6", "50 GB/s", "96 Mbit". Bits are
 * turned into bytes. Of every other unit it reads what amount.js reads.
 */

import { readNumber } from "./amount.js";

const SECONDS = { ns: 1e-9, us: 1e-6, µs: 1e-6, μs: 1e-6, ms: 1e-3, s: 1, sec: 1, second: 1, seconds: 1, min: 60, minutes: 60 };
const PREFIX = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12, ki: 2 ** 10, mi: 2 ** 20, gi: 2 ** 30, ti: 2 ** 40 };
const UNIT = /^(.*?)\s*([µμA-Za-z]+)$/s;

/**
 * The value in `unit`, and whether no unit was said; null if it is no number, or one of another unit.
 * @returns {{value: number, bare: boolean} | null}
 */
export function readQuantity(/** @type {string} */ said, /** @type {string} */ unit, /** @type {number | null} */ p) {
  const factors = { s: secondsIn, bytes: bytesIn, "bytes/s": bytesIn }[unit];
  if (!factors) return found(readNumber(unit ? said.replace(unit, "") : said, p ?? NaN), 1, true);
  const typed = said.trim().replace(/\s*(\/|p(?:er)?\s*)s(ec(ond)?)?$/, (per) => (unit.endsWith("/s") ? "" : per));
  const [, number, name] = UNIT.exec(typed) ?? [];
  const factor = name === undefined || name === "p" || name === "N" ? undefined : factors(name);
  if (factor === undefined) return found(/[A-Za-zµμ]/.test(typed.replace(/e[-+]?\d|log2?|sqrt|ceil|p/gi, "")) ? null : readNumber(typed, p ?? NaN), 1, true);
  return found(readNumber(number, p ?? NaN), factor, false);
}

function found(/** @type {number | null} */ value, /** @type {number} */ factor, /** @type {boolean} */ bare) {
  return value === null ? null : { value: value * factor, bare };
}

/** @returns {number | undefined} */
function secondsIn(/** @type {string} */ name) {
  return /** @type {Record<string, number>} */ (SECONDS)[name];
}

/** MB, mb, MiB, megabytes; Mb and Mbit are bits. @returns {number | undefined} */
function bytesIn(/** @type {string} */ name) {
  const bits = /^([kKMGT]?i?)(?:bits?|b)$/.exec(name);
  const [, prefix] = bits ?? /^([kmgt]?i?)(?:b|bytes?)$/i.exec(name) ?? [];
  const factor = /** @type {Record<string, number>} */ (PREFIX)[(prefix ?? "none").toLowerCase()];
  return factor === undefined ? undefined : bits ? factor / 8 : factor;
}
