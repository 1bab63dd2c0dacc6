/**
 * How the messages of a step look: arrows with what they carry, frames around what was read and written, and the
 * chunks that fly.
 *
 * A copy is a hollow arrow; a reduction a filled one, with the sign of its operation (a plus for a sum) at the cell it
 * writes and, where there is room, on its label. A trace is drawn as the messages that brought a cell's content, of all steps at once, each with
 * the number of its step.
 *
 * Pure: messages and layout in, SVG text out. Left out: which way an arrow goes (arrows.js), which cells stay bright
 * under a trace (stage.js).
 */

import { arrowOf, pathOf, pointOn, waitOf } from "./arrows.js";
import { chunksOf, shorten } from "./captions.js";
import { WIDTH } from "./labels.js";
import { range } from "./schedule.js";
import { fixed, rect, text, tint } from "./svg.js";

/**
 * @typedef {import("./layout.js").Layout} Layout
 * @typedef {import("./schedule.js").Message} Message
 * @typedef {import("./schedule.js").Transfer} Transfer
 * @typedef {import("./trace.js").Trace} Trace
 * @typedef {import("./schedule.js").Stuck} Stuck
 */

const MOST_WORDS = 2; // of ranks that wait: more would cover each other
const MOST_ARROWS = 120; // beyond that, one faint web instead of single arrows

/**
 * @param {Layout} layout
 * @param {(Message & {words?: string, effect?: boolean})[]} messages with the words of their labels if not what they
 *   carry, and whether each only shows what a library did
 * @param {{rank: number | null, chunk: number | null}} followed what does not belong to them steps back
 */
export function arrows(layout, messages, { rank, chunk }) {
  const answered = answers(layout, messages);
  if (messages.length > MOST_ARROWS) return web(messages.map((message) => arrowOf(layout, message, answered(message))));
  const crowded = messages.length > 2 * layout.ranks;
  const size = layout.dense ? Math.max(3, Math.min(7, layout.cards[0].w * 0.3)) : (crowded ? 6 : 11) * layout.scale;
  const labels = []; // above all arrows
  const drawn = messages.map((message) => {
    const curve = arrowOf(layout, message, answered(message));
    const away = rank !== null && message.src !== rank && message.dst !== rank;
    const other =
      chunk !== null && !message.parts.some((part) => part.chunk <= chunk && chunk < part.chunk + part.count);
    const off = away || other ? "rs-off" : "";
    const label = layout.dense ? note(layout, curve, message, answered(message)) : crowded ? "" : tag(layout, curve, message, answered(message));
    labels.push(`<g class="${off}">${label}</g>`);
    const kind = `rs-arrow ${message.sign ? "rs-reduce" : "rs-copy"} ${off} ${message.effect ? "rs-effect" : ""}`;
    return `<g class="${kind}" style="--rs-stroke:${fixed(size * 0.42)}px">${shaft(curve, size)}</g>`;
  });
  return [...drawn, ...labels].join("");
}

/** A dashed arrow from each rank that is stuck to the one that it waits for, with words on it where they fit. */
export function waits(/** @type {Layout} */ layout, /** @type {Stuck[]} */ stuck) {
  const size = layout.dense ? 5 : 10 * layout.scale;
  const ways = stuck.slice(0, MOST_ARROWS).flatMap(([rank, other]) => (other === null ? [] : { rank, other, curve: waitOf(layout, rank, other) }));
  const labels = ways.map(({ rank, other, curve }) => {
    const both = stuck.some(([from, to]) => from === other && to === rank);
    const words = both ? "wait for each other" : `${rank} waits for ${other}`;
    const fits = Math.hypot(curve[6] - curve[0], curve[7] - curve[1]) > (9 * words.length + 20) * layout.scale;
    return layout.dense || !fits || stuck.length > MOST_WORDS || (both && rank > other) ? "" : tag(layout, curve, { parts: [], sign: "", words }, false);
  });
  const drawn = ways.map(({ curve }) => shaft(curve, size));
  return `<g class="rs-stuckway" style="--rs-stroke:${fixed(size * 0.3)}px">${drawn.join("")}${labels.join("")}</g>`;
}

