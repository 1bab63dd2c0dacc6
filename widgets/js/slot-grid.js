/**
 * SlotGrid: the orders of a pipeline as grids, ranks by slots of time, one below the other on one clock.
 *
 * At the right of each rank are squares for the micro-batches it keeps, and their number: they pile up while it plays.
 * Below a rank that was recorded is a strip of when it was blocked. An order of one's own is typed below, one line for each rank.
 *
 * Left out: what an order comes to (slots.js).
 */

import { behindQuestion } from "./asking.js";
import { guarded } from "./errors.js";
import { Frame } from "./frame.js";
import { greet } from "./greet.js";
import { Playback } from "./playback.js";
import { nameOf, play } from "./slots.js";
import { fixed, rect, text } from "./svg.js";
import { LOOKS, MOVES, Transport } from "./transport.js";
import { plural, ranksOf, seconds } from "./words.js";

const LABEL = 58; // pixels for the names of the ranks
const HEAD = 24; // of an order's own line above its grid
const SQUARE = 9; // a micro-batch that is kept
const LANE = 18; // of the strip of what was recorded
const KINDS = /** @type {[string, string][]} */ ([
  ["F", "forward"], ["B", "backward"], ["I", "gradient of the input"], ["W", "gradient of the weights"],
  ["idle", "idle: the bubble"], ["kept", "a micro-batch kept in memory"],
]);
const PALER = "<span>paler: a rank's second stage</span>";
const RECORDED = "<span><i class='rs-waited'></i>recorded: blocked in a call</span>";

/** @typedef {{name: string, lines: string[], played: import("./slots.js").Played}} Shown */

const percent = (/** @type {number} */ share) => `${Math.round(100 * share)} %`;
const short = (/** @type {number} */ count) => Math.round(10 * count) / 10;
const slots = (/** @type {number} */ count) => plural(Math.round(10 * count) / 10, "slot");

/** "bubble 3 of 27 slots (11 %), 0 of 24 if repeated, keeps up to 7 micro-batches" */
function verdict(/** @type {import("./slots.js").Played} */ played) {
  if (played.error || played.stuck) return played.error || played.stuck;
  const { idle, length, period, ticks, micro, bubble } = played;
  const overlapped = period < length ? `${short(period / ticks - 3 * micro)} of ${short(period / ticks)} if repeated, ` : "";
  const kept = plural(Math.max(...keeps(played)), "micro-batch").replace(/hs$/, "hes");
  return `bubble ${short(idle)} of ${slots(length / ticks)} (${percent(bubble)}), ${overlapped}keeps up to ${kept}`;
}

/** Of how many micro-batches each rank keeps activations, at most. */
function keeps(/** @type {import("./slots.js").Played} */ { kept, ticks }) {
  return kept.map((now) => Math.max(...now) / ticks);
}

class GridView {
  /** @type {Shown[]} */ shown;
  /** @type {number} steps of a slot */ ticks;
  /** @type {number} of the longest order */ slots;
  /** @type {Transport} */ transport;
  /** @type {{ends: number[], kept: number[]}[]} of each row: when its actions end, and what is kept after each */ kept;
  /** @type {string[]} the verdicts */ lines;
  /** @type {SVGElement[]} with the time of their end */ cells;
  /** @type {SVGElement[]} for what is kept */ squares;

