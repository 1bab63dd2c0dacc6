"""MemoryRun: bars are bytes, each comes with its moment, and bad input is one clear sentence."""

import base64
import re

import pytest

from widgets import MemoryRun

RUN = {
    "no ZeRO": [("all_reduce", 400, 400, 800), ("update", 400, 400, 800)],
    "ZeRO-1": [("reduce_scatter", 500, 500, 200), ("update", 500, 100, 200), ("all_gather", 500, 100, 200)],
}
BARS = """() => [...document.querySelectorAll(".rs-drawing g[data-step]")].map((bar) => Object.fromEntries(
    [...bar.querySelectorAll(".rs-bare")].map((part) => [
        part.getAttribute("class").match(/rs-h\\d/)[0], part.getBBox().height])))"""


def test_bars_are_bytes(show):
    bars = show(MemoryRun([RUN] * 4)).evaluate(BARS)
    unit = bars[0]["rs-h2"] / 800
    for bar, (_, weights, gradients, state) in zip(bars, sum(RUN.values(), []), strict=True):
        assert bar == pytest.approx(
            {"rs-h2": state * unit, "rs-h1": weights * unit, "rs-h0": gradients * unit}, abs=0.2
        )


def test_a_step_is_a_moment_and_says_what_was_held(show):
    page = show(MemoryRun([RUN] * 4, step=2))
    assert page.inner_text(".rs-title") == "Measured: a rank held at most 1.6 kB with no ZeRO, 1.2 kB with ZeRO-1"
    page.focus(".rs-scrub input")
    page.keyboard.press("ArrowRight")
    assert page.inner_text(".rs-told") == (
        "Step 3 of 5. ZeRO-1, when reduce_scatter began: weights 500 B, gradients 500 B, optimizer's state 200 B. "
        "Together 1.2 kB, its peak."
    )
    assert page.locator(".rs-drawing g.rd-now text").all_text_contents() == ["R"]


def test_the_fullest_rank_is_shown_and_named():
    more = {"no ZeRO": [("all_reduce", 400, 401, 800), RUN["no ZeRO"][1]], "ZeRO-1": RUN["ZeRO-1"]}
    widget = MemoryRun([RUN, more])
    assert widget.runs["no ZeRO"][0] == more["no ZeRO"][0]
    assert "the fullest rank" in widget.told[0] and "the fullest rank" in widget.legend[0]
    assert "every rank" in MemoryRun([RUN, RUN]).told[0]


def test_the_still_says_it_alone():
    html = MemoryRun([RUN] * 2)._repr_mimebundle_()[0]["text/html"]
    svg = base64.b64decode(re.search(r"base64,([^\"]+)", html)[1]).decode()
    assert all(words in svg for words in ("Measured", "ZeRO-1", "peak 1.6 kB", "peak 1.2 kB", "R reduce_scatter"))


@pytest.mark.parametrize("width", [360, 900])
def test_it_fits(show, page, width):
    page.set_viewport_size({"width": width, "height": 720})
    show(MemoryRun([{"a long run": RUN["ZeRO-1"] * 20, **RUN}] * 4))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ends = "(nodes) => nodes.map((node) => node.getBoundingClientRect().right)"
    assert max(page.locator(".rs-drawing :is(path, text)").evaluate_all(ends)) <= width


@pytest.mark.parametrize("kept", [[], [{}], [{"no ZeRO": []}]])
def test_nothing_measured(kept):
    with pytest.raises(ValueError, match=r"nothing was measured; run held\(...\) on the ranks"):
        MemoryRun(kept)


def test_ranks_that_made_different_calls():
    with pytest.raises(ValueError, match="ranks 0 and 1 made different calls"):
        MemoryRun([RUN, {"no ZeRO": RUN["no ZeRO"]}])
