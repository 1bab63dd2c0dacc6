/**
 * An element with its class and its text. Left out: markup (innerHTML) and pictures (svg.js).
 */

/** @returns {HTMLElement} */
export function made(/** @type {string} */ tag, name = "", text = "") {
  const node = document.createElement(tag);
  if (name) node.className = name;
  node.textContent = text;
  return node;
}
