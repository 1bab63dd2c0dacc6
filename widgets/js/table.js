/**
 * The state as a table that is heard, not seen: one row per rank, one column per chunk.
 *
 * Very large states are summed up per rank, since nobody listens to four thousand cells and the page would carry them
 * all. Left out: the picture (stage.js).
 */

import { unpack } from "./layout.js";
import { range } from "./schedule.js";

const MOST_CELLS = 512;

export class StateTable {
  /** @param {import("./schedule.js").Schedule} schedule @param {import("./schedule.js").Run} run */
  constructor(schedule, run) {
    this.schedule = schedule;
    this.run = run;
    this.full = run.cells.length <= MOST_CELLS;
    this.node = document.createElement("div"); // a table itself will not be as small as hidden things are
    this.node.className = "rs-hidden";
    const { ranks, chunks, buffers } = schedule;
    const heading = (name, chunk) => (buffers.length > 1 ? `${name} ${chunk}` : `chunk ${chunk}`);
    const full = buffers.flatMap((name) => range(chunks).map((chunk) => heading(name, chunk)));
    const columns = this.full ? full : ["holds"];
    const rows = range(ranks).map((rank) => {
      return `<tr><th scope="row">rank ${rank}</th>${"<td></td>".repeat(columns.length)}</tr>`;
    });
    this.node.innerHTML = `<table><caption>What every rank holds</caption>
      <thead><tr><td></td>${"<th scope='col'></th>".repeat(columns.length)}</tr></thead>
      <tbody>${rows.join("")}</tbody></table>`;
    this.node.querySelectorAll("thead th").forEach((head, i) => (head.textContent = columns[i]));
    this.rows = [...this.node.querySelectorAll("tbody tr")].map((row) => [...row.querySelectorAll("td")]);
    this.update(range(run.cells.length));
  }

  update(/** @type {Iterable<number>} */ slots) {
    const { ranks, chunks } = this.schedule;
    const changed = new Set();
    for (const slot of slots) {
      const { buffer, rank, chunk } = unpack(slot, ranks, chunks);
      changed.add(rank);
      if (this.full) this.rows[rank][buffer * chunks + chunk].textContent = this.run.cells[slot].symbol || "empty";
    }
    if (!this.full) for (const rank of changed) this.rows[rank][0].textContent = this.#summary(rank);
  }

  #summary(rank) {
    const { ranks, chunks, buffers } = this.schedule;
    const cells = range(buffers.length * chunks).map(
      (i) => this.run.cells[this.run.slot(Math.floor(i / chunks), rank, i % chunks)],
    );
    const filled = cells.filter((cell) => cell.origins.length);
    const whole = filled.filter((cell) => cell.contributors.length === ranks).length;
    return `${filled.length} of ${cells.length} chunks filled, ${whole} of them the sum of all ranks`;
  }
}
