/**
 * A picture whose parts come and go: one with `data-from` is there from that step until before `data-until`.
 *
 * Left out: what is drawn (widgets/memory.py, widgets/tokens.py) and its steps (drawn.js).
 */

import { Drawing } from "./drawn.js";

export function comeAndGo(/** @type {any} */ given, /** @type {string} */ name) {
  const { el, playback } = given;
  const drawn = () => {
    for (const node of el.querySelectorAll("[data-from]")) {
      const { from, until } = node.dataset;
      node.classList.toggle("rs-away", playback.step < Number(from) || playback.step >= Number(until));
    }
  };
  return new Drawing(given, { name: `rs-drawn ${name}`, drawn });
}
