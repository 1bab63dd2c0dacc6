"""The Square: what is drawn against what algorithms leave, what is thrown away, and how it is stepped through."""

import re

import pytest

from collectives import all_gather, all_reduce, all_to_all, broadcast, gather, reduce, reduce_scatter, scatter
from collectives.state import letter
from widgets import Square, square

PLANS = {  # an algorithm of each that cuts the vector into a piece for each rank
    "broadcast": broadcast.scatter_all_gather,
    "scatter": scatter.flat,
    "gather": gather.flat,
    "reduce": reduce.reduce_scatter_gather,
    "all_gather": all_gather.ring,
    "reduce_scatter": reduce_scatter.ring,
    "all_reduce": all_reduce.ring,
    "all_to_all": all_to_all.pairwise,
}
BOX = re.compile(r"M(\d+) (\d+)h(\d+)v")


def drawn(part, corner, kinds="rd-full rs-h"):
    """{(rank, piece): hue} of the boxes of a square with that corner."""
    found = {}
    for hue, path in re.findall(rf'<path class="{kinds}(\d)" d="([^"]*)"/>', part):
        for x, y, side in BOX.findall(path):
            cell = int(side) + 2
            found[(int(y) - 1 - corner[1]) // cell, (int(x) - 1 - corner[0]) // cell] = int(hue)
    return found


def squares(widget):
    """The squares of a wide picture, in order: before and after of each tile."""
    for part in re.split(r'(?=<path class="rd-empty")', widget.pictures["wide"])[1:]:
        x, y = map(int, re.search(r'd="M(\d+) (\d+)h', part).groups())
        yield (x, y), part


def held(plan, state, buffer, goal=None):
    """(rank, piece) -> (hue, letter) of what a schedule has there; only what is promised, if that is said."""
    cells = state.cells[buffer]
    return {
        (rank, piece): (cell.kind, "Σ" if len(cell.contributors) > 1 else letter(cell.contributors[0]))
        for rank in range(plan.ranks)
        for piece in range(plan.chunks)
        if (cell := cells[rank, piece]) and (goal is None or goal[rank, piece] is not None)
    }


def letters(part, corner, cell):
    found = {}
    for x, y, marks in re.findall(r'<text class="rd-sum rd-mid" x="([^"]*)"[^>]* y="([^"]*)">([^<]*)<', part):
        for at, mark in zip(x.split(), marks, strict=True):
            found[int((float(y) - corner[1]) // cell), int((float(at) - corner[0]) // cell)] = mark
    return found


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("ranks", [2, 4])
def test_before_and_after_are_what_an_algorithm_has_and_leaves(name, ranks):
    plan = PLANS[name](ranks)
    picture = Square(name, ranks=ranks).pictures["wide"]
    (start, goal), cell = _tile(picture), 30
    expected = (
        held(plan, plan.start(), plan.buffers[0]),
        held(plan, plan.states(-1), plan.result, plan.goal()[plan.result]),
    )
    for (corner, part), there in zip((start, goal), expected, strict=True):
        hues, marks = drawn(part, corner), letters(part, corner, cell)
        assert {at: (hue, marks[at]) for at, hue in hues.items()} == there


def _tile(picture):
    """Corner and markup of the squares before and after."""
    far, near = re.findall(r'<path class="rd-empty" d="M(\d+) (\d+)h', picture)[::-1][:2]
    before, after = picture.split('<g class="rd-after" data-step="1">')
    after = after.split('<g class="rd-flight"')[0]
    return [(tuple(map(int, near)), before), (tuple(map(int, far)), after)]


@pytest.mark.parametrize("name", PLANS)
def test_each_piece_flies_from_where_a_rank_had_it(name):
    """Every origin of what is promised is once on its way, from its own cell."""
    plan = PLANS[name](4)
    goal = plan.goal()[plan.result]
    wanted = {(origin, at) for at in _places(4) if goal[at] is not None for origin in goal[at].origins}
    picture = Square(name).pictures["wide"]
    (near, _), (far, _) = _tile(picture)
    seen = set()
    for x, y, part in re.findall(
        r'<g class="rd-flight" data-step="1" style="--x:(-?\d+)px;--y:(-?\d+)px">(.*?)</g>', picture
    ):
        for at in drawn(part, far):
            to = far[0] + at[1] * 30, far[1] + at[0] * 30
            origin = (to[1] + int(y) - near[1]) // 30, (to[0] + int(x) - near[0]) // 30
            assert (origin, at) not in seen
            seen.add((origin, at))
    assert seen == wanted


def _places(ranks):
    return [(rank, piece) for rank in range(ranks) for piece in range(ranks)]


@pytest.mark.parametrize(
    "name, uses, right, n, m",
    [
        ("all_reduce", "own", "reduce_scatter", "6 N", "3 N"),
        ("all_reduce", "root", "reduce", "6 N", "3 N"),
        ("all_gather", "root", "gather", "3 N", "3/4 N"),
        ("broadcast", "own", "scatter", "3 N", "3/4 N"),
    ],
)
def test_who_throws_away_what_it_receives_has_the_wrong_collective(name, uses, right, n, m):
    widget = Square(name, uses=uses)
    assert widget.headline == f"{name} leaves 16 pieces and 12 are thrown away: {right} leaves just the rest"
    assert n in widget.told[1] and widget.told[3] == f"{right} leaves just these, and sends {m}."
    crossed = re.search(r'<path class="rd-line rd-slow" stroke-width="2.5" d="([^"]*)"', widget.pictures["wide"])[1]
    corner, cell = list(squares(widget))[2][0], 29
    lost = {
        ((int(y) - 3 - corner[1]) // cell, (int(x) - 3 - corner[0]) // cell)
        for x, y in re.findall(r"M(\d+) (\d+)l", crossed)
    }
    kept = {(r, r) for r in range(4)} if uses == "own" else {(0, c) for c in range(4)}
    assert lost == {*_places(4)} - kept
    assert (
        drawn(list(squares(widget))[3][1].split('<g class="rd-flight"')[0], list(squares(widget))[3][0]).keys() == kept
    )


def test_all_of_them_stand_on_one_page_and_what_is_saved_shows_all():
    widget = Square()
    assert repr(widget) == "Square(all, 4 ranks)" and len(list(squares(widget))) == 16
    one, two = widget.fallback(), Square().fallback()
    assert one == two and len(one) < 25_000 and "rd-flight" not in one
    assert [name for name, _ in widget.phases] == [*square.MOVES] and len(widget.told) == 9


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Square(ranks=9), "Square shows 2 to 8 ranks, got 9"),
        (lambda: Square("barrier"), "got 'barrier'"),
        (lambda: Square("all_reduce", uses="half"), "got 'half'"),
        (lambda: Square(uses="own"), 'as in Square("all_reduce", uses='),
        (lambda: Square("all_to_all", uses="own"), "with uses='own' try broadcast, all_reduce"),
    ],
)
def test_bad_input_is_one_clear_sentence(make, words):
    with pytest.raises(ValueError) as raised:
        make()
    assert words in str(raised.value)


def test_what_is_on_the_right_is_to_be_guessed_first(show, page):
    show(Square())
    seen = "(nodes) => nodes.map((node) => Number(getComputedStyle(node).opacity))"
    right = page.locator(".rs-drawing g[data-step]:not(.rd-flight)")
    assert right.evaluate_all(seen) == [0] * 8
    page.focus(".rs-scrub input")
    page.keyboard.press("PageDown")
    page.keyboard.press("ArrowRight")
    assert right.evaluate_all(seen) == [1, 1, 0, 0, 0, 0, 0, 0]
    assert page.inner_text(".rs-sentence") == "scatter: the root's row, spread over the diagonal."


@pytest.mark.parametrize("make", [Square, lambda: Square("all_reduce", uses="own")])
@pytest.mark.parametrize("width", [360, 900])
def test_it_fits(show, page, make, width):
    page.set_viewport_size({"width": width, "height": 720})
    show(make())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = "(nodes) => nodes.map((node) => node.getBBox()).map(({ x, width }) => [x, x + width])"
    ends = page.locator(".rs-drawing text").evaluate_all(box)
    assert min(left for left, _ in ends) >= 0 and max(right for _, right in ends) <= (340 if width == 360 else 700)


def test_it_stands_behind_a_question_until_that_is_answered(show):
    widget = Square("all_reduce", uses="own")
    answers = [{"text": text, "why": "", "step": None} for text in ("all_reduce", "reduce_scatter")]
    widget.ask({"kind": "choose", "name": "which", "text": "Which?", "answers": answers, "right": 1})
    page = show(widget)
    assert page.locator(".rs-drawing").count() == 0
    page.focus(".rs-question")
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    assert page.locator(".rs-drawing").count() == 1
