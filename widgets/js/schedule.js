/**
 * A schedule as the browser knows it, and what its steps do to the ranks' buffers.
 *
 * Python sends a schedule once: 16 bytes per transfer and a small dictionary. Everything a widget shows is computed
 * here from that, so stepping works while the kernel is busy or gone. The rules are those of collectives/schedule.py:
 * in a step all messages read what was there before it; then transfers within a rank run in the order they stand; all
 * transfers of a step between the same two ranks are one message.
 *
 * Left out: sentences (captions.js), time (playback.js) and drawing (stage.js).
 */

import { Cell, originOf, startOf } from "./cell.js";

/**
 * @typedef {[number, number | null, string, number]} Stuck a rank, the rank it waits for (null: its call was refused), in which
 *   op, in which line (0: not known)
 * @typedef {object} Meta what Python knows about a schedule besides its transfers (widgets/_packing.py)
 * @property {string} collective
 * @property {string} title
 * @property {string} [goal] what is there at the end, in a clause: "every rank gets the sum of all 4" (widgets/player.py)
 * @property {number} ranks
 * @property {number} chunks chunks in every buffer of every rank
 * @property {string[]} buffers their names
 * @property {string | null} result the name of the one that holds the result; null if none is promised
 * @property {number | null} local ranks per machine, where the algorithm knows of machines
 * @property {number[]} counts transfers per step
 * @property {[string, number][]} phases name and number of steps
 * @property {string[]} captions one sentence per step
 * @property {("own" | number[][])[]} start per buffer: every rank's own chunks, or [rank, chunk, origin rank, origin chunk, ...]
 * @property {boolean} knowledge adding what is known already changes nothing (barrier)
 * @property {number | null} nbytes N in bytes; null: amounts are told as multiples of N
 * @property {number[] | null} chunk_bytes bytes per chunk where they are not all alike
 * @property {[number, number, string][][] | null} sources per step: rank, line and code that sent
 * @property {[number, number, number, string][][] | null} values per step: rank, buffer, chunk, what a real run held there
 * @property {[number, number, number, string][] | null} start_values the same before the first step
 * @property {[number, number, number, string][] | null} [stale] the same of what is only written over
 * @property {import("./cost.js").Work[]} [work] of every step, on a topology (widgets/race.py)
 * @property {number} [error] seconds by which the time of a recorded run may be wrong (widgets/race.py)
 * @property {(string[] | null)[] | null} signs per step, of every transfer that combines: "+", "×", "max" ...; null: all
 *   "+"; of a copy "avg" if it divides a sum by the number of its terms
 * @property {boolean[]} effects per step: whether it shows only the effect of a library's call, whose messages nobody saw
 * @property {boolean[]} in_network per step: whether a switch adds and copies on the way, which makes messages one
 * @property {(string[] | null)[] | null} [made] per step, of every transfer that is new data: how it came about
 * @property {Stuck[]} [stuck] of a run that ended in a deadlock, or with calls that do not fit
 * @property {string} [stuck_words] the same as a sentence: "Stuck in recv, line 7: rank 3 waits for rank 2."
 * @property {number | null} [framed] the slot that is shown as the wrong one (widgets/player.py)
 *
 * @typedef {object} Transfer
 * @property {number} src
 * @property {number} dst
 * @property {number} chunk of new data: its number, which may be beyond `chunks`
 * @property {number} dstChunk
 * @property {number} count
 * @property {string} sign what is done with what is there; "": a copy
 * @property {boolean} averages whether it divides the sum that it copies by the number of its terms
 * @property {string} made how data of the rank's own making came about: "computed" ...; "" where it was somewhere before
 * @property {number} srcBuffer
 * @property {number} dstBuffer
 * @property {number[]} kinds of the data it carries, chunk by chunk, once its step is done; see Cell
 * @typedef {{src: number, dst: number, sign: string, parts: Transfer[], amount: number}} Message
 * @typedef {Meta & {steps: number, records: DataView, first: number[], numbers: number}} Schedule `numbers`: how many
 *   chunk numbers its data have: as many as chunks, or more where buffers are numbered on or ranks make new data
 */

const RECORD = 16;
const REDUCE = 128; // a bit beside the source buffer's number
const NEW = 64;

/** @param {Meta} meta @param {DataView} records @returns {Schedule} */
export function decode(meta, records) {
  const first = [0];
  for (const count of meta.counts) first.push(first[first.length - 1] + count);
  return { ...meta, records, first, numbers: numbersOf(meta, records), steps: meta.counts.length };
}

/** One more than the highest chunk number that any data has. */
function numbersOf(/** @type {Meta} */ { chunks, start }, /** @type {DataView} */ records) {
  let numbers = chunks;
  for (const [, , ...pairs] of start.flatMap((given) => (given === "own" ? [] : given))) {
    for (let i = 1; i < pairs.length; i += 2) numbers = Math.max(numbers, pairs[i] + 1);
  }
  for (let at = 0; at < records.byteLength; at += RECORD) {
    if (!(records.getUint8(at + 14) & NEW)) continue;
    numbers = Math.max(numbers, records.getUint32(at + 4, true) + records.getUint16(at + 12, true));
  }
  return numbers;
}

