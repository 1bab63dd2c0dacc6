/**
 * Where ranks disagree: their outputs side by side, line by line, lines of the same text against each other.
 *
 * Ranks of one program print line for line the same but for what differs between them. The output that most ranks have
 * is the one the others are held against, so that a line that one rank lacks, or has in addition, moves none of the
 * lines behind it. Lines between two that agree are paired in order, and of each pair the stretch that differs is found.
 *
 * Which lines agree is found as in a patience diff: equal beginnings and ends, then lines that stand exactly once in
 * both outputs, as many of them as are in the same order, and so on between those.
 *
 * Left out: among lines that do not agree, pairing those that look alike.
 */

/** @typedef {import("./log.js").Row} Row */
/** @typedef {{text: string | null, ranks: number[], from: number, to: number}} Version differs in [from, to) */
/** @typedef {{beside: (string | null)[], before: string[][]}} Fitted what a rank has beside, and before, each line */

/**
 * Of each of the last `most` lines, what the ranks have there: most ranks first, else in rank order.
 * @returns {Version[][]}
 */
export function versions(/** @type {Row[][]} */ lines, most = Infinity) {
  // Twice as many are looked at: where ranks lack lines, the first ones that are looked at do not belong together.
  const outputs = lines.map((own) => own.slice(-2 * most).map(({ text }) => text));
  const common = commonest(outputs);
  const ranks = outputs.map((own) => fitted(own, common));
  /** @type {(string | null)[][]} */
  const rows = [];
  for (let i = 0; i <= common.length; i++) {
    const deepest = Math.max(0, ...ranks.map(({ before }) => before[i].length));
    for (let k = 0; k < deepest; k++) rows.push(ranks.map(({ before }) => before[i][k] ?? null));
    if (i < common.length) rows.push(ranks.map(({ beside }) => beside[i]));
  }
  return rows.slice(-most).map(versionsOf);
}

/** The output that most ranks have; of several the longest, else the first. @returns {string[]} */
function commonest(/** @type {string[][]} */ outputs) {
  /** @type {Map<string, {own: string[], count: number}>} */
  const found = new Map();
  for (const own of outputs) {
    const key = own.join("\n");
    found.set(key, { own, count: (found.get(key)?.count ?? 0) + 1 });
  }
  const [most] = [...found.values()].sort((a, b) => b.count - a.count || b.own.length - a.own.length);
  return most?.own ?? [];
}

/** @returns {Fitted} */
function fitted(/** @type {string[]} */ own, /** @type {string[]} */ common) {
  const partner = aligned(common, own);
  let next = 0;
  const before = Array.from({ length: common.length + 1 }, (_, i) => {
    const at = i < common.length ? partner[i] : own.length;
    if (at < 0) return [];
    const extra = own.slice(next, at);
    next = at + 1;
    return extra;
  });
  return { beside: partner.map((at) => own[at] ?? null), before };
}

/** For each line of `a` the number of the line of `b` that stands beside it, ascending; -1 if there is none. */
function aligned(/** @type {string[]} */ a, /** @type {string[]} */ b) {
  const partner = new Array(a.length).fill(-1);
  const within = (a0, a1, b0, b1) => {
    while (a0 < a1 && b0 < b1 && a[a0] === b[b0]) partner[a0++] = b0++;
    while (a0 < a1 && b0 < b1 && a[a1 - 1] === b[b1 - 1]) partner[--a1] = --b1;
    const anchors = inOrder(onceInBoth(a, a0, a1, b, b0, b1));
    if (!anchors.length) {
      while (a0 < a1 && b0 < b1) partner[a0++] = b0++;
      return;
    }
    for (const [ai, bi] of [...anchors, [a1, b1]]) {
      within(a0, ai, b0, bi);
      [a0, b0] = [ai, bi];
    }
  };
  within(0, a.length, 0, b.length);
  return partner;
}

/** [number in a, number in b] of the lines that stand once in both stretches, in the order of a. */
function onceInBoth(a, a0, a1, b, b0, b1) {
  const places = (lines, from, to) => {
    /** @type {Map<string, number>} */
    const found = new Map();
    for (let i = from; i < to; i++) found.set(lines[i], found.has(lines[i]) ? -1 : i);
    return found;
  };
  const inB = places(b, b0, b1);
  /** @type {[number, number][]} */
  const pairs = [];
  for (const [line, i] of places(a, a0, a1)) {
    const j = inB.get(line) ?? -1;
    if (i >= 0 && j >= 0) pairs.push([i, j]);
  }
  return pairs.sort((p, q) => p[0] - q[0]);
}

/** As many of the pairs as ascend in b, too: the longest ascending subsequence. */
function inOrder(/** @type {[number, number][]} */ pairs) {
  /** @type {number[]} of ascending sequences of length 1, 2, ... the pair that ends them lowest */
  const ends = [];
  /** @type {number[]} */
  const previous = [];
  pairs.forEach(([, j], n) => {
    let low = 0;
    for (let high = ends.length; low < high; ) {
      const middle = (low + high) >> 1;
      if (pairs[ends[middle]][1] < j) low = middle + 1;
      else high = middle;
    }
    previous.push(low ? ends[low - 1] : -1);
    ends[low] = n;
  });
  const chosen = [];
  for (let n = ends.at(-1) ?? -1; n >= 0; n = previous[n]) chosen.push(pairs[n]);
  return chosen.reverse();
}

function versionsOf(/** @type {(string | null)[]} */ row) {
  /** @type {Map<string | null, number[]>} */
  const ranksOf = new Map();
  row.forEach((text, rank) => ranksOf.set(text, [...(ranksOf.get(text) ?? []), rank]));
  const found = [...ranksOf].map(([text, ranks]) => ({ text, ranks, from: 0, to: 0 }));
  found.sort((a, b) => b.ranks.length - a.ranks.length || a.ranks[0] - b.ranks[0]);
  for (const version of found.slice(1)) [version.from, version.to] = stretch(version.text ?? "", found[0].text ?? "");
  return found;
}

/** The stretch [from, to) of `text` outside of which it is the same as `other`. */
function stretch(text, other) {
  const shorter = Math.min(text.length, other.length);
  let from = 0;
  while (from < shorter && text[from] === other[from]) from++;
  let after = 0;
  while (after < shorter - from && text.at(-1 - after) === other.at(-1 - after)) after++;
  return [from, text.length - after];
}
