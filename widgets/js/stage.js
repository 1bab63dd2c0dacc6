/**
 * The picture: ranks with their buffers, the messages of one step as arrows, and what flies along them.
 *
 * The stage draws what a Run holds and knows nothing of time or keys. It is drawn anew when its width or shape
 * changes; after that a step touches only the cells it wrote, and a frame only the chunks that fly.
 *
 * The code of the picture: a chunk is a hue and a number, a rank is a place and a label. A copy is a hollow arrow, a
 * reduction a filled one with a plus sign, and the bar in a cell has one segment per rank whose data is in it.
 */

import { arrowOf, flightOf, pointOn } from "./arrows.js";
import { amount, busiest } from "./captions.js";
import { labelOf, typeFor } from "./labels.js";
import { barHeight, layOut } from "./layout.js";
import { answers, arrows, marks, packet } from "./messages.js";
import { scenery, writable } from "./scenery.js";
import { messagesOf, range } from "./schedule.js";
import { fixed } from "./svg.js";

const MOST_FLYING = 600;

export class Stage {
  /**
   * @param {HTMLElement} host
   * @param {import("./schedule.js").Schedule} schedule
   * @param {import("./schedule.js").Run} run
   */
  constructor(host, schedule, run) {
    this.host = host;
    this.schedule = schedule;
    this.run = run;
    this.view = "symbols";
    /** @type {number | null} the rank that is followed, the others step back */
    this.rank = null;
    /** @type {number | null} the same for a chunk */
    this.chunk = null;
    this.most = mostSent(schedule);
    /** @type {{node: Element, way: import("./arrows.js").Curve}[]} */
    this.flying = [];
  }

  /** Draws everything for the room there is. */
  resize(/** @type {import("./layout.js").Room} */ room) {
    const { host, schedule } = this;
    this.layout = layOut(schedule, room);
    const { width, height, dense } = this.layout;
    host.innerHTML = `<svg aria-hidden="true" class="rs-picture ${dense ? "rs-dense" : ""}" width="${width}" height="${height}">
      ${scenery(schedule, this.layout)}<g class="rs-marks"></g><g class="rs-arrows"></g><g class="rs-packets"></g></svg>`;
    const all = (/** @type {string} */ selector) => [...host.querySelectorAll(selector)];
    const layer = (/** @type {string} */ name) => all(`.rs-${name}`)[0];
    this.svg = layer("picture");
    this.layers = { marks: layer("marks"), arrows: layer("arrows"), packets: layer("packets") };
    this.nodes = { ranks: all(".rs-rank"), sent: all(".rs-sent"), amounts: all(".rs-amount") };
    this.chunks = all(".rs-ofchunk");
    /** @type {Element[]} by slot */
    this.cells = [];
    for (const node of all(".rs-cell")) this.cells[Number(node.getAttribute("data-slot"))] = node;
    all(".rs-buffer").forEach((node, i) => (node.textContent = schedule.buffers[i % schedule.buffers.length]));
    this.show();
  }

  /** Writes every cell and the step just done. */
  show(view = this.view) {
    this.view = view;
    this.type = typeFor(this.schedule, this.layout, view);
    this.svg.setAttribute("style", `--rs-font:${this.type.font}px;--rs-scale:${this.layout.scale}`);
    this.write(range(this.run.cells.length));
    this.showStep();
  }

  /** Writes some cells. */
  write(/** @type {Iterable<number>} */ slots) {
    const written = writable(this.layout);
    for (const slot of slots) {
      const cell = this.run.cells[slot];
      const box = this.cells[slot];
      const bar = /** @type {Element} */ (box.nextElementSibling);
      box.classList.toggle("rs-empty", !cell.origins.length);
      bar.setAttribute("d", this.#bar(slot, cell));
      const words = written && bar.nextElementSibling;
      if (words) words.textContent = labelOf(cell, this.view, this.type, this.schedule, slot % this.schedule.chunks);
    }
  }

  /** Arrows and marks of the step just done, and what every rank has sent so far. */
  showStep() {
    const { run, layout, rank: followed } = this;
    this.layers.arrows.innerHTML = arrows(layout, run.latest, { rank: followed, chunk: this.chunk });
    this.layers.marks.innerHTML = marks(layout, run.moved);
    this.svg.classList.toggle("rs-effect", run.effect);
    this.svg.classList.toggle("rs-following", followed !== null);
    this.chunks.forEach((node, chunk) => node.classList.toggle("rs-off", this.chunk !== null && this.chunk !== chunk));
    const top = busiest(run);
    this.nodes.ranks.forEach((node, rank) => {
      node.classList.toggle("rs-busiest", !top.all && top.ranks.includes(rank));
      node.classList.toggle("rs-followed", followed === rank);
      const share = this.most ? run.sent[rank] / this.most : 0;
      const bar = this.nodes.sent[rank];
      bar.setAttribute(layout.dense ? "height" : "width", String(fixed(share * Number(bar.getAttribute("data-full")))));
      if (this.nodes.amounts.length) this.nodes.amounts[rank].textContent = this.#amounts(rank);
    });
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
    this.layers.packets.innerHTML = flights.map(({ part }) => packet(layout, part)).join("");
    this.flying = flights.map(({ part, arrow }, i) => {
      const start = middle(layout.cell(run.slot(part.srcBuffer, part.src, part.chunk)));
      const end = middle(layout.cell(run.slot(part.dstBuffer, part.dst, part.dstChunk)));
      return { node: this.layers.packets.children[i], way: flightOf(layout, arrow, start, end) };
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

  /** What a rank has sent and received, as long as there is room. */
  #amounts(rank) {
    const [sent, received] = [this.run.sent, this.run.received].map((given) => amount(this.schedule, given[rank]));
    const room = this.layout.cards[rank].w / this.layout.scale;
    if (room >= 200) return `sent ${sent} · received ${received}`;
    return room >= 130 ? `↑ ${sent}  ↓ ${received}` : `↑ ${sent}`;
  }

  /** One segment per contributor; the whole cell where there is no room for text. */
  #bar(slot, { contributors }) {
    const { layout, schedule, type, view } = this;
    const { x, y, w, h } = layout.cell(slot);
    const wide = !type.room || view === "contributors";
    const height = wide && layout.dense ? h : wide && h > 30 ? h * 0.24 : barHeight(h);
    const inset = layout.dense ? 0 : h < 24 ? 1.5 : 3;
    const unit = (w - 2 * inset) / schedule.ranks;
    const slit = unit > 5 ? 1.5 : 0;
    const segments = stretches(contributors, slit === 0).map(([from, to]) => {
      const length = fixed((to - from) * unit - slit);
      return `M${[x + inset + from * unit, y + h - height - inset].map(fixed)}h${length}v${fixed(height)}h${-length}z`;
    });
    return segments.join("");
  }
}

/** What the rank that sends most will have sent in the end: the full length of the bars. */
function mostSent(schedule) {
  const sent = new Float64Array(schedule.ranks);
  const counted = range(schedule.steps).filter((k) => !schedule.effects[k]);
  for (const k of counted) for (const { src, amount } of messagesOf(schedule, k)) sent[src] += amount;
  return Math.max(...sent);
}

/** Ranks as [from, to): consecutive ones together if `joined`, else one by one. */
function stretches(ranks, joined) {
  const found = [];
  for (const rank of ranks) {
    const last = found[found.length - 1];
    if (joined && last?.[1] === rank) last[1]++;
    else found.push([rank, rank + 1]);
  }
  return found;
}

function middle({ x, y, w, h }) {
  return { x: x + w / 2, y: y + h / 2, w, h };
}
