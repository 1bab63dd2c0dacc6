/**
 * Textures on the hues: there are eight hues, so from the ninth chunk on a pattern tells the chunks of one hue apart.
 *
 * They are drawn only where cells are large enough for them to be seen. Left out: the number beside the cell, which
 * tells chunks apart as well.
 */

import { range } from "./schedule.js";
import { HUES, hue } from "./svg.js";

const SIDE = 8;

/** On a square of that side, one for each round of the hues. The first has none; a fifth would find no room. */
const WEAVES = [
  "",
  "M-1 1L1-1M0 8L8 0M7 9L9 7",
  "M2 3v2M6 7v-1M6 0v1",
  "M0 4H8",
];

const ALL = HUES * WEAVES.length; // from there on they repeat

let pictures = 0;

/** The textures of one picture: what defines them, and the style of what is to be filled with a chunk's own; "" if none. */
export function texturesFor(
  /** @type {import("./schedule.js").Schedule} */ { numbers },
  /** @type {import("./layout.js").Layout} */ { size },
) {
  const seen = size.w >= 9 && size.h >= 9;
  const woven = seen ? range(Math.min(numbers, ALL)).filter((chunk) => weave(chunk)) : [];
  const prefix = `rs-texture-${pictures++}-`; // names are the page's, and it may show many pictures
  const define = (/** @type {number} */ chunk) =>
    `<pattern id="${prefix}${chunk}" class="${hue(chunk)}" patternUnits="userSpaceOnUse" width="${SIDE}" height="${SIDE}">
      <rect class="rs-ground" width="${SIDE}" height="${SIDE}"/><path class="rs-weave" d="${weave(chunk)}"/></pattern>`;
  return {
    defined: woven.length ? `<defs>${woven.map(define).join("")}</defs>` : "",
    of: (/** @type {number} */ chunk) => (seen && weave(chunk) ? `--rs-texture:url(#${prefix}${chunk % ALL})` : ""),
  };
}

function weave(/** @type {number} */ chunk) {
  return WEAVES[Math.floor(chunk / HUES) % WEAVES.length];
}
