"""Text that a rank wrote, as a terminal shows it, within a bound.

A `Terminal` has one stream of one rank. It interprets what programs write: carriage returns, backspaces, tabs, colours,
cursor movements, erasing; all other sequences are dropped. What is saved with the notebook is its last state. The live
log (widgets.RankLog) gets what `feed` returns, in which only lines, colours and rewritten lines are left, so both show
the same. The screen has ROWS lines of any width; a line that has scrolled off the top does not change any more.

Left out: wrapped lines, wide characters (each takes one column), scroll regions, inserting, editors.
"""

from __future__ import annotations

import re
from itertools import groupby

BOUND = 1 << 19  # characters kept of one stream of one rank in one cell; half of them from the start, half from the end
ROWS = 100
MOST_ON_SCREEN = 1 << 17  # characters; the screen is lower while its lines are very long
FARTHEST = 4000  # columns that the cursor can be sent to
LONGEST_SEQUENCE = 4096

_APPENDED = re.compile(r"(?:[^\x00-\x09\x0b-\x1f\x7f-\x9f]++|\x1b\[[0-9;:]*+m)*+")  # words, new lines, colours
_TOKEN = re.compile(
    r"\x1b\[(?P<given>[0-9;:?<=>]*)[ -/]*(?P<letter>[@-~])"
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]+[0-~]|\x1b[0-OQ-WYZ\\`-~]"
    r"|(?P<control>[\x00-\x1f\x7f-\x9f])|(?P<words>[^\x00-\x1f\x7f-\x9f]+)"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;:?<=>]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)$")
_SWITCHES = {**{str(n): str(n) for n in (1, 2, 3, 4, 5, 7, 8, 9)}, "22": "1 2", "39": "fg", "49": "bg"}
_SWITCHES |= {str(20 + n): str(n) for n in (3, 4, 5, 7, 8, 9)}

Cell = tuple[str, str]  # a character; its colours as codes of SGR
BLANK: Cell = (" ", "")


class Terminal:
    """The screen, the cursor and the colours of one stream."""

    def __init__(self):
        self.lines: list[str | list[Cell]] = [""]  # a line that was only appended to, without colours, stays a str
        self.row = self.column = 0
        self._colours: dict[str, str] = {}
        self._rest = ""  # the beginning of a sequence whose end has not come yet

    def feed(self, text: str) -> tuple[str, str]:
        """Takes a piece. Returns what has scrolled off the screen, and the piece for the live log."""
        text = self._rest + text
        unfinished = _UNFINISHED.search(text[-LONGEST_SEQUENCE:])
        self._rest = unfinished[0] if unfinished else ""
        text = text[: len(text) - len(self._rest)]
        if self._at_end() and _APPENDED.fullmatch(text):
            return self._append(text)
        before = [_text(line) for line in self.lines]
        gone = []
        for match in _TOKEN.finditer(text):
            self._obey(match)
            if len(self.lines) > 2 * ROWS:
                gone.append(self._scroll())
        left = "".join(gone) + self._scroll()
        return left, _difference(before, (left + str(self)).split("\n"))

    def __str__(self) -> str:
        return "\n".join(map(_text, self.lines))

    def _at_end(self) -> bool:
        return self.row == len(self.lines) - 1 and self.column == len(self.lines[-1])

    def _append(self, text: str) -> tuple[str, str]:
        """`feed` of text and colours at the end: the live log gets this piece only, however much is on the screen."""
        if "\x1b" not in text and not self._colours and isinstance(self.lines[-1], str):
            self._append_plain(text)
            return self._scroll(), text
        gone, shown = [], []
        for number, words in enumerate(text.split("\n")):
            if number:
                self._down()
            if len(self.lines) > 2 * ROWS:
                gone.append(self._scroll())
            there = _end(self.lines[-1])
            for match in _TOKEN.finditer(words):
                self._obey(match)
            shown.append(_text(self.lines[-1][there:]))
        return "".join(gone) + self._scroll(), "\n".join(shown)

    def _append_plain(self, text: str) -> None:
        first, *others = text.split("\n")
        lines: list[str] = [_text(self.lines[-1]) + first, *others]
        self.lines[-1:] = lines
        self.row, self.column = len(self.lines) - 1, len(lines[-1])

    def _scroll(self) -> str:
        """Removes and returns what is above the screen."""
        count, size = self._top(), sum(map(len, self.lines))
        while size > MOST_ON_SCREEN and count < min(self.row, len(self.lines) - 1):
            size -= len(self.lines[count])
            count += 1
        gone = "".join(f"{_text(line)}\n" for line in self.lines[:count])
        del self.lines[:count]
        self.row -= count
        if size > MOST_ON_SCREEN and self._at_end():  # a line without an end: its beginning is final
            gone, self.lines, self.column = gone + _text(self.lines[0]), [""], 0
        return gone

    def _top(self) -> int:
        return max(0, len(self.lines) - ROWS)

    # Characters and sequences

    def _obey(self, match: re.Match) -> None:
        if words := match["words"]:
            self._write(words)
        elif control := match["control"]:
            self._control(control)
        elif letter := match["letter"]:
            if not match["given"].startswith(("?", "<", "=", ">")):
                self._sequence(letter, match["given"])

    def _control(self, control: str) -> None:
        if control == "\r":
            self.column = 0
        elif control == "\b":
            self.column = max(0, self.column - 1)
        elif control == "\t":
            self._go(column=self.column // 8 * 8 + 8)
        elif control == "\n":
            self._down()

    def _sequence(self, letter: str, given: str) -> None:
        if letter == "m":
            self._colour(given)
            return
        numbers = [int(part[:6]) if part.isdecimal() else 0 for part in given.split(";")]
        mode, count = numbers[0], max(1, numbers[0])
        if letter in "AB":
            self._go(self.row + (count if letter == "B" else -count))
        elif letter in "CD":
            self._go(column=self.column + (count if letter == "C" else -count))
        elif letter == "G":
            self._go(column=count - 1)
        elif letter == "H":
            self._go(self._top() + count - 1, max(1, numbers[1]) - 1 if len(numbers) > 1 else 0)
        elif letter == "J":
            self._erase_lines(mode)
        elif letter == "K":
            self._erase(mode)

    def _go(self, row: int | None = None, column: int | None = None) -> None:
        if row is not None:
            self.row = max(self._top(), min(row, self._top() + ROWS - 1))
            self.lines += [""] * (self.row + 1 - len(self.lines))
        if column is not None:
            self.column = max(0, min(column, FARTHEST))

    def _down(self) -> None:
        self.row, self.column = self.row + 1, 0
        if self.row == len(self.lines):
            self.lines.append("")

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
        cells = [(character, "") for character in line] if isinstance(line, str) else line
        self.lines[self.row] = cells
        return cells

    def _write(self, words: str) -> None:
        line, end = self.lines[self.row], self.column + len(words)
        if isinstance(line, str) and not self._colours and self.column == len(line):
            self.lines[self.row] = line + words
        else:
            cells, colours = self._cells(), ";".join(self._colours[name] for name in sorted(self._colours))
            cells += [BLANK] * (self.column - len(cells))
            cells[self.column : end] = [(character, colours) for character in words]
        self.column = end

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


def _text(line: str | list[Cell]) -> str:
    """The line as text; its colours begin and end in it. Without blanks at the end if it was written over."""
    if isinstance(line, str):
        return line
    parts = []
    for colours, run in groupby(line[: _end(line)], key=lambda cell: cell[1]):
        words = "".join(character for character, _ in run)
        parts.append(f"\x1b[{colours}m{words}\x1b[0m" if colours else words)
    return "".join(parts)


def _end(line: str | list[Cell]) -> int:
    """The number of characters in the text of the line."""
    end = len(line)
    while not isinstance(line, str) and end and line[end - 1] == BLANK:
        end -= 1
    return end


def _difference(before: list[str], now: list[str]) -> str:
    """What takes a terminal from these lines to those, with the cursor at the end of the last one both times."""
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
    """One stream of one rank in one cell. Of too much text the head and the tail are kept, and the gap is reported."""

    def __init__(self, bound: int = BOUND):
        self._terminal = Terminal()
        self._half = bound // 2
        self._head: list[str] = []
        self._head_room = self._half
        self._tail: list[str] = []
        self._tail_size = 0
        self._lost_chars = self._lost_lines = 0

    def append(self, text: str) -> str:
        """Takes what the rank has written. Returns it for the live log."""
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
        """The text to show: progress bars in their last state, and the size of a gap."""
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
