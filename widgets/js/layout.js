/**
 * Where everything stands: the ranks to each other, one box per rank, one per cell, in pixels for the width there is.
 *
 * First every rank gets a place in columns and lines. "row": side by side. "ring": around a racetrack, the first half
 * along the top, the rest back along the bottom. "tree": a line per level, every rank above the middle of the ranks
 * below it. "machines": a line per machine, so that messages inside one run level and those between two run upright;
 * with more than eight machines in several stacks.
 *
 * Then what stands there gets its size; inside.js says what it looks like. A rank is a card where there is room for it,
 * else a column (in a row) or a tile. Labels thin out until none overlap.
 *
 * Pure arithmetic, so that it can be tested without drawing. Left out: arrows (arrows.js) and ink (stage.js).
 */

import { card, clamp, column, tile } from "./inside.js";
import { range, unpack } from "./schedule.js";
import { survey, treeOf } from "./survey.js";

/**
 * @typedef {import("./schedule.js").Schedule} Schedule
 * @typedef {object} Places
 * @property {number} columns
 * @property {number} lines
 * @property {{column: number, line: number, stack: number}[]} at of every rank; a column may be a fraction
 * @property {{name: string, first: number, last: number}[]} frames machines, by their first and last rank
 * @property {number} stacks of machines, each with its names on the left
 * @property {number[] | null} parent of every rank in a tree
 */

const TALLEST = 8; // machines in one stack

/** @returns {Places} */
function placesOf(/** @type {Schedule} */ schedule, /** @type {import("./survey.js").Shape} */ shape) {
  const { ranks } = schedule;
  const tree = shape === "tree" && treeOf(ranks, survey(schedule).links);
  if (tree) return levels(ranks, tree);
  if (shape === "machines" && schedule.local) return machines(ranks, schedule.local);
  const columns = shape === "ring" ? Math.ceil(ranks / 2) : ranks;
  const at = range(ranks).map((rank) => {
    if (rank < columns) return { column: rank, line: 0, stack: 0 };
    return { column: ranks - 1 - rank + (2 * columns - ranks) / 2, line: 1, stack: 0 };
  });
  return { columns, lines: shape === "ring" ? 2 : 1, at, frames: [], stacks: 0, parent: null };
}

/** @returns {Places} */
function levels(/** @type {number} */ ranks, /** @type {{parent: number[], depth: number[]}} */ { parent, depth }) {
  /** @type {number[][]} */
  const below = range(ranks).map(() => []);
  parent.forEach((above, rank) => above >= 0 && below[above].push(rank));
  let columns = 0;
  /** @type {Places["at"]} */
  const at = [];
  const place = (/** @type {number} */ rank) => {
    const [first, ...more] = below[rank].map(place);
    const column = first === undefined ? columns++ : (first + (more.at(-1) ?? first)) / 2;
    at[rank] = { column, line: depth[rank], stack: 0 };
    return column;
  };
  place(parent.indexOf(-1));
  return { columns, lines: Math.max(...depth) + 1, at, frames: [], stacks: 0, parent };
}

/** @returns {Places} */
function machines(/** @type {number} */ ranks, /** @type {number} */ local) {
  const nodes = ranks / local;
  const stacks = areFew(ranks) ? nodes : Math.ceil(nodes / TALLEST); // few have one line
  const lines = Math.ceil(nodes / stacks);
  const at = range(ranks).map((rank) => {
    const node = Math.floor(rank / local);
    const stack = Math.floor(node / lines);
    return { column: stack * local + (rank % local), line: node % lines, stack };
  });
  const frames = range(nodes).map((node) => {
    return { name: String(node), first: node * local, last: node * local + local - 1 };
  });
  return { columns: stacks * local, lines, at, frames, stacks, parent: null };
}

/**
 * @typedef {import("./inside.js").Inside} Inside
 * @typedef {import("./inside.js").Box} Box
 *
 * @typedef {object} Placed
 * @property {import("./survey.js").Shape} shape
 * @property {number} width
 * @property {number} height
 * @property {number} ranks
 * @property {number} chunks
 * @property {number} scale 1 in a notebook, more on a projector
 * @property {boolean} dense whether ranks are not cards
 * @property {Box[]} cards one per rank, whatever it is drawn as
 * @property {{x: number, y: number}} pitch from a rank to its neighbour, and from line to line
 * @property {number} band room for arcs above a line
 * @property {number} below room for the arrows of stuck ranks
 * @property {{name: string, box: Box}[]} frames around machines
 * @property {number[] | null} branches the parent of every rank in a tree
 * @property {boolean[]} labelled whether there is room for the rank's number
 * @property {number} chunkEvery every how many chunks a label fits
 * @property {(slot: number) => Box} cell
 *
 * @typedef {Inside & Placed} Layout
 * @typedef {{width: number, tall: number, shape: import("./survey.js").Shape, scale: number}} Room what there is:
 *   pixels, and the size of words (1 in a notebook). A picture that needs more than `tall` takes it.
 */

