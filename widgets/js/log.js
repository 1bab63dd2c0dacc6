/**
 * What all ranks have printed: every rank's own lines, and one list in which equal lines of several ranks are one row.
 *
 * A line joins an earlier row if it has the same text, comes from the same stream, and stands after everything its rank
 * has printed before, so each rank's order is kept and ranks that print the same fold into one row whatever the order
 * of arrival. Memory is bounded; what was dropped is counted.
 *
 * Left out: escape sequences (terminal.js) and the page (ranklog.js).
 */

import { Terminal } from "./terminal.js";

/** @typedef {{text: string, styles: string | null, stream: number, ranks: number[], number: number}} Row */

/** @typedef {Row & {row?: Row}} Own a line of a rank, and the row of all ranks that shows it */

const MOST_ROWS = 50_000;
const LOOK_BACK = 400; // rows within which an equal line is looked for

export class Log {
  constructor(/** @type {number} */ ranks) {
    this.ranks = ranks;
    /** @type {Row[]} rows of all ranks, equal ones folded */
    this.rows = [];
    /** @type {Own[][]} every rank's lines */
    this.lines = Array.from({ length: ranks }, () => []);
    this.terminals = Array.from({ length: ranks }, () => [new Terminal(), new Terminal()]);
    this.latest = new Array(ranks).fill(-1); // number of the last row of each rank
    this.next = 0;
    this.seq = 0;
    this.cut = 0; // characters dropped by Python
    this.dropped = 0; // lines dropped here
    this.gap = false;
    this.total = 0;
  }

  /** Takes a batch (or the history) unless it is known already. Returns whether it was new. */
  take(/** @type {{seq?: number, entries?: [number, number, string][], cut?: number}} */ batch) {
    const { seq = 0, entries = [], cut = 0 } = batch;
    if (seq <= this.seq) return false;
    this.gap ||= this.seq > 0 && seq > this.seq + 1;
    this.seq = seq;
    this.cut += cut;
    /** @type {Map<number, [number, import("./terminal.js").Line][]>} */
    const round = new Map();
    for (const [rank, stream, text] of entries) {
      if (round.has(rank)) this.#addAll(round);
      const terminal = this.terminals[rank][stream];
      const settled = terminal.feed(text);
      if (terminal.taken) this.#takeBack(rank, stream, terminal.taken);
      round.set(rank, settled.map((line) => [stream, line]));
    }
    this.#addAll(round);
    return true;
  }

  /** What came together: first lines of all ranks, then second lines, so that equal ones meet. */
  #addAll(round) {
    for (let i = 0; [...round.values()].some((lines) => i < lines.length); i++) {
      for (const [rank, lines] of round) if (i < lines.length) this.#add(rank, ...lines[i]);
    }
    round.clear();
  }

  /** Python has shortened what a finished log keeps: here it makes room, too. */
  restart(/** @type {Parameters<Log["take"]>[0]} */ history) {
    Object.assign(this, new Log(this.ranks));
    this.take(history);
    this.close();
  }

  /** Nothing more will come: what is still open counts as a line. */
  close() {
    this.terminals.forEach((streams, rank) =>
      streams.forEach((terminal, stream) => {
        for (const line of terminal.open.filter(({ text }) => text)) this.#add(rank, stream, line);
        terminal.open = [{ text: "", styles: null }];
      }),
    );
  }

  /** Lines that are still being written, as rows. @returns {Row[]} */
  open(/** @type {number | null} */ only = null) {
    return this.terminals.flatMap((streams, rank) =>
      only !== null && only !== rank
        ? []
        : streams.flatMap((terminal, stream) =>
            terminal.open.filter(({ text }) => text).map((line) => ({ ...line, stream, ranks: [rank], number: -1 })),
          ),
    );
  }

  /** The last lines of a stream are being written again: they leave their rows, of which some may be empty then. */
  #takeBack(rank, stream, count) {
    const own = this.lines[rank];
    for (let i = own.length - 1; i >= 0 && count > 0; i--) {
      if (own[i].stream !== stream) continue;
      const row = /** @type {Row} */ (own[i].row);
      own.splice(i, 1);
      row.ranks = row.ranks.filter((other) => other !== rank);
      this.total--;
      count--;
    }
  }

  #add(rank, stream, { text, styles }) {
    this.total++;
    /** @type {Own} */
    const own = { text, styles, stream, ranks: [rank], number: this.total };
    this.lines[rank].push(own);
    if (this.lines[rank].length > MOST_ROWS) this.lines[rank].splice(0, MOST_ROWS / 10);
    const row = this.#equal(rank, own);
    if (row) {
      row.ranks = [...row.ranks, rank].sort((a, b) => a - b);
      this.latest[rank] = row.number;
      own.row = row;
      return;
    }
    this.latest[rank] = this.next;
    own.row = { ...own, number: this.next++ };
    this.rows.push(own.row);
    if (this.rows.length > MOST_ROWS) {
      for (const old of this.rows.splice(0, MOST_ROWS / 10)) this.dropped += old.ranks.length;
    }
  }

  /** A row this line can join: the first equal one after all that its rank has printed. */
  #equal(rank, { text, stream }) {
    const first = this.rows.length ? this.rows[0].number : 0;
    const from = Math.max(this.latest[rank] + 1 - first, this.rows.length - LOOK_BACK, 0);
    for (let i = from; i < this.rows.length; i++) {
      const row = this.rows[i];
      if (row.text === text && row.stream === stream && !row.ranks.includes(rank)) return row;
    }
    return null;
  }
}
