/**
 * Predict: a gate in front of the step that matters. The student says what will happen, then sees it happen.
 *
 * Either "which cells will step k write?" (click them, or choose with the arrow keys and Enter), or a number that the
 * whole schedule comes to ("how many messages?"). Nothing past the gate can be seen before an answer or a skip; then
 * what was said stays beside what is. Left out: the picture, of which it only marks cells.
 */

import { amount, busiest, plural } from "./captions.js";
import { Run } from "./schedule.js";

/** @typedef {{kind: "cells" | "messages" | "steps" | "busiest", step: number}} Question `step` counts from 1; cells only */

/** @type {Record<string, {ask: string, unit: string}>} */
const NUMBERS = {
  messages: { ask: "How many messages will be sent in all?", unit: "messages" },
  steps: { ask: "How many steps will it take?", unit: "steps" },
  busiest: { ask: "How much will the busiest rank send, in multiples of N?", unit: "N" },
};

export class Gate {
  /**
   * @param {import("./schedule.js").Schedule} schedule
   * @param {Question} question
   * @param {(answer: any) => void} opened called once, with what was said (null: skipped) and what is
   */
  constructor(schedule, question, opened) {
    this.schedule = schedule;
    this.question = question;
    this.opened = opened;
    /** @type {Set<number>} slots the student has chosen */
    this.chosen = new Set();
    /** The last step that may be seen. */
    this.limit = question.kind === "cells" ? question.step - 1 : 0;
    this.node = document.createElement("form");
    this.node.className = "rs-gate";
    const ask =
      question.kind === "cells"
        ? `Which cells will step ${question.step} write? Click them.`
        : NUMBERS[question.kind].ask;
    const field = `<input type="number" step="any" min="0" inputmode="decimal" aria-label="${ask}">`;
    this.node.innerHTML = `<strong>${ask}</strong>
      ${question.kind === "cells" ? "<span class='rs-muted'>none chosen</span>" : field}
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
    if (this.question.kind === "cells") return this.#open([...this.chosen]);
    const { value } = /** @type {HTMLInputElement} */ (this.said);
    if (value !== "") this.#open(Number(value));
  }

  #open(said) {
    const { schedule, question } = this;
    const run = new Run(schedule);
    run.seek(question.kind === "cells" ? question.step : schedule.steps);
    const is = question.kind === "cells" ? run.written : this.#number(run);
    const words = question.kind === "cells" ? judgeCells(said, is) : this.#judgeNumber(said, is, run);
    this.node.classList.add("rs-open");
    this.node.textContent = words;
    this.opened({ said, is, words });
  }

  #number(run) {
    if (this.question.kind === "messages") return run.messages;
    if (this.question.kind === "steps") return run.busySteps;
    const { chunks, chunk_bytes: sizes } = this.schedule;
    return busiest(run).most / (sizes ? sizes.reduce((sum, size) => sum + size, 0) : chunks);
  }

  #judgeNumber(said, is, run) {
    const shown =
      this.question.kind === "busiest" ? amount({ ...this.schedule, nbytes: null }, busiest(run).most) : `${is}`;
    const unit = this.question.kind === "busiest" ? "" : ` ${NUMBERS[this.question.kind].unit}`;
    const then = "Play it and count along.";
    if (said === null) return `It is ${shown}${unit}. ${then}`;
    const right = Math.abs(said - is) <= 0.005 * Math.abs(is);
    return right ? `You said ${said}, and it is ${shown}${unit}.` : `You said ${said}; it is ${shown}${unit}. ${then}`;
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
