"""Tokens: every dot against the router's choices, the places for each rank, and what was really received."""

import base64
import re

import numpy as np
import pytest

from tests.pictures.scenes import dispatch, pairs, tokens
from widgets import Tokens

RANDOM = np.random.default_rng(3).integers(0, 4, (4, 6, 1))
GO = "24 tokens (pieces of text) go to 4 expert networks"
DOTS = r'<circle class="rd-full rs-h(\d)" cx="([\d.]+)" cy="([\d.]+)"[^>]*/>(?:<text[^>]*>(\w+)</text>)?'


def columns(widget):
    """The dots of the wide picture on the left, in the middle, on the right: [(name, expert by its colour, y), ...]."""
    found = {"left": [], "middle": [], "right": []}
    for hue, x, y, name in re.findall(DOTS, re.sub(r"<[^>]*rd-flight[^>]*>", "", widget.pictures["wide"])):
        found["left" if float(x) < 190 else "right" if float(x) > 560 else "middle"].append((name, int(hue), float(y)))
    return found


def test_without_a_capacity_each_expert_has_the_tokens_that_chose_it():
    seen = columns(Tokens(**dispatch(RANDOM, 4)))
    names = {f"{'abcd'[r]}{t}": int(RANDOM[r, t, 0]) for r, t in np.ndindex(4, 6)}
    for side in seen.values():
        assert {name: expert for name, expert, _ in side} == names and len(side) == 24
    heights = {expert: {y for _, other, y in seen["middle"] if other == expert} for expert in range(4)}
    assert all(len(ys) == 1 for ys in heights.values()) and len(set.union(*heights.values())) == 4
    assert sorted(y for ys in heights.values() for y in ys) == [y for ys in heights.values() for y in ys]


def test_with_a_capacity_each_rank_has_its_own_places_and_the_rest_is_dropped():
    widget = tokens()
    assert widget.headline == f"{GO}; 3 are dropped: an expert takes at most 2 from each rank"
    gone = {"a3", "a5", "b3"}  # rank 0 has four tokens for expert 0, rank 1 three
    assert {f"{'abcd'[s]}{t}" for s, t, _ in widget.lost} == gone
    seen = columns(widget)
    assert {name for name, *_ in seen["left"]} - {name for name, *_ in seen["middle"]} == gone
    assert {name for name, *_ in seen["right"]} == {name for name, *_ in seen["middle"]}
    places = re.findall(r'<circle class="rd-empty" cx="([\d.]+)" cy="([\d.]+)"', widget.pictures["wide"])
    assert len(places) == len(set(places)) == 4 * 4 * 2
    taken = [(row.expert, row.sender, row.place) for row in widget.rows]
    assert len(taken) == len(set(taken)) == 21 and {place for *_, place in taken} == {0, 1}
    assert widget.pictures["wide"].count("data-lost") == 3
    assert widget.told[1].endswith("Experts get 8, 4, 5, 4; no place is left for a3, a5, b3.")
    assert widget.told[2].endswith("A dropped token skips its expert.")
    assert widget.legend[1].startswith("Crossed out: dropped. Ring: skipped every expert.")


def test_a_capacity_that_drops_nothing_is_still_one():
    widget = Tokens(**dispatch(RANDOM, 4, capacity=6))
    assert widget.headline == f"{GO}; none is dropped: an expert takes at most 6 from each rank"
    assert len(widget.rows) == 24 and not widget.lost


def test_two_experts_a_token_and_two_on_each_rank():
    widget = pairs()
    choice = np.stack(widget.choice)
    wanted = {(r, t, int(e)) for r, t, k in np.ndindex(choice.shape) for e in [choice[r, t, k]]}
    assert {(row.sender, row.token, row.expert) for row in widget.rows} == wanted and not widget.lost
    slices = re.findall(r'<path class="rd-full rs-bare rs-h(\d)" d="([^"]+)"', widget.pictures["wide"])
    assert len(slices) == 2 * 48
    center, start, large, end = (
        re.search(pattern, slices[0][1])[1]
        for pattern in (r"M([\d. ]+)L", r"L([\d. ]+)A", r" 0 ([01]) 1", r" 0 [01] 1 ([\d. ]+)z")
    )
    at, a, b = (np.array([float(value) for value in point.split()]) for point in (center, start, end))
    cosine = (a - at) @ (b - at) / np.hypot(*(a - at)) / np.hypot(*(b - at))
    share = np.arccos(cosine) / 2 / np.pi
    share = 1 - share if large == "1" else share
    assert share == pytest.approx(widget.gate[0, 0, 0] / widget.gate[0, 0].sum(), abs=0.02)


