"""The pictures a Player offers (row, ring, tree, machines), in a real browser: who stands where; nothing collides.

What a place must be is worked out here anew: a rank's depth in a binomial tree is the number of ones in its binary form
(Thakur, Rabenseifner and Gropp 2005), its machine is rank // local.
"""

import pytest

from collectives import CATALOGUE, Schedule, Transfer, all_reduce, all_to_all, broadcast, gather, scatter
from collectives.groups import btree, depths
from collectives.state import Cell, empty_cells
from tests.widgets.conftest import ask, wait_for_wall
from widgets import Player
from widgets.zoo import _schedules

BOXES = """selector => [...document.querySelectorAll(selector)].map((node) => {
    const { left, top, right, bottom } = node.getBoundingClientRect();
    return { left, top, right, bottom };
})"""


def name_of(value):
    return repr(value) if isinstance(value, Schedule) else ""


def boxes(page, selector):
    return ask(page, BOXES, selector)


def students_tree():
    """A reduce that nobody has named: 3 and 4 to 1, then 1 and 2 to 0."""
    first = [Transfer(3, 1, 0, "reduce"), Transfer(4, 1, 0, "reduce")]
    second = [Transfer(1, 0, 0, "reduce"), Transfer(2, 0, 0, "reduce")]
    return Schedule.from_steps("recorded", "recorded", 5, 1, [("", "", first), ("", "", second)])


@pytest.mark.parametrize(
    "schedule, offered",
    [
        (all_reduce.ring(ranks=6), ["ring", "row"]),
        (all_reduce.ring(ranks=16), ["row", "ring"]),  # too long to be taken in at a glance
        (all_reduce.ring(ranks=2), ["row"]),
        (all_reduce.bidirectional_ring(ranks=6), ["row", "ring"]),
        (broadcast.chain(ranks=4), ["row", "ring"]),
        (all_reduce.exchange(ranks=4), ["row"]),
        (all_reduce.double_tree(ranks=8), ["row"]),  # two trees at once
        (all_reduce.naive(ranks=4), ["row", "tree"]),
        (all_reduce.tree(ranks=8), ["tree", "row"]),
        (all_reduce.pipelined_tree(ranks=8), ["tree", "row"]),
        (gather.binomial(ranks=8), ["tree", "row"]),
        (students_tree(), ["tree", "row"]),
        (all_reduce.hierarchical(nodes=2, local=4), ["machines", "row"]),
    ],
    ids=name_of,
)
def test_only_pictures_that_suit_the_schedule_are_offered_the_best_first(show, schedule, offered):
    page = show(Player(schedule))
    assert page.locator(".rs-shape option").all_text_contents() == offered
    assert page.input_value(".rs-shape") == offered[0]
    page.click(".rs-more")
    assert page.is_visible(".rs-shape") == (len(offered) > 1)


@pytest.mark.parametrize(
    "schedule, depth",
    [
        (all_reduce.tree(ranks=16), [rank.bit_count() for rank in range(16)]),
        (broadcast.binomial(ranks=64), [rank.bit_count() for rank in range(64)]),
        (broadcast.binomial(ranks=6, root=2), [((rank - 2) % 6).bit_count() for rank in range(6)]),
        (all_reduce.pipelined_tree(ranks=13), depths(btree(13)).tolist()),
        (students_tree(), [0, 1, 1, 2, 2]),
    ],
    ids=name_of,
)
def test_in_a_tree_a_rank_stands_as_low_as_it_is_deep(show, schedule, depth):
    page = show(Player(schedule))
    tops = [box["top"] for box in boxes(page, ".rs-card")]
    lines = sorted(set(tops))
    assert [lines.index(top) for top in tops] == depth
    assert page.locator(".rs-branch").get_attribute("d").count("M") == schedule.ranks - 1


