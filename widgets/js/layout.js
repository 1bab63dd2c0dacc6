/**
 * Where everything stands: one box per rank, one per cell, in pixels for the width there is.
 *
 * Two shapes. "row": ranks side by side, messages as arcs above them. "ring": the ranks walk around a racetrack, the
 * first half along the top, the rest back along the bottom. A row that has no room for cards becomes dense: one column
 * per rank, one band per chunk, labels thinned out until none overlap.
 *
 * Pure arithmetic, so that it can be tested without drawing. Left out: arrows (arrows.js) and ink (stage.js).
 */

import { messagesOf, range } from "./schedule.js";

/**
 * @typedef {{x: number, y: number, w: number, h: number}} Box
 * @typedef {object} Layout
 * @property {"row" | "ring"} shape
 * @property {boolean} dense
 * @property {number} width
 * @property {number} height
 * @property {number} ranks
 * @property {number} chunks
 * @property {number} chip width of the chunk's number beside its cell; 0 where there is no room for it
 * @property {number} scale 1 in a notebook, more on a projector
 * @property {Box[]} cards one per rank; in a dense row the column
 * @property {(slot: number) => Box} cell
 * @property {Box} size of every cell (x and y unused)
 * @property {{buffer: number, x: number, y: number}[]} names where a buffer's name is written, relative to a card
 * @property {number} rankEvery every how many ranks a label fits
 * @property {number} chunkEvery every how many chunks a label fits
 */

const PAD = 8;
const SMALLEST_CARD = 84;

/** Ring if all messages go the same way around and the ring can be taken in at a glance; else a row. */
export function bestShape(/** @type {import("./schedule.js").Schedule} */ schedule) {
  const { ranks, steps } = schedule;
  if (ranks < 3 || ranks > 10) return "row";
  const ways = new Set(
    range(steps).flatMap((k) => messagesOf(schedule, k).map(({ src, dst }) => (dst - src + ranks) % ranks)),
  );
  const around = ways.size === 1 && (ways.has(1) || ways.has(ranks - 1));
  return around && messagesOf(schedule, 0).length === ranks ? "ring" : "row";
}

/**
 * @typedef {{width: number, tall: number, shape: "row" | "ring", scale: number}} Room what there is: pixels, and the size
 *   of words (1 in a notebook). A picture that needs more than `tall` takes it.
 * @param {import("./schedule.js").Schedule} schedule @param {Room} room @returns {Layout}
 */
export function layOut(schedule, room) {
  const columns = room.shape === "ring" ? Math.ceil(schedule.ranks / 2) : schedule.ranks;
  const dense = room.width / columns < SMALLEST_CARD * room.scale;
  return dense ? denseRow(schedule, room) : cards(schedule, room, columns);
}

/** The room a picture of this width takes in a notebook: no more than a laptop shows at once. */
export function notebookHeight(/** @type {number} */ width) {
  return clamp(width * 0.48, 380, 480);
}

