/**
 * Which place every rank has in a picture, in columns and lines: pixels come later (layout.js).
 *
 * "row": side by side. "ring": around a racetrack, the first half along the top, the rest back along the bottom.
 * "tree": a line per level, every rank above the middle of the ranks below it. "machines": a line per machine, so that
 * messages inside one run level and those between two run upright; with more than eight machines in several stacks.
 */

import { range } from "./schedule.js";
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
export function placesOf(/** @type {Schedule} */ schedule, /** @type {import("./survey.js").Shape} */ shape) {
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
  const stacks = Math.ceil(nodes / TALLEST);
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
