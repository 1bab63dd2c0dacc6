"""Timeline: its arithmetic against brute force on a fine grid, what it draws, its keys, what is saved beside it."""

import base64
import random
import re
from types import SimpleNamespace
from xml.dom import minidom

import pytest

from collectives import all_reduce
from collectives.timed import Clock, Match, Timed
from tests.widgets.conftest import ask
from widgets import Timeline


def call(rank, *times, op="all_reduce", peer=None, nbytes=4096, line=3, match=None):
    return Timed(rank, op, peer, nbytes, line, f"work = dist.{op}(x, async_op=True)", match, *times)


FIRST = Match(0, "all_reduce #1 of world", 2)
MESSAGE = Match(1, "message #1 from rank 0 to rank 1", 2)
OVERLAPPED = [  # in seconds: rank 0 computes while its all_reduce is under way, rank 1 waits for it at once
    call(0, 0.0, 0.1, 0.8, 0.9, 0.9, match=FIRST),
    call(1, 0.0, 0.1, 0.1, 0.9, 0.9, match=FIRST),
    call(0, 0.95, 0.96, 0.96, 1.0, None, op="send", peer=1, nbytes=2_000_000, line=7, match=MESSAGE),
    call(1, 0.95, 0.96, 0.96, 1.0, None, op="recv", peer=0, nbytes=2_000_000, line=9, match=MESSAGE),
]


def timeline(events, clocks=()):
    ranks = 1 + max((event.rank for event in events), default=0)
    return Timeline(SimpleNamespace(events=events, ranks=ranks, clocks=clocks))


TOTALS = """async (trials) => {
    const { stayOf, totals } = await import("/js/spans.js");
    return trials.map((calls) => totals(calls.map((times) => stayOf({ times }))));
}"""


def test_totals_are_those_of_counting_moments(modules):
    """Whole milliseconds, so that every moment between two of them is one state: counted one by one."""
    dice = random.Random(5)
    trials, expected = [], []
    for _ in range(40):
        calls = []
        for _ in range(dice.randrange(1, 6)):
            begun, issued, waits, waited = sorted(dice.randrange(40) for _ in range(4))
            done = dice.choice([None, dice.randrange(issued, waited + 1)])
            calls.append([begun, issued, *dice.choice([(waits, waited), (None, None)]), done])
        away, blocked, hidden = set(), set(), set()
        for begun, issued, waits, waited, done in calls:
            until = next(time for time in (done, waited, issued) if time is not None)
            away |= {*range(begun, until)}
            blocked |= {*range(begun, issued), *(range(waits, waited) if waits is not None else ())}
            hidden |= {*range(issued, until)} if waits is None else set()  # unsure: not overlap for certain
        hidden = (away | blocked) - blocked - hidden
        trials.append(calls)
        expected.append({"away": len(away), "blocked": len(blocked), "hidden": len(hidden)})
    assert ask(modules, TOTALS, trials) == expected


def bars(page, rank, kind):
    """(left, right) in seconds of the bars of a kind, read back from the pixels; 5 milliseconds are a pixel or so."""
    paths = page.locator(f".rs-times path.rs-{kind}").evaluate_all(
        "(nodes) => nodes.map((node) => node.getAttribute('d'))"
    )
    left, width = 92, page.evaluate("document.querySelector('.rs-times').clientWidth") - 92 - 8
    found = []
    for part in "".join(paths).split("M")[1:]:
        x, rest = part.split(" ", 1)
        y, rest = rest.split("h", 1)
        if rank * 64 <= float(y) < rank * 64 + 64:
            w = float(rest.split("v")[0])
            found.append([round((float(x) - left) / width, 2), round((float(x) - left + w) / width, 2)])
    return sorted(found)


def test_overlap_is_a_bar_above_with_nothing_solid_below(show):
    page = show(timeline(OVERLAPPED))
    assert bars(page, 0, "under") == bars(page, 1, "under") == [[0, 0.9], [0.95, 1]]
    assert bars(page, 0, "hold") == [[0, 0.1], [0.8, 0.9], [0.95, 1]]
    assert bars(page, 1, "hold") == [[0, 0.9], [0.95, 1]], "a call and its wait at once are one bar, without a hairline"


