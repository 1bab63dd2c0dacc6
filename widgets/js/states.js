/**
 * What a rank is doing, in words: a sign and a few words for its chip, a phrase for who cannot see it, one line for many.
 *
 * Left out: the chips themselves (ranklog.js).
 */

import { rankNames } from "./words.js";

/** @type {Record<string, string>} a sign on the chip */
const SIGNS = { running: "●", waiting: "◐", stuck: "■", done: "✓", failed: "✕" };
const URGENT = ["stuck", "failed"];

/** @typedef {[state: string, note: string, seconds: number]} State `seconds` is 0 where it is not worth saying */

export function sign(/** @type {State} */ [state]) {
  return SIGNS[state] ?? "○";
}

/** "all_reduce #2, line 4, for 12 s", "stuck in recv from rank 1, line 3", "done"; "" for who just runs. */
export function fewWords(/** @type {State} */ [state, note, seconds]) {
  const place = state === "stuck" && note ? `stuck in ${note}` : note || (state === "running" ? "" : state);
  return [place, lasting(seconds)].filter(Boolean).join(", ");
}

/** "waiting, all_reduce #2, line 4, for 12 s" */
export function phrase(/** @type {State} */ [state, note, seconds]) {
  return [state, note, lasting(seconds)].filter(Boolean).join(", ");
}

function lasting(seconds) {
  if (!seconds) return "";
  return seconds < 120 ? `for ${seconds} s` : `for ${Math.floor(seconds / 60)} min`;
}

/** "rank 5: running, line 7, for 12 s · ranks 0-4,6-31: waiting, all_reduce #2, line 4, for 12 s": the few first. */
export function together(/** @type {State[]} */ states) {
  /** @type {Map<string, {ranks: number[], state: State}>} */
  const groups = new Map();
  states.forEach((state, rank) => {
    const key = `${state[0]}\n${state[1]}`;
    const group = groups.get(key) ?? { ranks: [], state };
    group.ranks.push(rank);
    if (state[2] > group.state[2]) group.state = state;
    groups.set(key, group);
  });
  return [...groups.values()]
    .sort((a, b) => a.ranks.length - b.ranks.length || a.ranks[0] - b.ranks[0])
    .map(({ ranks, state }) => `${rankNames(ranks)}: ${phrase(state)}`)
    .join(" · ");
}

/** What is worth interrupting a screen reader for: "stuck: ranks 0-2; failed: rank 3". */
export function urgent(/** @type {State[]} */ states) {
  const said = URGENT.map((urgentState) => {
    const ranks = states.flatMap(([state], rank) => (state === urgentState ? [rank] : []));
    return ranks.length ? `${urgentState}: ${rankNames(ranks)}` : "";
  });
  return said.filter(Boolean).join("; ");
}
