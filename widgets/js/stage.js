/**
 * The picture: ranks with their buffers, the messages of one step as arrows, and what flies along them.
 *
 * The stage draws what a Run holds and knows nothing of time or keys. It is drawn anew when its width or shape
 * changes; after that a step touches only the cells it wrote, and a frame only the chunks that fly.
 *
 * The code of the picture: a chunk is a hue and a number, a rank is a place and a label. A copy is a hollow arrow, a
 * reduction a filled one with the sign of its operation, and the bar in a cell has one segment per rank whose data is in it.
 *
 * Left out: the clock of what flies (flight.js), and when a step is taken (playback.js).
 */

import { arrowOf, flightOf, pointOn } from "./arrows.js";
import { barOf, nameIn, scenery, texturesFor, writable } from "./scenery.js";
import { amount, busiest } from "./captions.js";
import { labelOf, typeFor, viewFor } from "./labels.js";
import { layOut } from "./layout.js";
import { answers, arrows, marks, packet, slotsOn, trail, waits, wrong } from "./messages.js";
import { range } from "./schedule.js";
import { survey } from "./survey.js";
import { fixed, tint } from "./svg.js";
import { sentOn, trace } from "./trace.js";

const MOST_FLYING = 600;
const BOLD = 0.62; // of a character of a name or a badge, in its size

export class Stage {
  /** @type {import("./layout.js").Layout} */ layout;
  /** @type {import("./labels.js").Type} */ type;
  /** @type {Element} */ svg;
  /** @type {{marks: Element, arrows: Element, packets: Element}} */ layers;
  /** @type {{ranks: Element[], sent: Element[], amounts: Element[], badges: Element[], veils: Element[]}} */ nodes;
  /** @type {Element[]} what belongs to a chunk */ chunks;
  /** @type {Element[]} by slot */ cells;
  /** @type {Element | undefined} the cell that is followed */ here;
  /** @type {ReturnType<typeof texturesFor>} */ textures;
  /** @type {Int32Array} by slot: which chunk's colour it has now */ kinds;

  /**
   * @param {HTMLElement} host
   * @param {import("./schedule.js").Schedule} schedule
   * @param {import("./schedule.js").Run} run
   */
  constructor(host, schedule, run) {
    this.host = host;
    this.schedule = schedule;
    this.run = run;
    this.view = viewFor(schedule);
    /** @type {number | null} the rank that is followed, the others step back */
    this.rank = null;
    /** @type {number | null} the same for a chunk */
    this.chunk = null;
    this.buffer = 0; // of the cell in which the two meet
    /** @type {number | null} the slot whose content is traced */
    this.tracing = null;
    /** @type {import("./trace.js").Trace | null} where it came from */
    this.traced = null;
    /** @type {Map<number, import("./cell.js").Cell>} by slot, what cells on it held when that was sent */
    this.past = new Map();
    this.survey = survey(schedule);
    /** @type {{node: Element, way: import("./arrows.js").Curve}[]} */
    this.flying = [];
  }