def test_calls_under_way_together_do_not_cover_each_other(show):
    page = show(timeline([call(0, 0, 0.1, 0.7, 0.8, 0.8), call(0, 0.2, 0.3, 0.8, 0.9, 0.9), call(0, 0.95, 1, 1, 1, 1)]))
    tops = page.locator("path.rs-under").evaluate_all("(n) => n.map((p) => p.getAttribute('d').split(/[ h]/)[1])")
    assert len(set(tops)) == 2


def press(page, *keys):
    page.focus(".rs-times")
    for key in keys:
        page.keyboard.press(key)
    return page.inner_text(".rs-what")


def test_arrows_walk_the_calls_and_say_them_in_seconds(show):
    page = show(timeline(OVERLAPPED))
    assert "Rank 1 was blocked longest: 950 ms of 1 s" in page.inner_text(".rs-caption")
    first = press(page, "ArrowRight")
    assert first == (
        "Rank 0: all_reduce, 4.1 kB, line 3. Began at 0 s, under way for 900 ms; it blocked the rank for 200 ms, "
        "and 78 % of it was hidden behind the rank's own work."
    )
    assert page.inner_text(".rs-code") == "3  work = dist.all_reduce(x, async_op=True)"
    assert "0 % of it was hidden" in press(page, "ArrowDown") and page.evaluate("model.get('chosen')") == 1
    assert press(page, "ArrowRight").startswith("Rank 1: recv from rank 0, 2 MB, line 9. Began at 950 ms")
    assert press(page, "ArrowUp").startswith("Rank 0: send to rank 1")
    assert press(page, "Home") == first
    assert press(page, "End", "ArrowRight").startswith("Rank 0: send to rank 1")  # there is no further one


def test_zoom_keeps_the_chosen_call_in_view(show):
    page = show(timeline(OVERLAPPED))
    press(page, "End", "+", "+", "+")
    labels = page.locator(".rs-when").all_text_contents()
    assert all(0.87 <= float(label.split()[0]) * {"s": 1, "ms": 1e-3}[label.split()[1]] <= 1 for label in labels)
    assert len(set(labels)) == len(labels) > 3
    assert page.locator(".rs-chosen").evaluate_all("(n) => n.filter((p) => p.getAttribute('d')).length") == 1
    press(page, "0")
    assert page.locator(".rs-when").first.text_content().startswith("0.0 s")
    press(page, "Home", "End")  # after zooming in, walking there takes the view along
    press(page, *"++++", "Home")
    assert page.locator(".rs-when").first.text_content().startswith("0")


def test_a_click_chooses_the_call_under_it(show):
    page = show(timeline(OVERLAPPED))
    box = page.locator(".rs-times").bounding_box()
    page.mouse.click(box["x"] + 92 + 0.5 * (box["width"] - 100), box["y"] + 64 + 10)
    assert page.evaluate("model.get('chosen')") == 1


def test_a_wait_that_nobody_saw_is_not_called_overlap(show):
    page = show(timeline([call(0, 0, 0.1, None, None, 0.9), call(0, 0.95, 0.96, 0.96, 1.0, 1.0)]))
    assert bars(page, 0, "unsure") == [[0.1, 0.9]]
    assert "under way for 950 ms, of which at least 0 s were hidden" in page.inner_text(".rs-what")
    assert "own work or a wait inside torch, is not known" in press(page, "ArrowRight")


def test_the_buckets_of_ddp_bear_their_names(show):
    """What was under way before the reducer's wait, at 0.6, was hidden; a name is text, whatever is in it."""
    buckets = [Match(n, f"all_reduce #{n + 1} of world", 1, f"bucket {n}<b>") for n in range(2)]
    calls = [call(0, 0.3 * n, 0.3 * n + 0.1, 0.6, 0.8 + 0.2 * n, 0.8 + 0.2 * n, match=buckets[n]) for n in range(2)]
    page = show(timeline(calls))
    assert page.locator(".rs-name").all_text_contents() == ["bucket 0<b>", "bucket 1<b>"]
    assert "under way for 1 s, of which 400 ms were hidden" in page.inner_text(".rs-what")
    assert press(page, "ArrowRight").startswith("Rank 0: all_reduce of bucket 0<b>, 4.1 kB, line 3. Began at 0 s")


