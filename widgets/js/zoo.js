/**
 * Zoo: a card per collective with what every rank holds before and after, and a button per algorithm that opens it.
 *
 * What is open is the model's trait `opened`, so it comes back with the widget. The Player is the real one (lent.js),
 * on the zoo's step and playing. Left out: the contents of the tables, which Python has read from the schedules.
 */

import { guarded } from "./errors.js";
import { Frame } from "./frame.js";
import { LentModel, moduleOf } from "./lent.js";
import { range } from "./schedule.js";
import { tint } from "./svg.js";
import { ranksOf } from "./words.js";

/**
 * @typedef {{buffer: string, rows: [string, number, boolean][][]}} Table rows are chunks, columns ranks: symbol, kind
 *   as in Cell, and whether it is left over
 * @typedef {{collective: string, says: string, shown: string, algorithms: string[], before: Table, after: Table}} Card
 */

/** @type {[string, string][]} */
const MOVES = [
  ["← →", "one algorithm back or forward"],
  ["↑ ↓", "one collective back or forward; so do a clicker's Page Up, Page Down in projector mode, which shows one at a time"],
  ["Enter", "open the algorithm in a Player"],
  ["Esc", "back to all collectives; from there, the keyboard back to the notebook"],
  ["p", "projector mode; b blanks the screen, Esc leaves"],
  ["?", "this list"],
];

const KEY = "A column is a rank. Σ: the sum over all ranks (of a barrier: news of all). Dotted: left over, not part of the result.";

/** The Player of what is open, the same for all views of one zoo: they share its clock. */
class Opened {
  constructor(/** @type {any} */ model) {
    this.name = model.get("opened");
    this.model = new LentModel(model, scheduleOf(model));
    this.widget = this.#load(model.get("player"));
  }

  async #load(text) {
    return (await moduleOf(text))();
  }
}

class ZooView {
  /** @type {AbortController | null} */ closing = null;
  takesFocus = false;
  last = ""; // what was open before

  /** @param {{model: any, el: HTMLElement, openedOf: () => Opened, signal: AbortSignal}} given */
  constructor({ model, el, openedOf, signal }) {
    this.model = model;
    this.openedOf = openedOf;
    el.innerHTML = `<div></div><div class="ringside" hidden></div>`;
    const [gallery, room] = /** @type {any} */ (el.children);
    this.room = room;
    this.gallery = new Gallery(gallery, model, (name) => this.#open(name), signal);
    const follow = () => guarded(room, () => this.#show());
    model.on("change:opened", follow);
    signal.addEventListener("abort", () => {
      model.off("change:opened", follow);
      this.closing?.abort();
    });
    // Before the Player's own listener: Escape first leaves its projector mode, then the Player.
    const leave = (event) => event.key === "Escape" && !this.projected && this.#open("");
    room.addEventListener("keydown", leave, { capture: true, signal });
    follow();
  }

  /** The Player in projector mode, if it is. */
  get projected() {
    return this.room.querySelector(".rs-projected");
  }

  #open(/** @type {string} */ name) {
    this.model.set("playing", false);
    this.model.set("step", 0);
    this.takesFocus = true;
    this.model.set("opened", name);
    this.takesFocus = false;
    this.model.save_changes();
  }

  /** Shows what `opened` names: a Player, or all collectives. Who was in projector mode stays in it. */
  async #show() {
    const { gallery, room, takesFocus, last } = this;
    const { projector } = gallery.frame;
    const name = this.model.get("opened");
    const large = projector.on || this.projected;
    this.last = name;
    this.closing?.abort();
    if (projector.on) {
      await projector.toggle();
      await new Promise(requestAnimationFrame); // the browser tells of it once more before the next frame
    }
    gallery.node.hidden = Boolean(name);
    room.hidden = !name;
    if (!name) {
      room.replaceChildren();
      return takesFocus && gallery.focus(last);
    }
    this.closing = new AbortController();
    await this.#play(name, this.closing.signal);
    if (large) room.querySelector(".rs-project")?.click();
    return takesFocus && room.querySelector(".rs-scrub input")?.focus();
  }

  async #play(name, signal) {
    const { model, room } = this;
    const [collective, algorithm] = name.split(".");
    const { algorithms } = model.get("cards").find((card) => card.collective === collective);
    const options = algorithms.map((each) => `<option ${each === algorithm ? "selected" : ""}>${each}</option>`);
    room.innerHTML = `<div class="rs-way"><button type="button">← all collectives</button>
      <label class="rs-pick">${collective} by <select>${options.join("")}</select></label></div><div></div>`;
    const select = room.querySelector("select");
    room.querySelector("button").addEventListener("click", () => this.#open(""));
    select.addEventListener("change", () => this.#open(`${collective}.${select.value}`));
    const el = room.lastElementChild;
    const opened = this.openedOf();
    const widget = await opened.widget;
    if (!signal.aborted) await widget.render({ model: opened.model, el, signal });
  }
}

/** All collectives on one page. */
class Gallery {
  /** @param {HTMLElement} node @param {any} model @param {(name: string) => void} open @param {AbortSignal} signal */
  constructor(node, model, open, signal) {
    this.node = node;
    const reacts = { press: (key) => this.#press(key), resized: () => this.#here()?.scrollIntoView({ block: "nearest" }) };
    const given = { name: "rs-zoo", title: `${model.get("cards").length} ways for processes to exchange data: what each rank has, before and after`, size: ranksOf(model.get("ranks")), keys: MOVES };
    this.frame = new Frame(node, given, reacts, signal);
    this.frame.body.innerHTML = `<p class="rs-muted">${KEY}</p><div class="rs-cards" style="--ranks:${model.get("ranks")}">
      ${model.get("cards").map(card).join("")}</div>`;
    this.frame.body.querySelectorAll(".rs-says").forEach((says, i) => (says.textContent = model.get("cards")[i].says));
    /** @type {HTMLElement[]} */
    this.buttons = [...this.frame.body.querySelectorAll("button")];
    for (const button of this.buttons) button.addEventListener("click", () => open(button.dataset.name ?? ""));
    this.frame.body.addEventListener("focusin", (event) => this.#turnTo(event.target.closest("article")));
    this.#turnTo(this.frame.find("article"));
  }

  /** Projector mode shows one card: this. */
  #turnTo(/** @type {Element | null} */ card) {
    if (!card) return;
    this.#here()?.classList.remove("rs-here");
    card.classList.add("rs-here");
  }

  /** @returns {Element | null} */
  #here() {
    return this.frame.find("article.rs-here");
  }

