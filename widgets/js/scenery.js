/**
 * What stands still in the picture: the ranks' cards, columns or tiles, their labels, machines, and the cells, as they
 * look at first and when they are written: the bar with one segment per rank whose data is in a cell, and the textures
 * that tell the chunks of one hue apart.
 *
 * There are eight hues, so from the ninth chunk on a pattern is laid over them, where cells are large enough for it to
 * be seen; the number beside the cell tells chunks apart as well.
 *
 * Pure: schedule and layout in, SVG text out. What changes from step to step is written into these elements by
 * stage.js; messages are drawn by messages.js.
 */

import { between, pathOf } from "./arrows.js";
import { barHeight } from "./inside.js";
import { range } from "./schedule.js";
import { fixed, hue, HUES, ofRank, rect, text } from "./svg.js";

/**
 * @typedef {import("./schedule.js").Schedule} Schedule
 * @typedef {import("./layout.js").Layout} Layout
 */

const NAMED = 54; // pixels of a column that has room for "rank 10"

const KINDS = { cards: card, columns: column, tiles: tile };

/**
 * @typedef {{empty: boolean, bar: string, colour: string, style: string}} Look classes and style of a cell whose data
 *   has another colour than its place; both "" where it has not
 * @param {Schedule} schedule @param {Layout} layout @param {ReturnType<typeof texturesFor>} textures
 * @param {(slot: number) => Look} look
 */
export function scenery(schedule, layout, textures, look) {
  const ranks = layout.cards.map((_, rank) => KINDS[layout.kind](schedule, layout, rank));
  const around = layout.kind === "columns" ? axis(schedule, layout) : note(layout);
  const veils = layout.cards.map(veil(schedule, layout));
  return [branches(layout), ...layout.frames.map(machine(layout)), ...ranks, around, cells(schedule, layout, textures, look), ...veils].join("");
}

/** Whether cells are large enough to be written in. */
export function writable(/** @type {Layout} */ { size }) {
  return size.w >= 14 && size.h >= 10;
}

/** What a card of that width is called. */
export function nameIn(/** @type {number} */ w, /** @type {number} */ rank, least = 84) {
  return w > least ? `rank ${rank}` : String(rank);
}

function card(schedule, { cards, scale, chip, names, cell, slim }, rank) {
  const { x, y, w, h } = cards[rank];
  const { chunks, ranks, buffers } = schedule;
  const large = scale > 1;
  const track = { x: x + 8, y: y + h - (slim ? 9 : 26), w: w - 16, h: 4 };
  const numbers = range(chunks * buffers.length).map((i) => {
    const box = cell((Math.floor(i / chunks) * ranks + rank) * chunks + (i % chunks));
    const leftmost = chip && box.x - x < chip + 12;
    return leftmost ? text("rs-chunk", box.x - chip / 2 - 1, box.y + box.h / 2, i % chunks) : "";
  });
  const own = schedule.sources ? rect(`rs-own ${ofRank(rank)}`, { x, y: y + 6, w: 5, h: 17 * scale }) : "";
  return `<g class="rs-rank">${rect("rs-card", cards[rank])}${own}
    ${text("rs-name", x + 10, y + (large ? 25 : 19), nameIn(w, rank))}
    ${text("rs-badge", x + w - 10, y + (large ? 25 : 19))}
    ${names.map((at) => text("rs-buffer", x + at.x, y + at.y + 14 * scale)).join("")}${numbers.join("")}
    ${rect("rs-track", track)}${rect("rs-sent", { ...track, w: 0 }, `data-full="${track.w}"`)}
    ${slim ? "" : text("rs-amount", x + w / 2, y + h - 8)}</g>`;
}

/** In a dense row a rank is a column: its number above, what it has sent as a bar that grows from below. */
function column(_, { cards, full, scale, labelled }, rank) {
  const { x, y, w, h } = cards[rank];
  const upwards = `transform="scale(1 -1)" data-full="${full}"`;
  const name = labelled[rank] ? text("rs-name", x + w / 2, y + 15 * scale, nameIn(w, rank, NAMED * scale)) : "";
  return `<g class="rs-rank">${name}${rect("rs-sent", { x, y: 2 - y - h, w, h: 0 }, upwards)}</g>`;
}

