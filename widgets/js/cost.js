/**
 * How long the steps of a schedule take on a network: the model of collectives/network.py, in the browser, so that
 * sliders answer at once.
 *
 * A rank that sends (or receives) k messages of u units in a step is busy for k * alpha + u * beta; the rank that adds
 * most adds gamma per unit; the step lasts as long as its busiest. Seconds, bytes, seconds per byte throughout.
 *
 * On a flat network messages are counted here. On a topology Python has done that, in seconds on each link: alpha and
 * beta are then how many times the topology's own they are.
 */

import { amountOf, range, transfersOf, messagesOf } from "./schedule.js";

/**
 * @typedef {{alpha: number, beta: number, gamma: number}} Network seconds per message, per byte, per byte added
 * @typedef {{lines: [number, number][], added: number}} Work of one step: messages and units of the ranks that may be
 *   the busiest, and the units that the busiest adder adds
 */

/** What each step of a schedule demands, whatever the network. @returns {Work[]} */
export function workOf(/** @type {import("./schedule.js").Schedule} */ schedule) {
  const { ranks } = schedule;
  return range(schedule.steps).map((k) => {
    const messages = new Float64Array(2 * ranks); // links out, then links in
    const units = new Float64Array(2 * ranks);
    for (const { src, dst, amount } of messagesOf(schedule, k)) {
      for (const link of [src, ranks + dst]) {
        messages[link]++;
        units[link] += amount;
      }
    }
    const added = new Float64Array(ranks);
    for (const part of transfersOf(schedule, k)) if (part.sign) added[part.dst] += amountOf(schedule, part);
    return { lines: busiestLines(messages, units), added: Math.max(...added) };
  });
}

/** Seconds of every step for N = `nbytes`. @returns {number[]} */
export function secondsOf(
  /** @type {Work[]} */ work,
  /** @type {number} */ unitBytes,
  /** @type {Network} */ { alpha, beta, gamma },
) {
  return work.map(({ lines, added }) => {
    const links = lines.map(([messages, units]) => messages * alpha + units * unitBytes * beta);
    return Math.max(0, ...links) + added * unitBytes * gamma;
  });
}

/** Bytes of one unit that Run and Work count in: of a chunk, or of a byte where chunks have their own sizes. */
export function unitBytes(
  /** @type {import("./schedule.js").Schedule} */ { chunks, chunk_bytes: sizes, knowledge },
  /** @type {number} */ nbytes,
) {
  if (knowledge) return 0;
  return nbytes / (sizes ? sizes.reduce((sum, size) => sum + size, 0) : chunks);
}

/** The (messages, units) pairs that no other pair exceeds in both. */
function busiestLines(messages, units) {
  const most = new Map();
  messages.forEach((count, link) => most.set(count, Math.max(most.get(count) ?? 0, units[link])));
  const pairs = [...most].filter(([count]) => count > 0);
  return pairs.filter(([k, u]) => !pairs.some(([l, v]) => (l > k && v >= u) || (l >= k && v > u)));
}