  /** The keyboard goes on where it left. */
  focus(/** @type {string | undefined} */ name) {
    const button = this.buttons.find((each) => each.dataset.name === name);
    this.#turnTo(button?.closest("article") ?? null); // what is not shown takes no focus
    button?.focus();
  }

  #press(key) {
    const way = { ArrowRight: 1, PageDown: 1, ArrowLeft: -1, PageUp: -1, ArrowDown: 1, ArrowUp: -1 }[key];
    if (!way) return false;
    const { buttons, frame } = this;
    const { on } = frame.projector;
    const first = on ? buttons.findIndex((button) => button.closest("article") === this.#here()) : -1;
    const now = Math.max(first, buttons.findIndex((button) => button === document.activeElement));
    const article = (at) => buttons[at]?.closest("article");
    const starts = buttons.filter((_, i) => article(i) !== article(i - 1));
    const next = /^Arrow(Up|Down)/.test(key) || (on && /^Page/.test(key))
      ? starts[starts.findIndex((start) => start.closest("article") === article(now)) + way]
      : buttons[now + way];
    if (!next) return true;
    this.#turnTo(next.closest("article"));
    next.focus();
    next.closest("article")?.scrollIntoView({ block: "nearest" });
    return true;
  }
}

/** What a Player's model says about the schedule that is open. */
function scheduleOf(/** @type {any} */ model) {
  const { buffer, byteOffset } = model.get("data");
  let from = byteOffset;
  for (const [name, meta] of Object.entries(model.get("metas"))) {
    const length = 16 * meta.counts.reduce((sum, count) => sum + count, 0);
    if (name === model.get("opened")) return { meta, data: new DataView(buffer, from, length), question: null, fresh: "" };
    from += length;
  }
  throw new Error(`nothing here is called ${model.get("opened")}`);
}

/** Markup of a card. Its words are names and symbols of ours; the sentence is set as text afterwards. */
function card(/** @type {Card} */ { collective, shown, algorithms, before, after }) {
  const button = (name) =>
    `<button type="button" data-name="${collective}.${name}" aria-label="open ${collective} ${name}">${name}</button>`;
  const [left, right] = [table(before, "before"), table(after, `after ${shown}`)];
  return `<article aria-label="${collective}"><div><strong>${collective}</strong> <span class="rs-says"></span></div>
    <div class="rs-pair">${left}<span aria-hidden="true">→</span>${right}</div>
    <div class="rs-algorithms"><span class="rs-muted">play</span>${algorithms.map(button).join("")}</div></article>`;
}

function isTotal(/** @type {string} */ symbol, /** @type {number} */ ranks) {
  return symbol.split("+").length === ranks;
}

function table({ buffer, rows }, when) {
  const ranks = rows[0].length;
  const heads = range(ranks).map((rank) => `<th scope="col">${rank}</th>`);
  const several = rows.length > 1;
  const head = (chunk) => (several ? chunk : `<span class="rs-hidden">chunk 0</span>`);
  const lines = rows.map((row, chunk) => `<tr><th scope="row">${head(chunk)}</th>${row.map((one) => cell(one, ranks)).join("")}</tr>`);
  return `<table><caption>${when}${buffer ? `: ${buffer}` : ""}</caption>
    <thead><tr><td>rank${several ? "<br>chunk" : ""}</td>${heads.join("")}</tr></thead><tbody>${lines.join("")}</tbody></table>`;
}

/** In the colour of its data, wherever that has come. The sum over all ranks is seen as Σ, and heard in full. */
function cell([symbol, kind, left], /** @type {number} */ ranks) {
  if (!symbol) return `<td class="rs-mixed rs-nothing"><span class="rs-hidden">empty</span></td>`;
  const name = `${tint(kind)} ${left ? "rs-left" : ""}`;
  if (!isTotal(symbol, ranks)) return `<td class="${name}">${symbol.replaceAll("+", "+<wbr>")}</td>`;
  return `<td class="${name}" data-short="Σ"><span class="rs-hidden">${symbol}</span></td>`;
}

export default () => {
  /** @type {Opened | null} */
  let opened = null;
  return {
    render({ model, el, signal }) {
      const openedOf = () => {
        if (!opened || opened.name !== model.get("opened")) {
          opened?.model.giveBack();
          opened = new Opened(model);
        }
        return opened;
      };
      return guarded(el, () => {
        new ZooView({ model, el, openedOf, signal });
      });
    },
  };
};
