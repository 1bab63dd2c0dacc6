"""Timeline: its arithmetic against brute force on a fine grid, what it draws, its keys, what is saved beside it."""

import random
from types import SimpleNamespace

import pytest

from collectives import all_reduce
from widgets import Timeline


def call(rank, start, issued, wait, end, finished, op="all_reduce", peer=None, nbytes=4096, line=3):
    times = {"start": start, "issued": issued, "wait": wait, "end": end, "finished": finished}
    code = f"work = dist.{op}(x, async_op=True)"
    return SimpleNamespace(rank=rank, op=op, peer=peer, bytes=nbytes, line=line, code=code, **times)


OVERLAPPED = [  # in seconds: rank 0 computes while its all_reduce is under way, rank 1 waits for it at once
    call(0, 0.0, 0.1, 0.8, 0.9, 0.9),
    call(1, 0.0, 0.1, 0.1, 0.9, 0.9),
    call(0, 0.95, 0.96, 0.96, 1.0, None, op="send", peer=1, nbytes=2_000_000, line=7),
    call(1, 0.95, 0.96, 0.96, 1.0, None, op="recv", peer=0, nbytes=2_000_000, line=9),
]


def timeline(events):
    return Timeline(SimpleNamespace(events=events))


TOTALS = """async (calls) => {
    const { stayOf, totals } = await import("/js/spans.js");
    return totals(calls.map((times) => stayOf({ times })));
}"""


def test_totals_are_those_of_counting_moments(page):
    """Whole milliseconds, so that every moment between two of them is one state: counted one by one."""
    dice = random.Random(5)
    for _ in range(40):
        calls = []
        for _ in range(dice.randrange(1, 6)):
            begun, issued, waits, waited = sorted(dice.randrange(40) for _ in range(4))
            done = dice.choice([None, dice.randrange(issued, waited + 1)])
            calls.append([begun, issued, *dice.choice([(waits, waited), (None, None)]), done])
        away, held, hidden = set(), set(), set()
        for begun, issued, waits, waited, done in calls:
            until = next(time for time in (done, waited, issued) if time is not None)
            away |= {*range(begun, until)}
            held |= {*range(begun, issued), *(range(waits, waited) if waits is not None else ())}
            hidden |= {*range(issued, until)} if waits is None else set()  # unsure: not overlap for certain
        hidden = (away | held) - held - hidden
        assert page.evaluate(TOTALS, calls) == {"away": len(away), "held": len(held), "hidden": len(hidden)}


def bars(page, rank, kind):
    """(left, right) in seconds of the bars of a kind, read back from the pixels; 5 milliseconds are a pixel or so."""
    paths = page.locator(f".rs-times path.rs-{kind}").evaluate_all(
        "(nodes) => nodes.map((node) => node.getAttribute('d'))"
    )
    left, width = 84, page.evaluate("document.querySelector('.rs-times').clientWidth") - 84 - 8
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
    assert bars(page, 0, "hold") == [[0, 0.1], [0.8, 0.9], [0.95, 0.96], [0.96, 1]]
    assert bars(page, 1, "hold") == [[0, 0.1], [0.1, 0.9], [0.95, 0.96], [0.96, 1]]


def test_calls_under_way_together_do_not_cover_each_other(show):
    page = show(timeline([call(0, 0, 0.1, 0.7, 0.8, 0.8), call(0, 0.2, 0.3, 0.8, 0.9, 0.9), call(0, 0.95, 1, 1, 1, 1)]))
    tops = page.locator("path.rs-under").evaluate_all("(n) => n.map((p) => p.getAttribute('d').split(/[ h]/)[1])")
    assert len(set(tops)) == 2


def press(page, *keys):
    page.focus(".rs-times")
    for key in keys:
        page.keyboard.press(key)
    return page.inner_text(".rs-caption")


def test_arrows_walk_the_calls_and_say_them_in_seconds(show):
    page = show(timeline(OVERLAPPED))
    assert "Rank 1 was held longest: 950 ms of 1 s" in page.inner_text(".rs-caption")
    first = press(page, "ArrowRight")
    assert first == (
        "Rank 0: all_reduce, 4.1 kB, line 3. Began at 0 s, under way for 900 ms; it held the rank for 200 ms, "
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
    page.mouse.click(box["x"] + 84 + 0.5 * (box["width"] - 92), box["y"] + 64 + 10)
    assert page.evaluate("model.get('chosen')") == 1


def test_a_wait_that_nobody_saw_is_not_called_overlap(show):
    page = show(timeline([call(0, 0, 0.1, None, None, 0.9), call(0, 0.95, 0.96, 0.96, 1.0, 1.0)]))
    assert bars(page, 0, "unsure") == [[0.1, 0.9]]
    assert "own work or a wait inside torch, is not known" in press(page, "ArrowRight")


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


def test_what_is_saved_beside_it_has_no_measured_time():
    slower = [SimpleNamespace(**vars(event) | {"finished": 2.5, "end": 3.5}) for event in OVERLAPPED]
    one, two = (timeline(events)._repr_mimebundle_()[0] for events in (OVERLAPPED, slower))
    assert one["text/plain"] == two["text/plain"] == "Timeline(ranks=2, events=4)"
    assert one["text/html"] == two["text/html"] == "<span>Timeline(ranks=2, events=4)</span>"


def test_a_very_long_run_is_cut_and_says_so(show):
    many = [call(0, k, k + 0.1, k + 0.2, k + 0.3, k + 0.3) for k in range(20_007)]
    page = show(timeline(many))
    assert page.inner_text(".rs-cut") == "The first 20000 calls; 7 later calls not drawn."
    assert repr(timeline(many)) == "Timeline(ranks=1, events=20007)"
    assert len(page.locator("path.rs-under").get_attribute("d")) < 100_000, "bars that fall on one pixel are one"


def test_a_schedule_without_times_is_told_what_to_do():
    with pytest.raises(TypeError) as raised:
        Timeline(all_reduce.ring(ranks=2))
    assert "run a cell with `%%ranks --record` first; got Schedule" in str(raised.value)