/** Whether the other side sends back in the same step: the two arrows then keep apart. */
export function answers(/** @type {Layout} */ { ranks }, /** @type {Message[]} */ messages) {
  const pairs = new Set(messages.map(({ src, dst }) => src * ranks + dst));
  return (/** @type {Message} */ { src, dst }) => pairs.has(dst * ranks + src);
}

/**
 * Frames around what was read (dashed) and what was written: solid, with a sign where it was combined with what was
 * there; dotted, with "new", where the rank made it itself.
 */
export function marks(/** @type {Layout} */ layout, /** @type {Transfer[]} */ transfers) {
  const signs = [];
  const frames = transfers.map((part) => {
    const to = reach(layout, part.dstBuffer, part.dst, part.dstChunk, part.count);
    const from = part.made ? to : reach(layout, part.srcBuffer, part.src, part.chunk, part.count);
    const written = rect(part.made ? "rs-written rs-made" : "rs-written", to);
    if (layout.dense) return written;
    const sign = part.made ? "new" : part.sign[1] ? "" : part.sign; // "max" stands in the cell
    if (sign && to.w > 40) signs.push(operation(sign, to.x + 3, to.y + 11 * layout.scale - 8, layout.scale)); // below the name
    return (part.made ? "" : rect("rs-read", from)) + written;
  });
  return [...frames, ...signs].join("");
}

/**
 * What flies for one transfer: a stripe per chunk around the origin, to be moved by a transform.
 * @param {Layout} layout @param {Transfer} transfer @param {number} font pixels of its letters; 0 where there is no room
 * @param {(room: number) => string} held what it carries, in so many letters; "" of several chunks
 */
export function packet(layout, { chunk, count, sign, kinds }, font, held) {
  const { corner, dense, scale, size } = layout;
  const [w, h] = dense ? [Math.min(size.w * 0.9, 40 * scale), Math.min(size.h, 14 * scale)] : [Math.min(size.w * 0.6, 74 * scale), size.h * 0.86];
  const from = corner(0, chunk);
  const offset = (/** @type {number} */ i) => {
    const { x, y } = corner(0, chunk + i);
    return { x: x - from.x, y: y - from.y };
  };
  const stripe = (/** @type {number} */ i) => {
    const { x, y } = offset(i);
    return rect(`rs-stripe ${tint(kinds[i])}`, { x: x - w / 2, y: y - h / 2, w, h });
  };
  const room = font && Math.floor(w / font / WIDTH - 0.5);
  const words = font && shorten(held(room) || (layout.chunks > 1 ? rangeOf({ chunk, count }) : sign), room);
  const label = words ? text("rs-tagtext", 0, offset(count - 1).y / 2, words, `style="font-size:${fixed(font)}px"`) : "";
  return `<g>${range(count).map(stripe).join("")}${label}</g>`;
}

/** The label of an arrow: which chunks go, as "+ chunk 2", "chunk 2" or "2". Above a level arrow, beside an upright one, on any other. */
function tag({ chunks, scale }, curve, { parts, sign, words: given = "" }, both) {
  const fits = (/** @type {string} */ s) => !both && 8 * s.length < Math.abs(curve[6] - curve[0]) / scale - 4;
  const forms = () => [`${sign} ${chunksOf(parts)}`.trim(), chunksOf(parts)];
  const words = given || (chunks < 2 ? sign : (forms().find(fits) ?? (parts[2] ? `${parts.length}×` : `${parts.map(rangeOf)}`)));
  if (!words) return "";
  const single = parts.length === 1 && parts[0].count === 1;
  const level = curve[1] === curve[3] && curve[1] === curve[7];
  const upright = Math.abs(curve[6] - curve[0]) < 1;
  const [w, h] = [Math.max(20, 8 * words.length + 10) * scale, 20 * scale];
  const [onX, onY] = pointOn(curve, given && both ? 0.36 : 0.5);
  const side = both && curve[7] < curve[1] ? -1 : 1;
  const aside = upright ? side * (w / 2 + 9 * scale) : both && !level ? Math.sign(curve[6] - curve[0]) * w * 0.55 : 0;
  const x = onX + aside;
  const middle = Math.max(onY - (level ? 15 * scale : 0), h / 2 + 1); // the highest arc's, inside the picture
  const look = single ? `rs-tag ${tint(parts[0].kinds[0])}` : "rs-tag";
  const pill = rect(look, { x: x - w / 2, y: middle - h / 2, w, h }, `style="rx:${h / 2}px"`);
  return pill + text("rs-tagtext", x, middle, words);
}

