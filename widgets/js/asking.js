/**
 * Where a question stands: alone, or in front of a picture that opens when it was answered or skipped.
 *
 * What was said is the model's trait `predicted`, so several views of one widget open together, and Python hears of it.
 *
 * Left out: the question itself (predict.js).
 */

import { Frame } from "./frame.js";
import { made } from "./made.js";
import { Gate } from "./predict.js";
import { SCREEN } from "./transport.js";

/** @type {[string, string][]} what the help shows */
const KEYS = [
  ["1 … 9", "choose an answer; in projector mode: one hand for it"],
  ["⌫", "take the last one back"],
  ["Enter", "check the answer; in projector mode: show it"],
  ...SCREEN,
];

/** Shows the widget's question, if it has one, and the picture by `show` once that was answered or skipped. */
export function behindQuestion(
  /** @type {{model: any, el: HTMLElement, signal: AbortSignal}} */ { model, el, signal },
  /** @type {(el: HTMLElement) => any} */ show,
) {
  if (!model.get("question")) return show(el);
  const asked = made("div");
  const picture = made("div", "rs-behind");
  el.append(asked, picture);
  return askIn({ model, el: asked, signal }, () => show(picture));
}

/** Puts the question into `el`; `then` is called when it was answered, which may have been before. */
function askIn({ model, el, signal }, /** @type {() => any} */ then) {
  /** @type {Gate} */
  let gate;
  const reacts = { press: (/** @type {string} */ key) => gate.press(key), resized: () => {} };
  const frame = new Frame(el, { name: "rs-question", title: "Question", size: "", keys: KEYS }, reacts, signal);
  gate = gateOf(model, { room: () => frame.projector.on }, then, signal);
  frame.body.append(gate.node);
}

/**
 * The gate of the widget's question, opened if it was answered, here or in another view of it.
 *
 * @param {any} model @param {{schedule?: any, room: () => boolean}} given @param {(answer: any) => void} then
 * @param {AbortSignal} signal
 */
export function gateOf(model, given, then, signal) {
  const opened = (/** @type {any} */ answer) => {
    model.set("predicted", answer);
    model.save_changes();
  };
  const gate = new Gate(model.get("question"), opened, given);
  let told = false;
  const look = () => {
    const predicted = model.get("predicted");
    if (!predicted || told) return;
    told = true;
    gate.restore(predicted);
    then(predicted);
  };
  model.on("change:predicted", look);
  signal.addEventListener("abort", () => model.off("change:predicted", look));
  look();
  return gate;
}
