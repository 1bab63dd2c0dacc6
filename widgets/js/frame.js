/**
 * What every widget that plays has around its picture: title, buttons for help and projector mode, the list of keys.
 *
 * Left out: the picture and the controls, which the widget puts into `body`.
 */

import { listenToKeys } from "./keys.js";
import { Projector } from "./projector.js";
import { KEYS } from "./transport.js";

const SCREEN = "M3 8V3h5v2H5v3zM12 3h5v5h-2V5h-3zM3 12h2v3h3v2H3zM15 12h2v5h-5v-2h3z";

export class Frame {
  /**
   * @param {HTMLElement} el
   * @param {{name: string, title: string, size: string, picks?: string, keys?: [string, string][]}} given
   *   class, words, markup of our own, the list of keys if it is not that of what plays
   * @param {{press: (key: string) => boolean, resized: () => void, open?: () => boolean}} reacts to keys the frame does
   *   not know, and to size; while something is open, Escape is one of those keys
   * @param {AbortSignal} signal
   */
  constructor(el, { name, title, size, picks = "", keys = KEYS }, reacts, signal) {
    el.innerHTML = `<div class="ringside rs-frame ${name}" role="group">
      <div class="rs-header"><strong class="rs-title"></strong><span class="rs-muted"></span><span class="rs-space"></span>
        ${picks}<button type="button" class="rs-project" aria-label="projector mode" title="projector mode">
          <svg viewBox="0 0 20 20" aria-hidden="true"><path d="${SCREEN}"/></svg></button>
        <button type="button" class="rs-help" aria-expanded="false" aria-label="keys" title="keys">?</button></div>
      <dl class="rs-keys" hidden>${keys.map(([key, what]) => `<dt>${key}</dt><dd>${what}</dd>`).join("")}</dl>
      <div class="rs-body"></div></div>`;
    this.root = /** @type {HTMLElement} */ (el.firstElementChild);
    this.root.setAttribute("aria-label", `${title}, ${size}`);
    this.find(".rs-title").textContent = title;
    this.find(".rs-header .rs-muted").textContent = size;
    this.body = this.find(".rs-body");
    listenToKeys(this.root, (key) => this.#press(key) || reacts.press(key), signal, reacts.open);
    this.projector = new Projector(this.root, reacts.resized, signal);
    this.find(".rs-project").addEventListener("click", () => this.projector.toggle());
    this.find(".rs-help").addEventListener("click", () => this.#help());
  }

  /** @returns {any} */
  find(/** @type {string} */ selector) {
    return this.root.querySelector(selector);
  }

  #press(key) {
    if (key === "?") this.#help();
    else if (key === "p") this.projector.toggle();
    else if (key === "b" && this.projector.on) this.projector.blank();
    else return false;
    return true;
  }

  #help() {
    const keys = this.find(".rs-keys");
    keys.hidden = !keys.hidden;
    this.find(".rs-help").setAttribute("aria-expanded", String(!keys.hidden));
  }
}
