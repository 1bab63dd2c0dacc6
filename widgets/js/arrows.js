/**
 * Which way a message goes on the picture: a cubic curve from rank to rank, and one from cell to cell for what flies.
 *
 * Neighbours get a straight arrow in the gutter between them, ranks on neighbouring lines one from edge to edge.
 * Everybody else is reached round the ranks in between: over the top in a line, by the side from line to line, so that
 * no arrow crosses a cell's text. Left out: how an arrow looks (messages.js).
 */

import { fixed } from "./svg.js";

/**
 * @typedef {import("./layout.js").Layout} Layout
 * @typedef {import("./inside.js").Box} Box
 * @typedef {[number, number, number, number, number, number, number, number]} Curve x and y of the four control points
 */

const GAP = 3;
const LEAST_GUTTER = 12; // for a straight arrow to be seen in

/** The arrow of one message. @returns {Curve} */
export function arrowOf(
  /** @type {Layout} */ layout,
  /** @type {import("./schedule.js").Message} */ message,
  both = false,
) {
  const { kind, pitch } = layout;
  const from = layout.cards[message.src];
  const to = layout.cards[message.dst];
  const [columns, lines] = [(to.x - from.x) / pitch.x, Math.abs(to.y - from.y) / pitch.y].map(Math.round);
  if (lines === 1) return between(from, to, both);
  if (lines > 1) return byTheSide(layout, from, to);
  const gutter = kind === "columns" ? 0 : pitch.x - from.w;
  if (Math.abs(columns) === 1 && gutter >= LEAST_GUTTER) return across(layout, message, both);
  return overTheTop(layout, from, to);
}

/** From a rank that waits to the one it waits for: below the line they stand in, where no message goes. @returns {Curve} */
export function waitOf(/** @type {Layout} */ layout, /** @type {number} */ rank, /** @type {number} */ other) {
  const [from, to] = [layout.cards[rank], layout.cards[other]];
  if (from.y !== to.y) return arrowOf(layout, { src: rank, dst: other, sign: "", parts: [], amount: 0 }, true);
  const port = Math.sign(to.x - from.x) * Math.min(from.w * 0.18, 26);
  const [x0, x3, low] = [from.x + from.w / 2 + port, to.x + to.w / 2 - port, from.y + from.h + GAP];
  const deep = low + Math.min(Math.abs(x3 - x0) * 0.3, layout.below - 8) * 1.32;
  return [x0, low, x0 + (x3 - x0) * 0.1, deep, x3 - (x3 - x0) * 0.1, deep, x3, low];
}

/** The way of one transfer's chunks from their cell to where they land. @returns {Curve} */
export function flightOf(/** @type {Curve} */ arrow, /** @type {Box} */ start, /** @type {Box} */ end) {
  const [ax, ay, bx, by, cx, cy, dx, dy] = arrow;
  const isStraight = Math.abs((bx - ax) * (dy - ay) - (by - ay) * (dx - ax)) < 1;
  if (isStraight) return straight(start.x, start.y, end.x, end.y);
  if (ay !== dy) return [start.x, start.y, bx, by, cx, cy, end.x, end.y];
  return [start.x, start.y, bx, Math.min(by, start.y), cx, Math.min(cy, end.y), end.x, end.y];
}

/** @returns {string} the curve as SVG draws it */
export function pathOf(/** @type {Curve} */ curve) {
  const [x, y, ...rest] = curve.map(fixed);
  return `M${x} ${y}C${rest}`;
}

/** The point at `t` in 0..1. @returns {[number, number]} */
export function pointOn(/** @type {Curve} */ [ax, ay, bx, by, cx, cy, dx, dy], /** @type {number} */ t) {
  const s = 1 - t;
  const [k0, k1, k2, k3] = [s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t];
  return [k0 * ax + k1 * bx + k2 * cx + k3 * dx, k0 * ay + k1 * by + k2 * cy + k3 * dy];
}

/** Straight through the gutter, at the height of the chunk if there is just one. @returns {Curve} */
function across(layout, { src, dst, parts }, both) {
  const from = layout.cards[src];
  const to = layout.cards[dst];
  const right = to.x > from.x;
  const single = parts.length === 1 && parts[0].count === 1 && parts[0].srcBuffer === parts[0].dstBuffer;
  const cells = layout.cards.length * layout.chunks * parts[0].srcBuffer;
  const cell = single && layout.cell(cells + src * layout.chunks + parts[0].chunk);
  const middle = cell ? cell.y + cell.h / 2 : from.y + from.h / 2;
  const y = middle + (both ? (right ? -9 : 9) * layout.scale : 0);
  const x0 = right ? from.x + from.w + GAP : from.x - GAP;
  const x3 = right ? to.x - GAP : to.x + to.w + GAP;
  return straight(x0, y, x3, y);
}

/** An arc above the line; it leaves and arrives beside the middle, so that no arc hides another. @returns {Curve} */
function overTheTop(layout, from, to) {
  const side = Math.sign(to.x - from.x);
  const port = Math.min(from.w * 0.18, 26);
  const x0 = from.x + from.w / 2 + side * port;
  const x3 = to.x + to.w / 2 - side * port;
  const top = from.y - GAP;
  const far = Math.min(1, Math.abs(to.x - from.x) / (layout.width - from.w));
  const height = Math.min(Math.abs(x3 - x0) * 0.8, (layout.band - 8) * (0.3 + 0.7 * far));
  const lift = height * 1.32; // a cubic reaches three quarters of its control points' height
  return [x0, top, x0 + (x3 - x0) * 0.1, top - lift, x3 - (x3 - x0) * 0.1, top - lift, x3, top];
}

/** To a line that is not the next one: out to the right and back. @returns {Curve} */
function byTheSide(layout, from, to) {
  const bulge = Math.max(layout.pitch.x - from.w, 8) * 0.9;
  const [x0, y0, x3, y3] = [from.x + from.w, from.y + from.h / 2, to.x + to.w, to.y + to.h / 2];
  return [x0, y0, Math.max(x0, x3) + bulge, y0, Math.max(x0, x3) + bulge, y3, x3, y3];
}

/**
 * From one line to the next, edge to edge: straight if that is steep, else out of the one and into the other upright.
 * Between ranks that answer each other, in two lanes.
 * @param {Box} from @param {Box} to @param {boolean} both @returns {Curve}
 */
export function between(from, to, both) {
  const down = to.y > from.y;
  const lane = both ? Math.min(12, from.w * 0.2) * (down ? 1 : -1) : 0;
  const y0 = down ? from.y + from.h + GAP : from.y - GAP;
  const y3 = down ? to.y - GAP : to.y + to.h + GAP;
  const [x0, x3] = [from.x + from.w / 2 + lane, to.x + to.w / 2 + lane];
  if (Math.abs(x3 - x0) < Math.abs(y3 - y0)) return straight(x0, y0, x3, y3);
  const bend = (y3 - y0) * 0.8;
  return [x0, y0, x0, y0 + bend + lane * 0.8, x3, y3 - bend + lane * 0.8, x3, y3];
}

/** @returns {Curve} */
function straight(x0, y0, x3, y3) {
  const [dx, dy] = [(x3 - x0) / 3, (y3 - y0) / 3];
  return [x0, y0, x0 + dx, y0 + dy, x3 - dx, y3 - dy, x3, y3];
}
