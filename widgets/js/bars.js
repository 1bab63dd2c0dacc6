/**
 * The bar in a cell: one segment per rank whose data is in it.
 *
 * Left out: how high the bar of a cell with text is (inside.js).
 */

import { barHeight } from "./inside.js";
import { fixed } from "./svg.js";

/**
 * @param {import("./inside.js").Box} box of the cell @param {number[]} contributors @param {number} ranks
 * @param {boolean} wide whether there is no text in the way: then of a dense picture the bar is the whole cell
 * @param {boolean} dense
 * @returns {string} the bar as SVG draws it
 */
export function barOf({ x, y, w, h }, contributors, ranks, wide, dense) {
  const height = wide && dense ? h : wide && h > 30 ? h * 0.24 : barHeight(h);
  const inset = dense ? 0 : h < 24 ? 1.5 : 3;
  const unit = (w - 2 * inset) / ranks;
  const slit = unit > 5 ? 1.5 : 0;
  const segments = stretches(contributors, slit === 0).map(([from, to]) => {
    const length = fixed((to - from) * unit - slit);
    return `M${[x + inset + from * unit, y + h - height - inset].map(fixed)}h${length}v${fixed(height)}h${-length}z`;
  });
  return segments.join("");
}

/** Ranks as [from, to): consecutive ones together if `joined`, else one by one. */
function stretches(ranks, joined) {
  const found = [];
  for (const rank of ranks) {
    const last = found[found.length - 1];
    if (joined && last?.[1] === rank) last[1]++;
    else found.push([rank, rank + 1]);
  }
  return found;
}
