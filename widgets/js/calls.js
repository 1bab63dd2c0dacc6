/**
 * What a Timeline has of the calls of a rank: bars, of which thousands stay light, a list that is heard, and the keys that
 * walk from call to call; and the axis.
 *
 * Left out: which bars there are, and where (timeline.js).
 */

import { describe, ticks } from "./spans.js";
import { fixed } from "./svg.js";
import { SCREEN } from "./transport.js";
import { plural } from "./words.js";

export const SLIM = 1.2; // pixels of the shortest call
const LISTED = 200; // calls of a rank

/** @type {[string, string][]} */
export const WALKS = [
  ["← →", "the rank's call before or after"],
  ["↑ ↓", "the same call on another rank, or that rank's call at that time"],
  ["Enter", "the next rank that takes part in this call"],
  ["Home End", "the rank's first or last call"],
  ["+ −", "zoom in or out, around the chosen call"],
  ["[ ]", "earlier or later"],
  ["0", "all of it"],
  ...SCREEN,
];

/** @typedef {import("./spans.js").Call} Call */

/** Of a message: from when its last latency began until its first byte was on the links, if all went by the network. */
export function latencyOf(/** @type {Call} */ { op, latency, transfer = 0, from, until }) {
  if (op !== "recv" || !latency) return null;
  const begins = Math.max(from, until - transfer - latency);
  return begins < until - transfer ? /** @type {[number, number]} */ ([begins, until - transfer]) : null;
}

/** The calls of a rank as a list that is heard, not seen; of very many the first. */
export function listOf(/** @type {Call[]} */ calls, /** @type {number} */ rank) {
  const list = document.createElement("ol");
  list.setAttribute("aria-label", `calls of rank ${rank}`);
  const more = calls.length - LISTED;
  const told = [...calls.slice(0, LISTED).map(describe), ...(more > 0 ? [`And ${plural(more, "call")} more.`] : [])];
  for (const words of told) list.appendChild(document.createElement("li")).textContent = words;
  return list;
}

/** Bars of one colour as one path; those that fall on pixels which are filled already are left out. */
export class Bars {
  path = "";
  full = -Infinity;

  add(x, w, y, h) {
    if (x + w <= this.full + 0.3 && w <= SLIM) return;
    this.full = Math.max(this.full, x + w);
    this.path += `M${fixed(x)} ${fixed(y)}h${fixed(w)}v${fixed(h)}h-${fixed(w)}z`;
  }
}

/**
 * Seconds along the bottom.
 * @param {[number, number]} view the moments at both ends @param {(time: number) => number} at where a moment is
 * @param {{width: number, height: number, left: number, below: number, scale: number}} room in pixels; `left` is for names,
 *   `below` for the seconds, `scale` how large words are
 */
export function axis(view, at, { width, height, left, below, scale }) {
  const marks = ticks(view[0], view[1], Math.max(2, Math.floor((width - left) / (110 * scale))));
  return marks
    .map(({ at: time, label }) => {
      const x = fixed(at(time));
      const anchor = x > width - 34 * scale ? "end" : x < left + 24 ? "start" : "middle";
      return `<path class="rs-tick" d="M${x} 0V${height - below + 5}"/>
          <text class="rs-when" x="${x}" y="${height - 5}" text-anchor="${anchor}">${label}</text>`;
    })
    .join("");
}

/** Lines between neighbours that were on different machines. */
export function borders(/** @type {number} */ ranks, /** @type {import("./spans.js").Wrong} */ wrong, /** @type {number} */ row, /** @type {number} */ width) {
  const at = Array.from({ length: ranks }, (_, rank) => rank).filter((rank) => rank && wrong(rank - 1, rank));
  return at.length ? `<path class="rs-machine" d="${at.map((rank) => `M0 ${fixed(rank * row)}H${width}`).join("")}"/>` : "";
}