const SMALLEST_CARD = 84; // beside others of its line; where lines are many, it pays only when it can be wider
const MARGIN = 66; // for the name of a machine
const FEW = 4; // ranks, with which all of a widget is
const LOW = 398; // pixels high in a notebook
const PHONE = 600; // pixels wide, where cards are above each other
const NOTE = 20; // for a line that says how chunks run on
const EDGE = 8; // on the right of a row of columns

/** @returns {Layout} */
export function layOut(/** @type {Schedule} */ schedule, /** @type {Room} */ room) {
  const { width, tall, shape, scale } = room;
  const places = placesOf(schedule, shape);
  const { columns, lines, stacks } = places;
  const pitch = (width - stacks * MARGIN * scale) / columns;
  const narrow = pitch < SMALLEST_CARD * scale * (lines > 2 ? 1.6 : 1);
  if (narrow && shape === "row") return denseRow(schedule, room, places);
  const between = schedule.buffers.length > 2 ? 0.14 : 0.28; // of the pitch
  const w = Math.min(pitch - clamp(pitch * between, 14, 120), 380 * scale * Math.min(schedule.buffers.length, 2));
  const air = airOf(schedule, room, false, lines);
  const share = shareOf(tall, air, lines);
  const slim = scale > 1 || shape !== "row"; // on a projector there is no room for amounts
  const whole = card(schedule, w, share, scale, slim);
  const made = whole.h > share ? card(schedule, w, share, scale, true) : whole;
  const bulky = (shape !== "row" || scale > 1) && made.h > share + (scale > 1 ? 0 : 40);
  if (bulky && shape === "row") return denseRow(schedule, room, places);
  if (!narrow && !bulky) return spread(schedule, room, places, made, air);
  const small = Math.min(pitch - clamp(pitch * 0.16, 2, 40), 240 * scale);
  const tight = airOf(schedule, room, true, lines);
  const left = tall - (schedule.chunks > 1 ? NOTE * scale : 0);
  return spread(schedule, room, places, tile(schedule, small, shareOf(left, tight, lines), scale), tight);
}

/** The room a picture of this width takes in a notebook: no more than a laptop shows at once. Of few ranks less: `around`
 * are the pixels of the widget that are not the picture. */
export function notebookHeight(/** @type {number} */ width, /** @type {number} */ ranks, /** @type {number} */ around) {
  if (!areFew(ranks)) return clamp(width * 0.48, 380, 480);
  return LOW - (width < PHONE ? 60 : around);
}

export function areFew(/** @type {number} */ ranks) {
  return ranks <= FEW;
}

/** Room above every line, and from one line to the next: for arcs, arrows and their labels. */
function airOf(schedule, { shape, scale, tall }, dense, lines) {
  const below = belowOf(schedule);
  if (shape === "row") return { band: bandOf(schedule, survey(schedule).links), between: 0, below };
  if (shape === "machines") {
    const band = dense ? (lines > 4 || tall <= LOW ? 12 : 20) : 30;
    return { band: band * scale, between: (band + 14) * scale, below };
  }
  if (shape === "tree") return { band: 6, between: dense ? (areFew(schedule.ranks) ? 18 : 24) : 40, below };
  return { band: 6, between: 44, below };
}

/** Room for the arrows that show who is stuck. */
function belowOf({ stuck = [] }) {
  return Math.max(0, ...stuck.map(([rank, other]) => (other === null ? 0 : Math.min(30 + 6 * Math.abs(rank - other), 66))));
}

/** Room for the arcs over a row that there are: none where all messages go to neighbours. */
function bandOf({ ranks }, links) {
  const reach = Math.max(0, ...[...links].map((link) => Math.abs((link % ranks) - Math.floor(link / ranks))));
  return reach < 2 ? 6 : Math.min(28 + 12 * reach, areFew(ranks) ? 46 : 110);
}

/** How tall a rank may be, so that all lines fit. */
function shareOf(tall, { band, between, below }, lines) {
  return (tall - band - below - 12 - (lines - 1) * between) / lines;
}

