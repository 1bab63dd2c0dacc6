/**
 * Lines that ranks have printed as nodes: in the styles of a terminal, and side by side where ranks differ.
 *
 * Left out: which lines there are (log.js, diff.js).
 */

import { styleOf } from "./terminal.js";
import { rankNames } from "./words.js";

const LONGEST = 2000; // characters of a line in the page: its beginning and its end
const EQUAL_AT_MOST = 3; // lines in a row that all ranks share, before only their number is shown

/** The text of a row; of a very long one the beginning and the end. */
export function pieces({ text, styles }) {
  const left = text.length - LONGEST;
  if (left <= 0) return runs(text, styles, 0, text.length);
  const gap = document.createTextNode(` ... ${left.toLocaleString("en")} characters left out here ... `);
  return [...runs(text, styles, 0, LONGEST / 2), gap, ...runs(text, styles, text.length - LONGEST / 2, text.length)];
}

/** The characters `from` to `end`, one node per stretch of equal style. */
function runs(text, styles, from, end) {
  if (styles === null) return [document.createTextNode(text.slice(from, end))];
  const nodes = [];
  while (from < end) {
    let to = from + 1;
    while (to < end && styles[to] === styles[from]) to++;
    nodes.push(styled(text.slice(from, to), styleOf(styles.charCodeAt(from))));
    from = to;
  }
  return nodes;
}

function styled(words, { fg, bg, bold, dim, italic, underline, inverse }) {
  const node = document.createElement("span");
  node.textContent = words;
  const [front, back] = inverse ? [bg || "paper", fg || "ink"] : [fg, bg];
  if (front) node.style.color = color(front);
  if (back) node.style.backgroundColor = color(back);
  node.className = [bold && "rs-bold", dim && "rs-dim", italic && "rs-italic", underline && "rs-underline"]
    .filter(Boolean)
    .join(" ");
  return node;
}

function color(name) {
  if (name.startsWith("rgb")) return name;
  return /^\d+$/.test(name) ? `var(--rs-ansi${name})` : `var(--rs-${name})`;
}

/** The lines of diff.js `versions`: the odd ones out marked, long stretches of equal lines only as their number. */
export function diffRows(lines) {
  const differ = lines.filter((line) => line.length > 1).length;
  const said = differ ? `Ranks differ on ${differ} of ${lines.length} lines:` : "All ranks agree.";
  const nodes = [diffRow("", said, "rs-agree")];
  for (let i = 0; i < lines.length; i++) {
    let end = i;
    while (end < lines.length && lines[end].length === 1) end++;
    if (end - i > EQUAL_AT_MOST) {
      nodes.push(diffRow("", `${end - i} lines on which all ranks agree`, "rs-agree"));
      i = end - 1;
    } else {
      lines[i].forEach((version, place) => nodes.push(versionRow(version, place, lines[i].length)));
    }
  }
  return nodes;
}

/** One text of a line: "=" what most ranks have, "≠" what others have instead, with the stretch that differs marked. */
function versionRow({ text, ranks, from, to }, place, count) {
  if (count === 1) return diffRow("all", text);
  const sign = place ? "≠" : "=";
  const row = diffRow(`${sign} ${rankNames(ranks)}`, text ?? "(no such line)", place ? "rs-odd" : "rs-most");
  if (!place || text === null || from === to) return row;
  const mark = document.createElement("mark");
  mark.textContent = text.slice(from, to);
  row.lastElementChild?.replaceChildren(text.slice(0, from), mark, text.slice(to));
  return row;
}

function diffRow(who, words, kind = "") {
  const row = document.createElement("div");
  row.className = `rs-row ${kind}`;
  for (const [name, text] of [["rs-who", who], ["rs-words", words]]) {
    const part = document.createElement("span");
    part.className = name;
    part.textContent = text;
    part.title = name === "rs-who" ? text : "";
    row.append(part);
  }
  return row;
}
