"""Drift: the lines are where the numbers say at every step, ranks that agree share one, and the still says it alone."""

import base64
import re

import numpy as np
import pytest

from tests.widgets.conftest import settle
from widgets import Drift

APART = [[(0.0, 0.0), (0.5, 1.0), (-0.5, 1.0)], [(0.0, 0.0), (1.0, 1.0), (-1.5, 2.5)]]
POINTS = [[0.0, 0.5], [1.0, 2.0]]
SEEN = """() => [...document.querySelectorAll(".rs-drawing [data-way]")].map((line) => {
    const [left, zero, across, up] = line.parentElement.dataset.place.split(" ").map(Number);
    const points = line.getAttribute("d").slice(1).split("L").map((point) => point.split(" ").map(Number));
    return points.map(([x, y]) => [(x - left) / across, (zero - y) / up].map((value) => Math.round(100 * value) / 100));
})"""


@pytest.mark.parametrize("width", [1280, 360])
def test_every_line_is_where_the_rank_was_after_each_step(show, page, width):
    page.set_viewport_size({"width": width, "height": 720})
    page = show(Drift(APART, POINTS))
    held = "Rank 0: -0.50 + 1.00 x. Rank 1: -1.50 + 2.50 x."
    assert page.inner_text(".rs-told") == f"Step 2 of 2. {held} The lines are up to 2.0 apart."
    page.focus(".rs-scrub input")
    for step in (2, 1, 0):
        assert page.evaluate(SEEN) == [[[0, w0], [2, w0 + 2 * w1]] for w0, w1 in (path[step] for path in APART)]
        page.keyboard.press("ArrowLeft")
    assert page.inner_text(".rs-sentence") == "Rank 0: 0.00 + 0.00 x. Rank 1: 0.00 + 0.00 x. The lines are 0.00 apart."
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_ranks_that_agree_share_a_line_in_stripes(show):
    both = Drift([APART[0], APART[0], APART[1]], [[0.0]] * 3, step=1)
    assert (
        repr(both) == "Drift(3 ranks, 2 lines)"
        and repr(Drift([APART[0]] * 2, POINTS)) == "Drift(one line for all ranks)"
    )
    assert Drift([APART[0]] * 2, POINTS).headline == "2 ranks hold one line, the same after every step"
    # at 2: -0.5 + 2 of the ones, -1.5 + 5 of the other
    assert both.headline == "3 ranks learn 2 different lines: up to 2.0 apart after 2 steps"
    assert both.told[1] == "Ranks 0, 1: 0.50 + 1.00 x. Rank 2: 1.00 + 1.00 x. The lines are up to 0.5 apart."
    of = "[node.getAttribute('stroke-dasharray'), node.getAttribute('stroke-dashoffset')]"
    stripes = show(both).locator("[data-way]").evaluate_all(f"(nodes) => nodes.map((node) => {of})")
    assert stripes == [["14 14", "0"], ["14 14", "-14"], [None, None]]


def test_a_model_that_is_no_line_is_drawn_by_what_it_says(show):
    said = [[[0.0, 0.0, 0.0], [0.0, 0.5, 2.0]], [[0.0, 0.0, 0.0], [0.0, 1.5, 2.5]]]
    drift = Drift(said, POINTS, at=[0.0, 1.0, 2.0])
    assert drift.told == ["The models are 0.00 apart.", "The models are up to 1.0 apart."]
    assert show(drift).evaluate(SEEN)[1] == [[0, 0], [1, 1.5], [2, 2.5]]