def test_a_blocking_call_between_whose_marks_a_moment_passed_hid_nothing(show):
    page = show(timeline([call(0, 0, 0.01, 0.0101, 0.12, 0.12)]))
    assert "Its calls were under way for 120 ms. " in page.inner_text(".rs-what")


def test_nothing_to_show_is_said(show):
    page = show(timeline([]))
    assert "No rank called torch.distributed while this was recorded" in page.inner_text(".rs-caption")


def test_it_fits_a_narrow_cell_and_a_dark_one(show, page):
    page.set_viewport_size({"width": 360, "height": 720})
    page.emulate_media(color_scheme="dark")
    show(timeline(OVERLAPPED))
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    fill = page.locator("path.rs-hold").first.evaluate("(node) => getComputedStyle(node).fill")
    assert fill == "rgb(242, 244, 245)"


def still(events, clocks=()):
    """The SVG saved beside a Timeline, its words, and per fill the (x, y, width) of every bar."""
    text = base64.b64decode(re.search(r"base64,([^\"]+)", timeline(events, clocks).fallback())[1]).decode()
    picture = minidom.parseString(text)
    words = [node.firstChild.data for node in picture.getElementsByTagName("text")]
    found = {}
    for path in picture.getElementsByTagName("path"):
        drawn = re.findall(r"M([\d.]+) (\d+)h([\d.]+)v", path.getAttribute("d"))
        key = (path.getAttribute("fill"), path.getAttribute("fill-opacity"))
        found.setdefault(key, []).extend((float(x), int(y), float(w)) for x, y, w in drawn)
    return text, words, found


def test_what_is_saved_beside_it_is_on_a_time_axis():
    """Rank 0 is blocked for 0.25 of 1 s, in four pieces, rank 1 for 0.95 s; both bars are to one scale."""
    bundle, metadata = timeline(OVERLAPPED)._repr_mimebundle_()
    assert bundle["text/plain"] == "Timeline(ranks=2, events=4)" and metadata["measured"]
    _, words, bars = still(OVERLAPPED)
    assert words[0] == "Rank 1 was blocked longest, 95 % of 1 s"
    assert {"rank 0", "rank 1", "all_reduce", "send", "recv", "25 % blocked", "95 % blocked", "0", "1 s"} < {*words}
    scale = 760 - 66 - 98
    for rank, seconds in enumerate((0.25, 0.95)):
        low = max(y for _, y, _ in bars["#787878", ""]) - 36 * (1 - rank)
        assert sum(w for _, y, w in bars["#787878", ""] if y == low) == pytest.approx(seconds * scale, abs=3)


def test_stills_of_runs_that_a_text_tells_apart_differ():
    """The same calls in the same order: one run computes while they are under way, the other waits for each at once."""

    def run(waits):
        matches = [Match(n, f"all_reduce #{n + 1} of world", 2) for n in range(3)]
        return [
            call(rank, n, n + 0.02, *((n + 0.02, n + 0.9) if waits else (2.9, 2.95)), n + 0.9, match=matches[n])
            for rank in range(2)
            for n in range(3)
        ]

    waiting, hiding = still(run(True)), still(run(False))
    assert waiting[0] != hiding[0]
    assert "93 % blocked" in waiting[1] and "4 % blocked" in hiding[1]


def test_a_still_marks_the_rank_that_came_last_unless_the_clocks_do_not_tell():
    """Rank 1 comes to each of three calls 0.5 s after rank 0, which waits for it."""
    late = [
        call(rank, n + 0.5 * rank, n + 0.51 * rank, n + 0.51 * rank, n + 0.6, n + 0.6, match=Match(n, "all_reduce", 2))
        for n in range(3)
        for rank in range(2)
    ]
    text, words, _ = still(late)
    assert words[0] == "Rank 1 was late 3 times: rank 0 waited 1.5 s"  # 3 times 0.5 s
    assert "late: others waited for it" in words
    short = still([*late, call(0, 9.0, 9.1, 9.1, 9.2, 9.2)])[1]  # a sixth of the run is not what it is about
    assert short[0] == "Rank 0 was blocked longest, 22 % of 9.2 s"
    (marks,) = re.findall(r'<path fill="#d55e00" d="((?:M\d+ \d+l-5-8h10z)+)"/>', text)
    assert marks.count("M") == 3
    assert "late:" not in still(late, [Clock((0,), 0.0, 0.3), Clock((1,), 0.0, 0.3)])[0]


