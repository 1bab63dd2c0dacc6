"""What a lecturer with a clicker needs: keys that never undo the projector, and everything readable from the last row.

A clicker sends Page Up, Page Down, often "b" and sometimes Space. What is on the wall is measured in a real browser.
"""

import pytest

from collectives import Link, Schedule, Topology, Transfer, all_gather, all_reduce, all_to_all
from tests.pictures.scenes import SCENES
from tests.widgets.conftest import ask, click, settle, wait_for_wall
from widgets import Player, Race, WaitFor, Zoo
from widgets.base import html

PLAYING = {name: SCENES[name].make for name in ("player-ring", "race", "map")}
FRAMED = PLAYING | {"timeline": SCENES["timeline"].make, "zoo": lambda: Zoo(ranks=4)}


def project(page):
    click(page, ".rs-project")
    wait_for_wall(page)


@pytest.mark.parametrize("name", FRAMED)
def test_space_after_a_click_on_the_projector_icon_stays_in_projector_mode(show, name):
    page = show(FRAMED[name]())
    project(page)
    for key in ("Space", "Enter", "PageDown", "Space"):
        page.keyboard.press(key)
    settle(page, "document.querySelector('.rs-projected')?.checkVisibility()")  # the zoo's first card is open by now
    page.keyboard.press("p")
    settle(page, "!document.querySelector('.rs-projected') && !document.fullscreenElement")


@pytest.mark.parametrize("name", PLAYING)
def test_a_clicker_steps_a_saved_page_that_nobody_has_clicked(page, name):
    page.set_content(html(PLAYING[name]()))
    settle(page, "window.model")
    page.keyboard.press("Home")
    assert page.evaluate("[document.activeElement === document.body, model.get('step')]") == [True, 0]
    for key in ("PageDown", "PageDown", "PageUp", "PageDown"):
        page.keyboard.press(key)
    assert page.evaluate("[model.get('step'), scrollY]") == [2, 0]


@pytest.mark.parametrize("name", PLAYING)
def test_b_blanks_the_screen_and_pauses(show, name):
    page = show(PLAYING[name]())
    project(page)
    for key in ("Home", "Space"):
        page.keyboard.press(key)
    assert page.evaluate("model.get('playing')")
    page.keyboard.press("b")
    assert page.is_visible(".rs-curtain") and not page.evaluate("model.get('playing')")
    page.keyboard.press("b")
    assert not page.is_visible(".rs-curtain") and not page.evaluate("model.get('playing')")
    page.keyboard.press("p")


@pytest.mark.parametrize("name", FRAMED)
def test_escape_gives_the_keyboard_back_to_the_notebook(show, name):
    page = show(FRAMED[name]())
    page.evaluate("document.getElementById('widget').tabIndex = -1")  # as a cell of a notebook has it
    page.locator(".rs-scrub input, .rs-times, .rs-cards button").first.focus()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "widget"


@pytest.mark.parametrize("question, words", [(2, "Choose cells and press check"), ("steps", "Write a number, as in 6")])
def test_a_clicker_at_an_open_question_is_told_what_to_do(show, question, words):
    page = show(Player(all_reduce.ring(ranks=4), predict=question))
    for _ in range(3):
        page.keyboard.press("PageDown")
    assert page.inner_text(".rs-gate [role=status]").startswith(words)
    page.get_by_text("skip", exact=True).click()
    page.keyboard.press("End")
    assert page.evaluate("model.get('step')") == 6


def test_a_number_can_be_typed_and_a_page_key_still_steps(show):
    page = show(Player(all_reduce.ring(ranks=4), predict="messages"))
    page.focus(".rs-gate input")
    page.keyboard.type("2(p - 1) b?")
    assert page.input_value(".rs-gate input") == "2(p - 1) b?"
    page.keyboard.press("PageDown")
    assert "skip goes on" in page.inner_text(".rs-gate [role=status]")


def race_of(page):
    return {
        "said": page.locator(".rs-won").all_inner_texts(),
        "wins": page.locator(".rs-wins").count(),
        "cut": page.locator(".rs-steps").evaluate_all("nodes => nodes.map((node) => node.style.clipPath)"),
    }


def test_a_race_keeps_its_end_to_itself(show):
    page = show(Race(all_reduce.exchange(ranks=8), all_reduce.ring(ranks=8), nbytes=64e6))
    assert race_of(page) == {"said": ["", ""], "wins": 0, "cut": ["inset(0px 100% 0px 0px)"] * 2}
    page.keyboard.press("End")
    page.keyboard.press("PageUp")  # the ring is there, the exchange is not
    slower, faster = race_of(page)["said"]
    assert slower == "" and faster.endswith("ms") and race_of(page)["wins"] == 0
    page.keyboard.press("PageDown")
    slower, faster = race_of(page)["said"]
    assert slower.endswith("× as long") and faster.endswith("· fastest") and race_of(page)["wins"] == 1
    assert "ring wins: all_reduce exchange takes " in page.inner_text(".rs-title")


