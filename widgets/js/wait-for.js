/**
 * WaitFor: the picture of who waits for whom, and the same as a table whose rows light up their arrows.
 *
 * A row is chosen by pointing at it or at a rank, and with the arrow keys. Left out: the drawing, which Python sends as
 * SVG, so that the still picture in a file is the same.
 */

import { guarded } from "./errors.js";
import { Frame } from "./frame.js";
import { SCREEN } from "./transport.js";
import { ranksOf } from "./words.js";

/** @typedef {[number, number, string, number]} Edge rank, the rank it waits for, in which op, in which line (0: not known) */

/** @type {[string, string][]} */
const MOVES = [
  ["↑ ↓", "the next rank that waits (clickers: Page Up, Page Down)"],
  ["Home End", "the first, the last"],
  ...SCREEN,
];

const FEW = 8; // ranks on a smaller circle, as in wait_for.py

class WaitForView {
  /** @param {{model: any, el: HTMLElement, signal: AbortSignal}} given */
  constructor({ model, el, signal }) {
    /** @type {Edge[]} */
    const edges = model.get("edges");
    const given = { name: "rs-waitfor", title: model.get("headline"), size: ranksOf(model.get("ranks")), keys: MOVES };
    this.frame = new Frame(el, given, { press: (key) => this.#press(key), resized: () => {} }, signal);
    this.frame.body.innerHTML = `<div class="rs-waiting${model.get("ranks") > FEW ? "" : " rs-few"}"><div class="rs-circle" aria-hidden="true">${model.get("picture")}</div>
      <div class="rs-edges"><table><caption class="rs-hidden">who waits for whom</caption>
        <thead><tr><th scope="col">rank</th><th scope="col">waits for</th><th scope="col">in</th></tr></thead>
        <tbody>${edges.map(row).join("")}</tbody></table>
      <p class="rs-muted">An arrow leads to the rank that is waited for.<br>Red: stuck. ${model.get("picture").includes("rs-missing") ? "Dashed: will not come." : ""}</p></div></div>`;
    this.root = /** @type {HTMLElement} */ (this.frame.find(".rs-waiting"));
    /** @type {HTMLElement[]} */
    this.rows = [.../** @type {any} */ (this.root.querySelectorAll("tbody tr"))];
    this.rows.forEach((node, i) => {
      const [, , op, line] = edges[i];
      /** @type {Element} */ (node.lastElementChild).textContent = line ? `${op}, line ${line}` : op;
      node.addEventListener("focus", () => {
        this.rows.forEach((other) => (other.tabIndex = other === node ? 0 : -1));
        this.#light(i);
      });
      node.addEventListener("pointerenter", () => this.#light(i));
    });
    const { root } = this;
    /** @type {any[]} */
    this.arrows = [...root.querySelectorAll(".rs-wait")];
    root.addEventListener("pointerleave", () => this.#light(this.#focused()), { signal });
    root.addEventListener("focusout", () => this.#light(-1), { signal });
    root.querySelector(".rs-circle")?.addEventListener("pointerover", (event) => {
      const rank = /** @type {Element} */ (event.target).closest("[data-rank]")?.getAttribute("data-rank");
      const ends = /** @type {Element} */ (event.target).closest("[data-ends]")?.getAttribute("data-ends");
      this.#light(edges.findIndex(([from, to]) => (rank ? from === Number(rank) : `${from} ${to}` === ends)));
    });
  }

  #focused() {
    return this.rows.indexOf(/** @type {any} */ (document.activeElement));
  }

  #press(key) {
    const at = this.#focused();
    const to = { ArrowDown: at + 1, PageDown: at + 1, ArrowUp: at - 1, PageUp: at - 1, Home: 0, End: this.rows.length - 1 }[key];
    if (to === undefined) return false;
    this.rows[to]?.focus();
    return true;
  }

  /** Row `i`, its arrow and its two ranks stand out; none for -1. */
  #light(i) {
    const ends = i < 0 ? "" : (this.rows[i].dataset.ends ?? "");
    this.rows.forEach((node, at) => node.classList.toggle("rs-lit", at === i));
    this.root.classList.toggle("rs-pointed", i >= 0);
    for (const arrow of this.arrows) arrow.classList.toggle("rs-lit", arrow.dataset.ends === ends);
    for (const ball of this.root.querySelectorAll("[data-rank]")) {
      ball.classList.toggle("rs-lit", ends.split(" ").includes(ball.getAttribute("data-rank") ?? ""));
    }
  }
}

/** A row that takes the focus, so that the keyboard lights up what the pointer does. One of them is a stop for Tab. */
function row(/** @type {Edge} */ [rank, other], /** @type {number} */ i) {
  const ends = `data-ends="${rank} ${other}" tabindex="${i ? -1 : 0}"`;
  return `<tr ${ends}><th scope="row">rank ${rank}</th><td>rank ${other}</td><td></td></tr>`;
}

export default () => ({
  render({ model, el, signal }) {
    return guarded(el, () => {
      new WaitForView({ model, el, signal });
    });
  },
});
