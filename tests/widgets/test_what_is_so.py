"""The picture says what is so: new data, a wrong cell, messages that nobody saw, who is busiest, colours, results."""

import re

import pytest

from collectives import Schedule, Transfer, all_reduce, all_to_all
from widgets import Player, Zoo

WAYS = ["computed", "changed outside torch", "left by the library"]


def made(ways=(WAYS[0], WAYS[1])):
    """Rank 1 puts data of its own into chunk 0, rank 0 something into chunk 1, which then goes to rank 1's chunk 0."""
    steps = [
        ("copy", "Ranks go on.", [Transfer(1, 1, 5, "new", dst_chunk=0), Transfer(0, 0, 11, "new", dst_chunk=1)]),
        ("copy", "Rank 0 sends.", [Transfer(0, 1, 1, dst_chunk=0)]),
    ]
    schedule = Schedule.from_steps("recorded", "recorded", 2, 2, steps)
    schedule.ways = [list(ways), [""]].__getitem__
    return schedule


def built_in(*own):
    """Steps of one's own, then an all_reduce inside the library, as a recording shows its effect."""
    effect = [Transfer(src, dst, 0, "reduce") for src in range(3) for dst in range(3) if src != dst]
    steps = [("copy", "", [transfer]) for transfer in own]
    return Schedule.from_steps(
        "recorded", "recorded", 3, 1, [*steps, ("all_reduce (built-in)", "As its effect.", effect, (), True)]
    )


def fill(page, slot):
    return page.evaluate("(slot) => getComputedStyle(document.querySelector(`[data-slot='${slot}']`)).fill", slot)


def forgotten():
    """Rank 2 sends to rank 1 only; ranks 0 and 3 wait for it for good."""
    run = Schedule.from_steps("recorded", "recorded", 4, 1, [("copy", "Rank 2 sends.", [Transfer(2, 1, 0)])])
    run.stuck = [(0, 2, "recv", 7), (3, 2, "recv", 7)]
    return run


@pytest.fixture
def still(show):
    def still(player):
        page = show(player)
        if page.locator("input[type=range]").count():
            page.focus("input[type=range]")
        return page

    return still


# ranks that are stuck


def test_a_run_that_ended_in_a_deadlock_shows_who_waits_for_whom_at_its_end(still):
    page = still(Player(forgotten()))
    ranks = "nodes => nodes.map((node) => node.querySelector('.rs-name').textContent)"
    assert page.locator(".rs-stuck").evaluate_all(ranks) == ["rank 0", "rank 3"]
    assert page.locator(".rs-missed").evaluate_all(ranks) == ["rank 2"]
    assert page.locator(".rs-badge").all_text_contents() == ["stuck", "done", "done", "stuck"]
    assert page.locator(".rs-stuckway .rs-head").count() == 2
    words = "Stuck in recv, line 7: ranks 0, 3 wait for rank 2."
    assert page.inner_text(".rs-sentence") == f"Rank 2 sends. {words}"
    assert words in page.get_attribute("input[type=range]", "aria-valuetext")
    red = page.locator(".rs-stuck .rs-card").first.evaluate("(node) => getComputedStyle(node).stroke")
    assert red == "rgb(198, 40, 40)"
    page.keyboard.press("ArrowDown")
    assert page.inner_text(".rs-detail").startswith("Rank 0 waits forever for rank 2; sent 0")
    page.keyboard.press("ArrowLeft")
    assert page.locator(".rs-stuck, .rs-missed, .rs-stuckway .rs-head").count() == 0
    assert "Stuck" not in page.inner_text(".rs-caption")


def test_calls_that_do_not_fit_are_red_without_arrows(still):
    run = forgotten()
    run.stuck = ((2, None, "send", 5), (3, None, "recv", 8))
    page = still(Player(run))
    ranks = "nodes => nodes.map((node) => node.querySelector('.rs-name').textContent)"
    assert page.inner_text(".rs-title") == "recorded recorded: the calls of ranks 2, 3 do not fit"
    assert page.locator(".rs-stuck").evaluate_all(ranks) == ["rank 2", "rank 3"]
    assert page.locator(".rs-badge").all_text_contents() == ["done", "done", "refused", "refused"]
    assert page.locator(".rs-stuckway .rs-head, .rs-missed").count() == 0
    words = "Refused, since the calls do not fit: rank 2 in send, line 5; rank 3 in recv, line 8."
    assert page.inner_text(".rs-sentence") == f"Rank 2 sends. {words}"
    page.keyboard.press("ArrowUp")
    assert page.inner_text(".rs-detail").startswith("Rank 3 was refused: its call does not fit; sent 0")