def test_a_tie_is_a_tie(show):
    """Two schedules with the same two messages take the same seconds."""
    steps = [("", "", [Transfer(0, 1, 0)]), ("", "", [Transfer(0, 2, 0)])]
    one, two = (Schedule.from_steps("broadcast", name, 3, 1, steps, root=0) for name in ("one", "two"))
    page = show(Race(one, two, all_reduce.naive(ranks=3)))
    page.keyboard.press("End")
    first, second, third = race_of(page)["said"]
    assert first == second and first.endswith("· tie") and third.endswith("× as long")


def test_a_map_names_what_it_shows(show):
    page = show(SCENES["map"].make())
    ring = "all_reduce ring: 8 of 64 links are the bottleneck"
    nested = "all_reduce hierarchical: 64 of 128 links are the bottleneck"
    assert page.inner_text(".rs-title") == ring
    page.keyboard.press("s")
    assert page.inner_text(".rs-title") == nested
    assert page.get_attribute(".rs-map", "aria-label").startswith(f"{nested}, ")


WORDS = """() => [...document.querySelectorAll(".rs-projected *")]
    .filter((node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim()))
    .filter((node) => node.checkVisibility({ visibilityProperty: true }))
    .filter((node) => !node.closest(".rs-hidden, .rs-whole, option"))
    .map((node) => [node.textContent.trim(), parseFloat(getComputedStyle(node).fontSize) * node.currentCSSZoom])"""
SHARE = 0.025  # of the wall's height
ROOTS = """() => [...document.querySelectorAll(".rs-projected")].map((root) => {
    const { width, height } = root.getBoundingClientRect();
    return { width, height, fits: root.scrollHeight <= root.clientHeight };
})"""


WALLS = [("player-ring", 1280, 720), ("player-ring", 3840, 2160)]
WALLS += [(name, *wall) for name in (*FRAMED, "player-gate", "player-tree") for wall in ((1024, 768), (853, 480))]


@pytest.mark.parametrize(
    "name, width, height", [*WALLS, ("player-machines", 1920, 1080), ("player-machines", 853, 480)]
)
def test_words_grow_with_the_wall_and_the_widget_fills_it(show, page, name, width, height):
    """853x480 is what is left of 1280x720 at a browser zoom of 150 %."""
    page.set_viewport_size({"width": width, "height": height})
    page = show(FRAMED.get(name, SCENES[name].make if name in SCENES else None)())
    project(page)
    words = ask(page, WORDS)
    assert words and [word for word in words if word[1] < SHARE * height - 0.01] == []
    (root,) = ask(page, ROOTS)
    assert (root["width"], root["height"]) == pytest.approx((width, height), abs=1)
    assert root["fits"]
    page.keyboard.press("p")