def test_it_plays_a_training_in_seconds_and_stands_still_at_its_end(show):
    page = show(Drift([[(0.1 * step, 1.0) for step in range(21)]], [[0.0]]))
    page.focus(".rs-scrub input")
    page.keyboard.press("Home")
    page.keyboard.press("+")
    page.keyboard.press("+")  # 10 steps of 0.1 s, 10 of 0.02 s
    page.keyboard.press(" ")
    settle(page, "model.get('step') === 20 && !model.get('playing')")
    assert page.evaluate(SEEN) == [[[0, 2], [2, 4]]]


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_it_plays_once_when_it_is_first_seen_if_motion_is_welcome(show, page, motion):
    drift = Drift(APART, POINTS)
    drift._repr_mimebundle_()
    assert drift.fresh == "first" and drift.step == 2
    page.emulate_media(reduced_motion=motion)
    show(drift, fresh="first")
    settle(page, "model.get('fresh') === '' && model.get('step') === 2 && !model.get('playing')")
    assert page.locator(".rd-forward").count() == (motion == "no-preference")  # it came there step by step


def test_the_still_has_the_last_lines_the_data_and_the_numbers():
    drift = Drift(APART, POINTS)
    html = drift.fallback()
    assert html == Drift(APART, POINTS).fallback() and len(html) < 6000
    said = "Rank 0: -0.50 + 1.00 x. Rank 1: -1.50 + 2.50 x. The lines are up to 2.0 apart."
    assert f'alt="2 ranks learn 2 different lines: up to 2.0 apart after 2 steps: {said}"' in html
    picture = base64.b64decode(re.search(r"base64,([^\"]+)", html)[1]).decode()
    lines = [picture.split('opacity="1"')[1].split("</g>")[0].count("data-way"), picture.count('opacity="0.25"')]
    assert lines == [2, 1] and "Pale: step 1.<" in picture, "the end, and step 1 faintly"
    assert [len(re.findall("h0", d)) for d in re.findall(r'stroke-width="11" d="([^"]+)"', picture)] == [3, 3]


@pytest.mark.parametrize(
    "paths, given, words",
    [
        ([APART[0], APART[1][:2]], {}, "every rank has a row for each step; got [2, 3] rows"),
        ([[[0.0, 1.0, 2.0]]], {}, "each row is w[0] and w[1]; for other models give what they say, and at=[x, ...]"),
        ([[[0.0, 1.0]]], {"at": [0.0, 1.0, 2.0]}, "each row has what a model says at the 3 x of at"),
    ],
)
def test_rows_that_do_not_fit_are_refused(paths, given, words):
    with pytest.raises(ValueError, match="^" + re.escape(words) + "$"):
        Drift(paths, POINTS, **given)


@pytest.mark.parametrize("change", ["nothing", "one step", "mean", "other points"])
def test_it_says_that_ranks_learn_alone_only_if_their_own_points_explain_every_step(change):
    """Gradient descent on x², the gradient from numpy's own fit of small changes: not from the widget's formula."""
    points = [np.array([0.0, 0.5, 1.0]), np.array([1.0, 1.5, 2.0])]

    def slope(w, x):
        error = lambda w: np.mean((w[0] + w[1] * x - x**2) ** 2)  # noqa: E731
        return np.array([(error(w + d) - error(w - d)) / 2e-4 for d in 1e-4 * np.eye(2)])

    paths = [[np.zeros(2)], [np.zeros(2)]]
    for _ in range(20):
        slopes = [slope(path[-1], x) for path, x in zip(paths, points, strict=True)]
        if change == "mean":
            slopes = [0.9 * own + 0.1 * other for own, other in zip(slopes, slopes[::-1], strict=True)]
        for path, each in zip(paths, slopes, strict=True):
            path.append((path[-1] - 0.2 * each).astype(np.float32).astype(float))
    if change == "one step":
        paths[1][7] = paths[1][7] + 0.02
    seen = points[::-1] if change == "other points" else points
    said = Drift([np.array(path).tolist() for path in paths], seen).headline
    apart = re.fullmatch(r"2 ranks learn (.*?)2 (different )?lines[,:] up to [\d.]+ apart( after 20 steps)?", said)
    assert apart[1] == ("alone, each from its own data: " if change == "nothing" else "")
