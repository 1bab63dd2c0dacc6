/**
 * RankLog: the page of what the ranks print. A chip per rank says what it is doing; below, all ranks folded into one
 * list, or one rank, or all side by side, or where they differ. When the cell has ended it folds to its chips.
 *
 * The state of a rank is a sign and a few words on its chip, a phrase for who cannot see the chips, and with many ranks
 * one line in which those that do the same stand together.
 *
 * Everything ranks print is shown as text, never as markup. Only the last lines are in the page, more on request. Left
 * out: which rows there are (log.js, diff.js), what a terminal makes of a text (terminal.js).
 */

import { versions } from "./diff.js";
import { guarded } from "./errors.js";
import { listenToKeys } from "./keys.js";
import { hearThoughLate } from "./late.js";
import { Log } from "./log.js";
import { diffRows, pieces } from "./rows.js";
import { fewWords, phrase, sign, together, urgent } from "./states.js";
import { rankNames } from "./words.js";

const SHOWN = 400; // lines in the page at first, and more for each press of "earlier"
const SHOWN_IN_GRID = 60;
const MANY = 16; // ranks, beyond which there is no room for words on their chips

class RankLogView {
  /** @type {HTMLButtonElement[]} */ chips;
  /** @type {HTMLButtonElement[]} */ rankChips;

  constructor({ el, model, log, signal }) {
    this.model = model;
    this.log = log;
    /** @type {"all" | "grid" | "diff" | number} */
    this.view = "all";
    this.shown = SHOWN;
    this.folded = model.get("finished");
    this.frame = 0;
    this.stick = true;
    this.nodes = new WeakMap();
    this.#build(el);
    listenToKeys(this.root, (key, target) => this.#press(key, target), signal);
    for (const name of ["batch", "history", "states", "finished"]) model.on(`change:${name}`, () => this.#changed(name));
    signal.addEventListener("abort", () => cancelAnimationFrame(this.frame));
    this.#draw();
  }

  #build(el) {
    const { ranks } = this.log;
    const chip = (view, label) =>
      `<button type="button" class="rs-chip" data-view="${view}" tabindex="-1">${label}</button>`;
    const ofRank = (rank) =>
      chip(rank, `<i aria-hidden="true"></i><b>${ranks > MANY ? rank : `rank ${rank}`}</b><span></span>`);
    el.innerHTML = `<div class="ringside rs-log" role="group" aria-label="output of ${ranks} ranks">
      <div class="rs-chips" role="toolbar" aria-label="ranks">
        ${chip("all", "<b>all</b>")}${ranks > 1 ? chip("grid", "<b>side by side</b>") + chip("diff", "<b>≠ differences</b>") : ""}
        ${Array.from({ length: ranks }, (_, rank) => ofRank(rank)).join("")}
        <button type="button" class="rs-fold" tabindex="-1"></button></div>
      <p class="rs-network" hidden></p>
      <p class="rs-doing" hidden></p>
      <p class="rs-note" hidden></p>
      <button type="button" class="rs-earlier" hidden>earlier lines</button>
      <div class="rs-output" tabindex="0" role="log" aria-live="off" aria-label="lines"></div>
      <div class="rs-hidden" role="status"></div></div>`;
    const find = (selector) => el.querySelector(selector);
    this.root = el.firstElementChild;
    this.output = find(".rs-output");
    this.doing = find(".rs-doing");
    this.network = find(".rs-network");
    this.note = find(".rs-note");
    this.earlier = find(".rs-earlier");
    this.fold = find(".rs-fold");
    this.status = find("[role=status]");
    this.chips = [...el.querySelectorAll(".rs-chips button")];
    this.#rove(this.chips[0]);
    this.rankChips = this.chips.filter((chip) => /^\d+$/.test(chip.dataset.view ?? ""));
    for (const chip of this.chips) chip.addEventListener("click", () => this.#choose(chip));
    this.earlier.addEventListener("click", () => {
      this.shown += SHOWN;
      this.stick = false;
      this.#draw();
    });
    this.output.addEventListener("scroll", () => {
      this.stick = this.output.scrollTop + this.output.clientHeight > this.output.scrollHeight - 24;
    });
  }

  #changed(name) {
    if (name === "finished" && this.model.get("finished")) this.folded = true;
    if (!this.frame) this.frame = requestAnimationFrame(() => this.#draw());
  }

  #choose(chip) {
    if (chip === this.fold) {
      this.folded = !this.folded;
    } else {
      const { view } = chip.dataset;
      this.view = /^\d+$/.test(view) ? Number(view) : view;
      this.folded = false;
      this.shown = SHOWN;
      this.stick = true;
    }
    this.#rove(chip);
    this.#draw();
  }

  /** Arrow keys walk along the chips. */
  #press(key, target) {
    const at = this.chips.indexOf(target);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (at < 0 || !step) return false;
    const next = this.chips[(at + step + this.chips.length) % this.chips.length];
    this.#rove(next);
    next.focus();
    return true;
  }

