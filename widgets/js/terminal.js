/**
 * One stream as lines in colours, from what launch/shared/text.py says of it: text, lines, SGR sequences, and lines that are
 * written anew (up, to the start, erase, down). It alone interprets what ranks write; here is just enough to follow it.
 *
 * A line is settled once the cursor has left it downwards at the end of a batch; a batch that climbs takes lines back.
 *
 * Left out: which rank it is (log.js) and what it looks like (ranklog.js).
 */

/**
 * @typedef {{text: string, styles: string | null}} Line `styles` has one character per character of `text`: the code
 *   is an index into the table behind `styleOf`; null while everything is plain
 */

const TOKEN = /\r\n|[\n\r\b]|\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[^[\]]|[^\n\r\b\x1b]+/g;
const UNFINISHED = /(?:\x1b(?:\[[0-9;:?]*[ -/]*|\][^\x07\x1b]*\x1b?)?|\r)$/;
const HIGHEST = 200; // lines that can be climbed back to: more than a screen has

export class Terminal {
  constructor() {
    /** @type {Line[]} */
    this.open = [blank()];
    this.row = 0;
    this.column = 0;
    this.style = PLAIN;
    this.rest = "";
    /** @type {Line[]} the last lines that were settled */
    this.past = [];
    this.taken = 0; // how many of them the last piece has taken back
  }

  /** Takes a piece of the stream; returns the lines that are settled now. @returns {Line[]} */
  feed(/** @type {string} */ piece) {
    this.taken = 0;
    let text = this.rest + piece;
    this.rest = text.match(UNFINISHED)?.[0] ?? "";
    if (this.rest.length > 256) this.rest = "";
    else if (this.rest) text = text.slice(0, -this.rest.length);
    for (const [token] of text.matchAll(TOKEN)) this.#obey(token);
    const settled = this.open.splice(0, this.row);
    this.row = 0;
    this.past = [...this.past, ...settled].slice(-HIGHEST);
    return settled;
  }

  #obey(token) {
    if (token === "\n" || token === "\r\n") this.#down();
    else if (token === "\r") this.column = 0;
    else if (token === "\b") this.column = Math.max(0, this.column - 1);
    else if (token.startsWith("\x1b[")) this.#control(token.slice(2, -1), token[token.length - 1]);
    else if (!token.startsWith("\x1b")) this.#write(token);
  }

  #down() {
    this.row++;
    this.column = 0;
    if (this.row === this.open.length) this.open.push(blank());
  }

  #up(count) {
    const back = this.past.splice(-Math.min(Math.max(0, count - this.row), HIGHEST) || this.past.length);
    this.open.unshift(...back);
    this.taken += back.length;
    this.row = Math.max(0, this.row + back.length - count);
  }

  #control(given, letter) {
    const count = Number.parseInt(given, 10) || 1;
    if (letter === "m") this.style = restyled(this.style, given);
    else if (letter === "A") this.#up(count);
    else if (letter === "B") for (let i = 0; i < Math.min(count, HIGHEST); i++) this.#down();
    else if (letter === "K") this.#erase(Number.parseInt(given, 10) || 0);
  }

  #erase(mode) {
    const line = this.open[this.row];
    const from = mode === 0 ? this.column : 0;
    const to = mode === 1 ? this.column : line.text.length;
    const gap = mode === 1 ? " ".repeat(to) : "";
    line.text = line.text.slice(0, from) + gap + line.text.slice(to);
    if (line.styles !== null)
      line.styles = line.styles.slice(0, from) + gap.replace(/ /g, "\0") + line.styles.slice(to);
  }

  #write(words) {
    const line = this.open[this.row];
    const style = idOf(this.style);
    const column = Math.min(this.column, 100_000);
    if (line.text.length < column) {
      if (line.styles !== null) line.styles = line.styles.padEnd(column, "\0");
      line.text = line.text.padEnd(column);
    }
    if (style || line.styles !== null) {
      const before = line.styles ?? "\0".repeat(line.text.length);
      line.styles = overwritten(before, column, String.fromCharCode(style).repeat(words.length));
    }
    line.text = overwritten(line.text, column, words);
    this.column = column + words.length;
  }
}

/** @returns {Line} */
function blank() {
  return { text: "", styles: null };
}

/** `text` with `words` at `column`. At its end they are only added: a line that is written bit by bit may be long. */
function overwritten(text, column, words) {
  return column === text.length ? text + words : text.slice(0, column) + words + text.slice(column + words.length);
}

/** @typedef {{fg: string, bg: string, bold: boolean, dim: boolean, italic: boolean, underline: boolean, inverse: boolean}} Style */

/** @type {Style} */
const PLAIN = { fg: "", bg: "", bold: false, dim: false, italic: false, underline: false, inverse: false };

/** @type {Style[]} */
const table = [PLAIN];
const known = new Map([[JSON.stringify(PLAIN), 0]]);

function idOf(style) {
  const key = JSON.stringify(style);
  if (!known.has(key) && table.length < 2000) known.set(key, table.push(style) - 1);
  return known.get(key) ?? 0;
}

/** The style with this number. */
export function styleOf(/** @type {number} */ id) {
  return table[id] ?? PLAIN;
}

const SWITCHES = {
  1: { bold: true },
  2: { dim: true },
  3: { italic: true },
  4: { underline: true },
  7: { inverse: true },
  22: { bold: false, dim: false },
  23: { italic: false },
  24: { underline: false },
  27: { inverse: false },
  39: { fg: "" },
  49: { bg: "" },
};

/** `style` after an SGR sequence such as "1;31" or "38;5;208". Colours are "0".."15" or "rgb(...)". */
function restyled(style, given) {
  const codes = given.split(/[;:]/).map(Number);
  let now = { ...style };
  for (let i = 0; i < codes.length; i++) {
    const code = codes[i];
    if (code === 0) now = { ...PLAIN };
    else if (code in SWITCHES) Object.assign(now, SWITCHES[code]);
    else if (code === 38 || code === 48) {
      const [color, used] = longColor(codes.slice(i + 1));
      now[code === 38 ? "fg" : "bg"] = color;
      i += used;
    } else if (code >= 30 && code <= 37) now.fg = String(code - 30);
    else if (code >= 40 && code <= 47) now.bg = String(code - 40);
    else if (code >= 90 && code <= 97) now.fg = String(code - 82);
    else if (code >= 100 && code <= 107) now.bg = String(code - 92);
  }
  return now;
}

/** A colour from what follows 38 or 48, and how many codes it took. @returns {[string, number]} */
function longColor([kind, a = 0, b = 0, c = 0]) {
  if (kind === 2) return [`rgb(${a} ${b} ${c})`, 4];
  if (kind !== 5) return ["", 1];
  if (a < 16) return [String(a), 2];
  if (a > 231)
    return [
      `rgb(${Array(3)
        .fill(8 + 10 * (a - 232))
        .join(" ")})`,
      2,
    ];
  const level = (n) => (n ? 55 + 40 * n : 0);
  return [`rgb(${level(Math.floor((a - 16) / 36))} ${level(Math.floor((a - 16) / 6) % 6)} ${level((a - 16) % 6)})`, 2];
}
