"""Text that a rank wrote: what a terminal shows of it, kept within a bound.

A `Terminal` has one stream of one rank, from text with carriage returns, cursor movements and colours. This is the only
place that interprets them. What is saved with the notebook is what stands here in the end; the live log
(widgets.RankLog) gets what `feed` answers, in which nothing is left but lines, colours and the rewriting of whole
lines, so that both show the same. The screen is ROWS high and as wide as its longest line: what has scrolled off its
top changes no more.

Left out: a right margin at which lines wrap, scroll regions, the second screen (an editor in a rank). Bells and titles
are swallowed.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby

BOUND = 1 << 19  # characters kept of one stream of one rank in one cell; half of them from the start, half from the end
ROWS = 100
MOST_ON_SCREEN = 1 << 17  # characters; the screen is lower while its lines are very long
FARTHEST = 4000  # columns that the cursor can be sent to
LONGEST_SEQUENCE = 4096

_PLAIN = re.compile(r"[^\x00-\x09\x0b-\x1f\x7f-\x9f]*")
_TOKEN = re.compile(
    r"\x1b\[(?P<given>[0-9;:?<=>]*)[ -/]*(?P<letter>[@-~])"
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]+[0-~]|\x1b(?P<escape>[0-OQ-WYZ\\`-~])"
    r"|(?P<control>[\x00-\x1f\x7f-\x9f])|(?P<words>[^\x00-\x1f\x7f-\x9f]+)"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;:?<=>]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)$")
_SWITCHES = {**{str(n): str(n) for n in (1, 2, 3, 4, 5, 7, 8, 9)}, "22": "1 2", "39": "fg", "49": "bg"}
_SWITCHES |= {str(20 + n): str(n) for n in (3, 4, 5, 7, 8, 9)}

Cell = tuple[str, str]  # a character and what combines with it ("" behind a wide one); its colours as codes of SGR
BLANK: Cell = (" ", "")


class Terminal:
    """The screen, the cursor and the colours of one stream."""

    def __init__(self):
        self.lines: list[str | list[Cell]] = [""]  # a line that was only appended to, without colours, stays a str
        self.row = self.column = 0
        self._colours: dict[str, str] = {}
        self._saved = (0, 0)
        self._rest = ""  # of a sequence whose end has not come yet

    def feed(self, text: str) -> tuple[str, str]:
        """Takes a piece. Returns what has left the screen for good, and how the live log gets from before to now."""
        if not self._rest and not self._colours and self._at_end() and _PLAIN.fullmatch(text):
            self._go_on(text)
            return self._scroll(), text
        before = [_text(line) for line in self.lines]
        text = self._rest + text
        unfinished = _UNFINISHED.search(text[-LONGEST_SEQUENCE:])
        self._rest = unfinished[0] if unfinished else ""
        gone = []
        for match in _TOKEN.finditer(text, 0, len(text) - len(self._rest)):
            self._obey(match)
            if len(self.lines) > 2 * ROWS:
                gone.append(self._scroll())
        left = "".join(gone) + self._scroll()
        return left, _difference(before, (left + str(self)).split("\n"))

    def __str__(self) -> str:
        return "\n".join(map(_text, self.lines))

    def _at_end(self) -> bool:
        line = self.lines[-1]
        return self.row == len(self.lines) - 1 and isinstance(line, str) and self.column == _width(line)

    def _go_on(self, text: str) -> None:
        first, *others = text.split("\n")
        lines: list[str] = [_text(self.lines[-1]) + first, *others]
        self.lines[-1:] = lines
        self.row, self.column = len(self.lines) - 1, _width(lines[-1])

    def _scroll(self) -> str:
        """Takes off what is above the screen, and says what it was."""
        count, size = self._top(), sum(map(len, self.lines))
        while size > MOST_ON_SCREEN and count < min(self.row, len(self.lines) - 1):
            size -= len(self.lines[count])
            count += 1
        gone = "".join(f"{_text(line)}\n" for line in self.lines[:count])
        del self.lines[:count]
        self.row -= count
        if size > MOST_ON_SCREEN and self._at_end():  # a line without an end: its beginning changes no more
            gone, self.lines, self.column = gone + _text(self.lines[0]), [""], 0
        return gone

    def _top(self) -> int:
        return max(0, len(self.lines) - ROWS)

    # What a stream may say

    def _obey(self, match: re.Match) -> None:
        if words := match["words"]:
            self._write(words)
        elif control := match["control"]:
            self._control(control)
        elif letter := match["letter"]:
            if not match["given"].startswith(("?", "<", "=", ">")):
                self._sequence(letter, match["given"])
        elif escape := match["escape"]:
            self._escape(escape)

    def _control(self, control: str) -> None:
        if control == "\r":
            self.column = 0
        elif control == "\b":
            self.column = max(0, self.column - 1)
        elif control == "\t":
            self._go(column=self.column // 8 * 8 + 8)
        elif control in "\n\v\f":
            self._down(control == "\n")

    def _escape(self, letter: str) -> None:
        if letter == "7":
            self._saved = self.row - self._top(), self.column
        elif letter == "8":
            self._go(self._top() + self._saved[0], self._saved[1])
        elif letter in "DE":
            self._down(letter == "E")
        elif letter == "M" and self.row > self._top():
            self.row -= 1
        elif letter == "M":
            column = self.column
            self._edit_lines("L", 1)
            self.column = column
        elif letter == "c":
            self._colours = {}
            self._erase_lines(2)
            self._go(self._top(), 0)

    def _sequence(self, letter: str, given: str) -> None:
        if letter == "m":
            self._colour(given)
            return
        numbers = [int(part[:6]) if part.isdecimal() else 0 for part in given.split(";")]
        mode, count = numbers[0], max(1, numbers[0])
        if letter in "AF":
            self._go(self.row - count, 0 if letter == "F" else None)
        elif letter in "BEe":
            self._go(self.row + count, 0 if letter == "E" else None)
        elif letter in "CaD":
            self._go(column=self.column + (-count if letter == "D" else count))
        elif letter in "G`":
            self._go(column=count - 1)
        elif letter == "d":
            self._go(self._top() + count - 1)
        elif letter in "Hf":
            self._go(self._top() + count - 1, max(1, numbers[1]) - 1 if len(numbers) > 1 else 0)
        elif letter in "su":
            self._escape("7" if letter == "s" else "8")
        elif letter == "J":
            self._erase_lines(mode)
        elif letter == "K":
            self._erase(mode)
        elif letter in "XP@":
            self._edit(letter, min(count, FARTHEST))
        elif letter in "LM":
            self._edit_lines(letter, min(count, ROWS))

    def _go(self, row: int | None = None, column: int | None = None) -> None:
        if row is not None:
            self.row = max(self._top(), min(row, self._top() + ROWS - 1))
            self.lines += [""] * (self.row + 1 - len(self.lines))
        if column is not None:
            self.column = max(0, min(column, FARTHEST))

    def _down(self, to_the_start: bool) -> None:
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append("")
        if to_the_start:
            self.column = 0

    def _colour(self, given: str) -> None:
        codes = given.replace(":", ";").split(";")
        while codes:
            code = codes.pop(0).lstrip("0")
            if not code:
                self._colours = {}
            elif code in ("38", "48"):
                length = {"5": 2, "2": 4}.get(codes[0] if codes else "", 1)
                self._colours["fg" if code == "38" else "bg"] = ";".join([code, *codes[:length]])
                del codes[:length]
            elif code in _SWITCHES and int(code) < 10:
                self._colours[code] = code
            elif code in _SWITCHES:
                for name in _SWITCHES[code].split():
                    self._colours.pop(name, None)
            elif re.fullmatch(r"[39][0-7]|4[0-7]|10[0-7]", code):
                self._colours["fg" if code[0] in "39" else "bg"] = code

    # The cells

    def _cells(self) -> list[Cell]:
        """The line of the cursor, cell by cell."""
        line = self.lines[self.row]
        if isinstance(line, str):
            cells: list[Cell] = []
            for character in line:
                _add(cells, len(cells), character, "")
            self.lines[self.row] = line = cells
        return line

    def _write(self, words: str) -> None:
        line = self.lines[self.row]
        if isinstance(line, str) and not self._colours and self.column == _width(line):
            self.lines[self.row] = line + words
            self.column += _width(words)
            return
        cells, colours = self._cells(), ";".join(self._colours[name] for name in sorted(self._colours))
        cells += [BLANK] * (self.column - len(cells))
        for character in words:
            self.column = _add(cells, self.column, character, colours)

    def _erase(self, mode: int) -> None:
        cells = self._cells()
        if mode in (0, 2):
            del cells[0 if mode else self.column :]
        elif mode == 1:
            cells[: self.column + 1] = [BLANK] * min(self.column + 1, len(cells))

    def _erase_lines(self, mode: int) -> None:
        if mode in (0, 1):
            self._erase(mode)
        first, last = {0: (self.row + 1, len(self.lines)), 1: (self._top(), self.row)}.get(mode, (0, len(self.lines)))
        if mode in (0, 1, 2):
            self.lines[first:last] = [""] * max(0, last - first)

    def _edit(self, letter: str, count: int) -> None:
        cells, at = self._cells(), self.column
        if letter == "P":
            del cells[at : at + count]
        elif letter == "X":
            cells[at : at + count] = [BLANK] * len(cells[at : at + count])
        elif at < len(cells):
            cells[at:at] = [BLANK] * count

    def _edit_lines(self, letter: str, count: int) -> None:
        height = len(self.lines)
        if letter == "L":
            bottom = self._top() + ROWS
            self.lines[self.row : self.row] = [""] * count
            del self.lines[bottom:]
        else:
            del self.lines[self.row : self.row + count]
            self.lines += [""] * (height - len(self.lines))
        self.column = 0


def _add(cells: list[Cell], at: int, character: str, colours: str) -> int:
    """Puts the character at that column, over what is there. Returns the column behind it."""
    width = _width(character)
    if not width:
        owner = at - 1 if at and cells[at - 1][0] else at - 2
        if owner >= 0:
            cells[owner] = (cells[owner][0] + character, cells[owner][1])
        return at
    if at < len(cells) and not cells[at][0]:
        cells[at - 1] = BLANK  # half of a wide one is none
    if at + width < len(cells) and not cells[at + width][0]:
        cells[at + width] = BLANK
    cells[at : at + width] = [(character, colours), ("", colours)][:width]
    return at + width


def _width(text: str) -> int:
    """Columns that the text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me", "Cf") else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def _text(line: str | list[Cell]) -> str:
    """The line as text with colours, which begin and end in it; without blanks at its end if it was written over."""
    if isinstance(line, str):
        return line
    end = len(line)
    while end and line[end - 1] == BLANK:
        end -= 1
    parts = []
    for colours, run in groupby(line[:end], key=lambda cell: cell[1]):
        words = "".join(character for character, _ in run)
        parts.append(f"\x1b[{colours}m{words}\x1b[0m" if colours else words)
    return "".join(parts)


