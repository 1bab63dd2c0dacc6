/**
 * The lines of the cell above a recorded run: those that ran in the step shown are lit, in the colour of each rank; at
 * the end of a deadlock also those that are stuck, in red.
 *
 * JupyterLab's editor has an element for each line. Where there is none (another host, a cell that was changed), nothing
 * is lit. The marks lie over the editor, whose own elements stay as they are, and go when the editor gets the focus.
 */

import { made } from "./made.js";
import { ofRank } from "./svg.js";
import { rankNames } from "./words.js";

const MOST = 4; // ranks that each have a name at a line
const KNOWN = 24; // characters of a line that must be as they were

/** @typedef {{line: number, code: string, ranks: number[], stuck?: boolean}} Lit a line and the ranks that are at it */

export class OwnLines {
  /** @type {Element | undefined} */ marks;
  clear = () => this.marks?.remove();

  /** @param {Element} root of the widget @param {Lit[]} lines */
  show(root, lines) {
    this.clear();
    const editor = root.closest(".jp-Cell")?.querySelector(".jp-InputArea .cm-editor");
    const partial = editor?.querySelector(".cm-gap, .cm-foldPlaceholder"); // lines that have no element
    const written = partial ? [] : [...(editor?.querySelectorAll(".cm-line") ?? [])];
    const { top = 0 } = editor?.getBoundingClientRect() ?? {};
    const drawn = lines.map(({ line, code, ranks, stuck }) => {
      const node = written[line - 1];
      if (!ranks.length || !node?.textContent?.includes(code.slice(0, KNOWN))) return "";
      const box = node.getBoundingClientRect();
      const chips = ranks.length > MOST ? `<b>${rankNames(ranks)}</b>` : ranks.map((rank) => `<b class="${ofRank(rank)}">rank ${rank}</b>`).join("");
      return `<div class="${stuck ? "rs-stuck" : ""}" style="top:${box.top - top}px;height:${box.height}px">${chips}</div>`;
    });
    if (!drawn.some(Boolean)) return;
    const marks = made("div", "ringside rs-own-lines");
    marks.ariaHidden = "true";
    marks.innerHTML = drawn.join("");
    editor?.append(marks);
    editor?.addEventListener("focusin", this.clear, { once: true });
    this.marks = marks;
  }
}

/** The lines at which ranks are stuck, each once with all of them. @returns {Lit[]} */
export function stuckLines(/** @type {import("./schedule.js").Stuck[]} */ stuck) {
  /** @type {Map<number, Lit>} */
  const found = new Map();
  for (const [rank, , code, line] of stuck) {
    const ranks = found.get(line)?.ranks ?? [];
    found.set(line, { line, code, ranks: [...new Set([...ranks, rank])], stuck: true });
  }
  return [...found.values()];
}
