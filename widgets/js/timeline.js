/**
 * Timeline: the measured calls of every rank over seconds, with zoom and a keyboard that walks from call to call.
 *
 * Per rank: calls under way above (overlapping ones in lanes), the time they blocked the rank solid below, on a faint band
 * that is the rank's own work. Bars of one colour are one path, so that thousands of calls stay light.
 *
 * A chosen call is framed on every rank that took part in it, with a line where the last of them came. Where ranks were
 * on several machines a line divides these, and where the last rank came is as wide as their clocks may be wrong.
 *
 * Left out: the arithmetic and the sentences (spans.js).
 */

import { behindQuestion } from "./asking.js";
import { axis, Bars, borders, latencyOf, listOf, SLIM, WALKS } from "./calls.js";
import { accuracy, compare, describe, matchesOf, meeting, overview, spread, stayOf, totals, wrongBy } from "./spans.js";
import { guarded } from "./errors.js";
import { greet } from "./greet.js";
import { Frame } from "./frame.js";
import { fixed, hue } from "./svg.js";
import { plural, ranksOf, seconds } from "./words.js";

const HAIR = 1.5; // pixels: a gap in a bar that would say nothing
const ZOOM = `<span class="rs-zoom"><button type="button" data-key="-" aria-label="zoom out">−</button>
  <button type="button" data-key="+" aria-label="zoom in">+</button>
  <button type="button" data-key="0">all</button></span>`;
const LABEL = 92; // pixels for the names of the ranks, in a notebook
const AXIS = 24;
const PROJECTED = 1.5; // times as large are words on a projector
const CLOSEST = 1e-6; // seconds that a view shows at least
const NEAR = 8; // pixels beside a call that still hit it
const NAME = 14; // pixels of the letters on a bar, and TALL of a row with such bars
const TALL = 110;

/** @typedef {import("./spans.js").Call} Call */

class TimelineView {
  /** @type {number} how large words are: 1 in a notebook */ words;
  /** @type {number} pixels for the names of the ranks */ label;
  /** @type {number} pixels for the seconds below */ axis;
  /** @type {number} pixels of a rank */ row;
  /** @type {number} pixels of a second */ scale;
  /** @type {string[]} what the bars with room for it are called, in the order in which they are drawn */ names;