/** The transfers of step `k` (from 0), in the order they stand. @returns {Transfer[]} */
export function transfersOf(/** @type {Schedule} */ schedule, /** @type {number} */ k) {
  const { records, first, signs, made } = schedule;
  const transfers = [];
  for (let at = first[k] * RECORD; at < first[k + 1] * RECORD; at += RECORD) {
    const how = records.getUint8(at + 14);
    const index = transfers.length;
    transfers.push({
      src: records.getUint16(at, true),
      dst: records.getUint16(at + 2, true),
      chunk: records.getUint32(at + 4, true),
      dstChunk: records.getUint32(at + 8, true),
      count: records.getUint16(at + 12, true),
      sign: how & REDUCE ? (signs?.[k]?.[index] ?? "+") : "",
      averages: !(how & (REDUCE | NEW)) && signs?.[k]?.[index] === "avg",
      made: how & NEW ? made?.[k]?.[index] || "computed" : "",
      srcBuffer: how & 63,
      dstBuffer: records.getUint8(at + 15),
      kinds: [],
    });
  }
  return transfers;
}

/** Whether anything is ever combined, and no rank makes new data. */
export function sumsOnly(/** @type {Schedule} */ { first, steps, records }) {
  const ever = range(first[steps]).reduce((bits, i) => bits | records.getUint8(i * RECORD + 14), 0);
  return (ever & (REDUCE | NEW)) === REDUCE;
}

/** The messages of step `k` (from 0): its transfers between two ranks, gathered. @returns {Message[]} */
export function messagesOf(/** @type {Schedule} */ schedule, /** @type {number} */ k, parts = transfersOf(schedule, k)) {
  const messages = new Map();
  for (const part of parts) {
    if (part.src === part.dst) continue;
    const key = part.src * schedule.ranks + part.dst;
    if (!messages.has(key)) messages.set(key, { src: part.src, dst: part.dst, sign: "", parts: [], amount: 0 });
    const message = messages.get(key);
    message.parts.push(part);
    message.sign ||= part.sign;
    message.amount += amountOf(schedule, part);
  }
  return [...messages.values()];
}

/** What counts of these transfers of step `k`: of those that a switch copies one is sent, of those that it adds up one
 * is received. @returns {{src: number, dst: number, sent: number, received: number, message: boolean}[]} */
function counted(/** @type {Schedule} */ schedule, /** @type {number} */ k, /** @type {Transfer[]} */ parts) {
  if (schedule.effects[k]) return [];
  const known = new Set();
  const first = (/** @type {any[]} */ ...key) => known.size < known.add(key.join()).size;
  return parts.filter(({ src, dst }) => src !== dst).map((part) => {
    const { src, dst, count } = part;
    const amount = amountOf(schedule, part);
    const merged = schedule.in_network[k];
    const sends = !merged || first("out", src, part.srcBuffer, part.chunk, count);
    const receives = !merged || !part.sign || first("in", dst, part.dstBuffer, part.dstChunk, count);
    return { src, dst, sent: sends ? amount : 0, received: receives ? amount : 0, message: sends && first("pair", src, dst) };
  });
}

/** How much a transfer carries, exactly: in bytes where chunks have sizes of their own, else in chunks; news is free. */
export function amountOf(/** @type {Schedule} */ { chunk_bytes: sizes, knowledge }, /** @type {Transfer} */ { chunk, count }) {
  if (knowledge) return 0;
  return sizes ? sizes.slice(chunk, chunk + count).reduce((sum, size) => sum + size, 0) : count;
}

/**
 * A schedule being played: what every buffer holds and what has been sent after `step` steps.
 *
 * Each step is carried out once; what it changed is kept, so going anywhere afterwards costs only the cells between.
 */
export class Run {
  constructor(/** @type {Schedule} */ schedule) {
    this.schedule = schedule;
    this.step = 0;
    this.messages = 0;
    this.sent = new Float64Array(schedule.ranks);
    this.received = new Float64Array(schedule.ranks);
    /** @type {{slots: number[], before: Cell[], after: Cell[], messages: Message[],
     *          count: ReturnType<typeof counted>, transfers: Transfer[]}[]} */
    this.done = [];
    this.begin = startOf(schedule);
    this.cells = [...this.begin];
  }

  slot(/** @type {number} */ buffer, /** @type {number} */ rank, /** @type {number} */ chunk) {
    return (buffer * this.schedule.ranks + rank) * this.schedule.chunks + chunk;
  }

  /** The messages of the step just done; none before the first. @returns {Message[]} */
  get latest() {
    return this.step ? this.done[this.step - 1].messages : [];
  }

