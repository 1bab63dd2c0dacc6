"""Text within a bound, and what a terminal would show at the end."""

import pytest

from launch.text import Text, settle


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("plain\ntext\n", "plain\ntext\n"),
        ("windows\r\nends\r\n", "windows\nends\n"),
        ("10%\r50%\r100%\n", "100%\n"),
        ("abcdef\rXY\n", "XYcdef\n"),  # a terminal overwrites, it does not erase
        ("ab\x08c\n", "ac\n"),
        ("one\ntwo\x1b[A\rONE\n", "ONE\ntwo"),  # what nested progress bars do
        ("long line\r\x1b[Kshort\n", "short\n"),
        ("first\n\x1b[2Jsecond\n", "second\n"),
        ("\x1b[31mred\x1b[0m\n", "\x1b[31mred\x1b[0m\n"),  # colours stay
        ("1/2\r\x1b[32m2/2\x1b[0m\n", "\x1b[32m2/2\x1b[0m\n"),
        ("", ""),
    ],
)
def test_control_characters_do_their_work(written, shown):
    assert settle(written) == shown


def test_within_the_bound_nothing_is_changed():
    text = Text(bound=100)
    for i in range(10):
        text.append(f"line {i}\n")
    assert str(text) == "".join(f"line {i}\n" for i in range(10))


def test_a_flood_keeps_head_and_tail_and_says_what_is_missing():
    text = Text(bound=1000)
    written = "".join(f"line {i:05}\n" for i in range(10_000))
    for start in range(0, len(written), 777):
        text.append(written[start : start + 777])
    shown = str(text)
    gap = next(line for line in shown.splitlines() if "left out" in line)
    assert shown.startswith("line 00000\n") and shown.endswith("line 09999\n")
    head, tail = shown.split(f"\n{gap}\n")
    assert written.startswith(head) and written.endswith(tail)
    missing = written[len(head) : len(written) - len(tail)]
    assert gap == f"... {missing.count(chr(10)):,} lines ({len(missing):,} characters) left out here ..."


def test_nothing_written_is_false():
    assert not Text() and str(Text()) == ""