def test_a_rank_that_waited_itself_is_not_blamed_for_the_next_one():
    """A relay: rank 0 works for 1 s, then rank 1 has what it waited for and sends it on to rank 2, a little later."""
    pairs = [Match(n, f"message #1 from rank {n}", 2) for n in range(2)]
    calls = [
        call(0, 1, 1, 1, 1.01, 1.01, match=pairs[0]),
        call(1, 0, 0, 0, 1.01, 1.01, match=pairs[0]),
        call(1, 1.02, 1.02, 1.02, 1.03, 1.03, match=pairs[1]),
        call(2, 0, 0, 0, 1.03, 1.03, match=pairs[1]),
    ]
    assert still(calls)[1][0] == "Rank 0 was late: rank 1 waited 1 s"


def test_ranks_that_wait_at_the_same_time_are_counted_once():
    """Ranks 1 and 2 wait for a message of rank 0 each, all the time until it sends the first; not for 2 s."""
    pairs = [Match(n, f"message #{n} from rank 0", 2) for n in range(2)]
    waits = [call(rank, 0, 0, 0, 1, 1, match=pairs[rank - 1]) for rank in (1, 2)]
    sends = [call(0, 0.9 + 0.05 * n, 1, 1, 1, 1, match=pairs[n]) for n in range(2)]
    said = "Rank 0 was late 2 times: ranks 1, 2 waited 900 ms"
    assert still([*waits, *sends])[1][0] == said


def test_a_still_says_which_ranks_waited_and_for_what():
    """Of ranks that waited differently long it says the longest; of calls of several kinds none."""
    one, two = Match(0, "all_reduce", 3), Match(1, "message #1 from rank 2", 2)
    waits = [call(rank, 0.2 * rank, 0.2 * rank, 0.2 * rank, 1, 1, match=one) for rank in (0, 1)]
    late = call(2, 0.9, 1, 1, 1, 1, match=one)
    said = "Rank 2 was late: ranks 0, 1 waited up to 900 ms"
    assert still([*waits, late])[1][0] == said
    pair = call(0, 1, 1, 1, 2, 2, op="recv", match=two), call(2, 1.9, 2, 2, 2, 2, op="send", match=two)
    assert still([*pair])[1][0] == "Rank 2 was late: rank 0 waited 900 ms"
    said = "Rank 2 was late 2 times: ranks 0, 1 waited up to 1.8 s"
    assert still([*waits, late, *pair])[1][0] == said


def test_what_was_before_all_ranks_had_begun_tells_of_the_start_alone():
    """Rank 1's process runs 0.9 s after rank 0's: no line of theirs made rank 0 wait. Then both take 0.1 s."""
    pair = Match(0, "all_reduce", 2)
    calls = [call(0, 0, 0, 0, 1.0, 1.0, match=pair), call(1, 0.9, 0.9, 0.9, 1.0, 1.0, match=pair)]
    assert still(calls)[1][0] == "Rank 1 was late: rank 0 waited 900 ms"
    started = Timeline(SimpleNamespace(events=calls, ranks=2, began=0.9))
    assert started.headline == "Each rank was blocked 100 % of 100 ms"


def test_a_still_ends_where_the_live_picture_does(show):
    """The wait for a call may return long after the library was done with it."""
    events = [call(0, 0.0, 0.1, 0.2, 1.0, 0.5), call(1, 0.0, 0.1, 0.4, 0.5, 0.5)]
    assert still(events)[1][0] == "Rank 0 was blocked longest, 90 % of 1 s"
    assert show(timeline(events)).inner_text(".rs-caption").startswith("Rank 0 was blocked longest: 900 ms of 1 s")


def test_a_still_cuts_nothing_and_stays_small():
    many = [call(0, k, k + 0.1, k + 0.2, k + 0.3, k + 0.3) for k in range(5_000)]
    text, words, _ = still(many)
    assert len(text) < 40_000 and not any("more" in each for each in words)


