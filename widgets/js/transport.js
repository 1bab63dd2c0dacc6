/**
 * The controls under a picture: buttons, scrubber with phases, speed; and the keyboard, which does the same.
 *
 * At first there are back, play, forward and the scrubber; the rest comes with "more", and has keys all the time.
 *
 * The scrubber is a real range input: it takes the focus when the picture is clicked, and tells screen readers where
 * the schedule stands.
 *
 * Left out: how keys get here (keys.js), what a step looks like (stage.js) and the clock (playback.js).
 */

import { made } from "./made.js";
import { SPEEDS } from "./playback.js";

const ICONS = {
  first: "M4 4h2v12H4zM17 4v12l-10-6z",
  back: "M15 4v12l-10-6z",
  play: "M6 3.5v13l11-6.5z",
  "play again": "M10 3a7 7 0 1 1-6.7 5l2 .6A4.9 4.9 0 1 0 10 5.1V8L5.5 4 10 0z",
  pause: "M5 4h3.6v12H5zM11.4 4H15v12h-3.6z",
  forward: "M5 4v12l10-6z",
  last: "M14 4h2v12h-2zM3 4v12l10-6z",
  loop: "M5 5h8V2l5 4-5 4V7H7v3H5zM15 15H7v3l-5-4 5-4v3h6v-3h2z",
};

/** @type {[string, string][]} what the help shows */
export const KEYS = [
  ["Space", "play or pause"],
  ["← →", "one step back or forward (clickers: Page Up, Page Down)"],
  ["Home End", "first or last step"],
  ["1 … 9", "begin of a phase"],
  ["↑ ↓", "follow one rank"],
  ["[ ]", "follow one chunk; with a rank: that cell"],
  ["v", "symbols, contributors or numbers"],
  ["l", "loop: from the end on to the start"],
  ["+ −", "faster, slower"],
  ["p", "projector mode; b pauses and blanks the screen, Esc leaves"],
  ["Esc", "gives the keyboard back to the notebook"],
  ["?", "this list"],
];
export const MOVES = KEYS.slice(0, 3);
export const LOOKS = KEYS.slice(-4);
export const SCREEN = KEYS.slice(-3);

export class Transport {
  /** @type {number[]} the step before each phase, and the last step */ begins;
  /** @type {HTMLElement[]} one per phase */ bands;

  /**
   * @param {{phases: [string, number][], steps: number}} schedule
   * @param {import("./playback.js").Playback} playback
   */
  constructor(schedule, playback) {
    this.schedule = schedule;
    this.playback = playback;
    this.node = made("div", "rs-transport");
    const button = (name, label) =>
      `<button type="button" class="rs-${name}" data-do="${name}" aria-label="${label}" title="${label}">
        <svg viewBox="0 0 20 20" aria-hidden="true"><path d="${ICONS[name]}"/></svg></button>`;
    const speeds = SPEEDS.map((speed) => `<option value="${speed}">${speed}×</option>`);
    this.node.innerHTML = `<div class="rs-buttons">
        ${button("first", "first step")}${button("back", "one step back")}${button("play", "play")}
        ${button("forward", "one step forward")}${button("last", "last step")}</div>
      <div class="rs-scrub"><div class="rs-phases" aria-hidden="true"></div>
        <input type="range" min="0" max="${schedule.steps}" step="1" aria-label="step"></div>
      ${button("loop", "loop")}
      <label class="rs-speed"><span class="rs-hidden">speed</span><select>${speeds.join("")}</select></label>
      <button type="button" class="rs-more" aria-expanded="false">more</button>`;
    const find = (selector) => /** @type {any} */ (this.node.querySelector(selector));
    this.scrubber = find("input");
    this.speed = find("select");
    this.playButton = find(".rs-play");
    this.loopButton = find(".rs-loop");
    this.#drawPhases(find(".rs-phases"));
    const more = find(".rs-more");
    more.addEventListener("click", () => {
      const all = this.node.closest(".rs-frame")?.classList.toggle("rs-all");
      more.ariaExpanded = String(all);
      more.textContent = all ? "less" : "more";
    });
    this.scrubber.addEventListener("input", () => playback.go(Number(this.scrubber.value)));
    this.speed.addEventListener("change", () => playback.setSpeed(Number(this.speed.value)));
    this.node.addEventListener("click", (event) => {
      const name = /** @type {Element} */ (event.target).closest("button")?.dataset.do;
      if (name) this.does(name);
    });
  }

  /** One of the buttons' actions. */
  does(/** @type {string} */ name) {
    const { playback } = this;
    if (name === "play") return playback.toggle();
    if (name === "loop") return playback.setLoop(!playback.loop);
    const { step, steps } = playback;
    return playback.go({ first: 0, back: step - 1, forward: step + 1, last: steps }[name] ?? step);
  }

  /** Shows the clock's state; `where` and `sentence` are what a screen reader hears at the scrubber. */
  update(/** @type {string} */ where, /** @type {string} */ sentence) {
    const { step, playing, speed, last: steps } = this.playback;
    this.scrubber.max = String(steps);
    this.scrubber.value = String(step);
    this.scrubber.style.setProperty("--rs-done", `${steps ? (100 * step) / steps : 0}%`);
    this.scrubber.ariaValueText = `${where}: ${sentence}`;
    this.speed.value = String(speed);
    this.loopButton.ariaPressed = String(this.playback.loop);
    const label = playing ? "pause" : steps && step === this.playback.steps ? "play again" : "play";
    if (this.playButton.title !== label) {
      this.playButton.title = label;
      this.playButton.ariaLabel = label;
      this.playButton.querySelector("path").setAttribute("d", ICONS[label]);
    }
    const { begins } = this;
    this.bands.forEach((band, i) => band.classList.toggle("rs-now", step > begins[i] && step <= begins[i + 1]));
  }

  /** What a key does, or false if it is none of ours. */
  press(/** @type {string} */ key) {
    const { playback } = this;
    const name = {
      ArrowLeft: "back",
      PageUp: "back",
      ArrowRight: "forward",
      PageDown: "forward",
      Home: "first",
      End: "last",
      " ": "play",
      l: "loop",
    }[key];
    if (name) this.does(name);
    else if (/^[1-9]$/.test(key)) playback.go(this.begins[Math.min(Number(key), this.begins.length - 1) - 1] + 1);
    else if (key === "+" || key === "-") this.#faster(key === "+" ? 1 : -1);
    else return false;
    return true;
  }

  #faster(by) {
    const now = SPEEDS.indexOf(this.playback.speed) + by;
    this.playback.setSpeed(SPEEDS[Math.max(0, Math.min(now, SPEEDS.length - 1))]);
  }

  /** A band per phase, as wide as it has steps, and a tick per step while they can be told apart. */
  #drawPhases(host) {
    const { phases, steps } = this.schedule;
    this.begins = [0];
    for (const [, count] of phases) this.begins.push(this.begins[this.begins.length - 1] + count);
    /** @type {HTMLElement[]} */
    this.bands = phases.map(([name, count]) => {
      const band = made("span", "rs-phase", name);
      band.style.flexGrow = String(count);
      band.title = name;
      return band;
    });
    host.append(...this.bands);
    const cut = () => this.bands.some((band) => band.scrollWidth > band.clientWidth + 1);
    new ResizeObserver(() => host.classList.toggle("rs-tight", cut())).observe(host);
    if (steps > 64 || steps === 0) return;
    const ticks = made("div", "rs-ticks");
    ticks.innerHTML = "<i></i>".repeat(steps + 1);
    host.append(ticks);
  }
}
