/**
 * What is written in a cell: a symbol, a set of ranks or a number, in the longest form that fits everywhere.
 *
 * One size of type for the whole picture; forms get shorter instead: "a0+b0+c0", then "a+b+c" (the row says which
 * chunk), then "3/8". The bar under the text always shows exactly who has contributed.
 */

import { shorten } from "./captions.js";
import { letter } from "./cell.js";
import { barHeight } from "./inside.js";
import { sumsOnly } from "./schedule.js";

export const VIEWS = ["symbols", "contributors", "numbers"];

const SHORT = 6; // characters of a value that can stand in a cell

/**
 * What cells show at first: the numbers of a run whose values are all short, if there are no sums or ranks compute new
 * data, whose letters would not tell what they are; else symbols.
 */
export function viewFor(/** @type {import("./schedule.js").Schedule} */ schedule) {
  const { start_values: begin, stale, values, steps } = schedule;
  if (!begin || !values || values.length < steps) return "symbols";
  const texts = [...begin, ...(stale ?? []), ...values.flat()].map(([, , , text]) => text);
  return !sumsOnly(schedule) && texts.every((text) => text && text.length <= SHORT) ? "numbers" : "symbols";
}

export const WIDTH = 0.61; // of a character of the monospaced font, in its size

/**
 * @typedef {{font: number, room: number, short: boolean}} Type size in px, characters per cell, index left out
 * @param {import("./schedule.js").Schedule} schedule @param {import("./layout.js").Layout} layout @param {string} view
 * @returns {Type}
 */
export function typeFor(schedule, layout, view) {
  const { w, h } = layout.size;
  const aboveBar = h < 24 ? h * 0.64 : (h - barHeight(h) - 4) / 1.2;
  const largest = Math.min(21 * layout.scale, aboveBar);
  const least = layout.scale > 1 ? 18 : layout.dense ? 9.5 : 12;
  const fitting = (characters) => Math.min(largest, (w - (layout.dense ? 4 : 16)) / characters / WIDTH);
  const { ranks, chunks } = schedule;
  const full =
    view === "numbers" ? 4 : view === "symbols" ? ranks * (1 + String(chunks - 1).length + 1) - 1 : 2 * ranks + 1;
  const letters = 2 * ranks - 1;
  const least3 = Math.max(Math.min(largest, fitting(String(ranks).length * 2 + 1)), Math.min(least, largest));
  const font =
    [full, view === "symbols" ? letters : full].map(fitting).find((size) => size >= Math.min(least + 1, largest)) ??
    Math.min(least3, 14 * layout.scale);
  const readable = font >= (layout.scale > 1 ? least : 8.5) && w >= 2.4 * font * WIDTH; // on a wall no word is smaller
  return { font, room: readable ? Math.floor((w - 3) / font / WIDTH + 0.05) : 0, short: full * WIDTH * font > w };
}

/**
 * The text of one cell in `room` characters.
 * @param {import("./cell.js").Cell} cell @param {string} view @param {Type} type
 * @param {import("./schedule.js").Schedule} schedule @param {number} chunk the cell's own
 */
export function labelOf(cell, view, { room, short }, schedule, chunk) {
  if (!room || (!cell.origins.length && cell.value === null)) return "";
  if (view === "numbers") return shorten(cell.number(baseOf(schedule)), room);
  const forms = view === "symbols" ? symbolForms(cell, short, chunk) : [cell.set];
  const count = cell.contributors.length;
  forms.push(count === schedule.ranks ? `all ${count}` : `${count}/${schedule.ranks}`, cell.sign === "+" ? `Σ${count}` : cell.sign);
  return forms.find((form) => form.length <= room) ?? "";
}

/** What ranks are multiplied by in numbers: 10 while chunks have one digit, else 100. */
export function baseOf(/** @type {import("./schedule.js").Schedule} */ { numbers }) {
  return numbers <= 10 ? 10 : 100;
}

/** "a0+b0" in full, and without the chunk where the place says it. */
function symbolForms(cell, short, chunk) {
  if (!cell.isSumOf(chunk)) return [cell.symbol];
  const letters = cell.combined(cell.contributors.map(letter));
  return short && cell.origins.length > 1 ? [letters] : [cell.symbol, letters];
}