def test_a_very_long_run_is_cut_and_says_so(show, monkeypatch):
    monkeypatch.setattr("widgets.timeline.MOST_CALLS", 5_000)
    many = [call(0, k, k + 0.1, k + 0.2, k + 0.3, k + 0.3) for k in range(5_007)]
    page = show(timeline(many))
    assert page.inner_text(".rs-cut") == "The first 5000 calls; 7 later calls not drawn."
    assert repr(timeline(many)) == "Timeline(ranks=1, events=5007)"
    assert len(page.locator("path.rs-under").get_attribute("d")) < 80_000, "bars that fall on one pixel are one"


def test_a_schedule_without_times_is_told_what_to_do():
    with pytest.raises(TypeError) as raised:
        Timeline(all_reduce.ring(ranks=2))
    assert "run a cell with `%%ranks --record` first; Schedule" in str(raised.value)


THIRD = Match(0, "all_reduce #3 of world", 4)
LATE = [  # rank 2 comes last, at 0.5: rank 0 waits from 0.1 on, rank 1 computes until 0.4, rank 3 came when it was busy
    call(0, 0.0, 0.1, 0.1, 0.6, 0.6, match=THIRD),
    call(1, 0.1, 0.2, 0.4, 0.7, 0.6, match=THIRD),
    call(2, 0.5, 0.55, 0.55, 0.6, 0.6, match=THIRD),
    call(3, 0.45, 0.55, 0.58, 0.6, 0.6, match=THIRD),
    call(3, 0.9, 0.92, 0.92, 1.0, 1.0, op="barrier", match=Match(1, "barrier #1 of ranks 3", 1)),
]


def meets(page):
    return page.inner_text(".rs-meets")


MEETING = """async (trials) => {
    const { meeting, stayOf } = await import("/js/spans.js");
    return trials.map((calls) => {
        const { lasts, seconds, unsure } = meeting(calls.map(([op, times], i) => ({ i, ...stayOf({ op, times }) })));
        return [...lasts.map(({ i }) => i), seconds, unsure];
    });
}"""


def test_who_came_last_and_who_waited_is_that_of_counting_moments(modules):
    """Whole milliseconds, as above: a rank waits for the last one in each moment in which it waits and that is not
    there, unless it was done without it."""
    dice = random.Random(6)
    trials, told = [], []
    for _ in range(60):
        sides = []
        for _ in range(dice.randrange(2, 6)):
            begun, issued, waits, waited = sorted(dice.randrange(40) for _ in range(4))
            asked = dice.random() < 0.8
            done = dice.choice([None, dice.randrange(issued, waited + 1)])
            sides.append([begun, issued, *((waits, waited) if asked else (None, None)), done])
        comes = [begun for begun, *_ in sides]
        last = max(comes)
        expected, unsure = [], False
        for _, issued, waits, waited, done in sides:
            until = next(time for time in (done, waited, issued) if time is not None)
            there = {*range(waits, waited)} if waits is not None and until > last else set()
            expected.append(len({moment for moment in there if moment < last}))
            unsure |= waits is None and any(moment < last for moment in range(issued, until))
        trials.append([["all_reduce", side] for side in sides])
        told.append([comes.index(last), expected, unsure])
    assert ask(modules, MEETING, trials) == told


def test_a_monitored_barrier_waits_in_the_call_itself(modules):
    sides = [["monitored_barrier", [0, 30, 30, 30, None]], ["monitored_barrier", [20, 30, 30, 30, None]]]
    assert ask(modules, MEETING, [sides]) == [[1, [20, 0], False]]


def test_choosing_a_bar_says_who_came_last_and_who_waited_for_it(show):
    page = show(timeline(LATE))
    assert meets(page) == ""
    press(page, "ArrowRight")
    assert meets(page) == (
        "all_reduce #3 of world: rank 2 entered last, 500 ms after the first; "
        "rank 0 waited 400 ms for it, rank 1 100 ms."
    )
    press(page, "End", "ArrowDown", "ArrowDown", "ArrowDown", "End")
    assert meets(page) == "barrier #1 of ranks 3: no other rank takes part."


