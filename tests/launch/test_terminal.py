"""What a terminal shows: by hand, against pyte (a terminal that others wrote), and that the live log shows the same."""

import random
import re
import subprocess
import sys

import pyte
import pytest

from launch.shared import text
from launch.shared.text import Terminal

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def shown(*pieces):
    terminal = Terminal()
    left = "".join(terminal.feed(piece)[0] for piece in pieces)
    return left + str(terminal)


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("plain\ntext\n", "plain\ntext\n"),
        ("windows\r\nends\r\n", "windows\nends\n"),
        ("10%\r50%\r100%\n", "100%\n"),
        ("abcdef\rXY\n", "XYcdef\n"),  # a terminal overwrites, it does not erase
        ("ab\x08c\n", "ac\n"),
        ("one\ntwo\x1b[A\rONE\n", "ONE\ntwo"),  # what nested progress bars do
        ("long line\r\x1b[Kshort\n", "short\n"),
        ("first\n\x1b[2J\x1b[Hsecond\n", "second\n"),
        ("a\tb\nabcdefgh\tb\n", "a       b\nabcdefgh        b\n"),
        ("\x1b[31mred\x1b[0m\n", "\x1b[31mred\x1b[0m\n"),
        ("\x1b[1;31mred\non\x1b[0m off", "\x1b[1;31mred\x1b[0m\n\x1b[1;31mon\x1b[0m off"),  # a line is complete
        ("1/2\r\x1b[32m2/2\x1b[0m\n", "\x1b[32m2/2\x1b[0m\n"),
        ("\x1b[31mred\r\x1b[0mnow\n", "now\n"),
        ("\x1b]0;title\x07\x1b(B\x1b[?25l\x1b[>4;1mtext\x07\n", "text\n"),
        ("", ""),
    ],
)
def test_what_is_written_is_shown_as_in_a_terminal(written, seen):
    assert shown(written) == seen
    assert shown(*written) == seen  # character by character


MOVES = ["\r", "\b", "\t", "\n", "\n", "\r\n", "\x07"]
WORDS = ["a", "hello", "100%|███", " ", "x" * 30, "\x1b[31mred", "\x1b[0m", "\x1b[1;44mbold\x1b[m"]
WIDE = ["你好", "e\u0301", "🙂"]  # pyte gives them two columns, or none


def scribble(chance: random.Random, length: int, words=WORDS) -> str:
    """A random mix of everything that the Terminal interprets."""
    parts = []
    for _ in range(length):
        kind = chance.random()
        if kind < 0.45:
            parts.append(chance.choice(words))
        elif kind < 0.7:
            parts.append(chance.choice(MOVES))
        else:
            letter = chance.choice("AABCDGHJKK")
            number = chance.choice(["", "0", "1", "2", "3"]) if letter in "JK" else chance.choice(["", "1", "2", "5"])
            number = number.replace("3", "1") if letter in "JK" else number
            parts.append(f"\x1b[{number}{';4' if letter == 'H' else ''}{letter}")
    return "".join(parts)


def by_pyte(text: str) -> str:
    screen = pyte.Screen(400, 100)
    pyte.Stream(screen).feed(text.replace("\n", "\r\n"))
    rows = [screen.buffer[row] for row in range(max(screen.buffer, default=-1) + 1)]
    lines = ["".join(row[column].data for column in range(max(row, default=-1) + 1)).rstrip() for row in rows]
    return "\n".join(lines).rstrip("\n")


def bare(text: str) -> str:
    return "\n".join(line.rstrip() for line in COLOUR.sub("", text).split("\n")).rstrip("\n")


@pytest.mark.parametrize("seed", range(300))
def test_another_terminal_shows_the_same(seed):
    text = scribble(random.Random(seed), 40)
    assert bare(shown(text)) == by_pyte(text), repr(text)


def pieces_of(chance: random.Random, text: str) -> list[str]:
    cuts = sorted(chance.sample(range(len(text) + 1), min(6, len(text))))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@pytest.mark.parametrize("seed", range(100))
def test_it_does_not_matter_how_a_text_is_cut_and_the_live_log_gets_there_by_simpler_means(seed):
    chance = random.Random(seed)
    text = scribble(chance, 60, WORDS + WIDE)
    whole, cut = Terminal(), Terminal()
    whole.feed(text)
    live = [cut.feed(piece)[1] for piece in pieces_of(chance, text)]
    assert str(cut) == str(whole), repr(text)
    assert bare(shown(*live)) == bare(str(whole)), repr(text)
    assert not re.search(r"\x1b\[[0-9;]*[^mABK0-9;]|[\x00-\x09\x0b\x0c\x0e-\x1a\x7f]", "".join(live))


@pytest.mark.parametrize("seed", range(8))
def test_lines_in_colours_reach_the_live_log_however_they_are_cut(seed):
    chance = random.Random(seed)
    words = ["a", " ", "\n", "\x1b[31mred", "\x1b[0m", "\x1b[1;44m ", "\x1b[m  "]
    text = "".join(chance.choice(words) for _ in range(400))
    terminal = Terminal()
    pieces = [terminal.feed(piece)[1] for piece in pieces_of(chance, text) + list(text)]
    assert shown(*pieces) == shown(text, text)


def test_a_piece_in_colours_costs_as_much_as_it_is_long(monkeypatch):
    """10,000 coloured lines took 9 s when each piece read the whole screen, and one long line took half a minute."""
    lines, texts = [], text._text
    monkeypatch.setattr(text, "_text", lambda line: lines.append(line) or texts(line))
    pieces = [f"\x1b[31mline {i}\x1b[0m\n" for i in range(300)] + [f"\x1b[3{i % 8}mx\x1b[0m" for i in range(300)]
    terminal = Terminal()
    live = "".join(terminal.feed(piece)[1] for piece in pieces)
    assert len(live) < 2 * sum(map(len, pieces))
    assert len(lines) < 4 * len(pieces)


def test_a_long_line_in_colours_is_cut_off_where_a_plain_one_is():
    terminal = Terminal()
    left = "".join(terminal.feed("\x1b[31m" + "x" * 1000)[0] for _ in range(300))
    assert len(left) > 100_000 and len(str(terminal)) < 200_000


def test_what_has_left_the_screen_comes_first_and_is_not_reached_any_more():
    lines = "".join(f"line {i}\n" for i in range(1000))
    assert shown(lines, "\x1b[5000A\rclimbed") == lines.replace("line 901\n", "climbed1\n")


BARS = """
import sys, time
from tqdm.auto import tqdm
for i in tqdm(range(30), desc="outer", mininterval=0):
    for j in tqdm(range(3), desc="inner", mininterval=0, leave={leave}):
        pass
"""


@pytest.mark.parametrize("leave", [True, False])
def test_progress_bars_end_at_the_end(leave):
    run = subprocess.run([sys.executable, "-c", BARS.format(leave=leave)], stderr=subprocess.PIPE)
    written = run.stderr.decode()
    lines = shown(written).split("\n")
    assert any(line.startswith("outer: 100%") for line in lines)
    assert all("100%" in line or not line for line in lines)
    assert bare(shown(written)) == by_pyte(written)
