/**
 * Predict: a question in front of what it asks about. The student says what will happen, then sees it happen.
 *
 * A question of the course (course/questions) brings what is right and why; of a question about a schedule ("which cells
 * will step k write?", "how many messages?") the schedule itself knows it. It is judged here, in the browser, so that it
 * works while the kernel is busy; Python is told afterwards (`predicted`), and nothing in Python waits for it.
 *
 * Left out: how an answer is given (answers.js), how it is judged (grade.js), and the picture, of which it only marks
 * cells and which hides what it must not tell (player.js, question.js).
 */

import { Choices, Field, Lines, writeRich } from "./answers.js";
import { busiest, wholeOf } from "./captions.js";
import { inUnit, isAbout, judgeChoice, judgeNumber, judgeOrder } from "./grade.js";
import { readNumber } from "./amount.js";
import { made } from "./made.js";
import { readQuantity } from "./quantity.js";
import { range, Run, unpack } from "./schedule.js";
import { plural } from "./words.js";

/** @typedef {import("./grade.js").Question} Question */

/** @type {Record<string, {text: string, unit: string, count: (run: Run) => number}>} what a schedule knows by itself */
const COUNTS = {
  messages: { text: "How many messages will be sent in all?", unit: "messages", count: (run) => run.messages },
  steps: {
    text: "How many steps will it take?",
    unit: "steps",
    count: (run) => run.done.filter(({ count }) => count.length).length,
  },
  busiest: {
    text: "How much will the busiest rank send, in multiples of N?",
    unit: "N",
    count: (run) => busiest(run).most / wholeOf(run.schedule),
  },
};

const THEN = "Play it and count along.";
const SEALED = "What is right, and why, opens when your lecturer releases this chapter.";

export class Gate {
  /** @type {HTMLElement} */ node;
  /** @type {HTMLElement} how many cells are chosen */ said;
  /** @type {HTMLElement} */ buttons;
  /** @type {HTMLElement} */ words;
  /** @type {HTMLElement} what is chosen, for who cannot see it */ heard;

  /**
   * @param {any} question as Python has it
   * @param {(answer: any) => void} opened called once, with what was said (null: skipped), and the sentences about it
   * @param {{schedule?: import("./schedule.js").Schedule | null, room?: () => boolean}} [given] room: hands are counted
   */
  constructor(question, opened, { schedule = null, room = () => false } = {}) {
    this.schedule = schedule;
    this.opened = opened;
    this.question = counted(question, schedule);
    this.asksCells = this.question.kind === "cells";
    /** The last step that may be seen. */
    this.limit = this.asksCells ? (this.question.step ?? 1) - 1 : 0;
    this.open = false;
    /** @type {Set<number>} slots the student has chosen */
    this.chosen = new Set();
    this.room = () => Boolean(this.question.room) || room();
    this.way = this.#way();
    this.#build();
  }

