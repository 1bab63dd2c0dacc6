/**
 * Room for the longest of several sentences, so that what stands below holds still while they change.
 *
 * A sentence wraps where the width says, which nothing but the browser knows: the longest are written into copies that
 * nobody sees, and the tallest copy is the room. Left out: projector mode, where the picture gives the room.
 */

const TRIED = 6; // the tallest is among the longest

/**
 * @param {HTMLElement} node gets room for each of `all`
 * @param {string[][]} all the words of its children, in their order
 */
export function reserve(node, all) {
  const long = (/** @type {string[]} */ words) => words.join("").length;
  const longest = [...all].sort((a, b) => long(b) - long(a)).slice(0, TRIED);
  const copies = longest.map((words) => {
    const copy = /** @type {HTMLElement} */ (node.cloneNode(true));
    copy.setAttribute("aria-hidden", "true");
    Object.assign(copy.style, { position: "absolute", visibility: "hidden", minHeight: "0", width: `${node.clientWidth}px` });
    words.forEach((word, i) => (copy.children[i].textContent = word));
    return copy;
  });
  node.after(...copies);
  const tall = Math.max(0, ...copies.map((copy) => copy.offsetHeight));
  for (const copy of copies) copy.remove();
  node.style.minHeight = tall ? `${tall}px` : "";
}
