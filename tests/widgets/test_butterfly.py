"""The Butterfly: lines, bars and numbers against the schedules they are drawn from, and how it is stepped through."""

import re
from fractions import Fraction

import pytest

from collectives import CATALOGUE, Schedule, ScheduleError, all_gather, all_reduce, build
from tests.widgets.conftest import settle
from widgets import Butterfly, Mesh, Square, base, butterfly

NEAR, FAR = all_reduce.halving_doubling(8), all_reduce.halving_doubling_far_first(8)
GETS = "Every rank gets the sum of all 8 (all_reduce): "
MEET = {"recursive_doubling", "recursive_halving", "halving_doubling", "halving_doubling_far_first", "swing"}
BOX = re.compile(r"M([\d.]+) (\d+)h([\d.]+)v-(\d+)")
LINE = re.compile(r'<path class="rd-line( rd-slow)?" d="[^"]*" stroke-width="([\d.]+)" data-ends="(\d+) (\d+)"/>')


def lines(widget):
    """Step -> {(src, dst): (thickness, slow)} of a picture of one schedule."""
    steps = re.split(r'(?=<g data-step=")', widget.pictures["wide"])
    found = {}
    for part in steps:
        ends = {(int(a), int(b)): (float(wide), bool(slow)) for slow, wide, a, b in LINE.findall(part)}
        if ends:
            found[int(re.search(r'data-step="(\d+)"', part)[1])] = ends
    return found


