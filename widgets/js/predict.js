/**
 * Predict: a gate in front of the step that matters. The student says what will happen, then sees it happen.
 *
 * Either "which cells will step k write?" (click them, or choose with the arrow keys and Enter), or a number that the
 * whole schedule comes to ("how many messages?"). Nothing past the gate can be seen before an answer or a skip; then
 * what was said stays beside what is. Left out: the picture, of which it only marks cells.
 */

import { busiest, digits, plural, wholeOf } from "./captions.js";
import { Run } from "./schedule.js";

/** @typedef {{kind: "cells" | "messages" | "steps" | "busiest", step: number}} Question `step` counts from 1; cells only */

/** @type {Record<string, string>} */
const NUMBERS = {
  messages: "How many messages will be sent in all?",
  steps: "How many steps will it take?",
  busiest: "How much will the busiest rank send, in multiples of N?",
};

export class Gate {
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
    this.node = document.createElement("form");
    this.node.className = "rs-gate";
    const ask = this.asksCells
      ? `Which cells will step ${question.step} write? Click them.`
      : NUMBERS[question.kind];
    const field = `<input type="number" step="any" min="0" inputmode="decimal" aria-label="${ask}">`;
    this.node.innerHTML = `<strong>${ask}</strong>
      ${this.asksCells ? "<span class='rs-muted'>none chosen</span>" : field}
      <button type="submit">check</button><button type="button">skip</button>`;
    this.said = this.node.children[1];
    this.node.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#answer();
    });
    this.node.children[3].addEventListener("click", () => this.#open(null));
  }

  /** Chooses a cell, or takes it back. */
  choose(/** @type {number} */ slot) {
    if (!this.chosen.delete(slot)) this.chosen.add(slot);
    this.said.textContent = this.chosen.size ? `${plural(this.chosen.size, "cell")} chosen` : "none chosen";
  }

  #answer() {
    if (this.asksCells) return this.#open([...this.chosen]);
    const { value } = /** @type {HTMLInputElement} */ (this.said);
    if (value !== "") this.#open(Number(value));
  }

  #open(said) {
    const { schedule, question, asksCells } = this;
    const run = new Run(schedule);
    run.seek(asksCells ? question.step : schedule.steps);
    const is = asksCells ? run.written : this.#number(run);
    const words = asksCells ? judgeCells(said, is) : this.#judgeNumber(said, is);
    this.node.classList.add("rs-open");
    this.node.textContent = words;
    this.opened({ said, is, words });
  }

  #number(run) {
    if (this.question.kind === "messages") return run.messages;
    if (this.question.kind === "steps") return run.done.filter(({ counted }) => counted.length).length;
    return busiest(run).most / wholeOf(this.schedule);
  }

  #judgeNumber(said, is) {
    const { kind } = this.question;
    const shown = `${digits(is)} ${kind === "busiest" ? "N" : kind}`;
    const then = "Play it and count along.";
    if (said === null) return `It is ${shown}. ${then}`;
    const right = Math.abs(said - is) <= 0.005 * Math.abs(is);
    return right ? `You said ${said}, and it is ${shown}.` : `You said ${said}; it is ${shown}. ${then}`;
  }
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
