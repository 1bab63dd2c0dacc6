/**
 * What stands still in the picture: the ranks' cards or columns, their labels, and the empty cells.
 *
 * Pure: schedule and layout in, SVG text out. What changes from step to step is written into these elements by
 * stage.js; messages are drawn by messages.js.
 */

import { barHeight } from "./layout.js";
import { range } from "./schedule.js";
import { hue, rect, text } from "./svg.js";

/**
 * @typedef {import("./schedule.js").Schedule} Schedule
 * @typedef {import("./layout.js").Layout} Layout
 */

export function scenery(/** @type {Schedule} */ schedule, /** @type {Layout} */ layout) {
  const ranks = layout.cards.map((_, rank) => (layout.dense ? column(layout, rank) : card(schedule, layout, rank)));
  return `${ranks.join("")}${layout.dense ? axis(schedule, layout) : ""}${cells(schedule, layout)}`;
}

/** Whether cells are large enough to be written in. */
export function writable(/** @type {Layout} */ { size }) {
  return size.w >= 14 && size.h >= 10;
}

function card(schedule, { cards, scale, chip, names, cell }, rank) {
  const { x, y, w, h } = cards[rank];
  const { chunks, ranks, buffers } = schedule;
  const large = scale > 1; // on a projector there is no room for amounts
  const track = { x: x + 8, y: y + h - (large ? 9 : 26), w: w - 16, h: 4 };
  const numbers = range(chunks * buffers.length).map((i) => {
    const box = cell((Math.floor(i / chunks) * ranks + rank) * chunks + (i % chunks));
    const leftmost = chip && box.x - x < chip + 12;
    return leftmost ? text("rs-chunk", box.x - chip / 2 - 1, box.y + box.h / 2, i % chunks) : "";
  });
  return `<g class="rs-rank">${rect("rs-card", cards[rank])}
    ${text("rs-name", x + 10, y + (large ? 25 : 19), w > 84 ? `rank ${rank}` : rank)}
    ${text("rs-badge", x + w - 10, y + (large ? 25 : 19), w > 150 ? "busiest" : "▲")}
    ${names.map((at) => text("rs-buffer", x + at.x, y + at.y + 14 * scale)).join("")}${numbers.join("")}
    ${rect("rs-track", track)}${rect("rs-sent", { ...track, w: 0 }, `data-full="${track.w}"`)}
    ${large ? "" : text("rs-amount", x + w / 2, y + h - 8)}</g>`;
}

/** In a dense row a rank is a column: its number above, what it has sent as a bar that grows from below. */
function column({ cards, scale, rankEvery }, rank) {
  const { x, y, w, h } = cards[rank];
  const upwards = `transform="scale(1 -1)" data-full="34"`;
  const name = rank % rankEvery ? "" : text("rs-name", x + w / 2, y + 15 * scale, rank);
  return `<g class="rs-rank">${name}${rect("rs-sent", { x, y: 2 - y - h, w, h: 0 }, upwards)}</g>`;
}

/** Labels of a dense row: what its lines are. */
function axis({ chunks, ranks, buffers }, { cards, cell, chunkEvery, names, scale }) {
  const { x, y, h } = cards[0];
  const left = x - 8;
  const labelled = range(buffers.length * chunks).filter((i) => !((i % chunks) % chunkEvery));
  const numbers = labelled.map((i) => {
    const box = cell(Math.floor(i / chunks) * ranks * chunks + (i % chunks));
    return text("rs-axis", left, box.y + box.h / 2, i % chunks);
  });
  const titles = names.map((at) => text("rs-buffer", x, y + at.y + 14 * scale));
  const ends = text("rs-axis", left, y + 11 * scale, "rank") + text("rs-axis", left, y + h - 16 * scale, "sent");
  return `${numbers.join("")}${titles.join("")}${ends}`;
}

/** All cells, chunk by chunk, so that a group carries the hue. Each: its box, its bar, its text where there is room. */
function cells({ chunks, ranks, buffers }, layout) {
  const written = writable(layout);
  const { w, h } = layout.size;
  const up = layout.dense ? 0 : barHeight(h) / 2 + (h < 24 ? 0.5 : 0);
  const drawn = (slot) => {
    const box = layout.cell(slot);
    const words = written ? text("rs-text", box.x + w / 2, box.y + h / 2 - up) : "";
    return `${rect("rs-cell", box, `data-slot="${slot}"`)}<path class="rs-bar"/>${words}`;
  };
  const ofChunk = (chunk) => range(buffers.length * ranks).map((row) => drawn(row * chunks + chunk));
  return range(chunks)
    .map((chunk) => `<g class="rs-ofchunk ${hue(chunk)}">${ofChunk(chunk).join("")}</g>`)
    .join("");
}