@pytest.mark.parametrize("plan", [NEAR, FAR, all_reduce.swing(8), all_reduce.recursive_doubling(16)], ids=repr)
def test_a_line_is_a_message_as_thick_as_it_is_long_and_orange_if_it_leaves_the_machine(plan):
    drawn = lines(Butterfly(plan, local=4))
    assert sorted(drawn) == list(range(1, len(plan.steps) + 1))
    most = max(t.count for step in plan.steps for t in step.transfers)
    for number, step in enumerate(plan.steps, 1):
        sent = {}
        for t in step.transfers:
            sent[t.src, t.dst] = sent.get((t.src, t.dst), 0) + t.count
        assert {ends: slow for ends, (_, slow) in drawn[number].items()} == {(a, b): a // 4 != b // 4 for a, b in sent}
        for ends, count in sent.items():
            assert drawn[number][ends][0] == pytest.approx(1 + 4 * Fraction(count, most), rel=0.05, abs=0.05)


def bars(wing, ranks):
    """Step -> [rank][chunk] -> how high the dark part is, in pixels, of what is coloured at all."""
    columns = {}
    for number, part in re.findall(r'<g class="rd-after" data-step="(\d+)">(.*?)</g>', wing):
        left, _, wide, _ = map(float, BOX.search(part).groups())  # the bars while they are empty
        cells = [{} for _ in range(ranks)]
        for x, low, long, high in BOX.findall(re.search('<path class="rd-full rs-h4" d="([^"]*)"', part)[1]):
            first, many = (round(float(pixels) * ranks / wide) for pixels in (float(x) - left, long))
            row = (int(low) - butterfly.HEAD - 1) // butterfly.ROW
            cells[row] |= dict.fromkeys(range(first, first + many), int(high))
        columns[int(number)] = cells
    return [columns[number] for number in sorted(columns)]


@pytest.mark.parametrize("plan", [NEAR, FAR], ids=repr)
def test_a_bar_shows_the_half_that_its_rank_goes_on_with_and_how_many_ranks_are_in_it(plan):
    columns = bars(Butterfly(plan).pictures["wide"], 8)
    shares = [1, 2, 4, 8, 8, 8, 8]
    for step, (cells, left) in enumerate(zip(columns, [8, 4, 2, 1, 2, 4, 8], strict=True)):
        assert {len(chunks) for chunks in cells} == {left}
        assert {high for chunks in cells for high in chunks.values()} == {round(butterfly.BAR * shares[step] / 8)}
    if plan is FAR:  # every rank is left with its own chunk in between
        assert [list(chunks) for chunks in columns[3]] == [[rank] for rank in range(8)]
    assert sorted(chunk for chunks in columns[3] for chunk in chunks) == list(range(8))


def test_of_an_all_gather_it_shows_what_has_come():
    columns = bars(Butterfly(all_gather.recursive_doubling(8)).pictures["wide"], 8)
    assert [{len(chunks) for chunks in cells} for cells in columns] == [{1}, {2}, {4}, {8}]


@pytest.mark.parametrize(
    "plan, local, said", [(NEAR, 4, "1/4 N"), (FAR, 4, "N"), (NEAR, 2, "3/4 N"), (FAR, 2, "3/2 N")]
)
def test_what_leaves_the_machine_is_added_up_from_the_transfers(plan, local, said):
    transfers = [t for step in plan.steps for t in step.transfers if t.src == 0 and t.dst >= local]
    amount = Fraction(sum(t.count for t in transfers), 8)
    assert said == ("N" if amount == 1 else f"{amount} N")
    sends = "7/4 N"
    assert (
        Butterfly(plan, local=local).headline
        == f"{GETS}{plan.algorithm} sends {said} of each rank's {sends} over the slow links"
    )


def test_two_orders_beside_each_other_say_which_spares_the_slow_links():
    both = Butterfly(NEAR, FAR, local=4)
    assert both.headline == f"{GETS}halving_doubling sends 4 times less over the slow links"
    assert both.told[1] == (
        "halving_doubling: ranks 1 apart swap 1/2 N each, inside a machine; "
        "halving_doubling_far_first: ranks 4 apart swap 1/2 N each, over the slow link."
    )
    assert Butterfly(FAR, NEAR, local=4).headline == both.headline
    assert both.phases == [["reduce-scatter", 3], ["all-gather", 3]]
    assert (
        repr(both)
        == "Butterfly(all_reduce halving_doubling, all_reduce halving_doubling_far_first, 8 ranks, 4 on each machine)"
    )


def test_every_algorithm_in_which_ranks_meet_in_pairs_is_drawn_and_no_other():
    drawn = set()
    for collective in CATALOGUE:
        for name in CATALOGUE[collective]:
            try:
                plan = build(collective, name, 8)
            except ScheduleError:
                continue
            try:
                drawn.add(Butterfly(plan) and name)
            except ValueError as error:
                assert "is no butterfly" in str(error)
    assert drawn == MEET


def test_a_run_of_which_bytes_are_known_is_told_in_bytes():
    steps = [(step.phase, step.caption, step.transfers) for step in all_reduce.halving_doubling(2).steps]
    run = Schedule.from_steps("all_reduce", "recorded", 2, 2, steps, chunk_bytes=[4000, 4000])
    assert Butterfly(run).told[1] == "Ranks 1 apart swap 4 kB each."


def test_what_is_saved_beside_it_is_the_whole_picture_and_small():
    one, two = (Butterfly(NEAR, FAR, local=4)._repr_mimebundle_()[0]["text/html"] for _ in range(2))
    assert one == two and len(one) < 60_000
    assert Butterfly(NEAR, local=4).fallback() != Butterfly(FAR, local=4).fallback()  # which the text tells apart
    assert f'alt="{GETS}halving_doubling sends 4 times less over the slow links: ' in one


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: Butterfly(), ValueError, "Butterfly needs a schedule"),
        (lambda: Butterfly(8), TypeError, "Butterfly draws Schedules, such as all_reduce.halving_doubling(8); got 8"),
        (lambda: Butterfly(NEAR, all_reduce.swing(4)), ValueError, "the same number of ranks, got 4 and 8"),
        (lambda: Butterfly(all_reduce.swing(32)), ValueError, "up to 16 ranks, got 32"),
        (lambda: Butterfly(NEAR, local=3), ValueError, "so it divides 8; got 3"),
        (lambda: Butterfly(all_reduce.ring(8)), ValueError, "step 1 rank 0 sends to 1 and hears from 7"),
        (lambda: Butterfly(all_reduce.swing(6)), ValueError, "step 1 rank 0 sends to nobody and hears from 1"),
    ],
)
def test_bad_input_is_one_clear_sentence(make, error, words):
    with pytest.raises(error) as raised:
        make()
    assert words in str(raised.value)


def classes(page, step):
    """The last class of every part of that step."""
    last = "(nodes) => nodes.map((node) => [...node.classList].at(-1))"
    return page.locator(f".rs-drawing [data-step='{step}']").evaluate_all(last)


