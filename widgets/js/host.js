/**
 * The smallest thing a widget module can live on: a model that is a dictionary. For pages without Jupyter, where the
 * state stands in the page itself, and for tests. There the widget has the page's keys, so that a clicker works without
 * a click.
 */

export class Model {
  /** @param {Record<string, any>} state */
  constructor(state) {
    this.state = state;
    /** @type {[string, Function][]} */
    this.handlers = [];
    /** @type {Set<string>} */
    this.changed = new Set();
    this.saved = 0;
  }

  get(/** @type {string} */ name) {
    return this.state[name];
  }

  set(/** @type {string} */ name, /** @type {any} */ value) {
    if (this.state[name] === value) return;
    this.state[name] = value;
    for (const [event, handler] of this.handlers) if (event === `change:${name}`) handler();
  }

  save_changes() {
    this.saved++;
  }

  on(/** @type {string} */ event, /** @type {Function} */ handler) {
    this.handlers.push([event, handler]);
  }

  off(/** @type {string} */ event, /** @type {Function} */ handler) {
    this.handlers = this.handlers.filter(([name, known]) => name !== event || (handler && known !== handler));
  }

  send() {}
}

/** The state of a widget as `page_state` of widgets/base.py has kept it, with what is bytes as bytes. */
export function revived(/** @type {{ state: Record<string, any>, binary: Record<string, string> }} */ { state, binary }) {
  for (const [name, text] of Object.entries(binary)) {
    state[name] = new DataView(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
  }
  return state;
}

/** Shows a widget in `el`; returns its model. `definition` is the default export of a widget's module. */
export async function mount(
  /** @type {any} */ definition,
  /** @type {Record<string, any>} */ state,
  /** @type {HTMLElement} */ el,
) {
  const model = new Model(state);
  const widget = typeof definition === "function" ? await definition() : definition;
  const { signal } = new AbortController();
  await widget.initialize?.({ model, signal });
  await widget.render({ model, el, signal });
  return model;
}

/** Keys that are pressed on the page itself go to the widget that plays on it, if there is one. */
export function lendKeys() {
  addEventListener("keydown", (event) => {
    if (event.target !== document.body || event.key === "Tab" || event.key === "Escape") return;
    const frame = [...document.querySelectorAll(".rs-frame")].find((node) => node.checkVisibility());
    if (frame && !frame.dispatchEvent(new KeyboardEvent("keydown", event))) event.preventDefault();
  });
}
