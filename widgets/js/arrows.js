/**
 * Which way a message goes on the picture: a cubic curve from card to card, and one from cell to cell for what flies.
 *
 * Neighbours get a straight arrow in the gutter between them; in a row everybody else goes over the top, as an arc, so
 * that no arrow ever crosses a cell's text. Left out: how an arrow looks (stage.js).
 */

/**
 * @typedef {import("./layout.js").Layout} Layout
 * @typedef {import("./layout.js").Box} Box
 * @typedef {[number, number, number, number, number, number, number, number]} Curve x and y of the four control points
 */

const GAP = 3;

/** The arrow of one message. @returns {Curve} */
export function arrowOf(
  /** @type {Layout} */ layout,
  /** @type {import("./schedule.js").Message} */ message,
  both = false,
) {
  const from = layout.cards[message.src];
  const to = layout.cards[message.dst];
  const sameLine = from.y === to.y;
  if (!layout.dense && sameLine && Math.abs(neighbours(layout, message)) === 1) return across(layout, message, both);
  if (layout.shape === "row") return overTheTop(layout, from, to);
  return sameLine ? around(layout, from, to) : between(from, to, both);
}

/** The way of one transfer's chunks from their cell to where they land. @returns {Curve} */
export function flightOf(
  /** @type {Layout} */ layout,
  /** @type {Curve} */ arrow,
  /** @type {Box} */ start,
  /** @type {Box} */ end,
) {
  const [, ay, bx, by, cx, cy, , dy] = arrow;
  const x0 = start.x;
  const x3 = end.x;
  if (layout.shape === "ring" || (ay === dy && ay === by)) {
    return [
      x0,
      start.y,
      x0 + (x3 - x0) / 3,
      start.y + (end.y - start.y) / 3,
      x3 - (x3 - x0) / 3,
      end.y - (end.y - start.y) / 3,
      x3,
      end.y,
    ];
  }
  return [x0, start.y, bx, Math.min(by, start.y), cx, Math.min(cy, end.y), x3, end.y];
}

/** The point at `t` in 0..1. @returns {[number, number]} */
export function pointOn(/** @type {Curve} */ [ax, ay, bx, by, cx, cy, dx, dy], /** @type {number} */ t) {
  const s = 1 - t;
  const [k0, k1, k2, k3] = [s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t];
  return [k0 * ax + k1 * bx + k2 * cx + k3 * dx, k0 * ay + k1 * by + k2 * cy + k3 * dy];
}

/** How many places apart two cards stand in their line; to the right is positive. */
function neighbours(layout, { src, dst }) {
  const from = layout.cards[src];
  const to = layout.cards[dst];
  const step = layout.cards.length > 1 ? Math.abs(layout.cards[1].x - layout.cards[0].x) || 1 : 1;
  return Math.round((to.x - from.x) / step);
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

/** An arc above the row; it leaves and arrives beside the middle of a card, so that no arc hides another. @returns {Curve} */
function overTheTop(layout, from, to) {
  const side = Math.sign(to.x - from.x);
  const port = Math.min(from.w * 0.18, 26);
  const x0 = from.x + from.w / 2 + side * port;
  const x3 = to.x + to.w / 2 - side * port;
  const top = from.y - GAP;
  const far = Math.abs(to.x - from.x) / (layout.cards[layout.cards.length - 1].x - layout.cards[0].x || 1);
  const height = Math.min(Math.abs(x3 - x0) * 0.8, (top - 8) * (0.3 + 0.7 * far));
  const lift = height * 1.32; // a cubic reaches three quarters of its control points' height
  return [x0, top, x0 + (x3 - x0) * 0.1, top - lift, x3 - (x3 - x0) * 0.1, top - lift, x3, top];
}

/** In a ring, along the inside to a card of the same line that is not a neighbour. @returns {Curve} */
function around(layout, from, to) {
  const upper = from.y < layout.height / 2 - from.h / 2;
  const y = upper ? from.y + from.h + GAP : from.y - GAP;
  const bend = upper ? 40 : -40;
  const [x0, x3] = [from.x + from.w / 2, to.x + to.w / 2];
  return [x0, y, x0, y + bend, x3, y + bend, x3, y];
}

/** In a ring, from one line to the other. @returns {Curve} */
function between(from, to, both) {
  const down = to.y > from.y;
  const lane = both ? (down ? 12 : -12) : 0;
  const y0 = down ? from.y + from.h + GAP : from.y - GAP;
  const y3 = down ? to.y - GAP : to.y + to.h + GAP;
  return straight(from.x + from.w / 2 + lane, y0, to.x + to.w / 2 + lane, y3);
}

/** @returns {Curve} */
function straight(x0, y0, x3, y3) {
  const [dx, dy] = [(x3 - x0) / 3, (y3 - y0) / 3];
  return [x0, y0, x0 + dx, y0 + dy, x3 - dx, y3 - dy, x3, y3];
}