def test_its_arrows_have_room_below_the_ranks(still):
    page = still(Player(forgotten()))
    inside, arrows = (page.locator(name).first.bounding_box() for name in (".rs-picture", ".rs-stuckway"))
    cards = [box.bounding_box() for box in page.locator(".rs-card").all()]
    low = max(card["y"] + card["height"] for card in cards)
    assert arrows["y"] > low - 5 and arrows["height"] > 15, "from below one rank to below another"
    assert arrows["y"] + arrows["height"] <= inside["y"] + inside["height"]


# new data


def test_what_a_rank_made_itself_is_marked_and_said(still):
    page = still(Player(made(), step=1))
    cells = [page.text_content(f"[data-slot='{slot}'] + * + text") for slot in range(4)]
    assert cells == ["a0", "a11", "b5", "b1"]
    assert page.locator(".rs-made").count() == 2 == page.locator(".rs-written").count()
    assert page.locator(".rs-read").count() == 0 == page.locator(".rs-arrow").count()
    assert page.locator(".rs-sign").all_text_contents() == ["new", "new"]
    words = "Ranks go on. New data: computed by rank 1; changed outside torch on rank 0."
    assert page.inner_text(".rs-sentence") == words
    assert words in page.get_attribute("input[type=range]", "aria-valuetext")
    assert page.locator("tbody td").all_text_contents() == cells
    page.hover("[data-slot='2']")
    assert page.inner_text(".rs-detail") == "rank 1, chunk 0: b5, rank 1's own; computed by rank 1 itself in step 1"
    page.hover("[data-slot='1']")
    assert page.inner_text(".rs-detail").endswith("a11, rank 0's own; changed outside torch on rank 0 in step 1")
    page.keyboard.press("ArrowRight")
    assert page.locator(".rs-made").count() == 0 and page.inner_text(".rs-sentence") == "Rank 0 sends."
    page.keyboard.press("Home")
    assert page.locator("tbody td").all_text_contents() == ["a0", "a1", "b0", "b1"]


def test_a_sentence_that_says_it_already_does_not_say_it_twice(still):
    schedule = made(("left by the library", "left by the library"))
    schedule.steps[0]._caption = lambda step: "This was left by the library."
    assert still(Player(schedule, step=1)).inner_text(".rs-sentence") == "This was left by the library."


def test_a_rank_that_is_followed_tells_of_its_new_data(still):
    page = still(Player(made(), step=1))
    page.keyboard.press("ArrowDown")
    assert page.inner_text(".rs-detail").startswith("Rank 0 has new data (changed outside torch);")


# a wrong cell


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_wrong_cell_is_framed_at_every_step(still, scheme):
    page = still(Player(all_reduce.ring(ranks=4), step=0, frame=(2, "data", 1)))
    page.emulate_media(color_scheme=scheme)
    cell = page.locator("[data-slot='9']").bounding_box()
    for _ in range(7):
        boxes = [page.locator(".rs-wrong").nth(i).bounding_box() for i in range(2)]
        for box in boxes:  # two lines around that cell, of which none hides its text
            assert box["x"] <= cell["x"] and box["x"] + box["width"] >= cell["x"] + cell["width"]
            assert abs(box["y"] + box["height"] / 2 - cell["y"] - cell["height"] / 2) < 1
        assert page.text_content(".rs-wrongsign") == "!"
        assert page.inner_text(".rs-detail").startswith("Wrong here: rank 2, chunk 1: ")
        page.keyboard.press("ArrowRight")
    page.hover("[data-slot='8']")
    assert page.inner_text(".rs-detail").startswith("rank 2, chunk 0: ")
    contrast = page.evaluate(
        """() => {
            const ink = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
            const light = (color) => {
                ink.fillStyle = color;
                ink.fillRect(0, 0, 1, 1);
                const [r, g, b] = [...ink.getImageData(0, 0, 1, 1).data].map((value) => {
                    const share = value / 255;
                    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
                });
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const [one, other] = [
                getComputedStyle(document.querySelector(".rs-wrong")).stroke,
                getComputedStyle(document.querySelector(".ringside")).backgroundColor,
            ].map(light);
            return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
        }"""
    )
    assert contrast >= 3


