/**
 * How much room a Player's picture has, and as what it is drawn in it.
 *
 * On a wall it is what the words leave. In a notebook the question is to stay on the screen with it, and a widget of few
 * ranks is low. Left out: what stands where in that room (layout.js).
 */

import { panelOf } from "./greet.js";
import { typeFor } from "./labels.js";
import { areFew, layOut, notebookHeight } from "./layout.js";

const LOW = 16; // pixels of a cell whose name touches its bar
const LOWEST = 260; // pixels of a picture, whatever stands beside it
const LAPTOP = 720; // pixels of a window that shows a question and its picture at once
const ASKED = 45; // of the line of code above them

/** @typedef {{width: number, tall: number, scale: number}} Given pixels, and the size of words */

/**
 * @param {import("./frame.js").Frame} frame @param {HTMLElement} stage where the picture is
 * @param {number} ranks @param {HTMLElement | undefined} asks the question, if there is one
 * @returns {Given}
 */
export function roomOf(frame, stage, ranks, asks) {
  const width = Math.floor(stage.clientWidth);
  if (frame.projector.on) return { width, tall: Math.max(stage.clientHeight, 200), scale: 1.5 };
  const { root } = frame;
  const beside = asks ? asks.offsetHeight + bars(root) : 0;
  const high = notebookHeight(width, ranks, root.offsetHeight - stage.offsetHeight - beside);
  return { width, tall: Math.max(high - beside, Math.min(high, LOWEST)), scale: 1 };
}

/** What JupyterLab's bars take of a laptop's window. */
function bars(/** @type {HTMLElement} */ root) {
  const notebook = panelOf(root);
  return notebook ? Math.max(0, LAPTOP - notebook.clientHeight + ASKED) : 0;
}

/**
 * A ring that has too little room is a row, if that has enough: on a wall for words in its cells, in a notebook beside a
 * question. So is any picture of few ranks.
 * @param {import("./schedule.js").Schedule} schedule @param {Given} room
 * @param {import("./survey.js").Shape} shape @param {string} view what cells show
 */
export function readable(schedule, room, shape, view) {
  const fits = (/** @type {import("./survey.js").Shape} */ other) => {
    const layout = layOut(schedule, { ...room, shape: other });
    if (room.scale > 1) return typeFor(schedule, layout, view).room > 0;
    return layout.kind === "cards" && layout.height <= room.tall && (other === "row" || layout.size.h > LOW);
  };
  return (shape === "ring" || areFew(schedule.ranks)) && !fits(shape) && fits("row") ? "row" : shape;
}
