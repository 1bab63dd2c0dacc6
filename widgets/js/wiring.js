/**
 * Where the parts of a machine room stand: boxes for GPUs, switches and networks, a line for every link.
 *
 * Machines stand in two rows, with the network that joins them in between; a ring goes around, there and back; a shared
 * medium is a bar above its ranks. Pure arithmetic in pixels. Left out: what the links carry, and ink (topology.js).
 */

import { range } from "./schedule.js";

/**
 * @typedef {object} Room what Python knows about a topology (widgets/topology_map.py)
 * @property {"machines" | "ring" | "shared"} kind
 * @property {string} title
 * @property {number} ranks
 * @property {number | null} local ranks per machine
 * @property {string[]} links their names, in the order in which Topology (collectives/network.py) has them
 *
 * @typedef {{kind: string, x: number, y: number, w: number, h: number, words: string}} Part
 * @typedef {{link: number, x1: number, y1: number, x2: number, y2: number}} Line from where it is sent to where it goes
 * @typedef {{links: number[], x: number, y: number, wide: number}} Label amounts of one or two links
 * @typedef {{height: number, thickest: number, parts: Part[], lines: Line[], labels: Label[]}} Wiring
 * @typedef {{width: number, tall: number, scale: number}} Space pixels, and the size of words (1 in a notebook); a
 *   picture that needs more than `tall` takes it
 */

const TILE = 28; // height of a GPU
const BAR = 26; // height of a switch or a network
const WIRE = 70; // length of a link, with the two amounts on it
const SHORTEST = 31;
const THICKEST = 11; // of a wire
const PAD = 10;

/** @param {Room} room @param {Space} space @returns {Wiring} */
export function wire(room, space) {
  return { machines, ring, shared }[room.kind](room, space);
}

/** Links: out of every GPU, into every GPU, out of every card, into every card. @param {Room} room @param {Space} space @returns {Wiring} */
function machines({ ranks, local, links }, { width, tall, scale }) {
  const gpus = local ?? ranks;
  const count = ranks / gpus;
  const several = count > 1;
  const columns = Math.ceil(count / (several ? 2 : 1));
  const cards = links.length / 2 - ranks;
  const own = cards === ranks; // every GPU has a card of its own
  const [tile, bar] = [TILE * scale, BAR * scale];
  const fixed = (several ? 2 : 1) * (2 * PAD + bar + tile) + (several ? bar : 0);
  const wires = several ? 4 : 1; // one below another
  const long = Math.max(SHORTEST * scale, Math.min(WIRE * scale, (tall - fixed) / wires));
  const inside = 2 * PAD + bar + long + tile;
  const middle = several ? inside + long : inside; // where the network begins
  const wide = (width - (columns - 1) * PAD) / columns;
  const pitch = (wide - 2 * PAD) / gpus;
  const gap = Math.min(pitch * 0.16, 9 * scale); // from the middle of a GPU to a wire
  /** @type {Wiring} */
  const wiring = { height: middle, thickest: Math.min(THICKEST * scale, 2 * gap), parts: [], lines: [], labels: [] };
  for (const machine of range(count)) {
    const under = machine >= columns; // stands below the network, upside down
    const left = (machine % columns) * (wide + PAD);
    const y = (/** @type {number} */ down) => (under ? 2 * middle + bar - down : down);
    const box = (kind, x, down, w, h, words) => {
      wiring.parts.push({ kind, x, y: Math.min(y(down), y(down + h)), w, h, words });
    };
    const pair = (out, into, x, from, to, room) => {
      wiring.lines.push({ link: out, x1: x - gap, y1: y(from), x2: x - gap, y2: y(to) });
      wiring.lines.push({ link: into, x1: x + gap, y1: y(to), x2: x + gap, y2: y(from) });
      wiring.labels.push({ links: [out, into], x, y: (y(from) + y(to)) / 2, wide: room });
    };
    const name = several ? `machine ${machine}` : "switch";
    box("machine", left, 0, wide, inside, "");
    box("switch", left + PAD, PAD, wide - 2 * PAD, bar, name);
    const at = PAD + bar + long;
    for (const gpu of range(gpus)) {
      const rank = machine * gpus + gpu;
      const x = left + PAD + (gpu + 0.5) * pitch;
      const w = Math.min(pitch * 0.84, 60 * scale);
      box("gpu", x - w / 2, at, w, tile, String(rank));
      pair(rank, ranks + rank, x, at, PAD + bar, pitch);
      if (several && own) pair(2 * ranks + rank, 3 * ranks + rank, x, at + tile, middle, pitch);
    }
    const card = 2 * ranks + machine;
    if (several && !own) pair(card, card + cards, left + wide / 2, inside, middle, wide);
  }
  if (!several) return wiring;
  wiring.parts.push({ kind: "network", x: 0, y: middle, w: width, h: bar, words: "network between the machines" });
  return { ...wiring, height: 2 * middle + bar };
}

