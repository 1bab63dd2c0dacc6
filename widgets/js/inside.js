/**
 * What a rank is drawn as, and where in it the cells are: a card, a column or a tile.
 *
 * A card has a line for every chunk. In a row without room for cards a rank is a column, crossed by one band per chunk;
 * in any other picture a tile, whose chunks run on in further columns. Where the ranks themselves stand is layout.js.
 */

/**
 * @typedef {import("./schedule.js").Schedule} Schedule
 * @typedef {{x: number, y: number, w: number, h: number}} Box
 * @typedef {{x: number, y: number}} Point
 *
 * @typedef {object} Inside
 * @property {"cards" | "columns" | "tiles"} kind
 * @property {number} w
 * @property {number} h
 * @property {boolean} slim without a line of amounts
 * @property {number} full how long the bar of a column that has sent most is
 * @property {number} chip width of the chunk's number beside its cell; 0 where there is no room for it
 * @property {{w: number, h: number}} size of every cell
 * @property {number} rows chunks that stand above each other; fewer than there are if they run on in the next column
 * @property {(buffer: number, chunk: number) => Point} corner of a cell, relative to the rank's own corner
 * @property {({buffer: number} & Point)[]} names where a buffer's name is written, relative to it too
 */

import { range } from "./schedule.js";

const PAD = 8;
const LEAST_LINE = 15.5; // of a cell in a card
const LETTER = 7; // width of one in a buffer's name

/**
 * @param {Schedule} schedule @param {number} w @param {number} tall what there is for one card; it may take more
 * @param {number} scale @param {boolean} slim without the line of amounts
 * @returns {Inside}
 */
export function card({ chunks, buffers }, w, tall, scale, slim) {
  const head = scale > 1 ? 34 : 28;
  const foot = slim ? 14 : 32;
  const chip = chunks === 1 ? 0 : w >= 90 ? 26 * scale : w >= 60 ? 18 : 0;
  const longest = Math.max(...buffers.map((name) => name.length)); // beside each other their names have to fit, too
  const across = buffers.length > 1 && (w - chip) / buffers.length >= Math.max(48, LETTER * longest * scale);
  const name = buffers.length > 1 ? 18 * scale : 0;
  const stacked = across ? 1 : buffers.length;
  const line = (tall - head - foot - stacked * name) / (stacked * chunks);
  const cellH = clamp(line, LEAST_LINE, (chunks * stacked < 3 ? 64 : 46) * scale);
  const cellW = (w - 2 * PAD - chip) / (across ? buffers.length : 1) - (across ? 4 : 0);
  const corner = (/** @type {number} */ buffer, /** @type {number} */ chunk) => ({
    x: PAD + chip + (across ? buffer * (cellW + 4) : 0),
    y: head + (across ? 0 : buffer * (name + chunks * cellH)) + name + chunk * cellH,
  });
  const h = head + foot + stacked * (name + chunks * cellH);
  const size = { w: cellW, h: cellH - (cellH > LEAST_LINE ? 3 : 2) };
  return { kind: "cards", slim, w, h, full: 0, chip, size, rows: chunks, corner, names: namesAt(buffers, corner, name) };
}

/** The number above, the cells as bands, room for a bar that grows from below. @returns {Inside} */
export function column(
  /** @type {Schedule} */ { chunks, buffers },
  /** @type {number} */ w,
  /** @type {number} */ tall,
  /** @type {number} */ scale,
) {
  const head = 22 * scale;
  const foot = clamp(tall * 0.2, 24, 44);
  const name = buffers.length > 1 ? 20 * scale : 0;
  const cellH = clamp((tall - head - foot - buffers.length * name) / (buffers.length * chunks), scale > 1 ? 1.5 : 5, 34 * scale);
  const corner = (/** @type {number} */ buffer, /** @type {number} */ chunk) => ({
    x: 0,
    y: head + name + buffer * (name + chunks * cellH) + chunk * cellH,
  });
  const h = head + foot + buffers.length * (name + chunks * cellH);
  const size = { w, h: cellH - (cellH > 10 ? 2 : 0.8) };
  return { kind: "columns", slim: true, w, h, full: foot - 10, chip: 0, size, rows: chunks, corner, names: namesAt(buffers, corner, name) };
}

/** The number above, the cells in as many columns as it takes, a bar below. @returns {Inside} */
export function tile(
  /** @type {Schedule} */ { chunks, buffers, ranks, local },
  /** @type {number} */ w,
  /** @type {number} */ tall,
  /** @type {number} */ scale,
) {
  const [head, foot, edge] = [14 * scale + 2, 3 * scale + 4, w > 20 ? 3 : 1];
  const share = Math.max((tall - head - foot) / buffers.length - 3, Math.min(12 * chunks, 24));
  const rows = foldAt(chunks, local ? ranks / local : 1, w - 2 * edge, share);
  const cellW = (w - 2 * edge) / Math.ceil(chunks / rows);
  const cellH = clamp(share / rows, rows > 8 ? 2.5 : 4, 26 * scale);
  const corner = (/** @type {number} */ buffer, /** @type {number} */ chunk) => ({
    x: edge + Math.floor(chunk / rows) * cellW,
    y: head + buffer * (rows * cellH + 3) + (chunk % rows) * cellH,
  });
  const h = head + foot + buffers.length * (rows * cellH + 3);
  const size = { w: cellW * 0.94, h: cellH - (cellH > 10 ? 2 : 0.7) };
  return { kind: "tiles", slim: true, w, h, full: 0, chip: 0, size, rows, corner, names: [] };
}

/**
 * How many chunks stand above each other: all of them where each has a readable line, else so many that cells become
 * large and square. `block` chunks belong together: a column has whole blocks of them, or a block has whole columns.
 */
function foldAt(chunks, block, width, tall) {
  if (12 * chunks <= tall) return chunks;
  const fits = (/** @type {number} */ rows) => rows % block === 0 || block % rows === 0;
  const even = (/** @type {number} */ rows) => chunks % rows === 0 || chunks % 2 === 1;
  const candidates = range(chunks + 1).filter((rows) => rows > 0 && fits(rows) && even(rows));
  const side = (/** @type {number} */ rows) => Math.min(width / Math.ceil(chunks / rows), (1.6 * tall) / rows);
  return candidates.reduce((best, rows) => (side(rows) > side(best) + 0.5 ? rows : best));
}

/** Where each buffer's name is written, if there are several: above its first chunk. */
function namesAt(buffers, corner, name) {
  if (!name) return [];
  return buffers.map((_, buffer) => ({ buffer, x: corner(buffer, 0).x, y: corner(buffer, 0).y - name }));
}

/** Height of the bar of contributors at the bottom of a cell. */
export function barHeight(/** @type {number} */ cellHeight) {
  return Math.max(2.5, Math.min(7, cellHeight * 0.16));
}

export function clamp(/** @type {number} */ value, /** @type {number} */ least, /** @type {number} */ most) {
  return Math.max(least, Math.min(value, most));
}