  constructor({ el, model, signal }) {
    this.model = model;
    /** @type {Call[]} */
    this.calls = model.get("calls").map((call, number) => ({ ...call, ...stayOf(call), number }));
    this.ranks = Array.from({ length: model.get("ranks") }, (_, rank) => this.calls.filter((c) => c.rank === rank));
    this.lanes = this.ranks.map((calls) => spread(calls));
    /** @type {Map<number, Call[]>} by match: the same call on all ranks, in their order */
    this.together = matchesOf(this.ranks);
    /** @type {import("./spans.js").Clock[]} */
    this.clocks = model.get("clocks");
    this.wrong = wrongBy(this.clocks);
    this.ops = [...new Set(this.calls.map(({ op }) => op))];
    this.end = Math.max(...this.calls.map(({ until, blocked }) => Math.max(until, ...blocked.map((span) => span[1]))), CLOSEST);
    this.named = this.calls.some(({ part }) => part);
    /** @type {[number, number]} */
    this.view = [0, this.end];
    const network = model.get("network");
    const size = `${ranksOf(this.ranks.length)}, ${plural(this.calls.length, "call")}, ${seconds(this.end)}${network && ` · on ${network}`}${accuracy(this.clocks)}`;
    const reacts = { press: (key) => this.#press(key), resized: () => this.#draw() };
    this.frame = new Frame(el, { name: "rs-timeline", title: model.get("headline"), size, picks: ZOOM, keys: WALKS }, reacts, signal);
    this.#build();
    model.on("change:chosen", () => this.#choose());
    const resized = new ResizeObserver(() => {
      this.#draw();
      greet(model, this.frame.root, () => {});
    });
    resized.observe(this.picture);
    signal.addEventListener("abort", () => resized.disconnect());
    this.#choose();
  }

  #build() {
    const { body } = this.frame;
    const ops = this.ops.map((_, i) => `<span class="${hue(i)}"><i class="rs-under"></i><b></b></span>`);
    body.innerHTML = `<div class="rs-legend">${ops.join("")}<span><i class="rs-hold"></i>blocked in a call</span>
      <span class="rs-perhaps" hidden><i class="rs-unsure"></i>own work, or a wait inside torch</span>
      <span class="rs-parts" hidden><i class="rs-latency"></i>latency, before the bytes</span>
      <span><i class="rs-own"></i>the rank's own work</span>
      <span class="rs-met" hidden><i class="rs-awaited"></i>waits for the last rank of the chosen call</span></div>
      <div class="rs-times" tabindex="0" role="group" aria-label="calls of every rank over time; arrow keys walk them"></div>
      <div class="rs-caption" role="status" aria-live="polite"><div class="rs-what"></div><div class="rs-meets"></div></div><pre class="rs-code" hidden></pre>
      <p class="rs-muted rs-cut" hidden></p><div class="rs-hidden"></div>`;
    this.frame.find(".rs-hidden").append(...this.ranks.map(listOf));
    body.querySelectorAll(".rs-legend b").forEach((node, i) => (node.textContent = this.ops[i]));
    this.frame.find(".rs-perhaps").hidden = !this.calls.some(({ unsure }) => unsure.length);
    this.frame.find(".rs-parts").hidden = !this.calls.some(({ latency }) => latency);
    this.picture = this.frame.find(".rs-times");
    this.what = this.frame.find(".rs-what");
    this.meets = this.frame.find(".rs-meets");
    this.code = this.frame.find(".rs-code");
    const cut = this.frame.find(".rs-cut");
    cut.hidden = !this.model.get("cut");
    cut.textContent = `The first ${this.calls.length} calls; ${plural(this.model.get("cut"), "later call")} not drawn.`;
    this.picture.addEventListener("pointerdown", (event) => this.#hit(event));
    for (const button of /** @type {NodeListOf<HTMLElement>} */ (this.frame.root.querySelectorAll("[data-key]"))) {
      button.addEventListener("click", () => this.#press(button.dataset.key));
    }
  }

  /** @returns {Call | undefined} */
  get chosen() {
    return this.calls[this.model.get("chosen")];
  }

  /** The chosen call on every rank that took part in it, as far as it is drawn; none if no call is chosen. */
  get sides() {
    const { chosen } = this;
    return chosen ? (this.together.get(chosen.match ?? -1) ?? [chosen]) : [];
  }

  #set(/** @type {Call | undefined} */ call) {
    if (!call) return;
    this.model.set("chosen", call.number);
    this.model.save_changes();
  }

  /** @returns {boolean} whether the key means something here */
  #press(key) {
    const { chosen, sides } = this;
    const mine = chosen ? this.ranks[chosen.rank] : this.calls;
    const at = chosen ? mine.indexOf(chosen) : -1;
    if (key === "ArrowRight") this.#set(mine[at + 1]);
    else if (key === "ArrowLeft") this.#set(mine[Math.max(at, 1) - 1]);
    else if (key === "Home") this.#set(mine[0]);
    else if (key === "End") this.#set(mine[mine.length - 1]);
    else if (key === "ArrowUp") this.#toRank(-1);
    else if (key === "ArrowDown") this.#toRank(1);
    else if (key === "Enter") this.#set(sides[(sides.findIndex((side) => side === chosen) + 1) % sides.length]);
    else if (key === "+" || key === "=") this.#zoom(0.5);
    else if (key === "-" || key === "−") this.#zoom(2);
    else if (key === "[" || key === "]") this.#move((key === "]" ? 0.5 : -0.5) * (this.view[1] - this.view[0]));
    else if (key === "0") this.#show(0, this.end);
    else return false;
    return true;
  }

  #toRank(/** @type {number} */ way) {
    const { chosen } = this;
    if (!chosen) return this.#set(this.calls[0]);
    let rank = chosen.rank + way;
    while (this.ranks[rank] && !this.ranks[rank].length) rank += way;
    const away = (call) => Math.abs(call.from - chosen.from);
    const same = this.sides.find((side) => side.rank === rank);
    return this.#set(same ?? this.ranks[rank]?.reduce((best, call) => (away(call) < away(best) ? call : best)));
  }