  /** Draws everything for the room there is. */
  resize(/** @type {import("./layout.js").Room} */ room) {
    const { host, schedule } = this;
    this.layout = layOut(schedule, room);
    this.type = typeFor(schedule, this.layout, this.view);
    const { width, height, dense } = this.layout;
    this.textures = texturesFor(schedule, this.layout);
    this.kinds = new Int32Array(this.run.cells.length);
    const drawn = scenery(schedule, this.layout, this.textures, (slot) => this.#look(slot));
    host.innerHTML = `<svg aria-hidden="true" class="rs-picture${dense ? " rs-dense" : ""}" width="${width}" height="${height}">
      ${drawn}<g class="rs-marks"></g><g class="rs-arrows"></g><g class="rs-packets"></g></svg>`;
    const all = (/** @type {string} */ selector) => [...host.querySelectorAll(selector)];
    const layer = (/** @type {string} */ name) => all(`.rs-${name}`)[0];
    this.svg = layer("picture");
    this.layers = { marks: layer("marks"), arrows: layer("arrows"), packets: layer("packets") };
    const [ranks, sent, amounts] = [all(".rs-rank"), all(".rs-sent"), all(".rs-amount")];
    this.nodes = { ranks, sent, amounts, badges: all(".rs-badge"), veils: all(".rs-veil") };
    this.chunks = all(".rs-ofchunk");
    /** @type {Element[]} by slot */
    this.cells = [];
    for (const node of all(".rs-cell")) this.cells[Number(node.getAttribute("data-slot"))] = node;
    all(".rs-buffer").forEach((node, i) => (node.textContent = schedule.buffers[i % schedule.buffers.length]));
    this.show(this.view);
    this.showStep();
  }

  /** Writes into every cell where there is room: symbols, contributors or numbers. */
  show(/** @type {string} */ view) {
    this.view = view;
    this.type = typeFor(this.schedule, this.layout, view);
    this.svg.setAttribute("style", `--rs-font:${this.type.font}px;--rs-scale:${this.layout.scale}`);
    if (writable(this.layout)) this.write(range(this.run.cells.length));
  }

  /** Writes some cells. */
  write(/** @type {Iterable<number>} */ slots) {
    const written = writable(this.layout);
    for (const slot of slots) {
      const cell = this.#cell(slot);
      const box = this.cells[slot];
      const bar = /** @type {Element} */ (box.nextElementSibling);
      const before = this.kinds[slot];
      const { empty, bar: path, colour, style } = this.#look(slot);
      box.classList.toggle("rs-empty", empty);
      bar.setAttribute("d", path);
      if (before !== this.kinds[slot]) {
        bar.setAttribute("class", `rs-bar ${colour}`);
        box.classList.remove("rs-tint", tint(before));
        if (colour) box.classList.add(...colour.split(" "));
        box.setAttribute("style", style);
      }
      const words = written && bar.nextElementSibling;
      if (!words) continue;
      words.classList.toggle("rs-stale", empty);
      words.textContent = this.#label(slot, cell);
    }
  }

  /** Arrows and marks of the step just done, and what every rank has sent so far. */
  showStep() {
    const { run, layout, schedule } = this;
    const traced = this.tracing === null ? null : trace(run, this.tracing);
    const [followed, chunk] = traced ? [null, null] : [this.rank, this.chunk];
    const stuck = !traced && run.step === schedule.steps ? (schedule.stuck ?? []) : [];
    const shown = { rank: followed, chunk };
    this.layers.arrows.innerHTML = traced ? trail(layout, schedule, traced) : arrows(layout, run.latest, shown) + waits(layout, stuck);
    this.layers.marks.innerHTML = (traced ? "" : marks(layout, run.moved)) + wrong(layout, schedule.framed);
    this.#light(traced);
    this.svg.classList.toggle("rs-effect", !traced && run.effect);
    this.svg.classList.toggle("rs-following", followed !== null);
    this.here?.classList.remove("rs-here");
    this.here = this.cells[this.followed ?? -1];
    this.here?.classList.add("rs-here");
    this.chunks.forEach((node, i) => node.classList.toggle("rs-off", chunk !== null && chunk !== i));
    const top = busiest(run);
    const { most } = this.survey;
    const idle = idleOf(run, this.survey);
    const missing = new Set(stuck.map(([, other]) => other));
    this.nodes.ranks.forEach((node, rank) => {
      const isBusiest = !top.all && top.ranks.includes(rank);
      const others = stuck.filter(([from]) => from === rank).map(([, other]) => other);
      if (others.length) idle[rank] = "";
      node.classList.toggle("rs-stuck", others.length > 0);
      node.classList.toggle("rs-missed", !others.length && missing.has(rank));
      node.classList.toggle("rs-busiest", isBusiest);
      node.classList.toggle("rs-idle", idle[rank] !== "");
      node.classList.toggle("rs-followed", followed === rank);
      this.nodes.veils[rank].classList.toggle("rs-idle", layout.dense && idle[rank] !== "");
      this.nodes.veils[rank].classList.toggle("rs-away", followed !== null && followed !== rank);
      if (!layout.dense) this.nodes.badges[rank].textContent = this.#badge(rank, isBusiest && !stuck[0], badgeOf(others) || (stuck[0] ? "done" : idle[rank]));
      const share = most ? run.sent[rank] / most : 0;
      const bar = this.nodes.sent[rank];
      const long = fixed(share * Number(bar.getAttribute("data-full")));
      bar.setAttribute(layout.kind === "columns" ? "height" : "width", String(long));
      if (this.nodes.amounts.length) this.nodes.amounts[rank].textContent = this.#amounts(rank);
    });
  }

  /** What a cell shows: on a trace what it held when that was sent, else, as the traced one itself, what it holds now. */
  #cell(/** @type {number} */ slot) {
    return (slot !== this.tracing && this.past.get(slot)) || this.run.cells[slot];
  }