def test_keys_step_through_it_and_follow_a_rank(show):
    page = show(Butterfly(NEAR, FAR, local=4))
    assert page.inner_text(".rs-title") == Butterfly(NEAR, FAR, local=4).headline
    assert {*classes(page, 1)} == {"rd-next"}
    page.focus(".rs-scrub input")
    for key in ("ArrowRight", "PageDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    assert page.evaluate("[model.get('step'), model.get('chosen')]") == [2, 1]
    assert [{*classes(page, step)} for step in (1, 2, 3)] == [{"rd-past"}, {"rd-now"}, {"rd-next"}]
    assert page.inner_text(".rs-where") == "Step 2 of 6." and page.get_attribute(".rs-caption", "role") == "status"
    assert (
        page.get_attribute(".rs-scrub input", "aria-valuetext")
        == f"Step 2 of 6.: {Butterfly(NEAR, FAR, local=4).told[2]}"
    )
    assert page.inner_text(".rs-detail") == (
        "Rank 1 meets 0, 3, 5, 5, 3, 0 in halving_doubling; 5, 3, 0, 0, 3, 5 in halving_doubling_far_first."
    )
    lit = page.evaluate("[...document.querySelectorAll('.rd-line.rd-lit')].map((node) => node.dataset.ends)")
    assert len(lit) == 24 and all("1" in ends.split() for ends in lit)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("model.get('chosen')") == -1 and page.inner_text(".rs-detail") == ""


FLYING = "[...document.querySelectorAll('.rd-flight')].flatMap((node) => node.getAnimations()).length"


def test_what_is_sent_flies_unless_motion_is_unwelcome(show, page):
    page.emulate_media(reduced_motion="no-preference")
    show(Butterfly(NEAR))
    page.evaluate("model.set('step', 1)")
    assert page.evaluate(FLYING) > 0
    page.evaluate("model.set('step', 0)")
    assert page.evaluate(FLYING) == 0
    page.evaluate("model.set('step', 1)")
    assert page.evaluate(FLYING) > 0
    page.emulate_media(reduced_motion="reduce")
    page.evaluate("model.set('step', 2)")
    assert page.evaluate(FLYING) == 0


@pytest.mark.parametrize("width, kind", [(360, "0 0 340"), (900, "0 0 700")])
def test_a_phone_has_a_picture_of_its_own(show, page, width, kind):
    page.set_viewport_size({"width": width, "height": 720})
    show(Butterfly(NEAR, local=4))
    assert page.get_attribute(".rs-drawing", "viewBox").startswith(kind)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box, drawing = "(node) => node.getBBox().x + node.getBBox().width", page.locator(".rs-drawing text")
    assert max(drawing.evaluate_all(f"(nodes) => nodes.map({box})")) <= int(kind[4:])


def test_on_a_wall_everything_is_on_the_screen(show, page):
    show(Butterfly(NEAR, FAR, local=4))
    page.focus(".rs-scrub input")
    page.keyboard.press("p")
    settle(page, "document.fullscreenElement")
    bottom = "(node) => node.getBoundingClientRect().bottom"
    assert page.eval_on_selector(".rs-drawing", bottom) <= page.eval_on_selector(".rs-stage", bottom) + 1
    assert page.eval_on_selector(".rs-transport", bottom) <= 720


def test_a_rank_can_be_followed_from_the_start(show):
    page = show(Butterfly(NEAR, chosen=3))
    assert page.inner_text(".rs-detail") == "Rank 3 meets 2, 1, 7, 7, 1, 2."
    assert page.locator(".rd-line.rd-lit").count() == 12


STYLES = """(nodes) => nodes.map((node) => {
    const { fill, stroke, strokeWidth, opacity, fontSize, display } = getComputedStyle(node);
    return [node.getAttribute("class"), fill, stroke, strokeWidth, opacity, fontSize, display];
})"""


@pytest.mark.parametrize("make", [lambda: Butterfly(NEAR, local=4), Square, lambda: Mesh(shape=(2, 4), local=4)])
def test_the_styles_of_other_widgets_in_a_notebook_leave_it_as_it_is(show, page, make):
    """A notebook has the styles of all its widgets on one page."""
    show(make())
    before = page.locator(".rs-drawing *, .rs-body > *").evaluate_all(STYLES)
    own = {"theme.css", "frame.css", "player.css", "drawn.css"}
    for sheet in (base.HERE / "css").glob("*.css"):
        if sheet.name not in own:
            page.add_style_tag(content=sheet.read_text())
    assert page.locator(".rs-drawing *, .rs-body > *").evaluate_all(STYLES) == before