  /** @param {{model: any, el: HTMLElement, playback: Playback, signal: AbortSignal}} given */
  constructor({ model, el, playback, signal }) {
    this.model = model;
    this.playback = playback;
    /** @type {{name: string, lines: string[]}[]} */
    this.orders = model.get("orders");
    this.ranks = this.orders[0].lines.length;
    const reacts = { press: (key) => this.#press(key), resized: () => this.#draw(), blanked: () => playback.pause() };
    const picks = `<button type="button" class="rs-write" aria-expanded="false">your own order</button>`;
    const size = ranksOf(this.ranks);
    this.frame = new Frame(el, { name: "rs-slots", title: "", size, picks, keys: [...MOVES, ["e", "write your own order, or stop"], ...LOOKS] }, reacts, signal);
    this.frame.body.innerHTML = `<div class="rs-legend"></div><div class="rs-stage"></div>
      <div class="rs-caption" role="status" aria-live="polite"></div><div class="rs-controls"></div>
      <div class="rs-own-order" hidden><p>One line for each rank: <code>F1</code> forward, <code>B1</code> backward of micro-batch 1
        (or <code>1</code> and <code>-1</code>). <code>I1</code> and <code>W1</code> are the two halves of <code>B1</code>.</p>
        ${this.orders[0].lines.map((_, r) => `<label><span>rank ${r}</span><input type="text" spellcheck="false" autocomplete="off"></label>`).join("")}</div>`;
    this.picture = this.frame.find(".rs-stage");
    this.caption = this.frame.find(".rs-caption");
    /** @type {HTMLInputElement[]} */
    this.inputs = [.../** @type {any} */ (this.frame.root.querySelectorAll(".rs-own-order input"))];
    this.frame.find(".rs-own-order").addEventListener("input", () => this.#typed(this.inputs.map(({ value }) => value)));
    this.frame.find(".rs-write").addEventListener("click", () => this.#write());
    playback.listen(() => this.#show(), signal);
    const change = () => this.#change();
    model.on("change:typed", change);
    signal.addEventListener("abort", () => model.off("change:typed", change));
    playback.attend(this, this.frame.root, [this.picture], () => this.#draw(), signal, () => greet(model, this.frame.root, () => {}));
    this.#change();
  }

  /** Opens the lines to type in, filled with the last order there is, or closes them. */
  #write() {
    this.#typed(this.model.get("typed").length ? [] : this.orders[this.orders.length - 1].lines);
    if (this.model.get("typed").length) this.inputs[0].focus();
  }

  #typed(/** @type {string[]} */ lines) {
    this.model.set("typed", lines);
    this.playback.go(Infinity);
  }

  /** The orders, or the one that is typed, are others. */
  #change() {
    const typed = this.model.get("typed");
    const all = typed.length ? [...this.orders, { name: "Your order", lines: typed }] : this.orders;
    this.shown = all.map(({ name, lines }) => ({ name, lines, played: play(lines) }));
    this.ticks = Math.max(...this.shown.map(({ played }) => played.ticks));
    this.slots = Math.max(1, ...this.shown.map(({ played }) => played.length / played.ticks));
    const { playback } = this;
    playback.steps = Math.ceil(this.slots * this.ticks);
    if (this.model.get("step") > playback.steps) this.model.set("step", playback.steps);
    this.transport = new Transport({ phases: [["one step of training, slot by slot", playback.steps]], steps: playback.steps }, playback);
    this.frame.find(".rs-controls").replaceChildren(this.transport.node);
    this.frame.find(".rs-own-order").hidden = !typed.length;
    this.frame.find(".rs-write").setAttribute("aria-expanded", String(typed.length > 0));
    this.inputs.forEach((input, rank) => {
      if (input.value !== (typed[rank] ?? "")) input.value = typed[rank] ?? "";
    });
    this.frame.entitle(this.#headline());
    const halves = this.shown.some(({ played }) => keeps(played).some((most) => most % 1));
    const used = new Set(this.shown.flatMap(({ played }) => played.slots.map(({ action }) => action.kind)));
    this.frame.find(".rs-legend").innerHTML = KINDS.filter(([kind]) => kind.length > 1 || used.has(kind))
      .map(([kind, words]) => `<span><i class="rs-${kind}"></i>${words}${kind === "kept" && halves ? " (half: one of two stages)" : ""}</span>`).join("")
      + (this.shown.some(({ played }) => played.slots.some(({ action }) => action.stage >= this.ranks)) ? PALER : "")
      + (this.model.get("recorded").blocked ? RECORDED : "");
    this.#draw();
  }

  #headline() {
    const { all, best, worst } = this.#ends();
    if (!best) return "An order that comes to a standstill";
    const [one, other] = [best, worst].map(({ idle }) => percent(idle));
    if (all === 1) return `One training step by ${best.name}: each rank idles ${one} of the time`;
    const idles = best.idle === worst.idle ? `each rank idles ${one} of the time` : `${best.name} idles ${one}, ${worst.name} ${other}`;
    return `One step alone: ${idles}`;
  }

  /** How many orders there are; of those that come to an end which idles least and most, and which keeps least and most. */
  #ends() {
    const right = this.shown.filter(({ played }) => !played.error && !played.stuck);
    const ends = right.map(({ name, played }) => ({ name, idle: played.bubble, kept: Math.max(...keeps(played)) }));
    const [best, least] = ["idle", "kept"].map((of) => [...ends].sort((a, b) => a[of] - b[of])[0]);
    const [worst, most] = ["idle", "kept"].map((of) => [...ends].sort((a, b) => b[of] - a[of])[0]);
    return { all: this.shown.length, best, worst, least, most };
  }

  #press(key) {
    if (key === "e") this.#write();
    else return this.transport.press(key);
    return true;
  }

