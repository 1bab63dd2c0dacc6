/**
 * A widget inside a widget: a module that Python has sent as text, on a model lent by the widget around it.
 *
 * So the Zoo opens real Players without carrying their code in its own module, and without a kernel. anywidget loads
 * every widget from a blob in the same way, so where one works, this does. Left out: what it is used for (zoo.js).
 */

/** The default export of the module whose source is `text`. @returns {Promise<any>} */
export async function moduleOf(/** @type {string} */ text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  try {
    return (await import(address)).default;
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** A model in which some names have values of their own; everything else is that of the model behind it. */
export class LentModel {
  /** @param {any} model @param {Record<string, any>} own */
  constructor(model, own) {
    this.model = model;
    this.own = own;
    /** @type {[string, Function][]} */
    this.handlers = [];
  }

  get(/** @type {string} */ name) {
    return name in this.own ? this.own[name] : this.model.get(name);
  }

  set(/** @type {string} */ name, /** @type {any} */ value) {
    this.model.set(name, value);
  }

  save_changes() {
    this.model.save_changes();
  }

  on(/** @type {string} */ event, /** @type {Function} */ handler) {
    this.handlers.push([event, handler]);
    this.model.on(event, handler);
  }

  off(/** @type {string} */ event, /** @type {Function} */ handler) {
    this.model.off(event, handler);
  }

  /** Nobody listens any more. */
  giveBack() {
    for (const [event, handler] of this.handlers) this.model.off(event, handler);
  }
}
