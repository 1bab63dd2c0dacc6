/**
 * Predict: a gate in front of the step that matters. The student says what will happen, then sees it happen.
 *
 * Either "which cells will step k write?" (click them, or choose with the arrow keys and Enter), or a number that the
 * whole schedule comes to ("how many messages?"). Nothing past the gate can be seen before an answer or a skip; then
 * what was said stays beside what is.
 *
 * With answers to choose from it is a question to a room: a key for each answer counts hands, which stand there as bars
 * before the answer is shown and after it. Left out: the picture, of which it only marks cells.
 */

import { readNumber } from "./amount.js";
import { busiest, digits, wholeOf } from "./captions.js";
import { range, Run, unpack } from "./schedule.js";
import { plural } from "./words.js";

/**
 * @typedef {object} Question
 * @property {"cells" | "messages" | "steps" | "busiest"} kind
 * @property {number} step counts from 1; cells only
 * @property {string[]} [answers] that a room chooses from
 */

/** @type {Record<string, string>} */
const NUMBERS = {
  messages: "How many messages will be sent in all?",
  steps: "How many steps will it take?",
  busiest: "How much will the busiest rank send, in multiples of N?",
};

const HANDS = `<span class="rs-hands"></span>`;

export class Gate {
  /** @type {HTMLButtonElement[] | undefined} one per answer, in a question to a room */ bars;