  /** "a0+b0"; of the traced cell that has sent something itself "b0 → a0+b0". */
  #label(/** @type {number} */ slot, /** @type {import("./cell.js").Cell} */ cell) {
    const { type, view, schedule } = this;
    const label = (/** @type {import("./cell.js").Cell} */ of, used = 0) =>
      labelOf(of, view, { ...type, room: type.room - used }, schedule, slot % schedule.chunks);
    const sent = slot === this.tracing && this.past.get(slot);
    const first = sent ? `${label(sent)} → ` : "";
    const now = label(cell, first.length);
    return now ? first + now : label(cell);
  }

  /** The cells on a trace stay bright, the others step back. */
  #light(/** @type {import("./trace.js").Trace | null} */ traced) {
    for (const slot of slotsOn(this.traced)) this.cells[slot].classList.remove("rs-onway", "rs-traced");
    for (const slot of slotsOn(traced)) this.cells[slot].classList.add("rs-onway");
    if (traced) this.cells[traced.slot].classList.add("rs-traced");
    const past = traced ? sentOn(this.run, traced) : new Map();
    const changed = new Set([...this.past.keys(), ...past.keys()]);
    this.past = past;
    this.write(changed);
    this.svg.classList.toggle("rs-tracing", traced !== null);
    this.traced = traced;
  }

  /** The slot where the followed rank and the followed chunk meet, or null. @returns {number | null} */
  get followed() {
    return this.rank === null || this.chunk === null ? null : this.run.slot(this.buffer, this.rank, this.chunk);
  }

  /** Frames the cells a student has chosen. */
  choose(/** @type {Set<number>} */ slots) {
    this.cells.forEach((node, slot) => node.classList.toggle("rs-chosen", slots.has(slot)));
  }

  /** Starts the flight of the step just done: its cells are not written until `land`. False if too much would fly. */
  takeOff() {
    const { layout, run } = this;
    const answered = answers(layout, run.latest);
    const flights = run.latest.flatMap((message) => {
      const arrow = arrowOf(layout, message, answered(message));
      return message.parts.map((part) => ({ part, arrow }));
    });
    if (flights.length > MOST_FLYING) return false;
    const { type, view, schedule } = this;
    const font = layout.dense ? type.room && type.font : 13 * layout.scale;
    const held = (/** @type {import("./schedule.js").Transfer} */ { count, srcBuffer, src, chunk }) => (/** @type {number} */ room) => {
      const cell = run.heldBefore(run.slot(srcBuffer, src, chunk), run.step);
      const label = (/** @type {number} */ letters) => labelOf(cell, view, { ...type, room: letters }, schedule, chunk);
      return count > 1 ? "" : label(room) || label(9);
    };
    this.layers.packets.innerHTML = flights.map(({ part }) => packet(layout, part, font, held(part))).join("");
    this.flying = flights.map(({ part, arrow }, i) => {
      const start = middle(layout.cell(run.slot(part.srcBuffer, part.src, part.chunk)));
      const end = middle(layout.cell(run.slot(part.dstBuffer, part.dst, part.dstChunk)));
      return { node: this.layers.packets.children[i], way: flightOf(arrow, start, end) };
    });
    return true;
  }

  /** Moves everything that flies to `t` in 0..1 of its way. */
  fly(/** @type {number} */ t) {
    const eased = t < 0.5 ? 4 * t * t * t : 1 - (2 - 2 * t) ** 3 / 2;
    for (const { node, way } of this.flying) {
      const [x, y] = pointOn(way, eased).map(fixed);
      node.setAttribute("transform", `translate(${x} ${y})`);
    }
  }

  land() {
    this.flying = [];
    this.layers.packets.innerHTML = "";
  }

  /** The slot under a DOM event, or null. @returns {number | null} */
  slotAt(/** @type {Event} */ event) {
    const cell = /** @type {Element} */ (event.target).closest("[data-slot]");
    return cell && Number(cell.getAttribute("data-slot"));
  }

  /** In the corner of a card: whether its rank is the busiest, or has nothing to do, as far as the name leaves room. */
  #badge(rank, isBusiest, idle) {
    const { w } = this.layout.cards[rank];
    const left = w / this.layout.scale - 24 - BOLD * 15 * nameIn(w, rank).length;
    const marks = isBusiest ? ["busiest", "▲"] : [];
    const both = idle ? marks.map((mark) => `${mark} · ${idle}`) : [];
    return [...both, ...marks, idle].find((words) => BOLD * 12 * words.length <= left) ?? "";
  }

  /** What a rank has sent and received, as long as there is room. Nothing where all of it is inside a library. */
  #amounts(rank) {
    if (!this.survey.links.size && this.schedule.effects.some(Boolean)) return "";
    const [sent, received] = [this.run.sent, this.run.received].map((given) => amount(this.schedule, given[rank]));
    const room = this.layout.cards[rank].w / this.layout.scale;
    if (room >= 200) return `sent ${sent} · received ${received}`;
    return room >= 130 ? `↑ ${sent}  ↓ ${received}` : `↑ ${sent}`;
  }

  /** A cell, its colour and its bar: one segment per contributor; the whole cell where there is no room for text. */
  #look(/** @type {number} */ slot) {
    const { layout, schedule, type, view } = this;
    const { contributors, kind } = this.#cell(slot);
    const wide = !type.room || view === "contributors";
    const empty = !contributors.length;
    const place = slot % schedule.chunks;
    this.kinds[slot] = empty ? place : kind;
    const elsewhere = this.kinds[slot] !== place;
    return {
      empty,
      bar: barOf(layout.cell(slot), contributors, schedule.ranks, wide, layout.dense),
      colour: elsewhere ? `rs-tint ${tint(kind)}` : "",
      style: elsewhere ? this.textures.of(kind) || "--rs-texture:initial" : "",
    };
  }
}

/** Per rank "" while it sends or receives in the step just done, else "waits", or "done" if it has no more to do. */
function idleOf({ busy, step }, { until }) {
  return until.map((last, rank) => (!busy.size || busy.has(rank) ? "" : step < last ? "waits" : "done"));
}

/** Of a rank that waits for others forever, or (null) whose call was refused. */
function badgeOf(/** @type {(number | null)[]} */ others) {
  return others.length ? (others[0] === null ? "refused" : "stuck") : "";
}

function middle({ x, y, w, h }) {
  return { x: x + w / 2, y: y + h / 2, w, h };
}
