/**
 * TopologyMap: the links of a machine room, as thick as what a schedule has sent over them up to a step.
 *
 * Widths are to one scale for all schedules of the map and all steps, so that what looks thinner is less. Python has
 * worked out the bytes and the busy seconds of every link for each kind of step (steps that look alike to the network
 * are one kind). Left out: their carriedIn (loads.js), and where things stand (wiring.js).
 */

import { behindQuestion } from "./asking.js";
import { guarded } from "./errors.js";
import { Frame } from "./frame.js";
import { bottleneck, busiestLinks, carriedIn, Loads } from "./loads.js";
import { Playback } from "./playback.js";
import { reserve } from "./reserve.js";
import { range } from "./schedule.js";
import { fixed, rect, text } from "./svg.js";
import { LOOKS, MOVES, Transport } from "./transport.js";
import { wayOf, wire } from "./wiring.js";
import { bytes, seconds } from "./words.js";

/** @typedef {import("./loads.js").Run} Run @typedef {import("./loads.js").Use} Use */

/** @type {[string, string][]} */
const LINKS = [["↑ ↓", "the next busier or less busy link"], ["v", "all steps so far, or this step alone"], ["s", "the next schedule"]];
const SPANS = ["all so far", "this step"];
const FEW = 16; // links that are busiest and have their amounts on them
const THINNEST = 1.5; // pixels of a wire that carries anything

class MapView {
  /** @type {Frame} */ frame;
  /** @type {Transport} */ transport;
  /** @type {HTMLElement} */ picture;
  /** @type {Record<string, HTMLElement>} */ texts;
  /** @type {{run: HTMLSelectElement, span: HTMLSelectElement}} */ picks;
  /** @type {HTMLElement[][]} */ rows;
  /** @type {any[]} by link */ nodes;
  /** @type {Map<number, string>} an arrow per link */ ways;
  /** @type {Element} */ carried;
  /** @type {import("./wiring.js").Wiring} */ wiring;
  /** @type {import("./wiring.js").Space} */ space;
  /** @type {Use} what is shown */ use;
  span = SPANS[0];
  chosen = -1; // a link

  /** @param {{model: any, el: HTMLElement, playback: Playback, signal: AbortSignal}} given */
  constructor({ model, el, playback, signal }) {
    this.model = model;
    this.playback = playback;
    /** @type {import("./wiring.js").Room} */
    this.room = model.get("room");
    /** @type {Run[]} */
    this.runs = model.get("runs");
    this.links = this.room.links.length;
    this.loads = new Loads(this.runs, model.get("data"), this.links);
    this.#build(el, signal);
    playback.listen(() => this.#show(), signal);
    const change = () => this.#change();
    model.on("change:shown", change);
    signal.addEventListener("abort", () => model.off("change:shown", change));
    playback.attend(this, this.frame.root, [this.picture], () => this.#draw(), signal);
    this.#draw();
    this.#change();
  }

  #build(el, signal) {
    const { room, runs } = this;
    const option = (words) => `<option>${words}</option>`;
    const titles = runs.map((run) => option(run.title)).join("");
    const picks = `<label class="rs-pick" ${runs.length > 1 ? "" : "hidden"}><span>schedule</span>
        <select class="rs-run">${titles}</select></label>
      <label class="rs-pick"><span>traffic</span>
        <select class="rs-span">${SPANS.map(option).join("")}</select></label>`;
    const reacts = { press: (key) => this.#press(key), resized: () => this.#draw(), blanked: () => this.playback.pause() };
    this.frame = new Frame(el, { name: "rs-map", title: this.run.title, size: room.title, picks, keys: [...MOVES, ...LINKS, ...LOOKS] }, reacts, signal);
    this.frame.body.innerHTML = `<div class="rs-stage"></div>
      <div class="rs-caption" role="status" aria-live="polite">
        <div class="rs-told"><b class="rs-where"></b> <span class="rs-sentence"></span></div>
        <div class="rs-detail"></div></div><div class="rs-controls"></div><div class="rs-counters"></div>
      <div class="rs-hidden"><table><caption>What every link has carried</caption>
        <thead><tr><th scope="col">link</th><th scope="col">bytes</th><th scope="col">busy for</th></tr></thead>
        <tbody>${room.links.map((name) => `<tr><th scope="row">${name}</th><td></td><td></td></tr>`).join("")}</tbody>
      </table></div>`;
    const find = (name) => this.frame.find(`.rs-${name}`);
    this.picture = find("stage");
    const texts = ["told", "where", "sentence", "detail", "counters"];
    this.texts = Object.fromEntries(texts.map((name) => [name, find(name)]));
    const rows = [...this.frame.root.querySelectorAll("tbody tr")];
    this.rows = rows.map((row) => [...row.querySelectorAll("td")]);
    this.picks = { run: find("run"), span: find("span") };
    this.picks.run.addEventListener("change", () => this.#take(this.picks.run.selectedIndex));
    this.picks.span.addEventListener("change", () => this.#look(this.picks.span.value));
    this.picture.addEventListener("pointerover", (event) => {
      const link = /** @type {Element} */ (event.target).closest("[data-link]")?.getAttribute("data-link");
      if (link) this.#choose(Number(link));
    });
    this.picture.addEventListener("pointerleave", () => this.#choose(-1));
  }

  get run() {
    return this.runs[this.model.get("shown")];
  }

  /** Another schedule, with all its steps. */
  #take(/** @type {number} */ index) {
    this.model.set("shown", index);
    this.playback.go(this.run.order.length);
  }

  /** Another schedule is on the map: it has a scrubber of its own. */
  #change() {
    const { run, playback } = this;
    this.picks.run.selectedIndex = this.model.get("shown");
    this.frame.entitle(run.title + bottleneck(this.loads.use(this.model.get("shown"), 0, run.order.length)));
    playback.steps = run.order.length;
    this.transport = new Transport({ phases: run.phases, steps: run.order.length }, playback);
    const controls = this.frame.find(".rs-controls");
    const focused = controls.contains(document.activeElement);
    controls.replaceChildren(this.transport.node);
    if (focused) this.transport.scrubber.focus();
    if (this.space) this.#hold();
    this.#show();
  }

  #look(span) {
    this.span = span;
    this.picks.span.value = span;
    this.#show();
  }

  #press(key) {
    if (key === "v") this.#look(SPANS[(SPANS.indexOf(this.span) + 1) % SPANS.length]);
    else if (key === "s") this.#take((this.model.get("shown") + 1) % this.runs.length);
    else if (key === "ArrowUp" || key === "ArrowDown") this.#walk(key === "ArrowDown" ? 1 : -1);
    else return this.transport.press(key);
    return true;
  }

  /** From the busiest link to the least busy one, and back. */
  #walk(way) {
    const { seconds: busy } = this.use;
    const order = range(this.links).filter((link) => busy[link]).sort((a, b) => busy[b] - busy[a] || a - b);
    this.#choose(order[order.indexOf(this.chosen) + way] ?? -1);
  }

