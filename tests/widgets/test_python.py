"""The Python half: what is saved in a notebook beside a widget, and what bad input is told."""

import base64
import re
from xml.dom import minidom

import pytest

from collectives import Schedule, Transfer, all_gather, all_reduce, all_to_all, broadcast
from collectives.run import Run
from widgets import Player, RankLog, _still, _strip
from widgets._packing import pack
from widgets.base import Widget, html


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
    assert len(html) < 40_000 and "<script" not in html
    picture = minidom.parseString(base64.b64decode(re.search(r"base64,([^\"]+)", html)[1]))
    frames = [node.firstChild.data for node in picture.getElementsByTagName("text") if node.getAttribute("y") == "12"]
    assert frames[0] == "start" and frames[-1] == f"step {len(schedule.steps)}: all-gather" and len(frames) <= 8


def test_in_the_fallback_a_block_keeps_its_colour_on_its_way():
    """Every text stands on a stroke of the hue of its chunk, wherever Bruck's blocks are in their step."""
    schedule = all_to_all.bruck(4)
    states = [schedule.start(), *(schedule.states(step) for step in range(len(schedule.steps)))]
    filled = sum(bool(cell) for state in states for cells in state.cells.values() for cell in cells.flat)
    page = minidom.parseString(_strip.svg(schedule))
    compared, moved = 0, 0
    for frame in page.getElementsByTagName("g"):
        if not frame.hasAttribute("transform"):
            continue
        drawn = {}  # (x, y of the middle of a cell) -> hue
        for path in frame.getElementsByTagName("path"):
            if path.getAttribute("stroke"):
                for x, y, long in re.findall(r"M(\d+) (\d+)h(\d+)", path.getAttribute("d")):
                    cells = range(int(x), int(x) + int(long), _strip.WIDTH // 4)
                    drawn |= {(at // (_strip.WIDTH // 4), int(y)): path.getAttribute("stroke") for at in cells}
        for text in frame.getElementsByTagName("text"):
            if text.parentNode.getAttribute("class") == "c":
                chunk = int(text.firstChild.data[1:])
                column, line = int(text.getAttribute("x")) // (_strip.WIDTH // 4), int(text.getAttribute("y")) - 3
                assert drawn[column, line] == _strip.HUES[chunk]
                compared, moved = compared + 1, moved + ((line - _strip.HEAD - 9) // 20 % 4 != chunk)
    assert compared == filled and moved > 20


def test_the_fallback_frames_the_cell_that_is_wrong_in_the_last_step_as_the_player_does():
    schedule = all_reduce.ring(ranks=4)
    framed = Player(schedule, frame=(2, "data", 1)).fallback()
    assert "wrong is rank 2, data, chunk 1" in framed
    *steps, last = _strip.svg(schedule, wrong=(2, "data", 1)).split("<g transform")
    red = _strip.FRAMED.partition("{}")[0]
    (around,) = re.findall(re.escape(red) + r"M(\d+) (\d+)h", last)
    assert not any(red in step for step in steps)
    held = re.findall(r'<text x="(\d+)" y="(\d+)">', last)
    inside = [(x, y) for x, y in held if 0 < int(x) - int(around[0]) < 80 and 0 < int(y) - int(around[1]) < 28]
    assert len(inside) == 1 and (int(inside[0][0]) // 80, (int(inside[0][1]) - _strip.HEAD) // 28) == (2, 1)
    assert "red frame" not in _strip.svg(schedule) and "wrong is" not in Player(schedule).fallback()


@pytest.mark.parametrize("schedule", [all_reduce.ring(4), broadcast.binomial(8), all_reduce.naive(5)], ids=repr)
def test_in_the_fallback_an_arrow_leads_from_who_sends_to_who_receives(schedule):
    """An arrow begins and ends above the columns of its ranks."""
    wide = _strip.WIDTH / schedule.ranks
    start, *frames = _strip.svg(schedule).split("<g transform")[1:]
    assert 'class="a"' not in start
    for frame in frames:
        step = schedule.steps[int(re.search(r">step (\d+)", frame)[1]) - 1]
        (arcs,) = re.findall(r'class="a" d="([^"]+)"', frame)
        ends = [(int(a), int(b)) for a, b in re.findall(r"M(\d+) \d+Q\d+ \d+ (\d+) \d+", arcs)]
        assert arcs.count("l") == len(ends), "a head on every arrow"
        assert {(a // wide, b // wide) for a, b in ends} == {(t.src, t.dst) for t in step.transfers}


def test_the_fallback_of_a_deadlock_shows_who_waits_for_whom_below_its_last_step():
    schedule = broadcast.flat(4)
    schedule.stuck = [(3, 2, "recv", 7), (2, 0, "recv", 7)]
    *steps, last = _strip.svg(schedule).split("<g transform")
    red = _strip.WAITS.partition("{}")[0]
    assert not any(red in step for step in steps)
    (arcs,) = re.findall(re.escape(red) + r'([^"]+)"', last)
    assert [(int(a) // 80, int(b) // 80) for a, b in re.findall(r"M(\d+) \d+Q\d+ \d+ (\d+) ", arcs)] == [(3, 2), (2, 0)]
    columns = [
        re.findall(re.escape(box.partition("{}")[0]) + r'([^"]+)"', last) for box in (_strip.STUCK, _strip.MISSING)
    ]
    assert [[(int(x) + 1) // 80 for x in re.findall(r"M(-?\d+)", *paths)] for paths in columns] == [[2, 3], [0]]
    assert "Stuck in recv, line 7: rank 2 waits for rank 0; rank 3 waits for rank 2." in Player(schedule).fallback()
    assert red not in _strip.svg(schedule, until=2), "what a question hides does not tell it"


def test_the_fallback_of_calls_that_do_not_fit_has_no_arrows_between_them():
    schedule = broadcast.flat(4)
    schedule.stuck = [(1, None, "all_reduce", 3), (0, None, "all_reduce", 3)]
    last = _strip.svg(schedule).split("<g transform")[-1]
    assert "; refused</text>" in last and f'{_strip.WAITS.partition("{}")[0]}"' in last
    assert "Refused, since the calls do not fit: ranks 0, 1 in all_reduce, line 3." in Player(schedule).fallback()


def test_what_stands_on_the_page_reads_on_white_and_on_black():
    """JupyterLab's dark theme tells an image nothing, so one grey is for both; contrast as WCAG counts it."""

    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2] + 0.05

    for ground in ("#ffffff", "#111111"):
        low, high = sorted((light(ground), light(_still.INK)))
        assert high / low > 4
    for hue in (*_strip.HUES, _strip.MIXED):
        assert light(hue) / light(_still.BOXED) > 4.5


def test_the_fallback_names_several_buffers_and_their_chunks():
    schedule = all_gather.ring(4)
    alone = _strip.svg(schedule)
    assert 'class="n"' not in alone and re.findall(r'class="k"[^>]*>(\d)<', alone) == ["0", "1", "2", "3"]
    start = {name: schedule.start().cells["data"][:, :1] for name in ("x", "a long name of an array")}
    steps = [("copy", "", [Transfer(0, 1, 0, src_buffer="x", dst_buffer="x")])]
    two = _strip.svg(Schedule.from_steps("recorded", "recorded", 4, 1, steps, buffers=(*start,), start=start))
    assert re.findall(r'class="n"[^>]*>([^<]+)<', two) == ["x", "a long name o\u2026"] and 'class="k"' not in two


def test_the_fallback_of_a_run_says_below_its_last_step_what_each_rank_sent_and_received():
    schedule = broadcast.flat(4)
    run = Run(
        "broadcast", "flat", 4, 1, schedule.steps, title="your run", counts=schedule.counts(nbytes=8), events=None,
        built_ins=(), unmatched=(), dropped=0, start_values=[], values=[[]] * 3, ways=[[""]] * 3, chunk_bytes=[8],
        root=0,
    )  # fmt: skip
    *steps, last = _strip.svg(run).split("<g transform")
    assert re.findall(r">(↑[^<]+)<", last) == ["↑ 24 B ↓ 0 B", *["↑ 0 B ↓ 8 B"] * 3]
    assert not any("↑" in step for step in steps) and "↑" not in _strip.svg(run, until=2)


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


def test_the_page_of_a_log_does_not_tell_its_id():
    one, other = RankLog(2), RankLog(2)
    assert one._own == one.model_id != other._own
    assert html(one) == html(other)
