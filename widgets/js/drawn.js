/**
 * A picture that Python has drawn, step by step: its parts come with their steps, and what is sent flies in.
 *
 * A part with `data-step` belongs to that step: it has the class rd-past, rd-now or rd-next, and css/drawn.css does the
 * rest, motion included. On a narrow page the narrow picture is shown, so that letters can be read.
 *
 * Left out: what is drawn (widgets/_drawn.py and the widgets), and what else their keys do.
 */

import { behindQuestion } from "./asking.js";
import { guarded } from "./errors.js";
import { Frame } from "./frame.js";
import { greet } from "./greet.js";
import { Playback } from "./playback.js";
import { reserve } from "./reserve.js";
import { LOOKS, MOVES, Transport } from "./transport.js";
import { ranksOf } from "./words.js";

const NARROW = 560; // pixels: below, the picture for a phone
const LONGEST_FLIGHT = 900; // ms


export class Drawing {
  /** @type {string | undefined} which picture is shown */ kind;

  /**
   * @param {{model: any, el: HTMLElement, playback: import("./playback.js").Playback, signal: AbortSignal}} given
   * @param {{name: string, keys?: [string, string][], press?: (key: string) => boolean, drawn?: () => void}} own
   *   class, further keys, and what to do when the picture is new or another step is shown
   */
  constructor({ model, el, playback, signal }, { name, keys = [], press = () => false, drawn = () => {} }) {
    this.model = model;
    this.playback = playback;
    this.drawn = drawn;
    this.shown = playback.step;
    const reacts = {
      press: (/** @type {string} */ key) => press(key) || this.transport.press(key),
      resized: () => this.#draw(),
      blanked: () => playback.pause(),
    };
    const size = [ranksOf(model.get("processes")), model.get("size")].filter(Boolean).join(" · ");
    const given = { name, title: model.get("headline"), size, keys: [...MOVES, ...keys, ...LOOKS] };
    this.frame = new Frame(el, given, reacts, signal);
    this.frame.body.innerHTML = `<div class="rs-stage"></div><p class="rd-legend rs-muted"></p>
      <div class="rs-caption" role="status" aria-live="polite">
        <div class="rs-told"><b class="rs-where"></b> <span class="rs-sentence"></span></div>
        <div class="rs-detail"></div></div>`;
    this.frame.find(".rd-legend").textContent = model.get("legend").join(" ");
    /** @type {HTMLElement} */
    this.stage = this.frame.find(".rs-stage");
    /** @type {HTMLElement} */
    this.told = this.frame.find(".rs-told");
    this.transport = new Transport({ phases: model.get("phases"), steps: playback.steps }, playback);
    this.frame.body.append(this.transport.node);
    playback.listen(() => this.show(), signal);
    playback.attend(this, this.frame.root, [this.stage], () => this.#draw(), signal, () => greet(model, this.frame.root, () => playback.toggle()));
    this.#draw();
  }

  #draw() {
    const width = this.stage.clientWidth;
    if (!width) return;
    const kind = width < NARROW ? "narrow" : "wide";
    this.#hold();
    if (kind === this.kind) return;
    this.kind = kind;
    this.stage.classList.remove("rd-forward");
    this.stage.innerHTML = this.model.get("pictures")[kind];
    this.show();
  }

  /** Keeps room for the longest sentence, so that the controls hold still. */
  #hold() {
    if (this.frame.projector.on) return void (this.told.style.minHeight = "");
    return reserve(this.told, this.model.get("told").map((/** @type {string} */ words, /** @type {number} */ step) => [this.#where(step), words]));
  }

  #where(/** @type {number} */ step) {
    const { steps } = this.playback;
    return step ? `Step ${step} of ${steps}.` : `Before step 1 of ${steps}.`;
  }

  /** Everything that depends on the step. */
  show() {
    const { step, pace } = this.playback;
    const words = this.model.get("told")[step];
    this.told.children[0].textContent = this.#where(step);
    this.told.children[1].textContent = words;
    this.transport.update(this.#where(step), words);
    this.frame.root.dataset.step = String(step);
    if (step !== this.shown) this.stage.classList.toggle("rd-forward", step === this.shown + 1); // only then it flies
    this.shown = step;
    this.stage.style.setProperty("--rs-flight", `${Math.min(LONGEST_FLIGHT, 0.6 * pace)}ms`);
    for (const node of this.stage.querySelectorAll("[data-step]")) {
      const at = Number(/** @type {SVGElement} */ (node).dataset.step);
      node.classList.toggle("rd-past", at < step);
      node.classList.toggle("rd-now", at === step);
      node.classList.toggle("rd-next", at > step);
    }
    this.drawn();
  }
}

/** The definition of a widget whose view is made by `show`, in front of it its question, if it has one. */
export function stepped(/** @type {(given: any) => any} */ show) {
  /** @type {Playback} one for all views, made with the first */
  let playback;
  return {
    render(/** @type {any} */ { model, el, signal }) {
      return guarded(el, () => {
        playback ??= new Playback(model, model.get("told").length - 1);
        const showIn = (/** @type {HTMLElement} */ at) => void show({ model, el: at, playback, signal });
        return model.get("question") ? behindQuestion({ model, el, signal }, showIn) : showIn(el);
      });
    },
  };
}
