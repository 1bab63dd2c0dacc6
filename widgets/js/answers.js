/**
 * The ways an answer is given: one of several (by digit, arrow or click), a number, lines put into their order.
 *
 * In front of a room, which is in projector mode, the digits of a choice count hands instead; they stand there as bars,
 * before what is right is shown and after it. Cells are chosen in the picture (predict.js).
 *
 * Left out: what is right (grade.js).
 */

import { isRight } from "./grade.js";
import { made } from "./made.js";
import { takesPrefix } from "./quantity.js";
import { range } from "./schedule.js";

/** @typedef {import("./grade.js").Question} Question */

const MOST_DIGITS = 9;

/** Puts text with `code` in it into a node. */
export function writeRich(/** @type {HTMLElement} */ node, /** @type {string} */ text) {
  const parts = text.split("`").map((part, i) => (i % 2 ? made("code", "", part) : part));
  node.replaceChildren(...parts);
}

export class Choices {
  /** @param {Question} question @param {() => boolean} room whether hands are counted */
  constructor(question, room) {
    this.question = question;
    this.room = room;
    /** @type {number[]} answers in the order in which hands were counted */
    this.hands = [];
    this.typed = "";
    this.node = made("div", `rs-choices rs-${question.kind}`);
    this.node.role = "radiogroup";
    this.node.ariaLabel = question.text;
    this.rows = (question.answers ?? []).map((answer, i) => this.#row(answer.text, i));
    this.node.append(...this.rows);
  }

  #row(/** @type {string} */ text, /** @type {number} */ i) {
    const row = made("label", "rs-choice");
    row.innerHTML = `<input type="radio" name="answer"><kbd aria-hidden="true">${i + 1}</kbd><span></span>
      <i aria-hidden="true" hidden></i><b hidden>0</b>`;
    const says = /** @type {HTMLElement} */ (row.children[2]);
    if (this.question.kind === "line") says.append(made("code", "", text));
    else writeRich(says, text);
    row.children[0].addEventListener("click", (event) => {
      if (!this.room()) return;
      event.preventDefault();
      this.#count(i);
    });
    return row;
  }

  /** @returns {HTMLInputElement} */
  #radio(/** @type {number} */ i) {
    return /** @type {any} */ (this.rows[i].children[0]);
  }

  /** A digit chooses, or counts a hand; Backspace takes the last hand back. */
  press(/** @type {string} */ key) {
    if (key === "Backspace" && this.hands.length) this.hands.pop();
    else if (this.question.kind === "statement" && /^[tf]$/.test(key)) return this.press(key === "t" ? "1" : "2");
    else if (!/^\d$/.test(key)) return false;
    else if (this.room()) return this.#count(Number(key) - 1);
    else return this.#choose(key);
    this.#bars();
    return true;
  }

  /** Of many lines the digits of their number are typed one after the other. */
  #choose(/** @type {string} */ digit) {
    const all = [this.typed + digit, digit].find((typed) => this.rows[Number(typed) - 1]);
    if (!all) return false;
    this.typed = this.rows.length > MOST_DIGITS ? all : "";
    const radio = this.#radio(Number(all) - 1);
    radio.checked = true;
    radio.focus({ preventScroll: true });
    return true;
  }

  #count(/** @type {number} */ i) {
    if (!this.rows[i] || i >= MOST_DIGITS) return false;
    this.hands.push(i);
    this.#bars();
    return true;
  }

  /** Hands per answer. */
  get counted() {
    return range(this.rows.length).map((answer) => this.hands.filter((hand) => hand === answer).length);
  }

  #bars() {
    const most = Math.max(1, ...this.counted);
    this.counted.forEach((count, i) => {
      const [, , , bar, number] = /** @type {any} */ (this.rows[i].children);
      bar.hidden = number.hidden = false;
      number.textContent = String(count);
      bar.style.setProperty("--rs-share", `${(100 * count) / most}%`);
    });
  }

  /** @returns {number | null} */
  get said() {
    const chosen = this.rows.findIndex((_, i) => this.#radio(i).checked);
    return chosen < 0 ? null : chosen;
  }

  get hint() {
    if (this.room()) return "Count hands with the digits, then press Enter; skip goes on without.";
    return `Choose an answer${this.question.kind === "line" ? " by its line" : ""}, then press Enter; skip goes on without.`;
  }

  /** Nothing can be changed any more; what is right is marked, and what was said instead. */
  close(/** @type {number | null} */ said = null) {
    const rights = isRight(this.question);
    this.rows.forEach((row, i) => {
      this.#radio(i).disabled = true;
      this.#radio(i).checked = i === said;
      row.classList.toggle("rs-right", rights.includes(i));
      row.classList.toggle("rs-wrong", i === said && !rights.includes(i) && !this.question.sealed);
    });
  }

  /** How many of a room were right. */
  get knew() {
    const rights = isRight(this.question);
    return this.hands.filter((hand) => rights.includes(hand)).length;
  }
}

