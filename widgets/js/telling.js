/**
 * What a Player says below its picture: where it is, the sentence of the step, its numbers, what is pointed at; and the
 * lines of the cell that send, those of the step lit.
 *
 * Left out: the words themselves (captions.js, trace.js).
 */

import { codeOf, counters, explain, position, sentence, story, stuckAt, wordsOf } from "./captions.js";
import { made } from "./made.js";
import { OwnLines, stuckLines } from "./own-lines.js";
import { reserve } from "./reserve.js";
import { retrace, sourcesOn } from "./trace.js";

const MOST_LINES = 4; // of code that have room kept for them

/** The sentence, and the lines beside it. */
export const TOLD = `<div class="rs-telling"><div class="rs-caption" role="status" aria-live="polite"><div class="rs-told"><b
  class="rs-where"></b> <span class="rs-sentence"></span></div><span class="rs-heard rs-hidden"></span></div><pre
  class="rs-sources" hidden></pre></div>`;
/** The numbers, and in their place what is pointed at. */
export const NUMBERS = `<div class="rs-foot"><div class="rs-counters"></div><div class="rs-detail" aria-hidden="true"></div></div>`;

/** @typedef {[string, boolean]} Line of code, and whether it is lit */

export class Telling {
  /**
   * @param {import("./frame.js").Frame} frame with TOLD and NUMBERS in it
   * @param {import("./schedule.js").Schedule} schedule
   * @param {import("./stage.js").Stage} stage
   */
  constructor(frame, schedule, stage) {
    this.frame = frame;
    this.schedule = schedule;
    this.stage = stage;
    this.lines = "";
    this.own = new OwnLines();
    const names = ["told", "where", "sentence", "heard", "detail", "counters", "sources"];
    /** @type {Record<string, any>} */
    this.parts = Object.fromEntries(names.map((name) => [name, frame.find(`.rs-${name}`)]));
    this.parts.sources.hidden = schedule.sources === null;
  }

  /** Sentence and counters. @returns {[string, string]} where it is, and the sentence */
  tell() {
    const { schedule, parts, frame } = this;
    const { run } = this.stage;
    const words = sentence(schedule, run);
    const where = position(schedule, run.step, frame.root.classList.contains("rs-closed") ? null : schedule.steps);
    say(parts.where, opening(where));
    say(parts.sentence, words);
    const counts = counters(schedule, run).map(
      ([name, value]) => `<span><span class="rs-muted">${name}</span> <b>${value}</b></span>`,
    );
    parts.counters.innerHTML = counts.join("");
    this.detail();
    return [where, words];
  }

  /** A line about what is traced, else about what is pointed at, else about what is followed or wrong; and lines of code. */
  detail(/** @type {number | null} */ slot = null) {
    const { schedule, parts } = this;
    const { run, traced, rank, followed } = this.stage;
    const cell = slot ?? followed ?? (rank === null ? (schedule.framed ?? null) : null);
    const about = rank === null ? "" : story(schedule, run, rank);
    const words = cell === null ? about : explain(schedule, run, cell);
    this.frame.root.classList.toggle("rs-traces", traced !== null);
    for (const node of [parts.detail, parts.heard]) say(node, traced ? retrace(schedule, traced) : words);
    const code = codeOf(schedule, run);
    this.#show(traced ? sourcesOn(schedule, traced).map((line) => [line, true]) : code.map((line) => [wordsOf(line, schedule.ranks), line.ranks.length > 0]));
    const stuck = run.step === schedule.steps ? stuckLines(schedule.stuck ?? []) : [];
    this.own.show(this.frame.root, traced ? [] : [...code, ...stuck]);
  }

  #show(/** @type {Line[]} */ lines) {
    const { sources } = this.parts;
    const now = JSON.stringify(lines);
    if (now === this.lines) return;
    this.lines = now;
    sources.replaceChildren(
      ...lines.map(([words, lit]) => {
        const node = made("div", "", words);
        node.classList.toggle("rs-lit", lit);
        return node;
      }),
    );
    const first = sources.querySelector(".rs-lit");
    if (first) sources.scrollTop = first.offsetTop - sources.offsetTop;
  }

  /** Keeps room for the longest sentence and for lines of code, so that the controls hold still. */
  hold() {
    const { schedule, parts, frame } = this;
    const lines = codeOf(schedule, this.stage.run).length;
    parts.sources.style.setProperty("--rs-lines", String(Math.min(Math.max(lines, 2), MOST_LINES)));
    if (frame.projector.on) return void (parts.told.style.minHeight = "");
    return reserve(parts.told, schedule.captions.map((caption, k) => [opening(position(schedule, k + 1)), `${caption} ${stuckAt(schedule, k + 1)}`]));
  }
}

/** @returns {string} "Step 2 of 6, reduce-scatter." */
function opening(/** @type {string} */ where) {
  return `${where}.`.replace(/^./, (letter) => letter.toUpperCase());
}

/** Only new words reach a screen reader. */
function say(/** @type {HTMLElement} */ node, /** @type {string} */ words) {
  if (node.textContent !== words) node.textContent = words;
}