  /** The ranks that send or receive in the step just done, or beside those that do make new data. */
  get busy() {
    const busy = new Set(this.latest.flatMap(({ src, dst }) => [src, dst]));
    if (busy.size) for (const { made, dst } of this.moved) if (made) busy.add(dst);
    return busy;
  }

  /** The slots that the step just done has written. @returns {number[]} */
  get written() {
    return this.step ? this.done[this.step - 1].slots : [];
  }

  /** What a slot held before a step (from 1) that is done. @returns {Cell} */
  heldBefore(/** @type {number} */ slot, /** @type {number} */ step) {
    const later = this.done.slice(step - 1, this.step).find(({ slots }) => slots.includes(slot));
    return later ? later.before[later.slots.indexOf(slot)] : this.cells[slot];
  }

  /** Whether the step just done shows only the effect of a library's call. */
  get effect() {
    return this.step > 0 && this.schedule.effects[this.step - 1];
  }

  /** All transfers of the step just done in the order they stand, those within a rank last. @returns {Transfer[]} */
  get moved() {
    return this.step ? this.done[this.step - 1].transfers : [];
  }

  /** The transfer that wrote a slot last, and its step (from 1); null while it holds what it began with. */
  lastWrite(/** @type {number} */ slot) {
    for (let step = this.step; step > 0; step--) {
      const { transfers, slots } = this.done[step - 1];
      if (!slots.includes(slot)) continue;
      const covers = (part) => {
        const first = this.slot(part.dstBuffer, part.dst, part.dstChunk);
        return first <= slot && slot < first + part.count;
      };
      return { step, part: transfers.findLast(covers) };
    }
    return null;
  }

  /** Goes to the state after `step` steps and returns the slots that differ now. @returns {Set<number>} */
  seek(/** @type {number} */ step) {
    const target = Math.max(0, Math.min(step, this.schedule.steps));
    const touched = new Set();
    while (this.step < target) {
      if (this.step === this.done.length) this.done.push(this.#carryOut(this.step));
      this.#move(this.done[this.step], 1, touched);
    }
    while (this.step > target) this.#move(this.done[this.step - 1], -1, touched);
    return touched;
  }

  #move(change, direction, touched) {
    const cells = direction > 0 ? change.after : change.before;
    change.slots.forEach((slot, i) => {
      this.cells[slot] = cells[i];
      touched.add(slot);
    });
    for (const { src, dst, sent, received, message } of change.count) {
      this.sent[src] += direction * sent;
      this.received[dst] += direction * received;
      this.messages += direction * Number(message);
    }
    this.step += direction;
  }

  /** What step `k` changes, given the state before it. */
  #carryOut(k) {
    const { knowledge, values } = this.schedule;
    /** @type {Map<number, Cell>} */
    const after = new Map();
    const before = (slot) => this.cells[slot];
    const now = (slot) => after.get(slot) ?? before(slot);
    const write = (part, i, cell) => {
      const slot = this.slot(part.dstBuffer, part.dst, part.dstChunk + i);
      after.set(slot, part.sign ? now(slot).with(cell, part.sign, knowledge) : part.averages ? cell.averaged() : cell);
    };
    const read = (part, i, look) => look(this.slot(part.srcBuffer, part.src, part.chunk + i));
    const own = (part, i) => new Cell([originOf(part.src, part.chunk + i)]);

    const all = transfersOf(this.schedule, k);
    const transfers = all.filter((part) => part.src !== part.dst);
    for (const part of transfers) {
      const cells = range(part.count).map((i) => read(part, i, before));
      part.kinds = cells.map(({ kind }) => kind);
      cells.forEach((cell, i) => write(part, i, cell));
    }
    for (const part of all) {
      if (part.src !== part.dst) continue;
      transfers.push(part);
      for (let i = 0; i < part.count; i++) write(part, i, part.made ? own(part, i) : read(part, i, now));
    }
    for (const [rank, buffer, chunk, value] of values?.[k] ?? []) {
      const slot = this.slot(buffer, rank, chunk);
      const { origins, sign, times } = now(slot);
      after.set(slot, new Cell(origins, value, sign, times));
    }
    const slots = [...after.keys()];
    const messages = messagesOf(this.schedule, k, all);
    const count = counted(this.schedule, k, all);
    return { slots, before: slots.map(before), after: [...after.values()], messages, count, transfers };
  }
}

/** Which cell a slot is. @returns {{buffer: number, rank: number, chunk: number}} */
export function unpack(/** @type {number} */ slot, /** @type {number} */ ranks, /** @type {number} */ chunks) {
  return { buffer: Math.floor(slot / chunks / ranks), rank: Math.floor(slot / chunks) % ranks, chunk: slot % chunks };
}

/** [0, 1, ... count - 1] @returns {number[]} */
export function range(/** @type {number} */ count) {
  return Array.from({ length: count }, (_, i) => i);
}