  #way() {
    const { kind } = this.question;
    if (kind === "cells") return null;
    if (kind === "number") return new Field(this.question);
    return kind === "order" ? new Lines(this.question) : new Choices(this.question, this.room);
  }

  #build() {
    this.node = made("form", "rs-gate");
    const asks = made("strong", "rs-asks");
    writeRich(asks, this.question.text);
    this.said = made("span", "rs-muted", "none chosen");
    this.buttons = made("span", "rs-do");
    this.buttons.innerHTML = `<button type="submit">check</button><button type="button">skip</button>`;
    this.words = made("div", "rs-verdict");
    this.words.role = "status";
    this.node.append(asks, this.way ? this.way.node : this.said, this.buttons, this.words);
    this.heard = made("span", "rs-hidden");
    this.heard.role = "status";
    if (this.asksCells) this.node.append(this.heard);
    this.node.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#answer();
    });
    this.buttons.children[1].addEventListener("click", () => this.#skip());
  }

  /** Chooses a cell, or takes it back. */
  choose(/** @type {number} */ slot) {
    if (!this.chosen.delete(slot)) this.chosen.add(slot);
    this.said.textContent = this.chosen.size ? `${plural(this.chosen.size, "cell")} chosen` : "none chosen";
    const { ranks, chunks, buffers } = /** @type {import("./schedule.js").Schedule} */ (this.schedule);
    const place = (/** @type {number} */ at) => {
      const { buffer, rank, chunk } = unpack(at, ranks, chunks);
      return `rank ${rank}${buffers[1] ? `, ${buffers[buffer]}` : ""}, chunk ${chunk}`;
    };
    const now = `${place(slot)} ${this.chosen.has(slot) ? "chosen" : "taken back"}`;
    this.heard.textContent = `${now}. ${this.said.textContent}${this.chosen.size ? ": " : ""}${[...this.chosen].map(place).join("; ")}.`;
  }

  /** What a key does while the question is open; false for others. */
  press(/** @type {string} */ key) {
    if (this.open || !this.way) return false;
    if (key === "Enter") this.#answer();
    else return this.way.press(key);
    return true;
  }

  /** Somebody wants to go on: says what to do first. */
  remind() {
    if (!this.open) this.#hint(this.way?.hint ?? "Choose cells and press check; skip goes on without.");
  }

  #hint(/** @type {string} */ words) {
    this.words.textContent = words;
  }

  #answer() {
    if (this.open) return;
    const { question, way } = this;
    if (!way) return this.#show([...this.chosen], this.#cells([...this.chosen]));
    if (way instanceof Choices && way.hands.length) return this.#shownToRoom(way);
    if (way.said === null) return this.remind();
    const verdict = this.#judged(way.said);
    if (!verdict) return this.remind();
    this.#show(way.said, verdict, textOf(question, way));
  }

  #skip() {
    if (!this.open) this.#show(null, this.asksCells ? this.#cells(null) : this.#judged(null));
  }

  #judged(/** @type {any} */ said) {
    const { question } = this;
    if (question.sealed) return this.#kept(said);
    if (question.kind === "number") return judgeNumber(question, said);
    return question.kind === "order" ? judgeOrder(question, said) : judgeChoice(question, said);
  }

  /** Of a question whose answer is withheld. */
  #kept(/** @type {any} */ said) {
    const { question, way } = this;
    if (said === null || !way) return { right: null, words: [SEALED] };
    if (question.kind === "number" && !readQuantity(said, question.unit ?? "", question.p ?? null)) return null;
    return { right: null, words: [`You said ${textOf(question, way)}, which is kept. ${SEALED}`] };
  }

  #shownToRoom(/** @type {Choices} */ way) {
    const right = this.#judged(null);
    if (this.question.sealed) return this.#show(way.counted, { ...right, room: true });
    const knew = `${way.knew} of ${plural(way.hands.length, "hand")} knew it.`;
    this.#show(way.counted, { ...right, words: [...(right?.words ?? []), knew], room: true });
  }

  #cells(/** @type {number[] | null} */ said) {
    const schedule = /** @type {import("./schedule.js").Schedule} */ (this.schedule);
    const { step = 1, why } = this.question;
    const run = new Run(schedule);
    run.seek(step);
    const is = run.written;
    const right = said !== null && said.length === is.length && is.every((slot) => said.includes(slot));
    return { right, is, step, words: why ? [judgeCells(said, is), why] : [judgeCells(said, is)] };
  }

  /** Tells Python and the picture, once. */
  #show(/** @type {any} */ said, /** @type {any} */ verdict, /** @type {string | null} */ text = null) {
    const { words, right, step = null, is = null, room = false } = verdict;
    const answer = { said, text, right: said === null || room ? null : right, words: words.join(" "), step, is };
    this.restore({ ...answer, lines: words });
    this.opened(answer);
  }

  /** The question as it stands after an answer. */
  restore(/** @type {any} */ { said, right, words, lines = [words] }) {
    if (this.open) return;
    this.open = true;
    const { way } = this;
    if (way instanceof Choices) way.close(Array.isArray(said) ? null : said);
    else way?.close();
    this.buttons.remove();
    this.said.remove();
    this.heard.remove();
    this.node.classList.add("rs-open");
    this.node.classList.toggle("rs-knew", right === true);
    this.words.replaceChildren(
      ...lines.map((line) => {
        const paragraph = made("p");
        writeRich(paragraph, line);
        return paragraph;
      }),
    );
  }
}

/** The question with what the schedule knows about it. @returns {Question} */
function counted(/** @type {any} */ question, /** @type {import("./schedule.js").Schedule | null} */ schedule) {
  const { kind, answers } = question;
  if (kind === "cells") return { text: `Which cells will step ${question.step} write? Click them.`, ...question };
  const known = COUNTS[kind];
  if (!known || !schedule) return question;
  const run = new Run(schedule);
  run.seek(schedule.steps);
  const { text, unit, count } = known;
  const is = count(run);
  if (!answers) {
    return { kind: "number", text, unit, p: schedule.ranks, is: { text: String(is), why: THEN } };
  }
  const value = (/** @type {string} */ answer) => readNumber(answer, schedule.ranks) ?? NaN;
  return {
    kind: "choose",
    room: true,
    text,
    answers: answers.map((/** @type {string} */ answer) => ({ text: answer, why: `It is ${inUnit(is, unit)}.` })),
    right: range(answers.length).filter((i) => isAbout(value(answers[i]), is)),
  };
}

/** What was said, as it is kept. */
function textOf(/** @type {Question} */ { kind, answers = [] }, /** @type {Choices | Field | Lines} */ { said }) {
  if (kind === "number") return /** @type {string} */ (said);
  if (kind === "order") return /** @type {number[]} */ (said).map((place) => place + 1).join(", ");
  return kind === "line" ? `line ${Number(said) + 1}` : answers[Number(said)].text;
}

/** What was chosen against what is written, in a sentence. */
function judgeCells(/** @type {number[] | null} */ said, /** @type {number[]} */ is) {
  const all = `${plural(is.length, "cell")} ${is.length === 1 ? "is" : "are"} written`;
  if (said === null) return `${all}: the framed ones.`;
  const found = is.filter((slot) => said.includes(slot)).length;
  const wrong = said.length - found;
  if (found === is.length && !wrong) return `${all}, and you named exactly ${is.length === 1 ? "that one" : "those"}.`;
  return `${all}; you found ${found} of them${wrong ? ` and named ${wrong} that ${wrong === 1 ? "is" : "are"} not` : ""}.`;
}