def test_a_run_with_a_wrong_cell_begins_where_that_was_found():
    assert Player(all_reduce.ring(ranks=4), frame=(2, "data", 1)).step == 6
    assert Player(all_reduce.ring(ranks=4)).step == 0


def test_without_a_wrong_cell_none_is_framed(still):
    assert still(Player(all_reduce.ring(ranks=4))).locator(".rs-wrong, .rs-wrongsign").count() == 0


@pytest.mark.parametrize("frame", [(4, "data", 0), (0, "datum", 0), (0, "data", -1), (0, 0), 3, ("0", "data", 0)])
def test_a_frame_around_a_cell_that_does_not_exist_is_one_clear_sentence(frame):
    said = "frame is (rank, buffer, chunk) of a cell: a rank from 0 to 3, a buffer of data, a chunk from 0 to 3; got "
    with pytest.raises(ValueError, match=re.escape(said)):
        Player(all_reduce.ring(ranks=4), frame=frame)


# messages inside a library


def test_a_run_of_built_ins_alone_counts_no_messages_and_names_nobody(still):
    page = still(Player(built_in(), step=1))
    assert page.inner_text(".rs-counters").split("\n") == ["steps 1 of 1", "bytes inside the library are not seen"]
    assert page.locator(".rs-amount").all_text_contents() == [""] * 3
    page.keyboard.press("ArrowDown")
    adds = "Rank 0 adds from rank 1, adds from rank 2, as the library's effect"
    assert page.inner_text(".rs-detail") == f"{adds}; bytes inside the library are not seen."


def test_a_mixed_run_counts_its_messages_and_adds_that_the_library_s_are_not_seen(still):
    page = still(Player(built_in(Transfer(0, 1, 0)), step=2))
    told = page.inner_text(".rs-counters")
    assert "messages 1, the library's are not seen" in told and "busiest rank 0, sent 1 N" in told
    assert "idle –" in told  # whom the library keeps busy is not seen either
    assert "not seen" not in still(Player(all_reduce.ring(ranks=3), step=2)).inner_text(".rs-counters")


# who is busiest


@pytest.mark.parametrize("width", [1280, 700, 420])
def test_all_of_the_busiest_ranks_are_marked_whatever_they_do_in_this_step(still, width):
    """After step 1 ranks 1 and 3 have sent as much as rank 0 in step 2, in which both have nothing to do."""
    steps = [("one", "", [Transfer(1, 0, 0), Transfer(3, 2, 0)]), ("two", "", [Transfer(0, 2, 0)])]
    page = still(Player(Schedule.from_steps("send_recv", "", 4, 1, steps), step=2))
    page.set_viewport_size({"width": width, "height": 720})
    page.wait_for_function("(w) => document.querySelector('.rs-picture').clientWidth < w", arg=width)
    assert "busiest 3 ranks, sent 1 N" in page.inner_text(".rs-counters")
    marked = "ranks => ranks.map((rank) => rank.classList.contains('rs-busiest'))"
    assert page.locator(".rs-rank").evaluate_all(marked) == [True, True, False, True]
    looks = page.locator(".rs-rank").evaluate_all(
        """ranks => ranks.map((rank) => {
            const { stroke } = getComputedStyle(rank.querySelector(".rs-card") ?? rank.querySelector(".rs-sent"));
            const { fill } = getComputedStyle(rank.querySelector(".rs-sent"));
            const words = rank.querySelector(".rs-badge")?.textContent ?? "";
            return [stroke, fill, /busiest|▲/.test(words)].join();
        })"""
    )
    assert looks[0] == looks[1] == looks[3] != looks[2]


# whose colour