  #draw() {
    const width = Math.floor(this.picture.clientWidth);
    if (!width) return;
    const recorded = this.model.get("recorded");
    const scale = this.frame.projector.on ? 1.5 : 1;
    const most = Math.max(1, ...this.shown.flatMap(({ played }) => keeps(played).filter(Number.isFinite)));
    const label = LABEL * scale;
    const columns = width > 600 ? Math.min(Math.ceil(most), 8) : 0; // of squares; on a phone the number alone
    const side = (columns * (SQUARE + 2) + (columns ? 36 : 54)) * scale;
    const slot = (width - label - side) / this.slots;
    const strip = recorded.blocked ? LANE * scale : 0;
    const tall = this.frame.projector.on ? this.picture.clientHeight - (HEAD * scale + 8) * this.shown.length : 300;
    const room = tall - strip * this.ranks;
    const row = Math.max(Math.min(room / (this.ranks * this.shown.length), 34 * scale), 18);
    this.kept = [];
    this.lines = [];
    /** @type {string[]} */
    const heads = [];
    let top = 0;
    const grids = this.shown.map((one, index) => {
      const { played } = one;
      const y = top + HEAD * scale;
      const lane = index ? 0 : strip;
      top = y + this.ranks * (row + lane) + 8;
      this.lines.push(`${one.name}: ${verdict(played)}${lane ? this.#measured(recorded) : ""}`);
      heads.push(width > 600 || played.error || played.stuck ? this.lines[index] : `${one.name}: ${percent(played.bubble)} idle`);
      const tick = slot / played.ticks;
      const rows = one.lines.map((_, rank) => this.#row({ played, rank, tick, slot, label, row, y: y + rank * (row + lane), scale, columns, width }));
      const lanes = lane ? recorded.blocked.map((blocked, rank) => laneOf(blocked, recorded.ends[rank], recorded, { x: label, y: y + rank * (row + lane) + row, w: slot * (played.length / played.ticks), h: lane - 5 * scale })) : [];
      return `<g class="rs-order">${text("rs-order-name", 0, y - 7 * scale)}${rows.join("")}${lanes.join("")}</g>`;
    });
    this.picture.innerHTML = `<svg class="rs-grid" aria-hidden="true" width="${width}" height="${fixed(top)}" style="--rs-scale:${scale}">${grids.join("")}</svg>`;
    this.picture.querySelectorAll(".rs-order-name").forEach((node, i) => (node.textContent = heads[i]));
    this.cells = [.../** @type {any} */ (this.picture.querySelectorAll("[data-at]"))];
    this.squares = [.../** @type {any} */ (this.picture.querySelectorAll("[data-kept]"))];
    this.#show();
  }