  /**
   * @param {import("./schedule.js").Schedule} schedule
   * @param {Question} question
   * @param {(answer: any) => void} opened called once, with what was said (null: skipped) and what is
   */
  constructor(schedule, question, opened) {
    this.schedule = schedule;
    this.asksCells = question.kind === "cells";
    this.question = question;
    this.opened = opened;
    /** @type {Set<number>} slots the student has chosen */
    this.chosen = new Set();
    /** The last step that may be seen. */
    this.limit = this.asksCells ? question.step - 1 : 0;
    /** @type {number[]} per answer the hands of a room, in the order in which they were counted */
    this.hands = [];
    this.node = document.createElement("form");
    this.node.className = "rs-gate";
    const ask = this.asksCells
      ? `Which cells will step ${question.step} write? Click them.`
      : NUMBERS[question.kind];
    const field = `<input type="text" autocomplete="off" aria-label="${ask}">`;
    this.node.innerHTML = `<strong>${ask}</strong>
      ${this.asksCells ? "<span class='rs-muted'>none chosen</span>" : question.answers ? HANDS : field}
      <button type="submit">check</button><button type="button">skip</button><span role="status" class="rs-muted"></span>`;
    this.said = this.node.children[1];
    if (question.answers) this.#offer(question.answers);
    this.heard = document.createElement("span"); // what is chosen, for who cannot see it
    this.heard.className = "rs-hidden";
    this.heard.setAttribute("role", "status");
    if (this.asksCells) this.node.append(this.heard);
    this.node.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#answer();
    });
    /** @type {HTMLElement} */ (this.node.querySelector("[type=button]")).addEventListener("click", () => this.#open(null));
  }

  /** Chooses a cell, or takes it back. */
  choose(/** @type {number} */ slot) {
    if (!this.chosen.delete(slot)) this.chosen.add(slot);
    this.said.textContent = this.chosen.size ? `${plural(this.chosen.size, "cell")} chosen` : "none chosen";
    const { ranks, chunks, buffers } = this.schedule;
    const place = (/** @type {number} */ at) => {
      const { buffer, rank, chunk } = unpack(at, ranks, chunks);
      return `rank ${rank}${buffers[1] ? `, ${buffers[buffer]}` : ""}, chunk ${chunk}`;
    };
    const now = `${place(slot)} ${this.chosen.has(slot) ? "chosen" : "taken back"}`;
    this.heard.textContent = `${now}. ${this.said.textContent}${this.chosen.size ? ": " : ""}${[...this.chosen].map(place).join("; ")}.`;
  }

  /** A bar per answer, with the key that counts a hand for it. */
  #offer(/** @type {string[]} */ answers) {
    this.bars = answers.map((answer, i) => {
      const bar = document.createElement("button");
      bar.type = "button";
      bar.className = "rs-hand";
      bar.innerHTML = `<kbd>${i + 1}</kbd><span></span><i aria-hidden="true"></i><b>0</b>`;
      bar.children[1].textContent = answer;
      bar.addEventListener("click", () => this.count(String(i + 1)));
      return bar;
    });
    this.said.append(...this.bars);
  }

  /** What a key does while hands are counted: a digit counts one, Backspace takes the last back. False for others. */
  count(/** @type {string} */ key) {
    const { bars, hands } = this;
    if (!bars || this.node.classList.contains("rs-open")) return false;
    if (key === "Enter") this.#open(this.#counted());
    else if (key === "Backspace") hands.pop();
    else if (bars[Number(key) - 1]) hands.push(Number(key) - 1);
    else return false;
    const most = Math.max(1, ...this.#counted());
    this.#counted().forEach((count, i) => {
      bars[i].children[3].textContent = String(count);
      bars[i].style.setProperty("--rs-share", `${(100 * count) / most}%`);
    });
    return true;
  }

  /** Hands per answer. */
  #counted() {
    return range(this.bars?.length ?? 0).map((answer) => this.hands.filter((hand) => hand === answer).length);
  }

  /** Somebody wants to go on: says what to do first. */
  remind() {
    const number = this.bars ? "Count hands with the keys and press Enter" : "Write a number and press Enter";
    this.#hint(`${this.asksCells ? "Choose cells and press check" : number}; skip goes on without.`);
  }

  #hint(words) {
    const hint = this.node.querySelector("[role=status]");
    if (hint) hint.textContent = words; // none once it is open
  }

  #answer() {
    if (this.asksCells) return this.#open([...this.chosen]);
    if (this.bars) return this.#open(this.#counted());
    const field = /** @type {HTMLInputElement} */ (this.said);
    const said = readNumber(field.value, this.schedule.ranks);
    if (said !== null) return this.#open(said);
    this.#hint(field.value.trim() ? "Write a number, as in 6 or 2(p-1)." : "");
  }

  #open(said) {
    const { schedule, question, asksCells } = this;
    const run = new Run(schedule);
    run.seek(asksCells ? question.step : schedule.steps);
    const is = asksCells ? run.written : this.#number(run);
    const room = !asksCells && said !== null && this.bars;
    const words = asksCells ? judgeCells(said, is) : room ? this.#judgeRoom(said, is) : this.#judgeNumber(said, is);
    this.node.classList.add("rs-open");
    this.node.textContent = words;
    if (room) this.node.append(this.said);
    this.opened({ said, is, words });
  }

  #number(run) {
    if (this.question.kind === "messages") return run.messages;
    if (this.question.kind === "steps") return run.done.filter(({ count }) => count.length).length;
    return busiest(run).most / wholeOf(this.schedule);
  }

  /** How many of a room were right; their bars are marked. */
  #judgeRoom(/** @type {number[]} */ counted, /** @type {number} */ is) {
    const right = (this.question.answers ?? []).map((answer) => isAbout(readNumber(answer, this.schedule.ranks) ?? NaN, is));
    this.bars?.forEach((bar, i) => {
      bar.disabled = true;
      bar.classList.toggle("rs-right", right[i]);
    });
    const all = counted.reduce((sum, count) => sum + count, 0);
    const knew = counted.reduce((sum, count, i) => sum + (right[i] ? count : 0), 0);
    return `It is ${this.#shown(is)}: ${knew} of ${plural(all, "hand")}.`;
  }

  #shown(/** @type {number} */ is) {
    const { kind } = this.question;
    return `${digits(is)} ${kind === "busiest" ? "N" : kind}`;
  }

  #judgeNumber(said, is) {
    const shown = this.#shown(is);
    const then = "Play it and count along.";
    if (said === null) return `It is ${shown}. ${then}`;
    const right = isAbout(said, is);
    return right ? `You said ${digits(said)}, and it is ${shown}.` : `You said ${digits(said)}; it is ${shown}. ${then}`;
  }
}

function isAbout(/** @type {number} */ said, /** @type {number} */ is) {
  return Math.abs(said - is) <= 0.005 * Math.abs(is);
}

/** What was chosen against what is written, in a sentence. */
function judgeCells(said, is) {
  const all = `${plural(is.length, "cell")} ${is.length === 1 ? "is" : "are"} written`;
  if (said === null) return `${all}: the framed ones.`;
  const found = is.filter((slot) => said.includes(slot)).length;
  const wrong = said.length - found;
  if (found === is.length && !wrong) return `${all}, and you named exactly ${is.length === 1 ? "that one" : "those"}.`;
  return `${all}; you found ${found} of them${wrong ? ` and named ${wrong} that ${wrong === 1 ? "is" : "are"} not` : ""}.`;
}
