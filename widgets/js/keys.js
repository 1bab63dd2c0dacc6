/**
 * Keys for a widget inside a notebook that has shortcuts of its own: without a modifier they stay in the widget, or
 * JupyterLab would take "a", "b" or "d d" for commands on the cell.
 *
 * A field and a list keep the keys that they are worked with; a clicker's Page Up and Page Down are never among them.
 *
 * Left out: what a key does (transport.js, frame.js and the widgets themselves).
 */

/**
 * Lets `press` have the keys of `root` until `signal` ends: those it takes go no further. Text of other keys stays in
 * the widget too; shortcuts with a modifier and Tab belong to the page, and Escape while nothing here is `open`.
 */
export function listenToKeys(
  /** @type {HTMLElement} */ root,
  /** @type {(key: string, target: HTMLElement) => boolean} */ press,
  /** @type {AbortSignal} */ signal,
  open = () => false,
) {
  const ours = (/** @type {KeyboardEvent} */ { ctrlKey, metaKey, altKey, key }) =>
    !(ctrlKey || metaKey || altKey || key === "Tab" || (key === "Escape" && !open()));
  // Notebook 7 takes its shortcuts before a page's elements hear of a key; what is marked like this it leaves alone.
  const mark = (/** @type {any} */ event) =>
    root.contains(event.target) && event.target.toggleAttribute("data-lm-suppress-shortcuts", ours(event));
  addEventListener("keydown", mark, { capture: true, signal });
  root.addEventListener("keydown", (event) => {
    if (!ours(event)) return;
    event.stopPropagation();
    const target = /** @type {HTMLElement} */ (event.target);
    if (!isItsOwn(target, event.key) && press(event.key, target)) event.preventDefault();
  });
}

/** Whether a control is worked with that key itself. */
function isItsOwn(/** @type {HTMLElement} */ target, /** @type {string} */ key) {
  if (/^Page(Up|Down)$/.test(key)) return false;
  if (target.tagName === "BUTTON") return key === " " || key === "Enter";
  if (target.matches("input[type=radio]")) return key === " " || key.startsWith("Arrow");
  return target.tagName === "SELECT" || target.matches("input[type=text]");
}