  /** ". Recorded: idle 46 %" */
  #measured(/** @type {{seconds: number, idle: number}} */ { seconds: took, idle }) {
    return `; recorded: ${seconds(took)}, a rank idles ${percent(idle)}`;
  }

  #row({ played, rank, tick, slot, label, row, y, scale, columns, width }) {
    const mine = played.slots.filter((each) => each.rank === rank);
    const h = row - 2;
    const box = (a, b) => ({ x: label + a * tick + 0.5, y, w: (b - a) * tick - 1, h });
    const at = (/** @type {number} */ ticks) => `data-at="${ticks / played.ticks}"`;
    const gaps = [...mine, { start: played.length }].map(({ start }, i) => [i ? mine[i - 1].end : 0, start]);
    const idle = gaps.filter(([a, b]) => b > a).map(([a, b]) => rect("rs-idle", box(a, b), at(b)));
    const told = nameOf(1);
    const cells = mine.map(({ start, end: to, action }) => {
      const place = box(start, to);
      const words = place.w > 25 * scale ? told(action) : place.w > 7.5 * String(action.micro).length * scale ? action.micro : "";
      const later = action.stage >= this.ranks ? " rs-later" : "";
      return `<g ${at(to)}>${rect(`rs-${action.kind}${later}`, place)}${text("rs-in", place.x + place.w / 2, y + h / 2, words)}</g>`;
    });
    const kept = (played.kept[rank] ?? [0]).map((count) => count / played.ticks);
    const most = Math.max(...kept);
    this.kept.push({ ends: mine.map(({ end: to }) => to / played.ticks), kept });
    const [size, lines] = [SQUARE * scale, Math.ceil(most / Math.max(columns, 1))];
    const each = Math.min(size + 2, (h + 2) / lines);
    const first = width - (columns ? columns * (SQUARE + 2) + 30 : 50) * scale;
    const squares = Array.from({ length: columns && Math.ceil(most) }, (_, i) => {
      const place = { x: first + (i % columns) * (size + 2), y: y + (h - lines * each) / 2 + Math.floor(i / columns) * each, w: size * Math.min(1, most - i), h: Math.min(size, each - 1) };
      return rect("rs-kept", place, `data-kept="${i}" data-row="${this.kept.length - 1}"`);
    });
    const name = text("rs-rank-name", 0, y + h / 2, `rank ${rank}`);
    const count = text("rs-count", first + Math.min(Math.ceil(most), columns) * (size + 2) + 2 * scale, y + h / 2, most ? (columns ? most : `${most} ■`) : "");
    return name + idle.join("") + cells.join("") + squares.join("") + count;
  }

  /** Cells up to the step are solid, later ones faint; of the squares those that are kept now. At the end, the most. */
  #show() {
    if (!this.cells) return;
    const { step, steps } = this.playback;
    const now = step / this.ticks;
    const over = step === steps;
    for (const cell of this.cells) cell.classList.toggle("rs-ahead", Number(cell.dataset.at) > now + 1e-9);
    for (const square of this.squares) {
      const { ends, kept } = this.kept[Number(square.dataset.row)];
      const count = kept[ends.filter((end) => end <= now + 1e-9).length];
      square.classList.toggle("rs-ahead", !over && Number(square.dataset.kept) >= count);
    }
    const sentence = over ? this.#whole() : this.#sentence(now);
    this.caption.textContent = `${sentence}.`;
    this.transport.update(over ? "the whole step" : `slot ${Math.round(10 * now) / 10} of ${Math.round(10 * this.slots) / 10}`, sentence);
  }

  #whole() {
    if (this.shown.length > 1) {
      const { best, worst, least, most } = this.#ends();
      if (!best || (best.idle === worst.idle && least.kept === most.kept)) return "The work is the same; so are the bubble and what is kept";
      const keep = (/** @type {{kept: number}} */ { kept }) => `keeps ${short(kept)} micro-batches in memory`;
      if (best.idle === worst.idle) return `Same work: ${most.name} ${keep(most)}, ${least.name} ${short(least.kept)}`;
      return `Same work: ${best.name} idles least and ${keep(best)}${best.kept > least.kept ? `, ${least.name} ${short(least.kept)}` : ""}`;
    }
    const [{ played }] = this.shown;
    if (played.error || played.stuck) return played.error || played.stuck;
    const dark = this.model.get("recorded").blocked ? "; the strips show when it was blocked, as recorded" : "";
    return `Each rank works for ${slots(3 * played.micro)} and has nothing to do for ${Math.round(10 * played.idle) / 10}${dark}`;
  }

  /** What ranks do in the slot that ends now; of several orders how many ranks are idle. */
  #sentence(/** @type {number} */ now) {
    if (!now) return "Nothing is done yet";
    const does = ({ played }) =>
      this.orders[0].lines.map((_, rank) => played.slots.find((s) => s.rank === rank && s.start < now * played.ticks - 1e-9 && s.end >= now * played.ticks - 1e-9));
    const slot = `Slot ${Math.round(10 * now) / 10}`;
    if (this.shown.length > 1) {
      return `${slot}: ${this.shown.map((one) => `${one.name}: ${plural(does(one).filter((s) => !s).length, "rank")} idle`).join("; ")}`;
    }
    const [one] = this.shown;
    return `${slot}: ${does(one).map((s, rank) => `rank ${rank} ${s ? nameOf(one.played.ticks)(s.action) : "idle"}`).join(", ")}`;
  }
}

/** The recorded time of a rank: strong where it was blocked, from 0 until it was done. */
function laneOf(/** @type {[number, number][]} */ blocked, end, { seconds: took }, { x, y, w, h }) {
  const at = (/** @type {number} */ time) => fixed(x + (w * time) / took);
  const spans = blocked.map(([a, b]) => `M${at(a)} ${y}H${at(b)}v${h}H${at(a)}z`).join("");
  const name = text("rs-rank-name", 0, y + h / 2, "recorded");
  return `${name}<path class="rs-work" d="M${x} ${y}H${at(end)}v${h}H${x}z"/><path class="rs-waited" d="${spans}"/>`;
}

export default () => {
  /** @type {Playback} one for all views */
  let playback;
  return {
    render({ model, el, signal }) {
      return guarded(el, () => {
        playback ??= new Playback(model, Infinity);
        const showIn = (at) => void new GridView({ model, el: at, playback, signal });
        return model.get("question") ? behindQuestion({ model, el, signal }, showIn) : showIn(el);
      });
    },
  };
};
