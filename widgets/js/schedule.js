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

/**
 * @typedef {object} Meta what Python knows about a schedule besides its transfers (widgets/packing.py)
 * @property {string} collective
 * @property {string} title
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
 * @property {import("./cost.js").Work[]} [work] of every step, on a topology (widgets/race.py)
 * @property {(string[] | null)[] | null} signs per step, of every transfer that combines: "+", "×", "max" ...; null: all "+"
 * @property {boolean[]} effects per step: whether it shows only the effect of a library's call, whose messages nobody saw
 *
 * @typedef {{src: number, dst: number, chunk: number, dstChunk: number, count: number, sign: string,
 *            srcBuffer: number, dstBuffer: number}} Transfer `sign` says what is done with what is there; "": a copy
 * @typedef {{src: number, dst: number, sign: string, parts: Transfer[], amount: number}} Message
 * @typedef {Meta & {steps: number, records: DataView, first: number[]}} Schedule
 */

const RECORD = 16;

/** @param {Meta} meta @param {DataView} records @returns {Schedule} */
export function decode(meta, records) {
  const first = [0];
  for (const count of meta.counts) first.push(first[first.length - 1] + count);
  return { ...meta, records, first, steps: meta.counts.length };
}

/** The transfers of step `k` (from 0), in the order they stand. @returns {Transfer[]} */
export function transfersOf(/** @type {Schedule} */ schedule, /** @type {number} */ k) {
  const { records, first, signs } = schedule;
  const transfers = [];
  for (let at = first[k] * RECORD; at < first[k + 1] * RECORD; at += RECORD) {
    transfers.push({
      src: records.getUint16(at, true),
      dst: records.getUint16(at + 2, true),
      chunk: records.getUint32(at + 4, true),
      dstChunk: records.getUint32(at + 8, true),
      count: records.getUint16(at + 12, true),
      sign: records.getUint8(at + 14) > 127 ? (signs?.[k]?.[transfers.length] ?? "+") : "",
      srcBuffer: records.getUint8(at + 14) & 127,
      dstBuffer: records.getUint8(at + 15),
    });
  }
  return transfers;
}