def test_a_click_on_a_magnified_timeline_hits_what_it_points_at(show, page):
    page.set_viewport_size({"width": 1920, "height": 1080})
    page = show(SCENES["timeline"].make())
    project(page)
    page.locator("path.rs-under").nth(2).wait_for()  # the first two are rank 0's
    bar = page.locator("path.rs-under").nth(2).bounding_box()
    page.mouse.click(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
    assert page.inner_text(".rs-what").startswith("Rank 1: all_reduce")
    page.keyboard.press("p")


MACHINES = Topology.machines(2, gpus=4, inside=Link(1e-6, 1e-11), between=Link(1e-5, 1e-9), nic="machine")
RACERS = [all_reduce.exchange(8), all_reduce.ring(8), all_reduce.tree(8), all_reduce.halving_doubling(8)]
FULL = {
    "ring of 6": lambda: Player(all_reduce.ring(ranks=6), step=5),
    "ring of 16": lambda: Player(all_reduce.ring(ranks=16), step=5),
    "ring of 64": lambda: Player(all_reduce.ring(ranks=64), step=5),
    "halving_doubling": lambda: Player(all_reduce.halving_doubling(ranks=8), step=2),
    "bruck": lambda: Player(all_gather.bruck(ranks=8), step=2),
    "race of 3": lambda: Race(*RACERS[:3], nbytes=64e6, step=3),
    "race of 6": lambda: Race(*RACERS, all_reduce.naive(8), all_reduce.double_tree(8), nbytes=64e6, step=3),
    "race of 5 x 32": lambda: Race(*(all_reduce.ring(32),) * 4, all_reduce.double_tree(32), nbytes=64e6, step=3),
    "race on machines": lambda: Race(RACERS[1], all_reduce.hierarchical(2, 4), nbytes=64e6, network=MACHINES, step=5),
}
OUTSIDE = """() => [...document.querySelectorAll(
        ".rs-stage svg, .rs-stage svg :is(.rs-card, .rs-arrow, .rs-sent, .rs-axis, .rs-tag)," +
        ".rs-transport, .rs-counters")]
    .filter((node) => node.getBBox?.().height !== 0)
    .filter((node) => {
        const { top, bottom, left, right } = node.getBoundingClientRect();
        const room = (node.closest(".rs-stage") ?? document.body).getBoundingClientRect();
        const low = node.closest(".rs-stage") ? room.bottom : innerHeight;
        return bottom > low + 1.5 || top < room.top - 3 || left < -1 || right > innerWidth + 1;
    }).map((node) => node.getAttribute("class"))"""


@pytest.mark.parametrize("name", FULL)
def test_on_a_small_wall_nothing_is_cut(show, name):
    page = show(FULL[name]())
    project(page)
    settle(page, "document.querySelector('.rs-picture').style.getPropertyValue('--rs-scale') === '1.5'")
    assert ask(page, OUTSIDE) == []
    assert [word for word in ask(page, WORDS) if word[1] < 18] == []
    page.keyboard.press("p")


@pytest.mark.parametrize("racers", [3, 6])
def test_a_race_fits_a_laptop_with_its_controls(show, racers):
    page = show(Race(*(RACERS * 2)[:racers], nbytes=64e6, step=3))
    assert page.locator(".rs-lane").count() == racers
    assert page.evaluate("document.documentElement.scrollHeight") <= 720


@pytest.mark.parametrize("ranks", [4, 8])
def test_every_cell_of_a_ring_can_be_read(show, ranks):
    page = show(Player(all_reduce.ring(ranks=ranks), step=5))
    project(page)
    settle(page, "document.querySelector('.rs-picture').style.getPropertyValue('--rs-scale') === '1.5'")
    written = page.locator(".rs-text").evaluate_all("(nodes) => nodes.filter((node) => node.textContent).length")
    assert written == ranks * ranks and ask(page, OUTSIDE) == []
    page.keyboard.press("p")
    page.wait_for_function("!document.querySelector('.rs-projected') && !document.fullscreenElement")
    assert page.input_value(".rs-shape") == ("row" if ranks == 4 else "ring")
    assert page.locator(".rs-text").count() == ranks * ranks


def test_the_phase_under_way_has_its_name_in_full(show):
    page = show(Player(all_reduce.hierarchical(nodes=2, local=4)))
    project(page)
    page.wait_for_selector(".rs-tight")
    for phase in ("1", "2", "3", "4"):
        page.keyboard.press(phase)
        inside = page.locator(".rs-phase.rs-now").evaluate(
            """(band) => {
                const words = document.createRange();
                words.selectNodeContents(band);
                const { left, right } = words.getBoundingClientRect();
                return left >= 0 && right <= innerWidth && getComputedStyle(band).overflow === "visible";
            }"""
        )
        assert inside
    page.keyboard.press("p")


CARDS = """() => [...document.querySelectorAll("article")]
    .filter((card) => card.checkVisibility({ visibilityProperty: true }) && card.getBoundingClientRect().height > 0)
    .map((card) => {
        const { top, bottom } = card.getBoundingClientRect();
        const fits = card.scrollHeight <= card.clientHeight && card.scrollWidth <= card.clientWidth;
        return { label: card.getAttribute("aria-label"), top, bottom, fits };
    })"""


@pytest.mark.parametrize("ranks", [8])
def test_the_zoo_shows_a_card_at_a_time_and_a_clicker_turns_them(show, ranks):
    page = show(Zoo(ranks=ranks))
    cards = page.locator("article").evaluate_all("(cards) => cards.map((card) => card.getAttribute('aria-label'))")
    project(page)
    seen = []
    for _ in cards:
        (card,) = ask(page, CARDS)
        seen.append(card["label"])
        assert card["top"] >= 0 and card["bottom"] <= 720
        assert card["fits"]
        assert [word for word in ask(page, WORDS) if word[1] < 18] == []
        page.keyboard.press("PageDown")
    assert seen == cards
    page.keyboard.press("PageUp")
    page.keyboard.press("p")


@pytest.mark.parametrize("ranks", [2, 4, 32])
def test_who_waits_for_whom_has_a_projector_mode(show, ranks):
    page = show(WaitFor([(rank, rank + 1, "recv", 3) for rank in range(ranks - 1)], ranks))
    project(page)
    tall = "(nodes) => nodes.map((node) => parseFloat(node.getAttribute('font-size')) * node.getScreenCTM().a)"
    assert min(page.locator(".rs-circle text").evaluate_all(tall)) >= 18
    circle = page.locator(".rs-circle svg").bounding_box()
    assert circle["height"] >= 500 and circle["y"] + circle["height"] <= 720
    page.keyboard.press("PageDown")
    assert page.locator("tbody tr.rs-lit").count() == 1
    page.keyboard.press("p")


FILLS = """() => Object.entries(Object.groupBy([...document.querySelectorAll(".rs-cell:not(.rs-empty)")],
        (cell) => cell.nextElementSibling.nextElementSibling.textContent))
    .map(([symbol, cells]) => [symbol, new Set(cells.map((cell) => getComputedStyle(cell).fill)).size])"""


@pytest.mark.parametrize("schedule", [all_gather.bruck(ranks=4), all_to_all.bruck(ranks=4), all_to_all.pairwise(4)])
def test_a_block_keeps_its_colour_on_its_way(show, schedule):
    page = show(Player(schedule))
    for _ in schedule.steps:
        page.keyboard.press("PageDown")
        found = page.evaluate(FILLS)
        assert found and {symbol: count for symbol, count in found if count != 1} == {}


def test_a_question_is_put_to_a_room(show):
    page = show(Player(all_reduce.ring(ranks=4), predict="messages", answers=(6, 12, "2p(p-1)")))
    project(page)
    for key in ("1", "2", "2", "3", "3", "3", "Backspace", "9", "PageDown"):
        page.keyboard.press(key)
    hands = page.locator(".rs-choice")
    assert [hand.split() for hand in hands.all_inner_texts()] == [
        ["1", "6", "1"],
        ["2", "12", "2"],
        ["3", "2p(p-1)", "2"],
    ]
    shares = "(hands) => hands.map((hand) => hand.style.getPropertyValue('--rs-share'))"
    assert page.locator(".rs-choice i").evaluate_all(shares) == ["50%", "100%", "100%"]
    assert page.evaluate("model.get('step')") == 0 and "Count hands" in page.inner_text(".rs-gate [role=status]")
    assert [word for word in ask(page, WORDS) if word[1] < 18] == []
    page.keyboard.press("Enter")
    assert "2 of 5 hands knew it." in page.inner_text(".rs-gate")
    assert (
        page.locator(".rs-right").all_inner_texts()[0].split()[1] == "2p(p-1)"
        and page.locator(".rs-right").count() == 1
    )
    assert page.evaluate("model.get('predicted').said") == [1, 2, 2]
    page.keyboard.press("2")  # phases again
    assert page.evaluate("model.get('step')") == 4
    page.keyboard.press("p")


@pytest.mark.parametrize(
    "predict, answers, words",
    [(2, (1, 2), "answers go with"), ("steps", (1,), "2 to 9"), ("steps", range(10), "got 10")],
)
def test_answers_that_cannot_be_counted_are_one_clear_sentence(predict, answers, words):
    with pytest.raises(ValueError, match=words):
        Player(all_reduce.ring(ranks=4), predict=predict, answers=answers)


def test_a_race_can_be_heard_as_a_table(show):
    page = show(Race(all_reduce.exchange(ranks=8), all_reduce.ring(ranks=8), nbytes=64e6))
    page.keyboard.press("PageDown")
    rows = page.locator("tbody tr").evaluate_all(
        "rows => rows.map((row) => [...row.children].map((cell) => cell.textContent))"
    )
    assert [row[:2] for row in rows] == [["all_reduce exchange", "1 of 1"], ["all_reduce ring", "1 of 14"]]
    assert [row[3] for row in rows] == ["under way"] * 2 and rows[1][2] == "0.125 N"
    page.keyboard.press("End")
    assert "fastest" in page.locator("tbody td").last.text_content()


def test_a_timeline_can_be_heard_as_lists_of_calls(show):
    page = show(SCENES["timeline"].make())
    lists = page.get_by_role("list").all()
    assert [each.get_attribute("aria-label") for each in lists] == [f"calls of rank {rank}" for rank in range(3)]
    assert [each.get_by_role("listitem").count() for each in lists] == [2, 2, 1]
    assert lists[0].get_by_role("listitem").nth(1).text_content().startswith("Rank 0: send to rank 1, 2 MB, line 7.")


def test_a_question_about_cells_says_what_is_chosen(show):
    page = show(Player(all_reduce.ring(ranks=4), predict=1))
    heard = page.locator(".rs-gate .rs-hidden[role=status]")
    for slot in (1, 6):
        page.click(f"[data-slot='{slot}']")
    assert heard.text_content() == "rank 1, chunk 2 chosen. 2 cells chosen: rank 0, chunk 1; rank 1, chunk 2."
    page.click("[data-slot='1']")
    assert heard.text_content() == "rank 0, chunk 1 taken back. 1 cell chosen: rank 1, chunk 2."