/** Ranks that all look alike, as far apart as the width allows. @returns {Layout} */
function spread(schedule, room, places, inside, air) {
  const { width, shape, scale } = room;
  const { columns, stacks } = places;
  const overhang = stacks || inside.w > 20 * scale ? 0 : 8; // of a number that is wider than its rank
  const free = width - overhang - stacks * MARGIN * scale - columns * inside.w;
  const widest = shape === "row" || shape === "ring" ? 200 : Infinity;
  const gap = Math.min(free / (columns - (stacks ? 0 : 0.4)), widest);
  const left = stacks ? MARGIN * scale : (width - columns * inside.w - (columns - 1) * gap) / 2;
  return put(schedule, room, places, inside, air, { left, pitch: inside.w + gap });
}

/** A row of many: every rank a column, every chunk a band through all of them. @returns {Layout} */
function denseRow(schedule, room, places) {
  const { width, tall, scale } = room;
  const { ranks, chunks, buffers } = schedule;
  const air = { band: clamp(tall * 0.25, 36, 70), between: 0, below: belowOf(schedule) };
  const axis = (width < 64 * scale * ranks ? 34 : 46) * scale; // of "rank", of "chunk"
  const pitch = Math.min((width - axis - EDGE) / ranks, 96 * scale);
  const w = pitch >= 8 ? pitch * 0.88 : Math.max(pitch - 0.6, 1);
  const more = scale > 1 ? -6 : chunks * buffers.length > 32 ? 70 : 0; // a notebook scrolls, a wall does not
  const inside = column(schedule, w, tall + more - air.band - air.below, scale);
  const left = axis + (width - axis - EDGE - pitch * ranks) / 2;
  return put(schedule, room, places, inside, air, { left, pitch });
}

/** Every rank on its place: the first at `left`, its neighbour `pitch` further. @returns {Layout} */
function put({ ranks, chunks }, room, places, inside, { band, between, below }, { left, pitch }) {
  const { scale } = room;
  const { w, h, corner, size, rows } = inside;
  const margin = MARGIN * scale;
  const cards = places.at.map((/** @type {Places["at"][number]} */ { column, line, stack }) => {
    return { x: left + column * pitch + stack * margin, y: band + line * (h + between), w, h };
  });
  const frames = places.frames.map((/** @type {Places["frames"][number]} */ { name, first, last }) => {
    const x = cards[first].x - margin + 2;
    return { name, box: { x, y: cards[first].y - band + 2, w: cards[last].x + pitch - 4 - x, h: h + band + 4 } };
  });
  const note = rows < chunks ? NOTE * scale : 0;
  const number = (String(ranks - 1).length * 8 + 8) * scale;
  const cell = (/** @type {number} */ slot) => {
    const { buffer, rank, chunk } = unpack(slot, ranks, chunks);
    const { x, y } = corner(buffer, chunk);
    return { x: cards[rank].x + x, y: cards[rank].y + y, w: size.w, h: size.h };
  };
  return {
    ...inside,
    ...room,
    height: Math.max(...cards.map((/** @type {Box} */ { y }) => y)) + h + (places.stacks ? 12 : 6) + note + below,
    ranks,
    chunks,
    dense: inside.kind !== "cards",
    cards,
    pitch: { x: pitch, y: h + between },
    band,
    below,
    frames,
    branches: places.parent,
    labelled: thinOut(cards, inside.kind === "cards" ? 0 : pitch * thinned(number, pitch)),
    chunkEvery: thinned(15 * scale, corner(0, 1).y - corner(0, 0).y),
    cell,
  };
}

/** Which labels of `need` pixels have room, going along every line from the left. @returns {boolean[]} */
function thinOut(/** @type {Box[]} */ cards, /** @type {number} */ need) {
  const labelled = cards.map(() => false);
  const order = range(cards.length).sort((a, b) => cards[a].y - cards[b].y || cards[a].x - cards[b].x);
  let [line, free] = [NaN, 0];
  for (const rank of order) {
    const { x, y } = cards[rank];
    if (y === line && x < free) continue;
    labelled[rank] = true;
    [line, free] = [y, x + need - 0.5];
  }
  return labelled;
}

/** Every how many (1, 2, 4, 8 ...) labels of `need` pixels fit when one comes every `pitch` pixels. */
function thinned(need, pitch) {
  return 2 ** Math.max(0, Math.ceil(Math.log2(need / pitch)));
}