@pytest.mark.parametrize("nodes, local", [(2, 4), (16, 4), (2, 32)])
def test_machines_are_frames_around_their_ranks_and_nobody_else(show, nodes, local):
    page = show(Player(all_reduce.hierarchical(nodes=nodes, local=local)))
    frames, cards = boxes(page, ".rs-box"), boxes(page, ".rs-card")
    assert len(frames) == nodes
    for machine, frame in enumerate(frames):
        inside = [rank for rank, card in enumerate(cards) if within(card, frame)]
        assert inside == list(range(machine * local, machine * local + local))
    first = cards[:local]
    below = cards[local : 2 * local]  # the same number on the next machine stands right below
    assert all(a["left"] == pytest.approx(b["left"], abs=0.2) for a, b in zip(first, below, strict=True))


@pytest.mark.parametrize("collective", CATALOGUE)
def test_a_player_of_four_ranks_is_at_most_400_pixels_high_with_every_algorithm(show, collective):
    """At 1280 pixels; machines of few ranks stand beside each other, in one frame each."""
    high = []
    for schedule in _schedules(collective, 4):
        page = show(Player(schedule, step=1))
        box = page.locator(".rs-frame").bounding_box()
        high.append((schedule.algorithm, box["height"]))
        frames, cards = boxes(page, ".rs-box"), boxes(page, ".rs-card")
        for machine, frame in enumerate(frames):
            assert [within(card, frame) for card in cards] == [rank // 2 == machine for rank in range(4)]
        assert not frames or len({frame["top"] for frame in frames}) == 1
    assert high and max(tall for _, tall in high) <= 400, high


@pytest.mark.parametrize("name, cell", [("pipelined_tree", 20), ("double_tree", 13), ("whole_ring", 40)])
def test_so_it_is_in_a_narrower_window_with_cells_that_can_be_read(show, page, name, cell):
    page.set_viewport_size({"width": 894, "height": 720})
    show(Player(getattr(all_reduce, name)(4)))
    assert page.locator(".rs-frame").bounding_box()["height"] <= 400
    assert page.locator(".rs-cell").first.bounding_box()["height"] > cell


def test_a_ring_of_four_can_still_be_drawn_as_a_ring(show):
    page = show(Player(all_reduce.ring(ranks=4), step=1))
    assert page.input_value(".rs-shape") == "row"
    assert len({box["top"] for box in boxes(page, ".rs-card")}) == 1
    page.click(".rs-more")
    page.select_option(".rs-shape", "ring")
    assert page.input_value(".rs-shape") == "ring"
    assert len({box["top"] for box in boxes(page, ".rs-card")}) == 2


def within(box, outer):
    return (
        outer["left"] <= box["left"] + 0.5
        and box["right"] <= outer["right"] + 0.5
        and outer["top"] <= box["top"] + 0.5
        and box["bottom"] <= outer["bottom"] + 0.5
    )


def apart(a, b):
    return (
        a["right"] <= b["left"] + 0.5
        or b["right"] <= a["left"] + 0.5
        or a["bottom"] <= b["top"] + 0.5
        or b["bottom"] <= a["top"] + 0.5
    )


CROWDED = {
    "tree of 64": broadcast.binomial(ranks=64),
    "tree of 64, 64 chunks": scatter.binomial(ranks=64),
    "tree of 16, 8 chunks": all_reduce.pipelined_tree(ranks=16),
    "4 machines of 8": all_reduce.hierarchical(nodes=4, local=8),
    "16 machines of 4": all_reduce.hierarchical(nodes=16, local=4),
    "2 machines of 32": all_reduce.hierarchical(nodes=2, local=32),
    "ring of 10": all_reduce.ring(ranks=10),
    "ring of 10, 3 buffers": all_reduce.whole_ring(ranks=10),
}


@pytest.mark.parametrize(
    "name, width",
    [*((name, 360) for name in CROWDED if name != "tree of 64, 64 chunks"),
     *((name, 900) for name in CROWDED if name not in ("16 machines of 4", "tree of 64", "ring of 10"))],
)  # fmt: skip
def test_nothing_overlaps_and_nothing_is_cut(show, page, name, width):
    schedule = CROWDED[name]
    page.set_viewport_size({"width": width, "height": 800})
    show(Player(schedule, step=2))
    assert page.evaluate("w => Math.abs(document.querySelector('.rs-picture').clientWidth - w) < 80", width)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    (picture,) = boxes(page, ".rs-picture")
    cards, names, notes = boxes(page, ".rs-card"), boxes(page, ".rs-name"), boxes(page, ".rs-machine, .rs-note")
    for row in (cards, names):
        assert all(within(box, picture) for box in row)
        assert all(apart(a, b) for i, a in enumerate(row) for b in row[:i])
    assert all(within(note, picture) and all(apart(note, card) for card in cards) for note in notes)
    slots = page.locator(".rs-cell").evaluate_all("nodes => nodes.map((node) => Number(node.dataset.slot))")
    for slot, cell in zip(slots, boxes(page, ".rs-cell"), strict=True):
        assert within(cell, cards[slot // schedule.chunks % schedule.ranks])


def test_another_picture_can_be_chosen_and_shows_the_same_state(show):
    page = show(Player(all_reduce.tree(ranks=8), step=3))
    page.click(".rs-more")
    page.select_option(".rs-shape", "row")
    assert page.locator(".rs-branch").count() == 0
    state = all_reduce.tree(ranks=8).states(2)
    texts = page.locator(".rs-text").all_text_contents()
    assert texts[1] == str(state[1]["data"][0]) == "b0"


@pytest.mark.parametrize("schedule", [all_reduce.tree(ranks=8), all_reduce.naive(ranks=4)], ids=name_of)
def test_who_waits_and_who_is_done_shows_in_every_step(show, schedule):
    page = show(Player(schedule))
    page.focus(".rs-scrub input")
    busy = [{rank for t in step.transfers for rank in (t.src, t.dst)} for step in schedule.steps]
    for k, now in enumerate(busy):
        page.keyboard.press("ArrowRight")
        idle = page.locator(".rs-rank").evaluate_all("nodes => nodes.map((node) => node.classList.contains('rs-idle'))")
        assert idle == [rank not in now for rank in range(schedule.ranks)]
        assert f"idle {schedule.ranks - len(now)} of {schedule.ranks} ranks" in page.inner_text(".rs-counters")
        badges = page.locator(".rs-badge").all_text_contents()
        if badges and schedule.ranks == 4:  # cards with room for the word
            later = set().union(*busy[k:])
            expected = ["" if r in now else "waits" if r in later else "done" for r in range(schedule.ranks)]
            assert [word.split(" · ")[-1].replace("busiest", "") for word in badges] == expected


def test_from_the_ninth_chunk_on_a_texture_tells_chunks_of_one_hue_apart(show):
    page = show(Player(all_reduce.ring(ranks=16)))
    fills = page.locator(".rs-ofchunk").evaluate_all("nodes => nodes.map((node) => getComputedStyle(node).fill)")
    assert len(set(fills)) == 16
    assert not any("url" in fill for fill in fills[:8]) and all("url" in fill for fill in fills[8:])
    page.wait_for_function("document.querySelectorAll('pattern').length === 8")


def result_first():
    """A broadcast as recordings have it: the buffer of the result before the one that was sent from."""
    start = {"got": empty_cells(2, 1), "x": empty_cells(2, 1)}
    start["x"][0, 0] = Cell(((0, 0),))
    steps = [("", "", [Transfer(0, dst, 0, src_buffer="x", dst_buffer="got") for dst in (0, 1)])]
    names = {"buffers": ("got", "x"), "result": "got", "start": start}
    return Schedule.from_steps("broadcast", "mine", 2, 1, steps, root=0, **names)


@pytest.mark.parametrize(
    "schedule, words",
    [
        (all_reduce.ring(ranks=4), "in place"),
        (all_to_all.pairwise(ranks=4), "out of place: input → output"),
        (all_reduce.whole_ring(ranks=4), "in place, scratch: ping, pong"),
        (result_first(), "out of place: x → got"),
    ],
    ids=name_of,
)
def test_in_place_or_out_of_place_is_said(show, schedule, words):
    page = show(Player(schedule))
    assert page.inner_text(".rs-header .rs-muted").endswith(f"· {words}")


def test_the_keys_reach_the_cells_of_every_buffer(show):
    page = show(Player(all_to_all.pairwise(ranks=2), step=1))
    page.focus(".rs-scrub input")
    page.keyboard.press("ArrowDown")
    said = []
    for _ in range(5):
        page.keyboard.press("]")
        said.append(page.inner_text(".rs-detail").split(":")[0])
    cells = [f"rank 0, {name}, chunk {chunk}" for name in ("input", "output") for chunk in (0, 1)]
    assert said[:4] == cells and said[4].startswith("Rank 0 ")
    page.keyboard.press("[")
    assert page.locator(".rs-here").get_attribute("data-slot") == "5"


def test_it_loops_only_when_asked(show):
    page = show(Player(all_reduce.ring(ranks=2)))
    assert page.get_attribute(".rs-loop", "aria-pressed") == "false"
    page.focus(".rs-scrub input")
    page.keyboard.press("l")
    assert page.get_attribute(".rs-loop", "aria-pressed") == "true"
    page.evaluate("window.seen = []; model.on('change:step', () => seen.push(model.get('step')))")
    page.click(".rs-more")
    page.select_option(".rs-speed select", "16")
    page.focus(".rs-scrub input")
    page.keyboard.press("Space")
    page.wait_for_function("seen.length >= 5")
    assert page.evaluate("seen.slice(0, 5)") == [1, 2, 0, 1, 2]
    page.keyboard.press("l")
    page.wait_for_function("!model.get('playing')")
    assert step_of(page) == 2


def step_of(page):
    return page.evaluate("model.get('step')")


@pytest.mark.parametrize("name", ["tree of 64", "4 machines of 8", "tree of 16, 8 chunks"])
def test_on_a_projector_all_of_it_fits_and_is_large(show, name):
    page = show(Player(CROWDED[name], step=2))
    page.focus(".rs-scrub input")
    shape = page.input_value(".rs-shape")
    page.keyboard.press("p")
    wait_for_wall(page)
    page.wait_for_function("document.querySelector('.rs-picture').clientWidth > 1200")
    sizes = page.locator(".rs-picture text").evaluate_all(
        """nodes => nodes.filter((node) => node.textContent.trim())
            .map((node) => [node.getAttribute("class"), parseFloat(getComputedStyle(node).fontSize)])"""
    )
    assert sizes and [found for found in sizes if found[1] < 18] == []
    names = boxes(page, ".rs-name")
    assert all(apart(a, b) for i, a in enumerate(names) for b in names[:i])
    assert boxes(page, ".rs-caption")[0]["right"] <= 1280, "the sentence is cut"
    page.keyboard.press("PageDown")
    page.keyboard.press("p")
    page.wait_for_function("!document.querySelector('.rs-projected') && !document.fullscreenElement")
    assert step_of(page) == 3 and page.input_value(".rs-shape") == shape


@pytest.mark.parametrize(
    "schedule, width", [(all_reduce.halving_doubling(ranks=8), 620), (all_reduce.tree(ranks=8), 1280)], ids=name_of
)
def test_the_controls_hold_still_while_sentences_change(show, schedule, width):
    page = show(Player(schedule))
    page.set_viewport_size({"width": width, "height": 720})
    page.wait_for_function("w => Math.abs(document.querySelector('.rs-picture').clientWidth - w) < 80", arg=width)
    seen = []
    for step in range(len(schedule.steps) + 1):
        page.evaluate("step => model.set('step', step)", step)
        seen += boxes(page, ".rs-transport")
    assert [box["top"] for box in seen] == pytest.approx([seen[0]["top"]] * (len(schedule.steps) + 1), abs=1)


CHOOSE = {
    "kind": "choose",
    "name": "fits",
    "text": "How many messages does each rank send in all?",
    "answers": [{"text": text, "why": f"Not {text}: it sends in each step.", "step": None} for text in ("3", "4", "6")],
    "right": 2,
}


def asked(schedule):
    player = Player(schedule)
    player.ask(CHOOSE)
    return player


def test_a_question_makes_room_for_the_bars_of_jupyterlab(show):
    """Its notebook is 610 pixels high where the window has 720, and above the picture stands the line that asks."""
    page = show(asked(all_reduce.ring(ranks=6)))
    tall = "document.querySelector('.rs-picture').clientHeight"
    before = page.evaluate(tall)
    page.evaluate("""() => {
        document.body.className = 'jp-WindowedPanel-outer';
        document.body.style = 'height: 610px; overflow: auto; width: 1200px';  // drawn anew
    }""")
    page.wait_for_function(f"{tall} < {before} - 5")


@pytest.mark.parametrize("keys", [("?",), ("1", "Enter"), ()], ids=["keys", "answered wrongly", "asked"])
def test_keys_and_a_question_fit_on_a_laptop_with_a_readable_picture(show, keys):
    page = show(Player(all_reduce.ring(ranks=4)) if keys == ("?",) else asked(all_reduce.ring(ranks=4)))
    before = page.locator(".rs-frame").bounding_box()
    for key in keys:
        page.locator(".rs-frame").focus()
        page.keyboard.press(key)
    assert "?" not in keys or page.is_visible(".rs-keys") and page.locator(".rs-frame").bounding_box() == before
    page.wait_for_function("document.querySelector('.rs-frame').getBoundingClientRect().bottom <= innerHeight")
    assert page.locator(".rs-card").count() == 4
    assert "a0" in page.locator(".rs-text").all_text_contents()
    if "Enter" in keys:
        page.click(".rs-project")
        page.wait_for_function("document.querySelector('.rs-picture').style.getPropertyValue('--rs-scale') === '1.5'")
        page.wait_for_function("document.querySelectorAll('.rs-chunk').length === 16")  # cards, not tiles
        assert "a0" in page.locator(".rs-text").all_text_contents()
        page.keyboard.press("p")


def test_the_places_of_ranks_do_not_tell_what_is_asked(show):
    """A binomial tree of eight is three levels deep, which is the answer to 'how many steps?'."""
    page = show(asked(broadcast.binomial(ranks=8)))
    assert page.locator(".rs-branch").count() == 0
    assert len({box["top"] for box in boxes(page, ".rs-name")}) == 1
    page.get_by_text("skip", exact=True).click()
    page.wait_for_selector(".rs-branch", state="attached")


@pytest.mark.parametrize("projected", [False, True])
def test_what_a_rank_does_never_covers_its_name(show, projected):
    page = show(Player(all_reduce.naive(ranks=6), nbytes=64e6))
    if projected:
        page.click(".rs-project")
        page.wait_for_function("document.querySelector('.rs-picture').style.getPropertyValue('--rs-scale') === '1.5'")
    said = set()
    for step in (1, 3, 9):
        page.evaluate("step => model.set('step', step)", step)
        badges = page.locator(".rs-badge").all_text_contents()
        said |= {*badges}
        for badge, name, words in zip(boxes(page, ".rs-badge"), boxes(page, ".rs-name"), badges, strict=True):
            assert not words or badge["left"] > name["right"] + 2
    assert len(said) > 1
    if projected:
        page.keyboard.press("p")
