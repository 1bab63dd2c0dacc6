"""Text within a bound; what a terminal shows is in test_terminal.py."""

import pytest

from launch.shared.text import Text, clipped


def written(*pieces):
    text = Text()
    for piece in pieces:
        text.append(piece)
    return text


@pytest.mark.parametrize("blocks", [1, 7, 1000])
def test_within_the_bound_nothing_is_changed(blocks):
    lines = "".join(f"line {i}\n" for i in range(1000))
    assert str(written(*(lines[start : start + blocks] for start in range(0, len(lines), blocks)))) == lines


def test_a_flood_keeps_head_and_tail_and_says_what_is_missing():
    text = Text(bound=1000)
    flood = "".join(f"line {i:05}\n" for i in range(10_000))
    for start in range(0, len(flood), 777):
        text.append(flood[start : start + 777])
    shown = str(text)
    gap = next(line for line in shown.splitlines() if "left out" in line)
    assert shown.startswith("line 00000\n") and shown.endswith("line 09999\n")
    head, tail = shown.split(f"\n{gap}\n")
    assert flood.startswith(head) and flood.endswith(tail)
    missing = flood[len(head) : len(flood) - len(tail)]
    assert gap == f"... {missing.count(chr(10)):,} lines ({len(missing):,} characters) left out here ..."


def test_a_line_without_an_end_is_bounded_too():
    text = written(*["z" * 1_000_000] * 10)
    assert len(str(text)) < 2_000_000 and "characters left out here" in str(text)


def test_nothing_written_is_false():
    assert not Text() and str(Text()) == "" and written("x")


def test_a_text_that_is_too_long_keeps_its_beginning_and_its_end():
    assert clipped("short", 5) == "short"
    long = "a" * 10 + "b" * 20 + "c" * 10
    assert clipped(long, 20) == "a" * 10 + "\n... 20 characters left out here ...\n" + "c" * 10
    assert "4 lines (12 characters)" in clipped("ab\n" * 8, 12)
