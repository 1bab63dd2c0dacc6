/**
 * What every widget that plays has around its picture: title, buttons for help and projector mode, the list of keys.
 *
 * Projector mode is a widget alone on the whole screen, words large enough for the last row; and a blank screen. It is
 * laid out for a screen of 720 pixels, with no word below 18, and magnified to the height there is: so words are a 40th
 * of the height or more on any wall, and the browser's own zoom takes nothing away. Where the browser refuses full
 * screen (some embedded pages), the widget fills the window instead. Leaving gives everything back as it was.
 *
 * The frame itself can hold the keyboard: after a click on a button for the screen, so that a clicker's Space does not
 * press that button again. Escape gives it back to the notebook around.
 *
 * Left out: the picture and the controls, which the widget puts into `body`, and what changes inside it, which asks
 * `projector.on`.
 */

import { listenToKeys } from "./keys.js";
import { made } from "./made.js";
import { KEYS } from "./transport.js";

const WALL = { width: 960, height: 720 }; // pixels that projector mode is laid out for, at least
const CORNERS = "M3 8V3h5v2H5v3zM12 3h5v5h-2V5h-3zM3 12h2v3h3v2H3zM15 12h2v5h-5v-2h3z";

export class Frame {
  /**
   * @param {HTMLElement} el
   * @param {{name: string, title: string, size: string, picks?: string, keys?: [string, string][]}} given
   *   class, words, markup of our own, the list of keys if it is not that of what plays
   * @param {{press: (key: string) => boolean, resized: () => void, open?: () => boolean, blanked?: () => void}} reacts to
   *   keys the frame does not know, to size, and to a blank screen; while something is open, Escape is one of those keys
   * @param {AbortSignal} signal
   */
  constructor(el, { name, title, size, picks = "", keys = KEYS }, reacts, signal) {
    el.innerHTML = `<div class="ringside rs-frame ${name}" role="group" tabindex="-1">
      <div class="rs-header"><strong class="rs-title"></strong><span class="rs-muted"></span><span class="rs-space"></span>
        ${picks}<button type="button" class="rs-project" aria-label="projector mode" title="projector mode">
          <svg viewBox="0 0 20 20" aria-hidden="true"><path d="${CORNERS}"/></svg></button>
        <button type="button" class="rs-help" aria-expanded="false" aria-label="keys" title="keys">?</button></div>
      <dl class="rs-keys" tabindex="0" hidden>${keys.map(([key, what]) => `<div><dt>${key}</dt><dd>${what}</dd></div>`).join("")}</dl>
      <div class="rs-body"></div></div>`;
    this.root = /** @type {HTMLElement} */ (el.firstElementChild);
    this.reacts = reacts;
    this.size = size;
    this.entitle(title);
    this.body = this.find(".rs-body");
    listenToKeys(this.root, (key) => this.#press(key) || reacts.press(key), signal, reacts.open);
    this.projector = new Projector(this.root, reacts.resized, signal);
    this.find(".rs-project").addEventListener("click", () => {
      this.root.focus({ preventScroll: true });
      this.projector.toggle();
    });
    for (const name of [".rs-help", ".rs-keys"]) this.find(name).addEventListener("click", () => this.#help());
  }

  /** Says what is shown, above it and to a screen reader. */
  entitle(/** @type {string} */ title, /** @type {string} */ size = this.size) {
    this.size = size;
    this.root.ariaLabel = size ? `${title}, ${size}` : title;
    this.find(".rs-title").textContent = title;
    this.find(".rs-header .rs-muted").textContent = size;
  }

  /** @returns {any} */
  find(/** @type {string} */ selector) {
    return this.root.querySelector(selector);
  }

  #press(key) {
    if (key === "?") this.#help();
    else if (key === "p") this.projector.toggle();
    else if (key === "b" && this.projector.on) this.#blank();
    else return false;
    return true;
  }

  #blank() {
    this.projector.blank();
    this.reacts.blanked?.();
  }

  #help() {
    const keys = this.find(".rs-keys");
    keys.hidden = !keys.hidden;
    this.find(".rs-help").ariaExpanded = String(!keys.hidden);
  }
}

class Projector {
  /** @param {HTMLElement} root @param {() => void} changed called after entering and leaving @param {AbortSignal} signal */
  constructor(root, changed, signal) {
    this.root = root;
    this.changed = changed;
    this.on = false;
    this.curtain = made("div", "rs-curtain");
    this.curtain.hidden = true;
    root.append(this.curtain);
    document.addEventListener("fullscreenchange", () => this.#left(), { signal });
    addEventListener("resize", () => this.#magnify(), { signal });
    const leave = () => (this.on ? this.toggle() : giveBack(root));
    const leaves = (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && !event.defaultPrevented;
    root.addEventListener("keydown", (event) => leaves(event) && leave(), { signal });
  }

  async toggle() {
    this.#become(!this.on);
    if (this.on) await this.root.requestFullscreen?.().catch(() => {});
    else if (document.fullscreenElement === this.root) await document.exitFullscreen();
    this.changed();
  }

  /** Hides everything, or shows it again. */
  blank() {
    this.curtain.hidden = !this.curtain.hidden;
  }

  /** The browser has left full screen by itself (Escape). */
  #left() {
    if (!this.on || document.fullscreenElement) return;
    this.#become(false);
    this.changed();
  }

  #become(on) {
    this.on = on;
    this.curtain.hidden = true;
    this.root.classList.toggle("rs-projected", on);
    this.#magnify();
  }

  #magnify() {
    const times = Math.min(innerHeight / WALL.height, innerWidth / WALL.width);
    this.root.style.zoom = this.on ? String(times) : "";
  }
}

/** The keyboard goes to what is around the widget and can take it: a cell of the notebook, else the page. */
function giveBack(/** @type {HTMLElement} */ root) {
  const around = /** @type {HTMLElement | null | undefined} */ (root.parentElement?.closest("[tabindex]"));
  if (around) around.focus({ preventScroll: true });
  else /** @type {HTMLElement | null} */ (document.activeElement)?.blur();
}
