/**
 * How a trace looks: the messages that brought a cell's content, of all steps at once, each with the number of its step;
 * and the frame around a cell that is wrong.
 *
 * Pure: layout and trace in, SVG text out. Left out: which cells stay bright (stage.js).
 */

import { arrows } from "./messages.js";
import { fixed, rect, text } from "./svg.js";

/**
 * @typedef {import("./layout.js").Layout} Layout
 * @typedef {import("./trace.js").Trace} Trace
 */

/** The slots that a trace passes. @returns {Set<number>} */
export function slotsOn(/** @type {Trace | null} */ traced) {
  return new Set(traced ? [traced.slot, ...traced.hops.flatMap(({ from, to }) => [from, to])] : []);
}

/**
 * One arrow from rank to rank, whatever the number of steps in which it was taken; dashed where it is a library's effect.
 * @param {Layout} layout @param {import("./schedule.js").Schedule} schedule @param {Trace} traced
 */
export function trail(layout, { effects }, { hops }) {
  const { chunks, ranks, dense, shape, pitch, cards, scale } = layout;
  const roomy = !dense && shape !== "tree" && pitch.x - cards[0].w > 90 * scale;
  /** @type {Map<number, import("./schedule.js").Message & {steps: Set<number>, effect: boolean}>} */
  const taken = new Map();
  for (const { step, part, from, to } of hops) {
    if (part.src === part.dst) continue;
    const link = part.src * ranks + part.dst;
    const single = { ...part, chunk: from % chunks, dstChunk: to % chunks, count: 1, kinds: [-1] };
    const { src, dst } = part;
    const arrow = taken.get(link) ?? { src, dst, sign: "", parts: [single], amount: 0, steps: new Set(), effect: true };
    arrow.sign ||= part.sign;
    arrow.effect &&= effects[step - 1];
    arrow.steps.add(step);
    taken.set(link, arrow);
  }
  const messages = [...taken.values()].map((arrow) => {
    const steps = [...arrow.steps].join(", ");
    return { ...arrow, words: roomy ? `step ${steps}` : steps };
  });
  return arrows(layout, messages, { rank: null, chunk: null });
}

/** Two lines around a cell and an exclamation mark at its corner, to be told apart without colour. */
export function wrong(/** @type {Layout} */ { cell, scale }, /** @type {number | null | undefined} */ slot) {
  if (slot === null || slot === undefined) return "";
  const { x, y, w, h } = cell(slot);
  const around = (/** @type {number} */ by) => ({ x: x - by, y: y - by, w: w + 2 * by, h: h + 2 * by });
  const r = 9 * scale;
  const sign = `<circle r="${r}"/>${text("", 0, 0.5, "!")}`;
  return `${rect("rs-wrong rs-outer", around(5))}${rect("rs-wrong", around(1.5))}
    <g class="rs-wrongsign" transform="translate(${fixed(x + w + 2)} ${fixed(y - 2)})">${sign}</g>`;
}