  #rove(chip) {
    for (const other of this.chips) other.tabIndex = other === chip ? 0 : -1;
  }

  #draw() {
    this.frame = 0;
    this.#drawChips();
    const network = this.model.get("network");
    this.network.hidden = !network;
    this.network.textContent = `on ${network}`;
    const { log, folded } = this;
    this.root.classList.toggle("rs-folded", folded);
    this.output.hidden = folded;
    const lines = log.total + log.open().length;
    this.fold.textContent = folded ? `show ${lines} line${lines === 1 ? "" : "s"}` : "fold";
    this.fold.hidden = !this.model.get("finished") || lines === 0;
    this.fold.setAttribute("aria-expanded", String(!folded));
    this.note.textContent = this.#leftOut();
    this.note.hidden = folded || !this.note.textContent;
    const grid = this.view === "grid";
    const diff = this.view === "diff";
    const longest = () => log.lines.reduce((most, own) => (own.length > most.length ? own : most));
    const filled = () => log.rows.filter(({ ranks }) => ranks.length);
    const rows = typeof this.view === "number" ? log.lines[this.view] : diff ? longest() : filled();
    this.earlier.hidden = folded || grid || rows.length <= this.shown;
    if (folded) return;
    if (grid) this.#drawGrid();
    else if (diff) this.output.replaceChildren(...diffRows(versions(log.lines, this.shown)));
    else this.#drawLines(this.output, rows, typeof this.view === "number" ? this.view : null, this.shown);
    this.output.classList.toggle("rs-grid", grid);
    this.output.classList.toggle("rs-diff", diff);
    this.output.classList.toggle("rs-quiet", lines === 0);
    if (this.stick) this.output.scrollTop = this.output.scrollHeight;
  }

  #drawChips() {
    /** @type {import("./states.js").State[]} */
    const states = this.model.get("states");
    const many = this.log.ranks > MANY;
    states.forEach((state, rank) => {
      const chip = this.rankChips[rank];
      chip.dataset.state = state[0];
      chip.children[0].textContent = sign(state);
      chip.children[2].textContent = many ? "" : fewWords(state);
      chip.title = `rank ${rank}: ${phrase(state)}`;
      chip.setAttribute("aria-label", chip.title);
    });
    this.doing.hidden = !many || states.every(([state]) => state === "done");
    this.doing.textContent = this.doing.hidden ? "" : together(states);
    for (const chip of this.chips)
      if (chip !== this.fold)
        chip.setAttribute("aria-pressed", String(!this.folded && chip.dataset.view === String(this.view)));
    const words = [this.model.get("finished") && "finished", urgent(states)].filter(Boolean).join("; ");
    if (this.status.textContent !== words) this.status.textContent = words;
  }

  #leftOut() {
    const { cut, dropped, gap } = this.log;
    if (!cut && !dropped && !gap) return "";
    const what = [
      cut && `${cut.toLocaleString("en")} characters`,
      dropped && `${dropped.toLocaleString("en")} lines`,
      gap && "some lines",
    ]
      .filter(Boolean)
      .join(" and ");
    return `Left out here: ${what} of older output, to bound memory.`;
  }

  #drawGrid() {
    if (!this.output.classList.contains("rs-grid")) this.output.replaceChildren();
    while (this.output.children.length < this.log.ranks) {
      const pane = document.createElement("section");
      pane.innerHTML = `<h4>rank ${this.output.children.length}</h4><div></div>`;
      this.output.append(pane);
    }
    [...this.output.children].forEach((pane, rank) => {
      const body = pane.lastElementChild;
      this.#drawLines(body, this.log.lines[rank], rank, SHOWN_IN_GRID);
      body.scrollTop = body.scrollHeight;
    });
  }

  /** Brings `host` up to date: rows that are there stay, their nodes are found by row. */
  #drawLines(host, rows, rank, most) {
    const wanted = [...rows.slice(-most), ...this.log.open(rank)].map((row) => this.#node(row, rank === null));
    if (host.children.length > wanted.length + most || host.classList.contains("rs-grid")) host.replaceChildren();
    wanted.forEach((node, i) => {
      if (host.children[i] !== node) host.insertBefore(node, host.children[i] ?? null);
    });
    while (host.children.length > wanted.length) host.lastElementChild.remove();
  }

  #node(row, named) {
    const key = named ? row.ranks.join() : "";
    const made = this.nodes.get(row);
    if (made?.key === key) return made.node;
    const node = document.createElement("div");
    node.className = row.stream ? "rs-row rs-stderr" : "rs-row";
    if (named) {
      const who = document.createElement("span");
      who.className = "rs-who";
      who.textContent = rankNames(row.ranks);
      node.append(who);
    }
    const line = document.createElement("span");
    line.className = "rs-words";
    line.append(...pieces(row));
    node.append(line);
    this.nodes.set(row, { node, key });
    return node;
  }
}

/** What was said before this page looked. */
function logOf(model) {
  const log = new Log(model.get("ranks"));
  log.take(model.get("history"));
  log.take(model.get("batch"));
  if (model.get("finished")) log.close();
  return log;
}

export default () => {
  /** @type {Log} */
  let log;
  /** @type {unknown} what went wrong before there was a view to say it in */
  let failed = null;
  return {
    initialize({ model }) {
      try {
        log = logOf(model);
      } catch (error) {
        failed = error;
      }
      model.on("change:batch", () => log.take(model.get("batch")));
      model.on("change:history", () => log.restart(model.get("history")));
      model.on("change:finished", () => model.get("finished") && log.close());
      hearThoughLate(model);
    },
    render({ el, model, signal }) {
      return guarded(el, () => {
        if (failed) throw failed;
        new RankLogView({ el, model, log, signal });
      });
    },
  };
};