/** There along the top and back along the bottom. Links: every rank's to the right, every rank's to the left. @param {Room} room @param {Space} space @returns {Wiring} */
function ring({ ranks }, { width, scale }) {
  const columns = Math.ceil(ranks / 2);
  const pitch = width / columns;
  const [w, h] = [Math.min(pitch * 0.45, 60 * scale), TILE * scale];
  const aside = 6 * scale;
  const drop = 130 * scale;
  const place = (/** @type {number} */ rank) => {
    const back = rank >= columns;
    const column = back ? ranks - 1 - rank : rank;
    return { x: (column + 0.5) * pitch, y: h + (back ? drop : 0) };
  };
  /** @type {Wiring} */
  const wiring = { height: drop + 2 * h, thickest: THICKEST * scale, parts: [], lines: [], labels: [] };
  for (const rank of range(ranks)) {
    const next = (rank + 1) % ranks;
    const [here, there] = [place(rank), place(next)];
    const links = [rank, ranks + next];
    const flat = here.y === there.y;
    const along = Math.sign(flat ? there.x - here.x : there.y - here.y) * (flat ? w : h) * 0.5;
    links.forEach((link, back) => {
      const off = back ? aside : -aside;
      const from = flat ? [here.x + along, here.y + off] : [here.x + off, here.y + along];
      const to = flat ? [there.x - along, there.y + off] : [here.x + off, there.y - along];
      const [[x1, y1], [x2, y2]] = back ? [to, from] : [from, to];
      wiring.lines.push({ link, x1, y1, x2, y2 });
    });
    const inwards = flat ? (here.y > h ? -32 : 32) * scale : 0;
    const beside = flat ? 0 : (here.x < width / 2 ? 54 : -54) * scale;
    const middle = { x: flat ? (here.x + there.x) / 2 : here.x, y: (here.y + there.y) / 2 };
    wiring.labels.push({ links, x: middle.x + beside, y: middle.y + inwards, wide: flat ? pitch - w : pitch });
    wiring.parts.push({ kind: "gpu", x: here.x - w / 2, y: here.y - h / 2, w, h, words: String(rank) });
  }
  return wiring;
}

/** Its one link is the medium. @param {Room} room @param {Space} space @returns {Wiring} */
function shared({ ranks }, { width, scale }) {
  const pitch = width / ranks;
  const w = Math.min(pitch * 0.8, 90 * scale);
  const y = 30 * scale;
  const long = 44 * scale;
  const parts = range(ranks).flatMap((rank) => {
    const x = (rank + 0.5) * pitch;
    const gpu = { kind: "gpu", x: x - w / 2, y: y + long, w, h: TILE * scale, words: String(rank) };
    return [{ kind: "stub", x, y, w: 1, h: long, words: "" }, gpu];
  });
  const height = y + long + TILE * scale + 8;
  const lines = [{ link: 0, x1: 0, y1: y, x2: width, y2: y }];
  const labels = [{ links: [0], x: width / 2, y: y - 14 * scale, wide: width }];
  return { height, thickest: THICKEST * scale, parts, lines, labels };
}

/** Where a link leads, as an arrow. */
export function wayOf(/** @type {Line} */ { x1, y1, x2, y2 }) {
  if (y1 !== y2) return y1 > y2 ? "↑" : "↓";
  return x1 < x2 ? "→" : "←";
}
