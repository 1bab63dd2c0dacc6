/**
 * A picture whose parts come and go: one with `data-when="3 5"` is there from step 3 until before step 5.
 *
 * Left out: what is drawn (widgets/memory.py) and its steps (drawn.js).
 */

import { Drawing } from "./drawn.js";

export function comeAndGo(/** @type {any} */ given, /** @type {string} */ name) {
  const { el, playback } = given;
  const drawn = () => {
    for (const node of el.querySelectorAll("[data-when]")) {
      const [from, until] = node.dataset.when.split(" ");
      node.classList.toggle("rs-away", playback.step < Number(from) || playback.step >= Number(until));
    }
  };
  return new Drawing(given, { name: `rs-drawn ${name}`, drawn });
}
