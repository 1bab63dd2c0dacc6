/**
 * What a whole schedule comes to, known before its first step is played: which links its messages use, who sends most,
 * until when every rank has something to do; and with that the pictures that suit it.
 *
 * Everything is read off the messages, so a student's own tree is drawn as a tree like a textbook's. Left out: where
 * things stand in such a picture (layout.js).
 */

import { amountOf, range, transfersOf } from "./schedule.js";

/**
 * @typedef {import("./schedule.js").Schedule} Schedule
 * @typedef {"row" | "ring" | "tree" | "machines"} Shape
 * @typedef {object} Survey
 * @property {number} most what the rank that sends most will have sent in the end
 * @property {number[]} until per rank the last step (from 1) in which it sends or receives; 0: in none
 * @property {Set<number>} links source * ranks + destination, in the order of their first use
 */

const GLANCE = 10; // ranks of a ring that can be taken in at once

/** Goes once through all steps. What only shows a library's effect is no message. @returns {Survey} */
export function survey(/** @type {Schedule} */ schedule) {
  const { ranks, steps, effects } = schedule;
  const sent = new Float64Array(ranks);
  const until = new Array(ranks).fill(0);
  /** @type {Set<number>} */
  const links = new Set();
  for (let k = 0; k < steps; k++) {
    for (const part of transfersOf(schedule, k)) {
      if (part.src === part.dst) continue;
      until[part.src] = until[part.dst] = k + 1;
      if (effects[k]) continue;
      sent[part.src] += amountOf(schedule, part);
      links.add(part.src * ranks + part.dst);
    }
  }
  return { most: Math.max(...sent), until, links };
}

/** The pictures a schedule can be shown in; the one that suits it best stands first. @returns {Shape[]} */
export function shapesOf(/** @type {Schedule} */ { ranks, local }, /** @type {Survey} */ { links }) {
  const ways = new Set([...links].map((link) => ((link % ranks) - Math.floor(link / ranks) + ranks) % ranks));
  const around = ranks > 2 && links.size > 0 && [...ways].every((way) => way === 1 || way === ranks - 1);
  const closed = around && ways.size === 1 && links.size === ranks;
  const tree = treeOf(ranks, links);
  /** @type {Shape[]} */
  const shapes = ["row"];
  if (around) shapes[closed && ranks <= GLANCE ? "unshift" : "push"]("ring");
  if (tree) shapes[Math.max(...tree.depth) > 1 ? "unshift" : "push"]("tree");
  if (local) shapes.unshift("machines");
  return shapes;
}

/**
 * The tree that links form, each taken in the direction of its first use: up to a root, or down from one. Null if they
 * form none, or a mere line.
 * @param {number} ranks @param {Set<number>} links
 * @returns {{parent: number[], depth: number[]} | null} the root's parent is -1
 */
export function treeOf(ranks, links) {
  /** @type {[number, number][]} */
  const edges = [];
  const known = new Set();
  for (const link of links) {
    const [src, dst] = [Math.floor(link / ranks), link % ranks];
    if (known.has(dst * ranks + src)) continue;
    known.add(link);
    edges.push([src, dst]);
  }
  if (edges.length !== ranks - 1) return null;
  return rooted(ranks, edges) ?? rooted(ranks, edges.map(([src, dst]) => [dst, src]));
}

/** The tree with edges (child, parent), if it is one that branches. */
function rooted(/** @type {number} */ ranks, /** @type {[number, number][]} */ edges) {
  const parent = new Array(ranks).fill(-1);
  for (const [child, above] of edges) parent[child] = above;
  if (parent.filter((above) => above < 0).length !== 1 || new Set(edges.map(([, above]) => above)).size === ranks - 1) {
    return null;
  }
  const depth = range(ranks).map((rank) => {
    let edgesUp = 0;
    for (let at = rank; parent[at] >= 0 && edgesUp < ranks; at = parent[at]) edgesUp++;
    return edgesUp;
  });
  return depth.every((edgesUp) => edgesUp < ranks) ? { parent, depth } : null;
}
