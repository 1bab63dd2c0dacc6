/**
 * Drift: the lines of all ranks at each step of a training.
 *
 * Left out: the picture (widgets/drift.py) and its steps (drawn.js).
 */

import { Drawing, stepped } from "./drawn.js";

const LOOKED_AT = 10; // the first steps, in which lines move far

export default () =>
  stepped(({ model, el, playback, signal }) => {
    const [xs, ways] = [model.get("xs"), model.get("ways")];
    playback.secondsAfter = (/** @type {number} */ step) => (step < LOOKED_AT ? 0.4 : 0.08);
    const drawn = () => {
      for (const line of el.querySelectorAll("[data-way]")) {
        const [left, zero, across, up] = line.parentElement.dataset.place.split(" ").map(Number);
        const at = (/** @type {number} */ y, /** @type {number} */ i) => `${left + xs[i] * across} ${zero - y * up}`;
        line.setAttribute("d", `M${ways[line.dataset.way][playback.step].map(at).join("L")}`);
      }
    };
    return new Drawing({ model, el, playback, signal }, { name: "rs-drawn rs-drift", drawn });
  });