/** The messages of step `k` (from 0): its transfers between two ranks, gathered. @returns {Message[]} */
export function messagesOf(/** @type {Schedule} */ schedule, /** @type {number} */ k) {
  const messages = new Map();
  for (const part of transfersOf(schedule, k)) {
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

/** How much a transfer carries, exactly: in bytes where chunks have sizes of their own, else in chunks; news is free. */
export function amountOf(/** @type {Schedule} */ { chunk_bytes: sizes, knowledge }, /** @type {Transfer} */ { chunk, count }) {
  if (knowledge) return 0;
  return sizes ? sizes.slice(chunk, chunk + count).reduce((sum, size) => sum + size, 0) : count;
}

/** a for rank 0, b for rank 1, ... z, aa, ab, ... */
export function letter(/** @type {number} */ rank) {
  let name = "";
  for (let left = rank + 1; left > 0; left = Math.floor((left - 1) / 26)) {
    name = String.fromCharCode(97 + ((left - 1) % 26)) + name;
  }
  return name;
}

const SPAN = 2 ** 20; // an origin is rank * SPAN + chunk, so that sorting numbers sorts origins
const rankOf = (/** @type {number} */ origin) => Math.floor(origin / SPAN);

/** What one chunk of one buffer holds: the origins, sorted, of all that was combined in it; by "," if in several ways. */
export class Cell {
  /** @param {number[]} origins @param {string | null} value what a real run held here */
  constructor(origins, value = null, sign = "+") {
    this.origins = origins;
    this.value = value;
    this.sign = sign;
    /** @type {number[] | undefined} */
    this.ranks = undefined;
  }

  /** The ranks whose data is in here, each once, in order. */
  get contributors() {
    return (this.ranks ??= [...new Set(this.origins.map(rankOf))]);
  }

  /** @returns {string} "a0+b0"; "" when empty */
  get symbol() {
    return this.combined(this.origins.map((origin) => letter(rankOf(origin)) + (origin % SPAN)));
  }

  /** @returns {string} "a+b", "max(a,b)" */
  combined(/** @type {string[]} */ names) {
    return names[1] && this.sign[1] ? `${this.sign}(${names})` : names.join(this.sign);
  }

  /** @returns {string} "{0,1,3}"; "" when empty */
  get set() {
    return this.origins.length ? `{${this.contributors.join(",")}}` : "";
  }

  /** Whether every rank's part comes from chunk `chunk`, and only once. */
  isSumOf(/** @type {number} */ chunk) {
    return this.contributors.length === this.origins.length && this.origins.every((o) => o % SPAN === chunk);
  }

  /** The value of a real run, else the number that stands for the symbol: with base 10, rank 2's chunk 1 is 21. */
  number(/** @type {number} */ base) {
    if (this.value !== null) return this.value;
    const sum = this.origins.reduce((total, origin) => total + rankOf(origin) * base + (origin % SPAN), 0);
    return this.origins.length ? String(sum) : "";
  }

  /** @returns {Cell} */
  with(/** @type {Cell} */ other, /** @type {string} */ sign, /** @type {boolean} */ knowledge) {
    const all = [...this.origins, ...other.origins].sort((a, b) => a - b);
    const same = [this, other].every((cell) => !cell.origins[1] || cell.sign === sign);
    return new Cell(knowledge ? [...new Set(all)] : all, null, same ? sign : ",");
  }
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
    /** @type {{slots: number[], before: Cell[], after: Cell[], messages: Message[], counted: Message[],
     *          within: Transfer[]}[]} */
    this.done = [];
    this.cells = startOf(schedule);
  }

  slot(/** @type {number} */ buffer, /** @type {number} */ rank, /** @type {number} */ chunk) {
    return (buffer * this.schedule.ranks + rank) * this.schedule.chunks + chunk;
  }

  /** The messages of the step just done; none before the first. @returns {Message[]} */
  get latest() {
    return this.step ? this.done[this.step - 1].messages : [];
  }

  /** The ranks that send or receive in the step just done. */
  get busy() {
    return new Set(this.latest.flatMap(({ src, dst }) => [src, dst]));
  }

  /** The slots that the step just done has written. @returns {number[]} */
  get written() {
    return this.step ? this.done[this.step - 1].slots : [];
  }

  /** Whether the step just done shows only the effect of a library's call. */
  get effect() {
    return this.step > 0 && this.schedule.effects[this.step - 1];
  }

  /** All transfers of the step just done, those within a rank last. @returns {Transfer[]} */
  get moved() {
    return [...this.latest.flatMap(({ parts }) => parts), ...(this.step ? this.done[this.step - 1].within : [])];
  }

  /** The transfer that wrote a slot last, and its step (from 1); null while it holds what it began with. */
  lastWrite(/** @type {number} */ slot) {
    for (let step = this.step; step > 0; step--) {
      const { messages, within, slots } = this.done[step - 1];
      if (!slots.includes(slot)) continue;
      const parts = [...within].reverse().concat(messages.flatMap((message) => message.parts));
      const covers = (part) => {
        const first = this.slot(part.dstBuffer, part.dst, part.dstChunk);
        return first <= slot && slot < first + part.count;
      };
      return { step, part: parts.find(covers) };
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
    for (const { src, dst, amount } of change.counted) {
      this.sent[src] += direction * amount;
      this.received[dst] += direction * amount;
    }
    this.messages += direction * change.counted.length;
    this.step += direction;
  }

  /** What step `k` changes, given the state before it. */
  #carryOut(k) {
    const { knowledge, values } = this.schedule;
    /** @type {Map<number, Cell>} */
    const after = new Map();
    const now = (slot) => after.get(slot) ?? this.cells[slot];
    const read = (part, look) =>
      range(part.count).map((i) => look(this.slot(part.srcBuffer, part.src, part.chunk + i)));
    const write = (part, cells) =>
      cells.forEach((cell, i) => {
        const slot = this.slot(part.dstBuffer, part.dst, part.dstChunk + i);
        after.set(slot, part.sign ? now(slot).with(cell, part.sign, knowledge) : cell);
      });

    const transfers = transfersOf(this.schedule, k);
    const before = (slot) => this.cells[slot];
    for (const part of transfers) if (part.src !== part.dst) write(part, read(part, before));
    const within = transfers.filter((part) => part.src === part.dst);
    for (const part of within) write(part, read(part, now));
    for (const [rank, buffer, chunk, value] of values?.[k] ?? []) {
      const slot = this.slot(buffer, rank, chunk);
      const { origins, sign } = now(slot);
      after.set(slot, new Cell(origins, value, sign));
    }
    const slots = [...after.keys()];
    const messages = messagesOf(this.schedule, k);
    const counted = this.schedule.effects[k] ? [] : messages;
    return { slots, before: slots.map(before), after: [...after.values()], messages, counted, within };
  }
}

/** Which cell a slot is. @returns {{buffer: number, rank: number, chunk: number}} */
export function unpack(/** @type {number} */ slot, /** @type {number} */ ranks, /** @type {number} */ chunks) {
  return { buffer: Math.floor(slot / chunks / ranks), rank: Math.floor(slot / chunks) % ranks, chunk: slot % chunks };
}

/** @returns {Cell[]} */
function startOf(/** @type {Schedule} */ { start, ranks, chunks, start_values: values }) {
  const empty = new Cell([]);
  const cells = start.flatMap((given) => {
    const buffer = new Array(ranks * chunks).fill(empty);
    if (given === "own") return buffer.map((_, i) => new Cell([Math.floor(i / chunks) * SPAN + (i % chunks)]));
    for (const [rank, chunk, ...pairs] of given) {
      const origins = range(pairs.length / 2).map((i) => pairs[2 * i] * SPAN + pairs[2 * i + 1]);
      buffer[rank * chunks + chunk] = new Cell(origins);
    }
    return buffer;
  });
  for (const [rank, buffer, chunk, value] of values ?? []) {
    const slot = (buffer * ranks + rank) * chunks + chunk;
    cells[slot] = new Cell(cells[slot].origins, value);
  }
  return cells;
}

/** [0, 1, ... count - 1] @returns {number[]} */
export function range(/** @type {number} */ count) {
  return Array.from({ length: count }, (_, i) => i);
}
