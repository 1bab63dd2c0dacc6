/**
 * SVG as text: the few elements the picture is made of.
 *
 * Building a large picture from one text is many times faster than element by element. What comes from users (names,
 * values) never goes through here: it is set as textContent afterwards.
 */

/** @typedef {import("./inside.js").Box} Box */

export const HUES = 8;

/** The class of a chunk's colour; they repeat after eight, then with a texture (scenery.js). */
export function hue(/** @type {number} */ chunk) {
  return `rs-h${chunk % HUES}`;
}

const STRONG = [4, 5, 2, 6, 0, 1, 3, 7]; // as in drift.py

/** The class of a rank's colour, in pictures of runs. */
export function ofRank(/** @type {number} */ rank) {
  return hue(STRONG[rank % HUES]);
}

/** The classes of data that is no one chunk's (-1), or has a colour other than that of where it is. */
export function tint(/** @type {number} */ kind) {
  return kind < 0 ? "rs-mixed" : hue(kind);
}

/** A number in tenths of a pixel: shorter, and the eye sees no less. */
export function fixed(/** @type {number} */ value) {
  return Math.round(value * 10) / 10;
}

/** @param {string} name class @param {Box} box @param {string} more further attributes */
export function rect(name, { x, y, w, h }, more = "") {
  const radius = fixed(Math.min(4, h / 4, w / 4));
  const place = `x="${fixed(x)}" y="${fixed(y)}" width="${fixed(w)}" height="${fixed(h)}" rx="${radius}"`;
  return `<rect class="${name}" ${place} ${more}/>`;
}

/** @param {string} name class @param {number} x @param {number} y @param {string | number} words numbers and fixed words only @param {string} more further attributes */
export function text(name, x, y, words = "", more = "") {
  return `<text class="${name}" x="${fixed(x)}" y="${fixed(y)}" ${more}>${words}</text>`;
}