/** A small card: its number above, what it has sent as a bar below. */
function tile(_, { cards, scale, labelled }, rank) {
  const { x, y, w, h } = cards[rank];
  const name = labelled[rank] ? text("rs-name", x + w / 2, y + 12.5 * scale, rank) : "";
  const track = { x: x + 2, y: y + h - 2 - 3 * scale, w: w - 4, h: 3 * scale };
  const bars = `${rect("rs-track", track)}${rect("rs-sent", { ...track, w: 0 }, `data-full="${track.w}"`)}`;
  return `<g class="rs-rank">${rect("rs-card", cards[rank])}${name}${bars}</g>`;
}

/** What lies over the cells of a rank that has nothing to do. */
function veil({ chunks }, { cell }) {
  return ({ x, y, w, h }, rank) => {
    const top = cell(rank * chunks).y - 2;
    return rect("rs-veil", { x, y: top, w, h: y + h - top });
  };
}

/** The edges of a tree. */
function branches(/** @type {Layout} */ { cards, branches: parent }) {
  if (!parent) return "";
  const lines = cards.map((box, rank) => {
    if (parent[rank] < 0) return "";
    return pathOf(between(cards[parent[rank]], box, false));
  });
  return `<path class="rs-branch" d="${lines.join("")}"/>`;
}

function machine(/** @type {Layout} */ { scale }) {
  return (/** @type {Layout["frames"][number]} */ { name, box }) => {
    const [x, y] = [box.x + 8, box.y + box.h / 2];
    const words = text("rs-machine", x, y - 4 * scale, "machine") + text("rs-machine", x, y + 13 * scale, name);
    return rect("rs-box", box) + words;
  };
}

/** How to read a tile whose chunks run on in the next column. */
function note(/** @type {Layout} */ { rows, chunks, height, scale }) {
  if (rows === chunks) return "";
  const way = rows === 1 ? "to the right" : `down, ${rows} to a column`;
  return text("rs-note", 8, height - 5 * scale, `chunks 0 to ${chunks - 1} run ${way}`);
}

/** Labels of a dense row: what its lines are. */
function axis({ chunks, ranks, buffers }, { cards, cell, chunkEvery, full, names, scale }) {
  const { x, y, h } = cards[0];
  const left = x - 8;
  const labelled = range(buffers.length * chunks).filter((i) => !((i % chunks) % chunkEvery));
  const numbers = labelled.map((i) => {
    const box = cell(Math.floor(i / chunks) * ranks * chunks + (i % chunks));
    return text("rs-axis", left, box.y + box.h / 2, i % chunks);
  });
  const titles = names.map((at) => text("rs-buffer", x, y + at.y + 14 * scale));
  const ends = text("rs-axis", left, y + 11 * scale, cards[0].w > NAMED * scale ? "chunk" : "rank") + text("rs-axis", left, y + h - Math.min(16 * scale, full / 2), "sent");
  return `${numbers.join("")}${titles.join("")}${ends}`;
}

/** All cells, chunk by chunk, so that a group carries the hue. Each: its box, its bar, its text where there is room. */
function cells(schedule, layout, textures, look) {
  const { chunks, ranks, buffers } = schedule;
  const written = writable(layout);
  const { w, h } = layout.size;
  const up = layout.dense ? 0 : barHeight(h) / 2 + Math.max(0, (20 - h) / 4);
  const drawn = (/** @type {number} */ slot) => {
    const box = layout.cell(slot);
    const words = written ? text("rs-text", box.x + w / 2, box.y + h / 2 - up) : "";
    const { empty, bar, colour, style } = look(slot);
    const cell = rect(`rs-cell ${empty ? "rs-empty" : colour}`, box, `data-slot="${slot}"${style && ` style="${style}"`}`);
    return `${cell}<path class="rs-bar ${colour}" d="${bar}"/>${words}`;
  };
  const ofChunk = (/** @type {number} */ chunk) => {
    const boxes = range(buffers.length * ranks).map((row) => drawn(row * chunks + chunk));
    return `<g class="rs-ofchunk ${hue(chunk)}" style="${textures.of(chunk)}">${boxes.join("")}</g>`;
  };
  return textures.defined + range(chunks).map(ofChunk).join("");
}

/**
 * The bar in a cell; inside.js says how high it is above a text.
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
