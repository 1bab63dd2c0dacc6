/**
 * A drawing in which one rank can be followed, by keys or a click: its parts stay bright, the others step back.
 *
 * Parts have `data-rank`, or `data-ends` with all ranks that take part. Left out: the picture and its steps (drawn.js).
 */

import { Drawing } from "./drawn.js";

/** Shows a drawing, and lights up what the chosen rank takes part in. */
export class FollowView {
  constructor(/** @type {any} */ given, /** @type {string} */ name) {
    const { model, signal } = given;
    this.model = model;
    this.drawing = new Drawing(given, {
      name: `rs-drawn ${name}`,
      keys: [["↑ ↓", "follow one rank"]],
      press: (key) => this.#press(key),
      drawn: () => this.#light(),
    });
    const { stage } = this.drawing;
    stage.addEventListener("click", (event) => {
      const rank = /** @type {Element} */ (event.target).closest("[data-rank]")?.getAttribute("data-rank") ?? -1;
      this.#choose(Number(rank) === model.get("chosen") ? -1 : Number(rank));
    });
    const light = () => this.#light();
    model.on("change:chosen", light);
    signal.addEventListener("abort", () => model.off("change:chosen", light));
    light();
  }

  #press(/** @type {string} */ key) {
    const way = { ArrowUp: -1, ArrowDown: 1 }[key];
    if (!way) return false;
    const ranks = this.model.get("takes_part").length;
    this.#choose(((this.model.get("chosen") + 1 + way + ranks + 1) % (ranks + 1)) - 1);
    return true;
  }

  #choose(/** @type {number} */ rank) {
    this.model.set("chosen", rank);
    this.model.save_changes();
  }

  #light() {
    if (!this.drawing) return; // it is being drawn for the first time
    const chosen = this.model.get("chosen");
    const { stage, frame } = this.drawing;
    stage.classList.toggle("rd-chosen", chosen >= 0);
    for (const node of stage.querySelectorAll("[data-rank], [data-ends]")) {
      const { rank, ends = "" } = /** @type {SVGElement} */ (node).dataset;
      node.classList.toggle("rd-lit", rank === String(chosen) || ends.split(" ").includes(String(chosen)));
    }
    frame.find(".rs-detail").textContent = this.model.get("takes_part")[chosen] ?? "";
  }
}
