/**
 * An error inside a widget becomes a box that says so: anywidget itself leaves the output empty.
 */

import { made } from "./made.js";

/** Runs `build` for `el`; what it throws is shown there. */
export async function guarded(/** @type {HTMLElement} */ el, /** @type {() => any} */ build) {
  try {
    return await build();
  } catch (error) {
    showError(el, error);
    return undefined;
  }
}

/** Replaces the content of `el` by a sentence and, folded away, the details. */
export function showError(/** @type {HTMLElement} */ el, /** @type {any} */ error) {
  console.error(error);
  const box = made("div", "rs-error");
  box.role = "alert";
  const what = error?.message ?? error;
  const words = made("p", "", `This picture could not be drawn: ${what}. Run the cell again; if it stays, please report it.`);
  const details = made("details");
  details.innerHTML = "<summary>Details</summary><pre></pre>";
  /** @type {HTMLElement} */ (details.lastElementChild).textContent = error?.stack ?? String(error);
  box.append(words, details);
  el.replaceChildren(box);
}