def _difference(before: list[str], now: list[str]) -> str:
    """How a terminal gets from these lines to those, with the cursor at the end of the last one both times."""
    last, said = len(before) - 1, []
    for row, (old, new) in enumerate(zip(before, now, strict=False)):
        if old == new:
            continue
        if row < last:
            said.append(f"\x1b[{last - row}A\r\x1b[K{new}\x1b[{last - row}B\r")
        elif new.startswith(old) and "\x1b" not in old and not said:
            said.append(new[len(old) :])
        else:
            said.append(f"\r\x1b[K{new}")
    if said and before[last] == now[last]:
        said.append(now[last])
    return "".join(said) + "".join(f"\n{line}" for line in now[len(before) :])


class Text:
    """One stream of one rank in one cell. A flood keeps its head and its tail, and says how much is missing."""

    def __init__(self, bound: int = BOUND):
        self._terminal = Terminal()
        self._half = bound // 2
        self._head: list[str] = []
        self._head_room = self._half
        self._tail: list[str] = []
        self._tail_size = 0
        self._lost_chars = self._lost_lines = 0

    def append(self, text: str) -> str:
        """Takes what the rank has written. Returns it as the live log is to have it: without what a terminal obeys."""
        left, shown = self._terminal.feed(text)
        self._keep(left)
        return shown

    def _keep(self, text: str) -> None:
        if self._head_room:
            self._head.append(text[: self._head_room])
            taken = len(self._head[-1])
            self._head_room -= taken
            text = text[taken:]
        if text:
            self._tail.append(text)
            self._tail_size += len(text)
            if self._tail_size > 2 * self._half:
                self._cut()

    def _cut(self) -> None:
        joined = "".join(self._tail)
        cut, kept = joined[: len(joined) - self._half], joined[len(joined) - self._half :]
        self._lost_chars += len(cut)
        self._lost_lines += cut.count("\n")
        self._tail, self._tail_size = [kept], len(kept)

    def __str__(self) -> str:
        """What is there to show: progress bars in their last state, a gap named where text was left out."""
        screen = str(self._terminal)
        if self._tail_size > self._half:
            self._cut()
        head, tail = "".join(self._head), "".join(self._tail)
        if not self._lost_chars:
            return head + tail + screen
        return head + gap(self._lost_lines, self._lost_chars) + tail + screen

    def __bool__(self) -> bool:
        return bool(self._head or str(self._terminal))


def clipped(text: str, most: int) -> str:
    """The text if it has at most so many characters, else its beginning and its end."""
    if len(text) <= most:
        return text
    head, lost, tail = text[: most // 2], text[most // 2 : -most // 2], text[-most // 2 :]
    return head + gap(lost.count("\n"), len(lost)) + tail


def gap(lines: int, characters: int) -> str:
    """The words for what is missing."""
    what = f"{lines:,} lines ({characters:,} characters)" if lines else f"{characters:,} characters"
    return f"\n... {what} left out here ...\n"
