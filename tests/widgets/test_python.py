"""The Python half: what is saved in a notebook beside a widget, and what bad input is told."""

import base64
import re
from xml.dom import minidom

import pytest

from collectives import all_reduce
from widgets import Player, RankLog
from widgets.base import Widget
from widgets.packing import pack


def test_a_widget_is_the_same_text_on_every_run():
    one, two = (Player(all_reduce.ring(ranks=4))._repr_mimebundle_()[0] for _ in range(2))
    assert one["text/plain"] == "Player(all_reduce ring, 4 ranks, 6 steps)"
    view = "application/vnd.jupyter.widget-view+json"
    assert {k: v for k, v in one.items() if k != view} == {k: v for k, v in two.items() if k != view}
    assert view in one
    assert repr(RankLog(ranks=4)) == "RankLog(ranks=4)"


@pytest.mark.parametrize("schedule", [all_reduce.ring(ranks=p) for p in (2, 4, 8, 16, 64)], ids=repr)
def test_the_fallback_is_a_small_picture_of_the_steps(schedule):
    html = Player(schedule).fallback()
    assert len(html) < 20_000 and "<script" not in html
    picture = minidom.parseString(base64.b64decode(re.search(r"base64,([^\"]+)", html)[1]))
    frames = [node.firstChild.data for node in picture.getElementsByTagName("text") if node.getAttribute("y") == "12"]
    assert frames[0] == "start" and frames[-1] == f"step {len(schedule.steps)}: all-gather" and len(frames) <= 8


def test_the_fallback_of_four_ranks_says_what_each_cell_holds():
    html = Player(all_reduce.ring(ranks=4)).fallback()
    picture = base64.b64decode(re.search(r"base64,([^\"]+)", html)[1]).decode()
    assert picture.count(">a0+b0+c0+d0<") == 1 + 2 + 3 + 4  # complete on one rank after step 3, then one more per step


@pytest.mark.parametrize(
    "make, error, words",
    [
        (
            lambda: Player(42),
            TypeError,
            "Player plays a Schedule, such as all_reduce.ring(ranks=4), or launch.recording(); got int 42",
        ),
        (lambda: Player(all_reduce.ring, 4), TypeError, "positional"),
        (
            lambda: Player(all_reduce.ring(4), colour="red"),
            TypeError,
            "Player has no setting 'colour'; look at help(Player)",
        ),
        (lambda: Player(all_reduce.ring(4), nbytes=0), ValueError, "nbytes is N in bytes and positive, got 0"),
        (lambda: Player(all_reduce.ring(1000)), ValueError, "has more transfers than a browser can play"),
        (lambda: RankLog(ranks=0), ValueError, "RankLog needs a number of ranks from 1, got 0"),
        (lambda: RankLog(ranks=2).write(2, "stdout", ""), ValueError, "rank 2: this log has ranks 0 to 1"),
        (
            lambda: RankLog(ranks=2).write(1, "stdin", ""),
            ValueError,
            "rank 1: a stream is stdout or stderr, got 'stdin'",
        ),
    ],
)
def test_bad_input_is_one_clear_sentence(make, error, words):
    with pytest.raises(error) as raised:
        make()
    assert words in str(raised.value) and "\n" not in str(raised.value)


def test_a_step_outside_the_schedule_is_its_end():
    player = Player(all_reduce.ring(ranks=4), step=99)
    assert player.step == 6
    player.step = -1
    assert player.step == 0


def test_the_browser_gets_16_bytes_per_transfer_and_little_else():
    schedule = all_reduce.ring(ranks=64)
    data, meta = pack(schedule)
    assert len(data) == 16 * 64 * 126
    assert len(repr(meta)) < 64_000


def test_a_widget_without_a_picture_falls_back_to_its_name():
    assert Widget().fallback() == "<span>Widget()</span>"


def test_a_saved_page_is_the_same_twice_and_asks_nobody(tmp_path):
    player = Player(all_reduce.ring(ranks=4), step=3)
    player.save_html(tmp_path / "one.html")
    player.save_html(tmp_path / "two.html")
    text = (tmp_path / "one.html").read_text()
    assert text == (tmp_path / "two.html").read_text()
    assert not re.search(r"https?://", text)