export class Field {
  constructor(/** @type {Question} */ { text, unit = "" }) {
    this.node = made("span", "rs-field");
    this.node.innerHTML = `<input type="text" autocomplete="off" spellcheck="false"> <span class="rs-muted"></span>`;
    this.input = /** @type {HTMLInputElement} */ (this.node.children[0]);
    this.input.ariaLabel = text;
    this.asksUnit = takesPrefix(unit);
    this.example = { s: "3 ms", bytes: "12 MB", "bytes/s": "50 GB/s", GB: "6 GB" }[unit] ?? "6 or 2(p-1)";
    this.node.children[1].textContent = this.asksUnit ? `with its unit, as in ${this.example}` : unit;
  }

  /** A digit that is pressed elsewhere in the widget begins the number. */
  press(/** @type {string} */ key) {
    if (!/^[\d.]$/.test(key)) return false;
    this.input.focus({ preventScroll: true });
    this.input.value += key;
    return true;
  }

  /** @returns {string | null} */
  get said() {
    return this.input.value.trim() || null;
  }

  get hint() {
    const unit = this.asksUnit ? " with its unit" : "";
    return `Write a number${unit}, as in ${this.example}, then press Enter; skip goes on without.`;
  }

  close() {
    this.input.disabled = true;
    this.node.hidden = true; // the sentence says it
  }
}

export class Lines {
  constructor(/** @type {Question} */ question) {
    this.question = question;
    /** @type {number[]} places in `lines`, as they were chosen */
    this.chosen = [];
    this.node = made("div", "rs-lines");
    this.node.role = "group";
    this.node.ariaLabel = question.text;
    this.rows = (question.lines ?? []).map((line, i) => {
      const row = /** @type {HTMLButtonElement} */ (made("button", "rs-choice"));
      row.type = "button";
      row.innerHTML = `<kbd aria-hidden="true">${i + 1}</kbd><code></code><b></b>`;
      row.children[1].textContent = line;
      row.addEventListener("click", () => this.press(String(i + 1)));
      return row;
    });
    this.node.append(...this.rows);
    this.#number();
  }

  /** A digit says which line comes next, or takes that line back; Backspace takes the last one back. */
  press(/** @type {string} */ key) {
    const place = Number(key) - 1;
    if (key === "Backspace") this.chosen.pop();
    else if (!/^[1-9]$/.test(key) || !this.rows[place]) return false;
    else if (this.chosen.includes(place)) this.chosen = this.chosen.filter((other) => other !== place);
    else this.chosen.push(place);
    this.#number();
    return true;
  }

  #number() {
    this.rows.forEach((row, i) => {
      const place = this.chosen.indexOf(i) + 1;
      row.children[2].textContent = place ? `${place}.` : "";
      row.ariaPressed = String(place > 0);
      row.ariaLabel = `${row.children[1].textContent}, ${place ? `is line ${place}` : "not placed"}`;
    });
  }

  /** @returns {number[] | null} */
  get said() {
    return this.chosen.length === this.rows.length ? this.chosen : null;
  }

  get hint() {
    return "Choose all lines in their order, by digit or click, then press Enter; skip goes on without.";
  }

  /** The lines stand in their order; beside each the place that was said. */
  close() {
    for (const row of this.rows) row.disabled = true;
    this.node.append(...(this.question.order ?? []).map((place) => this.rows[place]));
  }
}