def frames(page, kind):
    """Ranks with a frame of that kind: chosen, or the same call."""
    tops = page.locator(f".rs-{kind}").evaluate_all("(n) => n.map((p) => p.getAttribute('d')).filter(Boolean)")
    return sorted({int(float(path.split(" ")[1].split("h")[0]) // 64) for path in tops})


def test_the_same_call_is_framed_on_all_ranks_with_a_line_where_the_last_one_came(show):
    page = show(timeline(LATE))
    press(page, "ArrowRight", "ArrowDown")
    assert (frames(page, "chosen"), frames(page, "same")) == ([1], [0, 2, 3])
    assert [bars(page, rank, "awaited") for rank in range(4)] == [[[0.1, 0.5]], [[0.4, 0.5]], [], []]
    line = page.locator(".rs-came").get_attribute("d")
    width = page.evaluate("document.querySelector('.rs-times').clientWidth") - 100
    assert float(line[1:].split(" ")[0]) == pytest.approx(92 + 0.5 * width, abs=0.1) and line.endswith(" 0V256")
    press(page, "ArrowDown", "ArrowDown", "ArrowRight")
    assert (frames(page, "chosen"), frames(page, "same")) == ([3], [])
    assert page.locator(".rs-came").count() == 0


def test_arrows_and_enter_go_to_the_same_call_on_other_ranks(show):
    """Not to the call that began nearest: here that is another one."""
    second = Match(1, "all_reduce #2 of world", 3)
    away = [call(rank, 0.4, 0.45, 0.45, 0.5, 0.5, match=second) for rank in (0, 2)]
    here = call(1, 0.9, 0.92, 0.92, 1.0, 1.0, match=second)
    page = show(timeline([*away, here, call(1, 0.41, 0.42, 0.42, 0.43, 0.43, match=FIRST)]))
    assert press(page, "ArrowRight", "ArrowDown").startswith("Rank 1: all_reduce, 4.1 kB, line 3. Began at 900 ms")
    assert press(page, "Enter").startswith("Rank 2:") and press(page, "Enter").startswith("Rank 0:")
    assert meets(page).startswith("all_reduce #2 of world: rank 1 entered last, 500 ms after the first; ")


def test_sides_that_are_not_there_are_not_made_up(show):
    page = show(timeline([
        call(0, 0.0, 0.1, 0.1, 0.5, 0.5, match=THIRD),
        call(1, 0.2, 0.3, 0.3, 0.5, 0.5, match=THIRD),
        call(0, 0.6, 0.7, 0.7, 0.8, None, op="send", peer=1),
    ]))  # fmt: skip
    press(page, "ArrowRight")
    assert meets(page) == (
        "all_reduce #3 of world: rank 1 entered last, 200 ms after the first; rank 0 waited 100 ms for it. "
        "Only 2 of its 4 ranks are drawn."
    )
    press(page, "End")
    assert meets(page) == "The other side of this message was not recorded."


def test_a_wait_inside_torch_is_not_told_as_none(show):
    page = show(timeline([
        call(0, 0.0, 0.1, None, None, 0.6, match=FIRST), call(1, 0.5, 0.51, None, None, 0.6, match=FIRST),
    ]))  # fmt: skip
    press(page, "ArrowRight")
    assert meets(page) == (
        "all_reduce #1 of world: rank 1 entered last, 500 ms after the first; "
        "whether others waited for it inside torch is not known."
    )


def test_of_many_that_waited_the_longest_is_named(show):
    crowd = Match(0, "barrier #1 of world", 8)
    sides = [call(rank, 0.01 * rank, 0.1, 0.1, 0.9, 0.9, op="barrier", match=crowd) for rank in range(7)]
    page = show(timeline([*sides, call(7, 0.8, 0.81, 0.81, 0.9, 0.9, op="barrier", match=crowd)]))
    press(page, "ArrowRight")
    assert meets(page).endswith(
        "rank 7 entered last, 800 ms after the first; 7 ranks waited for it, rank 0 longest: 700 ms."
    )


def machines(*errors):
    """Ranks 0 and 1 on one machine, 2 and 3 on another, whose clocks are known with these errors."""
    return [Clock((2 * machine, 2 * machine + 1), 7200.0, error) for machine, error in enumerate(errors)]


MEETINGS = """async (trials) => {
    const { meeting, stayOf, wrongBy } = await import("/js/spans.js");
    return trials.map(([clocks, calls]) => {
        const sides = calls.map((times, rank) => ({ rank, op: "broadcast", ...stayOf({ op: "broadcast", times }) }));
        const { lasts, seconds, close } = meeting(sides, wrongBy(clocks));
        return [lasts.map(({ rank }) => rank), seconds, close];
    });
}"""


def test_what_is_told_of_two_machines_is_true_wherever_in_their_errors_the_clocks_are(modules):
    """The truth is made first, in whole milliseconds, and stamped by clocks that are wrong by no more than is said."""
    dice = random.Random(19)
    truths, trials = [], []
    for _ in range(400):
        errors = [dice.randrange(6) for _ in range(2)]
        wrong = [dice.randint(-error, error) for error in errors]
        truth, seen = [], []
        for rank in range(4):
            begun, issued, waits, waited = sorted(dice.randrange(25) for _ in range(4))
            truth.append([begun, waits, waited])
            seen.append([time + wrong[rank // 2] for time in (begun, issued, waits, waited, waited)])
        truths.append(truth)
        trials.append([[{"ranks": [0, 1], "error": errors[0]}, {"ranks": [2, 3], "error": errors[1]}], seen])
    told, sure = ask(modules, MEETINGS, trials), 0
    for truth, (lasts, seconds, close) in zip(truths, told, strict=True):
        late = max(begun for begun, _, _ in truth)
        waited = [max(0, min(until, late) - since) if until > late else 0 for _, since, until in truth]
        assert any(truth[rank][0] == late for rank in lasts)
        assert all(least <= true for least, true in zip(seconds, waited, strict=True))
        assert any(seconds) or close or not any(waited), "none is told only where none was"
        sure += len(lasts) == 1
    assert 100 < sure < 400, "some are told, some cannot be"


def test_between_machines_the_error_is_told_and_no_order_within_it(show):
    """LATE on two machines: ranks 2 and 3 have one clock, so rank 2 came after rank 3; of the rest at least is told."""
    page = show(timeline(LATE, machines(0.01, 0.02)))
    assert page.inner_text(".rs-header .rs-muted").endswith(" · 2 machines, their clocks ± 30 ms")
    press(page, "ArrowRight")
    assert meets(page) == (
        "all_reduce #3 of world: rank 2 entered last, 500 ms ± 30 ms after the first; "
        "rank 0 waited at least 370 ms for it, rank 1 at least 70 ms."
    )
    assert page.locator(".rs-came").count() == 0 and page.locator(".rs-open").count() == 1
    assert page.locator(".rs-machine").get_attribute("d").startswith("M0 128H"), "between ranks 1 and 2"
    assert bars(page, 0, "awaited") == [[0.1, 0.47]]


def test_what_the_clocks_do_not_tell_is_said(show):
    page = show(timeline(LATE, machines(0.3, 0.3)))
    press(page, "ArrowRight")
    assert meets(page) == (
        "all_reduce #3 of world: one of ranks 1-2 entered last, and their clocks, right to ± 600 ms, do not tell "
        "which; whether a rank waited for it, their clocks do not tell."
    )


def test_on_one_machine_nothing_is_told_of_clocks(show):
    page = show(timeline(LATE, machines(0.3)))
    assert "±" not in page.inner_text("body") and page.locator(".rs-machine").count() == 0
    assert page.evaluate("model.get('clocks')") == []


def test_an_all_reduce_is_over_for_nobody_before_all_have_come_whatever_the_clocks_say(show):
    """Ranks 0 and 1 were through at 0.6; by the clocks rank 2 may have come at 0.65, as it may to a broadcast."""
    told = []
    for op in ("all_reduce", "broadcast"):
        page = show(timeline([event._replace(op=op) for event in LATE], machines(0.05, 0.1)))
        press(page, "ArrowRight")
        told.append(meets(page).split("after the first; ")[1])
    assert told == ["rank 0 waited at least 250 ms for it.", "whether a rank waited for it, their clocks do not tell."]