def test_a_token_that_came_to_the_wrong_rank_is_seen_there():
    """The student has mixed up two ranks: the picture shows what was received, not what was chosen."""
    run = dispatch(RANDOM, 4)
    first, second = (next(e for e in run["run"].events if e.rank == rank and e.match.number == 0) for rank in (0, 1))
    first.after, second.after = second.after, first.after
    widget = Tokens(**run)
    wrong = int((RANDOM < 2).sum())
    assert widget.headline == f"{wrong} of 24 tokens did not come to the expert that the router chose"
    assert {int(RANDOM[row.sender, row.token, 0]) for row in widget.rows if row.expert == 0} == {1}


def test_without_the_way_back_there_is_one_step_and_nothing_on_the_right():
    run = dispatch(RANDOM, 4)
    run["run"].events = [event for event in run["run"].events if event.match.number == 0]
    widget = Tokens(**run)
    assert len(widget.told) == 2 and not columns(widget)["right"]
    assert widget.headline.startswith(f"{GO}: ")


def test_with_two_experts_what_is_lost_is_a_copy_of_a_token():
    run = dispatch(np.concatenate([RANDOM, (RANDOM + 1) % 4], axis=-1), 4)
    first, second = (next(e for e in run["run"].events if e.rank == rank and e.match.number == 0) for rank in (0, 2))
    first.after, second.after = second.after, first.after
    assert re.match(r"\d+ of 48 copies of tokens did not come", Tokens(**run).headline)


def test_what_is_saved_beside_it_tells_all_of_it():
    one, two = tokens(), tokens()
    assert one.fallback() == two.fallback() and len(one.fallback()) < 40_000 and len(pairs().fallback()) < 50_000
    svg = base64.b64decode(re.search(r"base64,([^\"]+)", one.fallback())[1]).decode()
    assert "rd-flight" not in svg and svg.count(">a0<") == 3, "at home, at its expert, and back"
    assert repr(one) == "Tokens(24 tokens, 4 experts, at most 2 from each rank)"


def test_steps_show_and_hide_and_a_rank_is_followed(show):
    page = show(tokens(step=0))
    visible = """() => ["1", "2"].map((step) => [...document.querySelectorAll(`.rd-after[data-step="${step}"]`)]
        .filter((node) => getComputedStyle(node).opacity > 0.9).length)"""
    assert page.evaluate(visible) == [0, 0]
    page.focus(".rs-scrub input")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(visible) == [21, 0]
    page.keyboard.press("ArrowRight")
    assert page.evaluate(visible) == [21, 4]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.inner_text(".rs-detail") == tokens().takes_part[1]
    lit = page.locator(".rs-drawing [data-ends].rd-lit").evaluate_all("(all) => all.map((node) => node.dataset.ends)")
    assert {*lit} == {"1"}


@pytest.mark.parametrize("width", [360, 900])
@pytest.mark.parametrize("make", [tokens, pairs, lambda: Tokens(**dispatch(np.zeros((8, 8, 1), int), 8))])
def test_it_fits(show, page, make, width):
    page.set_viewport_size({"width": width, "height": 720})
    show(make())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    sides = "(nodes) => nodes.map((node) => node.getBoundingClientRect()).map(({ left, right }) => [left, right])"
    ends = page.locator(".rs-drawing :is(text, circle, path, rect):not(.rd-flight)").evaluate_all(sides)
    box = page.locator(".rs-drawing").bounding_box()
    assert min(left for left, _ in ends) >= box["x"] and max(right for _, right in ends) <= box["x"] + box["width"]


GIVEN = dispatch(RANDOM, 4)


@pytest.mark.parametrize(
    "changed, error, words",
    [
        ({"run": 7}, TypeError, "whose calls have values (not a run that was loaded); got int"),
        ({"x": [each + 1000 for each in GIVEN["x"]]}, ValueError, "no rank received a row of x in this run"),
        ({"x": GIVEN["x"][:3]}, ValueError, "x has a row for each token"),
        ({"choice": [[0], [0, 1], [0], [0]]}, ValueError, "the same shape on every rank"),
        ({"choice": [RANDOM[0] + 1] * 4}, ValueError, "4 experts on 4 ranks have numbers 0 to 3"),
        ({"experts": 6}, ValueError, "6 experts on 4 ranks"),
        ({"choice": [np.zeros(40, int)] * 4, "x": [np.zeros((40, 4))] * 4}, ValueError, "record fewer tokens"),
    ],
)
def test_bad_input_is_one_clear_sentence(changed, error, words):
    with pytest.raises(error) as raised:
        Tokens(**{**GIVEN, **changed})
    assert words in str(raised.value)