/** The label of an arrow between ranks that are no cards: only words of its own, where they fit. */
function note({ scale }, curve, { words = "" }, both) {
  const long = Math.max(Math.abs(curve[6] - curve[0]), Math.abs(curve[7] - curve[1]));
  const [x, y] = pointOn(curve, both ? 0.36 : 0.5);
  const above = curve[1] === curve[3] ? y - 7 * scale : Math.max(y, 8 * scale);
  return words && long > 7.5 * scale * words.length ? text("rs-step", x, above, words) : "";
}

/** @returns {string} "2", "0–3" */
function rangeOf({ chunk, count }) {
  return count === 1 ? `${chunk}` : `${chunk}–${chunk + count - 1}`;
}

/** Line and head of an arrow: the line twice, so that a copy's can be hollow. */
function shaft([ax, ay, bx, by, cx, cy, dx, dy], size) {
  const length = Math.hypot(dx - cx, dy - cy) || 1;
  const [ux, uy] = [((dx - cx) / length) * size, ((dy - cy) / length) * size];
  const [ex, ey] = [dx - ux, dy - uy];
  const [sx, sy] = [uy * 0.62, ux * 0.62];
  const line = pathOf([ax, ay, bx, by, cx - ux, cy - uy, ex, ey]);
  const head = `M${[dx, dy].map(fixed)}L${[ex - sx, ey + sy].map(fixed)}L${[ex + sx, ey - sy].map(fixed)}z`;
  return `<path class="rs-line" d="${line}"/><path class="rs-core" d="${line}"/><path class="rs-head" d="${head}"/>`;
}

/** Very many messages: their arcs as one faint path. */
function web(curves) {
  return `<path class="rs-web" d="${curves.map(pathOf).join("")}"/>`;
}

/** What is done with what is there: a plus (turned: times) in a disc, else its name, as far into the cell as it is long. */
function operation(name, x, y, scale) {
  const [arm, r] = [4 * scale, 7 * scale];
  const w = 8 * scale * name.length + 6;
  const drawn = name[1]
    ? rect("", { x: -r, y: -r, w, h: 2 * r }) + text("", w / 2 - r, 0, name)
    : `<circle r="${r}"/><path d="M${-arm} 0H${arm}M0 ${-arm}V${arm}"${name === "×" ? ' transform="rotate(45)"' : ""}/>`;
  return `<g class="rs-sign" transform="translate(${fixed(x)} ${fixed(y)})">${drawn}</g>`;
}

/** The box of consecutive chunks; where they run on in the next column, of all columns they are in. */
function reach({ ranks, chunks, rows, cell }, buffer, rank, chunk, count) {
  const slot = (buffer * ranks + rank) * chunks;
  const last = chunk + count - 1;
  const runsOn = Math.floor(chunk / rows) !== Math.floor(last / rows);
  const top = cell(slot + (runsOn ? chunk - (chunk % rows) : chunk));
  const right = cell(slot + last);
  const bottom = cell(slot + (runsOn ? chunk - (chunk % rows) + rows - 1 : last));
  return { x: top.x, y: top.y, w: right.x + right.w - top.x, h: bottom.y + bottom.h - top.y };
}

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