  #zoom(/** @type {number} */ times) {
    const [from, until] = this.view;
    const { chosen } = this;
    const seen = chosen && chosen.until >= from && chosen.from <= until;
    const middle = seen ? (Math.max(chosen.from, from) + Math.min(chosen.until, until)) / 2 : (from + until) / 2;
    const width = Math.min(Math.max((until - from) * times, CLOSEST), this.end);
    this.#show(middle - width / 2, middle + width / 2);
  }

  #move(/** @type {number} */ by) {
    this.#show(this.view[0] + by, this.view[1] + by);
  }

  /** Shows the time between two moments, as far as it is part of the run. */
  #show(from, until) {
    const width = Math.min(until - from, this.end);
    const begin = Math.min(Math.max(from, 0), this.end - width);
    this.view = [begin, begin + width];
    this.#draw();
  }

  #choose() {
    const { chosen, sides, view } = this;
    this.what.textContent = chosen ? describe(chosen) : overview(this.ranks, this.end);
    this.meets.textContent = chosen ? compare(sides, this.wrong) : "";
    this.code.hidden = !chosen?.code;
    this.code.textContent = chosen ? `${chosen.line}  ${chosen.code}` : "";
    if (chosen && (chosen.from < view[0] || chosen.from > view[1])) {
      const half = (view[1] - view[0]) / 2;
      this.#show(chosen.from - half, chosen.from + half);
    } else this.#draw();
  }

  #draw() {
    const width = this.picture.clientWidth;
    if (!width) return;
    const { on } = this.frame.projector;
    this.words = on ? PROJECTED : 1;
    this.label = LABEL * this.words;
    this.axis = AXIS * this.words;
    const [all, most] = on ? [this.frame.root.clientHeight * 0.5, 150] : [420, this.named ? TALL : 64];
    this.row = Math.min(Math.max(all / Math.max(this.ranks.length, 1), 26), most);
    this.scale = (width - this.label - 8) / (this.view[1] - this.view[0]);
    const height = this.row * this.ranks.length + this.axis;
    const meets = this.sides.length > 1 ? meeting(this.sides, this.wrong) : undefined;
    this.frame.find(".rs-met").hidden = !meets?.awaited.some((spans) => spans.length);
    /** @type {string[]} */
    this.names = [];
    const rows = this.ranks.map((calls, rank) => this.#rowOf(calls, rank, meets?.awaited));
    const line = meets ? this.#lineAt(meets.lasts) : "";
    this.picture.innerHTML = `<svg width="${width}" height="${height}" aria-hidden="true">${axis(this.view, (time) => this.#x(time), { width, height, left: this.label, below: this.axis, scale: this.words })}${rows.join("")}${borders(this.ranks.length, this.wrong, this.row, width)}${line}</svg>`;
    this.picture.querySelectorAll(".rs-name").forEach((node, i) => (node.textContent = this.names[i]));
  }

  /** When the last rank came to the chosen call, from the first rank to the last that took part; a band, as far as the
   * clocks leave it open. */
  #lineAt(/** @type {Call[]} */ lasts) {
    const { sides } = this;
    const error = Math.max(...lasts.flatMap((last) => sides.map(({ rank }) => this.wrong(last.rank, rank))));
    const times = lasts.map(({ from }) => from);
    const [from, until] = [Math.min(...times) - error, Math.max(...times) + error];
    if (until < this.view[0] || from > this.view[1]) return "";
    const [top, bottom] = [sides[0].rank * this.row, (sides[sides.length - 1].rank + 1) * this.row].map(fixed);
    const [x, end] = [Math.max(from, this.view[0]), Math.min(until, this.view[1])].map((time) => fixed(this.#x(time)));
    const line = `M${fixed(this.#x(times[0]))} ${top}V${bottom}`;
    return error ? `<path class="rs-open" d="M${x} ${top}H${end}V${bottom}H${x}z"/>` : `<path class="rs-came" d="${line}"/>`;
  }

  #x(/** @type {number} */ time) {
    return this.label + (time - this.view[0]) * this.scale;
  }

  /** @param {Call[]} calls @param {number} rank @param {import("./spans.js").Span[][]} awaited of every side of the chosen call */
  #rowOf(calls, rank, awaited = []) {
    const top = rank * this.row + 4;
    const solid = Math.max((this.row - 10) * (this.named ? 0.25 : 0.36), 6);
    const lane = (this.row - 10 - solid) / this.lanes[rank];
    const band = top + this.row - 10 - solid;
    const flights = new Map();
    const names = [];
    const [holds, perhaps, latencies] = [new Bars(), new Bars(), new Bars()];
    for (const call of calls) {
      const name = hue(this.ops.indexOf(call.op));
      if (!flights.has(name + call.lane)) flights.set(name + call.lane, [name, new Bars()]);
      this.#bar(flights.get(name + call.lane)[1], [call.from, call.until], top + call.lane * lane, lane - 1);
      if (call.part) names.push(this.#nameOf(call, top + call.lane * lane, lane - 1));
      const latency = latencyOf(call);
      if (latency) this.#bar(latencies, latency, top + call.lane * lane, lane - 1);
      const [calling, waiting] = call.blocked;
      const one = waiting && (waiting[0] - calling[1]) * this.scale < HAIR; // of a call and its wait at once
      for (const span of one ? [/** @type {import("./spans.js").Span} */ ([calling[0], waiting[1]])] : call.blocked) this.#bar(holds, span, band, solid);
      for (const span of call.unsure) this.#bar(perhaps, span, band, solid);
    }
    const { chosen, sides } = this;
    const [frame, late] = [new Bars(), new Bars()];
    const side = sides.findIndex((call) => call.rank === rank);
    if (side >= 0) {
      const { from, until, lane: at, blocked } = sides[side];
      this.#bar(frame, [from, until], top + at * lane, lane - 1);
      for (const span of blocked) this.#bar(frame, span, band, solid);
      for (const span of awaited[side] ?? []) this.#bar(late, span, band + solid * 0.3, solid * 0.4);
    }
    const share = Math.round((100 * totals(calls).blocked) / this.end);
    const own = this.#x(this.view[0]);
    const paths = [...flights.values()].map(([name, bars]) => `<path class="rs-under ${name}" d="${bars.path}"/>`);
    const small = this.row > 40 * this.words ? `<text class="rs-share" x="0" y="${top + 30 * this.words}">blocked ${share} %</text>` : "";
    return `<text class="rs-who" x="0" y="${top + 14 * this.words}">rank ${rank}</text>${small}
      <path class="rs-own" d="M${own} ${fixed(band)}H${fixed(this.#x(this.view[1]))}v${fixed(solid)}H${own}z"/>
      ${paths.join("")}${names.join("")}<path class="rs-latency" d="${latencies.path}"/><path class="rs-unsure" d="${perhaps.path}"/><path class="rs-hold" d="${holds.path}"/>
      <path class="rs-awaited" d="${late.path}"/><path class="${chosen?.rank === rank ? "rs-chosen" : "rs-same"}" d="${frame.path}"/>`;
  }

  /** What the bar of a call at y is called, where there is room for it. */
  #nameOf(/** @type {Call} */ { part, from, until }, y, h) {
    const [x, end] = [from, until].map((time) => this.#x(Math.min(Math.max(time, this.view[0]), this.view[1])));
    const size = NAME * (this.words > 1 ? 18 / NAME : 1); // on a wall no word is smaller
    if (h < size + 1 || end - x < part.length * 0.62 * size + 8) return "";
    this.names.push(part);
    return `<text class="rs-name" x="${fixed(x + 4)}" y="${fixed(y + h / 2 + 0.36 * size)}"></text>`;
  }

  #bar(/** @type {Bars} */ bars, [from, until], y, h) {
    if (until < this.view[0] || from > this.view[1]) return;
    const x = this.#x(Math.max(from, this.view[0]));
    bars.add(x, Math.max(this.#x(Math.min(until, this.view[1])) - x, SLIM), y, h);
  }

  #hit(/** @type {PointerEvent} */ event) {
    const box = this.picture.getBoundingClientRect();
    const times = box.width / this.picture.offsetWidth; // a projector magnifies
    const rank = Math.floor((event.clientY - box.top) / times / this.row);
    const time = this.view[0] + ((event.clientX - box.left) / times - this.label) / this.scale;
    const off = (call) => Math.min(...[[call.from, call.until], ...call.blocked].map(([a, b]) => Math.max(a - time, time - b, 0)));
    const near = (this.ranks[rank] ?? []).filter((call) => off(call) * this.scale <= NEAR);
    near.sort((a, b) => off(a) - off(b) || a.until - a.from - (b.until - b.from));
    this.#set(near[0]);
  }
}

export default () => ({
  render({ model, el, signal }) {
    return guarded(el, () =>
      behindQuestion({ model, el, signal }, (at) => void new TimelineView({ el: at, model, signal })),
    );
  },
});
