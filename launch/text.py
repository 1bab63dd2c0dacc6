"""Text that a rank wrote: kept within a bound, and boiled down to what a terminal would show at the end."""

from __future__ import annotations

import re

BOUND = 1 << 19  # characters kept of one stream of one rank in one cell; half of them from the start, half from the end

MOVES = re.compile(r"\r(?!\n)|\x08|\x1b\[[0-9;?]*[A-Za-ln-z]")
CONTROL = re.compile(r"\r|\x08|\x1b\[([0-9;?]*)([A-Za-z])|\n")


class Text:
    """One stream of one rank in one cell. A flood keeps its head and its tail, and says how much is missing."""

    def __init__(self, bound: int = BOUND):
        self._half = bound // 2
        self._head: list[str] = []
        self._head_room = self._half
        self._tail: list[str] = []
        self._tail_size = 0
        self._lost_chars = self._lost_lines = 0

    def append(self, text: str) -> None:
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
        if self._tail_size > self._half:
            self._cut()
        head, tail = "".join(self._head), "".join(self._tail)
        if not self._lost_chars:
            return settle(head + tail)
        gap = f"\n... {self._lost_lines:,} lines ({self._lost_chars:,} characters) left out here ...\n"
        return settle(head) + gap + settle(tail)

    def __bool__(self) -> bool:
        return bool(self._head)


def settle(text: str) -> str:
    """The text after carriage returns, backspaces and cursor movements have done their work; colours stay."""
    if not MOVES.search(text):
        return text.replace("\r\n", "\n")
    screen, at = Screen(), 0
    for match in CONTROL.finditer(text):
        screen.put(text[at : match.start()])
        screen.control(match)
        at = match.end()
    screen.put(text[at:])
    return str(screen)


class Screen:
    """The little of a terminal that progress bars use: a cell per character, colours kept in the cell they precede."""

    def __init__(self):
        self.lines: list[list[str]] = [[]]
        self.row = self.column = 0
        self.style = ""  # colours that stand before the next character

    def put(self, plain: str) -> None:
        if not plain:
            return
        line, cells = self.lines[self.row], list(plain)
        line.extend(" " * (self.column - len(line)))
        cells[0] = self.style + cells[0]
        line[self.column : self.column + len(cells)] = cells
        self.column, self.style = self.column + len(cells), ""

    def control(self, match: re.Match) -> None:
        code, number = match[2], int(match[1]) if (match[1] or "").isdecimal() else 0
        if match[0] == "\n":
            self.end_style()
            self.row, self.column = self.row + 1, 0
            if self.row == len(self.lines):
                self.lines.append([])
        elif match[0] == "\r":
            self.column = 0
        elif match[0] == "\x08":
            self.column = max(0, self.column - 1)
        elif code == "m":
            self.style += match[0]
        elif code == "A":
            self.row = max(0, self.row - max(1, number))
        elif code == "B":
            self.row = min(len(self.lines) - 1, self.row + max(1, number))
        elif code == "K" and number in (0, 2):
            del self.lines[self.row][0 if number else self.column :]
        elif code == "J" and number == 2:
            self.lines, self.row, self.column = [[]], 0, 0

    def end_style(self) -> None:
        """A colour that nothing follows on this line, mostly the end of another one, stays with the last character."""
        line = self.lines[self.row]
        if self.style and 0 < self.column <= len(line):
            line[self.column - 1] += self.style
            self.style = ""

    def __str__(self) -> str:
        self.end_style()
        return "\n".join("".join(line).rstrip(" ") for line in self.lines)
