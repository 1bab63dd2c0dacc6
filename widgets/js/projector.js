/**
 * Projector mode: a widget alone on the whole screen, words large enough for the last row; and a blank screen.
 *
 * Where the browser refuses full screen (some embedded pages), the widget fills the window instead. Leaving gives
 * everything back as it was. Left out: what changes inside the widget, which asks `on`.
 */

export class Projector {
  /** @param {HTMLElement} root @param {() => void} changed called after entering and leaving @param {AbortSignal} signal */
  constructor(root, changed, signal) {
    this.root = root;
    this.changed = changed;
    this.on = false;
    this.curtain = document.createElement("div");
    this.curtain.className = "rs-curtain";
    this.curtain.hidden = true;
    root.append(this.curtain);
    document.addEventListener("fullscreenchange", () => this.#left(), { signal });
    const leaves = (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && !event.defaultPrevented && this.on;
    root.addEventListener("keydown", (event) => leaves(event) && this.toggle(), { signal });
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
  }
}