def test_data_keeps_its_colour_where_it_lands(still):
    """Of all_to_all every chunk changes its place; of a ring's none does."""
    page = still(Player(all_to_all.pairwise(ranks=4), step=3))
    own = {f"{'abcd'[rank]}{chunk}": fill(page, 4 * rank + chunk) for rank in range(4) for chunk in range(4)}
    assert len({*own.values()}) == 4
    output = {page.text_content(f"[data-slot='{slot}'] + * + text"): fill(page, slot) for slot in range(16, 32)}
    assert output == own
    page.keyboard.press("Home")
    page.keyboard.press("End")
    assert {page.text_content(f"[data-slot='{slot}'] + * + text"): fill(page, slot) for slot in range(16, 32)} == own
    page.keyboard.press("ArrowLeft")
    tags = page.locator(".rs-tag").evaluate_all(
        "nodes => nodes.map((node) => node.getAttribute('class').split(' ')[1])"
    )
    sent = [t.chunk for t in all_to_all.pairwise(ranks=4).steps[1].transfers]
    assert tags == [f"rs-h{chunk}" for chunk in sent]


def test_data_of_two_chunks_has_no_chunk_s_colour(still):
    steps = [("", "", [Transfer(0, 1, 0, "reduce", dst_chunk=1)]), ("", "", [Transfer(1, 0, 1)])]
    page = still(Player(Schedule.from_steps("recorded", "", 2, 2, steps), step=2))
    mixed = fill(page, 3)
    assert page.text_content("[data-slot='1'] + * + text") == "a0+b1" and fill(page, 1) == mixed
    assert mixed not in (fill(page, 0), fill(page, 2))
    page.keyboard.press("Home")
    assert fill(page, 1) == fill(page, 3) != mixed


def test_data_numbered_beyond_the_eighth_chunk_brings_its_texture_along(still):
    page = still(Player(made(), step=1))
    assert fill(page, 1).startswith("url(") and not fill(page, 2).startswith("url(")
    pattern = re.search('#[^"]+', fill(page, 1))[0]
    assert page.locator(f"pattern{pattern}.rs-h3").count() == 1  # the eleventh has the third's hue
    page.keyboard.press("ArrowRight")
    assert fill(page, 2) == fill(page, 1)  # a11 went to rank 1's chunk 0
    page.keyboard.press("Home")
    assert not any(fill(page, slot).startswith("url(") for slot in range(4))


def test_the_zoo_gives_data_its_colour_too(still):
    page = still(Zoo(ranks=4))
    colours = page.locator("article[aria-label='all_to_all'] tbody td").evaluate_all(
        "cells => cells.map((cell) => [cell.textContent, getComputedStyle(cell).backgroundColor])"
    )
    assert len(colours) == 32 and len({*map(tuple, colours)}) == 16  # every symbol in one colour, before and after
    assert len({colour for _, colour in colours}) == 4


# which result

RESULTS = {
    "sum": ("a0+b0", "10"),
    "max": ("max(a0,b0)", "10"),
    "min": ("min(a0,b0)", "0"),
    "product": ("a0×b0", "0"),
    "avg": ("avg(a0,b0)", "5"),
    "bor": ("bor(a0,b0)", "?"),
}


@pytest.mark.parametrize("way", RESULTS)
def test_numbers_are_the_result_of_the_operation(still, way):
    """Rank 1's chunk 0 is 10, rank 0's is 0; no run says what the ranks really held."""
    schedule = Schedule.from_steps("recorded", "", 2, 1, [("", "", [Transfer(1, 0, 0, "reduce")])])
    schedule.ways = lambda index: [way]
    page = still(Player(schedule, step=1))
    cell = "[data-slot='0'] + * + text"
    symbol, number = RESULTS[way]
    assert page.text_content(cell) == symbol
    page.keyboard.press("v")
    page.keyboard.press("v")
    assert page.text_content(cell) == number


def test_a_maximum_of_a_ring_is_that_of_the_last_rank(still):
    steps = [(step.phase, "", step.transfers) for step in all_reduce.ring(ranks=4).steps]
    schedule = Schedule.from_steps("all_reduce", "ring", 4, 4, steps)
    schedule.ways = lambda index: ["max" if t.op == "reduce" else "" for t in schedule.steps[index].transfers]
    page = still(Player(schedule, step=6))
    page.click(".rs-more")
    page.select_option(".rs-view", "numbers")
    cells = [page.text_content(f"[data-slot='{slot}'] + * + text") for slot in range(16)]
    assert cells == ["30", "31", "32", "33"] * 4