  #choose(link) {
    this.chosen = link;
    for (const [i, node] of this.nodes.entries()) node.classList.toggle("rs-chosen", i === link);
    this.#mark();
    this.texts.detail.textContent = link < 0 ? this.#busiest() : `${this.room.links[link]}: ${this.#amount(link)}`;
  }

  #amount(link) {
    return `${bytes(this.use.bytes[link])}, busy for ${seconds(this.use.seconds[link])}`;
  }

  #draw() {
    const { on } = this.frame.projector;
    const width = Math.floor(this.picture.clientWidth);
    const space = { width, tall: on ? this.picture.clientHeight : 0.5 * width, scale: on ? 1.5 : 1 };
    if (!width || JSON.stringify(space) === JSON.stringify(this.space)) return;
    this.space = space;
    this.#hold();
    this.wiring = wire(this.room, space);
    const { height, parts, lines } = this.wiring;
    const boxes = parts.map((part) => {
      const size = Math.min(13 * space.scale, (part.w - 2) / part.words.length / 0.6);
      const place = `x="${fixed(part.x + part.w / 2)}" y="${fixed(part.y + part.h / 2)}" font-size="${fixed(size)}"`;
      return `${rect(`rs-${part.kind}`, part)}<text class="rs-words" ${place}>${part.words}</text>`;
    });
    const wires = lines.map(({ link, x1, y1, x2, y2 }) => {
      const path = (name) => `<path class="rs-${name}" d="M${[x1, y1].map(fixed)}L${[x2, y2].map(fixed)}"/>`;
      return `<g class="rs-link" data-link="${link}">${path("hit")}${path("wire")}${path("core")}</g>`;
    });
    this.picture.innerHTML = `<svg class="rs-wiring" aria-hidden="true" width="${width}" height="${fixed(height)}"
      style="--rs-scale:${space.scale}">${boxes.join("")}${wires.join("")}<g></g></svg>`;
    this.nodes = [];
    for (const node of this.picture.querySelectorAll(".rs-link")) {
      this.nodes[Number(node.getAttribute("data-link"))] = node;
    }
    this.ways = new Map(lines.map((line) => [line.link, wayOf(line)]));
    this.carried = /** @type {Element} */ (this.picture.querySelector("svg > g:last-child"));
    if (this.transport) this.#show();
  }

  /** Keeps room for the longest sentence, so that the controls hold still. */
  #hold() {
    if (this.frame.projector.on) return void (this.texts.told.style.minHeight = "");
    const { captions } = this.run;
    return reserve(this.texts.told, captions.map((words, k) => [`Step ${k + 1} of ${captions.length}.`, words]));
  }

  /** Everything that depends on the step. */
  #show() {
    if (!this.space || this.playback.steps !== this.run.order.length) return;
    const { run, playback, room, texts } = this;
    const { step, steps } = playback;
    this.use = this.loads.use(this.model.get("shown"), this.from, step);
    const where = step ? `Step ${step} of ${steps}.` : `Before step 1 of ${steps}.`;
    const whole = step === steps && steps > 1 && this.span === SPANS[0];
    const words = whole ? "All steps: the thicker a wire, the more it has carried." : step ? run.captions[step - 1] : "Nothing has been sent yet.";
    texts.where.textContent = where;
    texts.sentence.textContent = words;
    this.transport.update(where, words);
    this.frame.root.dataset.step = String(step);
    this.#paint();
    this.rows.forEach(([carried, busy], link) => {
      carried.textContent = bytes(this.use.bytes[link]);
      busy.textContent = seconds(this.use.seconds[link]);
    });
    texts.counters.innerHTML = this.#counters()
      .map(([name, value]) => `<span><span class="rs-muted">${name}</span> <b>${value}</b></span>`)
      .join("");
    this.#choose(this.chosen < room.links.length ? this.chosen : -1);
  }

  #paint() {
    const { use, most, wiring } = this;
    const top = busiestLinks(use);
    this.nodes.forEach((node, link) => {
      const share = use.bytes[link] / most;
      const width = share ? THINNEST + Math.max(0, wiring.thickest - THINNEST) * share : 0;
      node.classList.toggle("rs-busiest", top.includes(link));
      node.classList.toggle("rs-idle", !width);
      node.children[1].style.strokeWidth = width ? `${fixed(width)}` : "";
      node.children[2].style.strokeWidth = `${fixed(width / 4)}`;
    });
  }

  /** The amounts of the busiest links, if these are few, and of the chosen one. */
  #mark() {
    const busiest = busiestLinks(this.use);
    const marked = new Set([...(busiest.length > FEW ? [] : busiest), this.chosen]);
    this.carried.innerHTML = this.wiring.labels.map((label) => this.#label(label, marked, busiest)).join("");
    this.#squeeze();
  }

  /** The amounts of a link or a pair of them that are marked, where there is room. */
  #label({ links, x, y, wide }, marked, top) {
    const { scale } = this.space;
    if (wide < 44 * scale) return "";
    return links.map((link, i) => {
      const words = marked.has(link) && this.use.bytes[link] ? `${this.ways.get(link)}${bytes(this.use.bytes[link])}` : "";
      const name = `rs-carried ${top.includes(link) ? "rs-busiest" : ""}`;
      return text(name, x, y + (4 + 14 * (i - (links.length - 1) / 2)) * scale, words, `data-wide="${fixed(wide - 6)}"`);
    }).join("");
  }

  /** Amounts that would touch their neighbours' become narrower letters, not fewer. */
  #squeeze() {
    const labels = /** @type {SVGTextElement[]} */ ([...this.carried.children]);
    const long = labels.map((label) => label.getComputedTextLength()); // all before any is changed: one layout
    labels.forEach((label, i) => {
      const { wide = "" } = label.dataset;
      if (long[i] <= Number(wide)) return;
      label.setAttribute("textLength", wide);
      label.setAttribute("lengthAdjust", "spacingAndGlyphs");
    });
  }

  /** The bytes that are drawn thickest. */
  get most() {
    const { all, one } = this.loads.largest;
    return this.span === SPANS[0] ? all : one;
  }

  /** The first step that counts, from 0. */
  get from() {
    return this.span === SPANS[0] ? 0 : Math.max(this.playback.step - 1, 0);
  }

  #busiest() {
    const top = busiestLinks(this.use);
    if (!top.length) return "";
    const more = top.length > 1 ? `, and ${top.length - 1} more like it` : "";
    return `Busiest link: ${this.room.links[top[0]]}, ${this.#amount(top[0])}${more}.`;
  }

  /** @returns {[string, string][]} */
  #counters() {
    const { room, use, run, playback } = this;
    const time = run.seconds.slice(this.from, playback.step).reduce((sum, step) => sum + step, 0);
    const { step, steps } = playback;
    const several = step === steps ? `all ${steps} steps take` : `steps 1 to ${step} take`;
    const takes = steps < 2 || !step ? "takes" : step - this.from > 1 ? several : `step ${step} takes`;
    return [[takes, seconds(time)], ...carriedIn(use, room)];
  }
}

export default () => {
  /** @type {Playback} one for all views, made with the first */
  let playback;
  return {
    render({ model, el, signal }) {
      return guarded(el, () => {
        playback ??= new Playback(model, model.get("runs")[model.get("shown")].order.length);
        behindQuestion({ model, el, signal }, (at) => void new MapView({ model, el: at, playback, signal }));
      });
    },
  };
};
