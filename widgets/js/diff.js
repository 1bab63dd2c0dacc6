/**
 * Where ranks disagree: their outputs line by line, the first lines of all against each other, then the second ones.
 *
 * Ranks of one program print line for line the same but for what differs between them, so lines are compared by their
 * number. Of each line the text that most ranks have is the one the others are held against, and of those the stretch
 * that differs is found. A rank that has printed fewer lines disagrees where it has none.
 *
 * Left out: lines that one rank alone has in between; from there on its lines stand against the wrong ones.
 */

/** @typedef {import("./log.js").Row} Row */
/** @typedef {{text: string | null, ranks: number[], from: number, to: number}} Version differs in [from, to) */

/**
 * Of each line number from `first` on, what the ranks have there: most ranks first, else in rank order.
 * @returns {Version[][]}
 */
export function versions(/** @type {Row[][]} */ lines, first = 0) {
  const most = Math.max(0, ...lines.map((own) => own.length));
  return Array.from({ length: Math.max(0, most - first) }, (_, i) => versionsOf(lines, first + i));
}

function versionsOf(lines, at) {
  /** @type {Map<string | null, number[]>} */
  const ranksOf = new Map();
  lines.forEach((own, rank) => {
    const text = own[at]?.text ?? null;
    ranksOf.set(text, [...(ranksOf.get(text) ?? []), rank]);
  });
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
