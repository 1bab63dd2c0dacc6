/**
 * The state as a table that is heard, not seen: one row per rank, one column per chunk.
 *
 * Very large states are summed up per rank, since nobody listens to four thousand cells and the page would carry them
 * all. Left out: the picture (stage.js).
 */

import { made } from "./made.js";
import { range, unpack } from "./schedule.js";

const MOST_CELLS = 512;
const REST = 300; // ms: a summary waits until the stepping pauses

export class StateTable {
  /** @param {import("./schedule.js").Schedule} schedule @param {import("./schedule.js").Run} run */
  constructor(schedule, run) {
    this.schedule = schedule;
    this.run = run;
    this.full = run.cells.length <= MOST_CELLS;
    this.node = made("div", "rs-hidden"); // a table itself will not be as small as hidden things are
    const { ranks, chunks, buffers } = schedule;
    const full = buffers.flatMap((name) => range(chunks).map((chunk) => `${buffers[1] ? name : "chunk"} ${chunk}`));
    const columns = this.full ? full : ["holds"];
    this.node.innerHTML = `<table><caption>What every rank holds</caption>
      <thead><tr><td></td>${"<th scope='col'></th>".repeat(columns.length)}</tr></thead>
      <tbody>${"<tr></tr>".repeat(ranks)}</tbody></table>`;
    this.node.querySelectorAll("th").forEach((head, i) => (head.textContent = columns[i]));
    this.rows = this.node.querySelectorAll("tbody tr");
    /** @type {Set<number>} ranks whose rows are not up to date */
    this.stale = new Set();
    this.timer = 0;
    this.update(range(run.cells.length));
  }

  /** These slots have changed. */
  update(/** @type {Iterable<number>} */ slots) {
    const { ranks, chunks } = this.schedule;
    for (const slot of slots) this.stale.add(unpack(slot, ranks, chunks).rank);
    clearTimeout(this.timer);
    if (this.full) this.#write();
    else this.timer = setTimeout(() => this.#write(), REST);
  }

  #write() {
    for (const rank of this.stale) {
      const words = this.#words(rank).map((word) => `<td>${word}</td>`);
      this.rows[rank].innerHTML = `<th scope="row">rank ${rank}</th>${words.join("")}`;
    }
    this.stale.clear();
  }

  /** One cell each, or all summed up. */
  #words(/** @type {number} */ rank) {
    const { ranks, chunks, buffers } = this.schedule;
    const cells = buffers.flatMap((_, buffer) => {
      const first = this.run.slot(buffer, rank, 0);
      return this.run.cells.slice(first, first + chunks);
    });
    if (this.full) return cells.map((cell) => cell.symbol || (cell.value === null ? "empty" : `${cell.value}, to be written over`));
    const filled = cells.filter((cell) => cell.origins.length);
    const whole = filled.filter((cell) => cell.contributors.length === ranks).length;
    return [`${filled.length} of ${cells.length} chunks filled, ${whole} of them by all ranks`];
  }
}