/** @returns {Layout} */
function cards({ ranks, chunks, buffers }, { width, tall, shape, scale }, columns) {
  const lines = shape === "ring" ? 2 : 1;
  const band = shape === "row" && ranks > 2 ? Math.min(40 + 12 * ranks, 110) : 6;
  const large = scale > 1;
  const between = lines > 1 ? (large ? 44 : 54) : 0;
  const head = large ? 34 : 28;
  const foot = large ? 14 : 32;

  const pitch = width / columns;
  const gutter = clamp(pitch * 0.28, 14, 120);
  const w = Math.min(pitch - gutter, 380 * scale * Math.min(buffers.length, 2));
  const chip = w >= 90 ? 26 * scale : w >= 60 ? 18 : 0;
  const across = buffers.length > 1 && (w - chip) / buffers.length >= 56;
  const name = buffers.length > 1 ? 18 * scale : 0;

  const stacked = across ? 1 : buffers.length;
  const room = (tall - band - between) / lines - head - foot - stacked * name;
  const cellH = clamp(room / (stacked * chunks), 17, (chunks * stacked < 3 ? 64 : 46) * scale);
  const cellW = (w - 2 * PAD - chip) / (across ? buffers.length : 1) - (across ? 4 : 0);
  const h = head + foot + stacked * (name + chunks * cellH);

  const gap = columns > 1 ? Math.min((width - columns * w) / (columns - 0.4), 200) : 0;
  const boxes = range(ranks).map((rank) => {
    const line = Math.floor(rank / columns);
    const inLine = line ? ranks - columns : columns;
    const place = line ? inLine - 1 - (rank - columns) : rank;
    const left = (width - inLine * w - (inLine - 1) * gap) / 2;
    return { x: left + place * (w + gap), y: band + line * (h + between), w, h };
  });

  const corner = (buffer) => ({
    buffer,
    x: PAD + chip + (across ? buffer * (cellW + 4) : 0),
    y: head + (across ? 0 : buffer * (name + chunks * cellH)),
  });
  return {
    shape,
    dense: false,
    width,
    scale,
    chip,
    ranks,
    chunks,
    height: Math.max(...boxes.map((box) => box.y)) + h + 6,
    cards: boxes,
    names: name ? range(buffers.length).map(corner) : [],
    size: { x: 0, y: 0, w: cellW, h: cellH - 3 },
    rankEvery: 1,
    chunkEvery: 1,
    cell: (slot) => {
      const { buffer, rank, chunk } = unpack(slot, ranks, chunks);
      const { x, y } = corner(buffer);
      return { x: boxes[rank].x + x, y: boxes[rank].y + y + name + chunk * cellH, w: cellW, h: cellH - 3 };
    },
  };
}

/** @returns {Layout} */
function denseRow({ ranks, chunks, buffers }, { width, tall, scale }) {
  const band = 70;
  const axis = 34 * scale;
  const head = 22 * scale;
  const foot = 44;
  const name = buffers.length > 1 ? 20 * scale : 0;
  const pitch = Math.min((width - axis - PAD) / ranks, 96 * scale);
  const left = axis + (width - axis - PAD - pitch * ranks) / 2;
  const cellW = pitch >= 8 ? pitch * 0.88 : Math.max(pitch - 0.6, 1);
  const room = (chunks * buffers.length > 32 ? tall + 70 : tall) - band - head - foot - buffers.length * name;
  const cellH = clamp(room / (buffers.length * chunks), 5, 34 * scale);
  const gap = cellH > 10 ? 2 : 0.8;
  const h = head + foot + buffers.length * (name + chunks * cellH);
  const boxes = range(ranks).map((rank) => ({ x: left + rank * pitch, y: band, w: cellW, h }));
  const top = (buffer) => head + name + buffer * (name + chunks * cellH);
  return {
    shape: "row",
    dense: true,
    width,
    scale,
    chip: 0,
    ranks,
    chunks,
    height: band + h + 4,
    cards: boxes,
    names: name ? range(buffers.length).map((buffer) => ({ buffer, x: 0, y: top(buffer) - name })) : [],
    size: { x: 0, y: 0, w: cellW, h: cellH - gap },
    rankEvery: thinned((String(ranks - 1).length * 8 + 8) * scale, pitch),
    chunkEvery: thinned(15 * scale, cellH),
    cell: (slot) => {
      const { buffer, rank, chunk } = unpack(slot, ranks, chunks);
      return { x: boxes[rank].x, y: band + top(buffer) + chunk * cellH, w: cellW, h: cellH - gap };
    },
  };
}

/** Height of the bar of contributors at the bottom of a cell. */
export function barHeight(/** @type {number} */ cellHeight) {
  return Math.max(2.5, Math.min(7, cellHeight * 0.16));
}

/** @returns {{buffer: number, rank: number, chunk: number}} */
export function unpack(/** @type {number} */ slot, /** @type {number} */ ranks, /** @type {number} */ chunks) {
  return { buffer: Math.floor(slot / chunks / ranks), rank: Math.floor(slot / chunks) % ranks, chunk: slot % chunks };
}

/** Every how many (1, 2, 4, 8 ...) labels of `need` pixels fit when one comes every `pitch` pixels. */
function thinned(need, pitch) {
  return 2 ** Math.max(0, Math.ceil(Math.log2(need / pitch)));
}

function clamp(value, least, most) {
  return Math.max(least, Math.min(value, most));
}
