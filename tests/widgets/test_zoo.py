"""Zoo: its tables against the schedules' own states, its Players, its keys, what is saved beside it."""

import re
from html.parser import HTMLParser

import pytest

from collectives import CATALOGUE, build
from collectives.state import letter
from tests.widgets.conftest import ask, wait_for_wall
from widgets import Player, Zoo

TABLES = """() => [...document.querySelectorAll("article")].map((card) => [
    card.getAttribute("aria-label"),
    ...[...card.querySelectorAll("table")].map((table) => [...table.querySelectorAll("tbody tr")].map((row) =>
        [...row.querySelectorAll("td")].map((cell) => cell.textContent === "empty" ? "" : cell.textContent))),
])"""


@pytest.fixture
def zoo(show):
    return show(Zoo(ranks=4))


def rows(cells):
    """One buffer of all ranks, [rank, chunk], as the rows of a table: chunks downwards, ranks across."""
    return [[str(cell) for cell in column] for column in cells.T]


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_the_tables_are_the_first_and_the_last_state_of_the_schedule_they_name(show, ranks):
    widget = Zoo(ranks=ranks)
    seen = show(widget).evaluate(TABLES)
    assert [collective for collective, *_ in seen] == list(CATALOGUE)
    for (collective, before, after), card in zip(seen, widget.cards, strict=True):
        schedule = build(collective, card["shown"], ranks, local=2)
        assert before == rows(schedule.start().cells[schedule.buffers[0]])
        assert after == rows(schedule.states(-1).cells[schedule.result])


def test_the_promises_of_the_textbook_hold_for_what_is_not_left_over(zoo):
    """The promises written again without `collectives`: what rank r's chunk c must be at the end."""
    names = [letter(rank) for rank in range(4)]
    total = [["+".join(f"{name}{chunk}" for name in names)] * 4 for chunk in range(4)]
    own = [[f"{names[chunk]}{chunk}"] * 4 for chunk in range(4)]
    promised = {
        "broadcast": [[f"a{chunk}"] * 4 for chunk in range(4)],
        "scatter": [[f"a{chunk}"] * 4 for chunk in range(4)],
        "gather": own,
        "all_gather": own,
        "reduce": total,
        "reduce_scatter": total,
        "all_reduce": total,
        "all_to_all": [[f"{names[chunk]}{rank}" for rank in range(4)] for chunk in range(4)],
        "barrier": total[:1],
    }
    only = {"scatter": lambda r, c: r == c, "reduce_scatter": lambda r, c: r == c}
    only |= {"gather": lambda r, c: r == 0, "reduce": lambda r, c: r == 0}
    for collective, _, after in zoo.evaluate(TABLES)[:9]:
        card = zoo.locator(f"article[aria-label={collective}]")
        left = (
            card.locator("table >> nth=1")
            .locator("tbody td")
            .evaluate_all("(cells) => cells.map((cell) => /rs-left|rs-nothing/.test(cell.className))")
        )
        for chunk, row in enumerate(after):
            for rank, symbol in enumerate(row):
                due = only.get(collective, lambda r, c: True)(rank, chunk)
                assert left[chunk * 4 + rank] == (not due), (collective, rank, chunk)
                assert not due or symbol == promised[collective][chunk][rank]


AT_THE_END = """async (names) => {
    const frame = () => new Promise(requestAnimationFrame);
    const open = () => document.querySelector(".rs-player .rs-title")?.textContent.split(": ")[0].replace(" ", ".");
    const ends = [];
    for (const name of names) {
        model.set("opened", name);
        for (const limit = performance.now() + 120_000; open() !== name; await frame())
            if (performance.now() > limit) throw new Error(`${name} is not open within 120 s`);
        await frame();
        const most = [...document.querySelectorAll(".rs-scrub input")].map((scrub) => scrub.max);
        model.set("step", 1e6);
        const cells = [...document.querySelectorAll(".rs-player table tbody td")].map((cell) => cell.textContent);
        ends.push([most, cells]);
    }
    return ends;
}"""


@pytest.mark.parametrize("ranks, every", [(3, 16), (4, 5)])
def test_the_algorithms_that_take_so_many_ranks_open_their_players(show, ranks, every):
    """A few of them, of every collective; test_schedule_js plays all, and test_layouts draws all."""
    page = show(Zoo(ranks=ranks))
    names = page.locator("[data-name]").evaluate_all("(nodes) => nodes.map((node) => node.dataset.name)")
    assert ("all_gather.recursive_doubling" in names) == ("all_reduce.hierarchical" in names) == (ranks == 4)
    names = names[::every]
    for name, (most, cells) in zip(names, ask(page, AT_THE_END, names), strict=True):
        schedule = build(*name.split("."), ranks, local=2)
        assert most == [str(len(schedule.steps))]
        state = schedule.states(-1)
        assert [text if text != "empty" else "" for text in cells] == [
            str(cell) for rank in range(ranks) for buffer in schedule.buffers for cell in state[rank][buffer]
        ]


def test_the_keyboard_opens_plays_and_comes_back(zoo):
    zoo.focus("[data-name='broadcast.flat']")
    for key in ("ArrowDown", "ArrowRight", "ArrowUp", "PageDown", "PageUp", "ArrowDown", "ArrowRight"):
        zoo.keyboard.press(key)
    assert zoo.evaluate("document.activeElement.dataset.name") == "scatter.binomial"
    zoo.keyboard.press("Enter")
    zoo.wait_for_selector(".rs-scrub input:focus")
    assert not zoo.is_visible("article") and zoo.evaluate("model.get('opened')") == "scatter.binomial"
    zoo.keyboard.press("ArrowRight")
    assert zoo.evaluate("model.get('step')") == 1
    assert "Step 1 of 2" in zoo.inner_text(".rs-player .rs-caption")
    zoo.keyboard.press("Escape")
    zoo.wait_for_selector("[data-name='scatter.binomial']:focus")
    assert zoo.is_visible("article >> nth=0") and not zoo.locator(".rs-player").count()


def test_another_algorithm_of_the_same_collective_is_a_choice_away(zoo):
    zoo.click("[data-name='all_reduce.naive']")
    zoo.wait_for_selector(".rs-scrub input:focus")
    zoo.keyboard.press("End")
    zoo.select_option(".rs-way select", "ring")
    zoo.wait_for_selector(".rs-player[aria-label^='all_reduce ring']")
    assert zoo.evaluate("[model.get('opened'), model.get('step')]") == ["all_reduce.ring", 0]


def test_a_player_that_was_left_does_not_go_on_playing(zoo):
    zoo.click("[data-name='all_reduce.ring']")
    zoo.wait_for_selector(".rs-scrub input:focus")
    zoo.click(".rs-more")
    zoo.select_option(".rs-speed select", "0.25")
    zoo.focus(".rs-scrub input")
    zoo.keyboard.press("Space")
    assert zoo.evaluate("[model.get('step'), model.get('playing')]") == [1, True]
    handlers = zoo.evaluate("model.handlers.length")
    zoo.click(".rs-way button")
    assert zoo.evaluate("[model.get('step'), model.get('playing')]") == [0, False]
    for _ in range(3):
        zoo.click("[data-name='all_reduce.ring']")
        zoo.wait_for_selector(".rs-scrub input:focus")
        zoo.click(".rs-way button")
    zoo.click("[data-name='all_gather.ring']")
    zoo.wait_for_selector(".rs-scrub input:focus")
    assert zoo.evaluate("model.handlers.length") == handlers, "closed players still listen to the clock"


def test_projector_mode_goes_along_into_the_player(zoo):
    zoo.focus("[data-name='all_reduce.ring']")
    zoo.keyboard.press("p")
    wait_for_wall(zoo)
    sizes = zoo.locator(".rs-projected :is(td, button, .rs-says, caption)").evaluate_all(
        "(nodes) => nodes.filter((n) => n.innerText?.trim()).map((n) => parseFloat(getComputedStyle(n).fontSize))"
    )
    assert min(sizes) >= 18
    zoo.keyboard.press("Enter")
    zoo.wait_for_selector(".rs-player.rs-projected .rs-scrub input:focus")
    zoo.keyboard.press("PageDown")
    assert zoo.evaluate("model.get('step')") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_narrow_cell(show, page, scheme):
    page.set_viewport_size({"width": 360, "height": 720})
    page.emulate_media(color_scheme=scheme)
    show(Zoo(ranks=4))
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    cut = "(cells) => cells.filter((cell) => cell.scrollWidth > cell.clientWidth + 1).length"
    assert page.locator("tbody td").evaluate_all(cut) == 0


class _Still(HTMLParser):
    """For each table, the text of its td elements that hold no table."""

    def __init__(self, html):
        super().__init__()
        self.tables, self.open, self.inside = [], [], False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            self.open.append([])
            self.tables.append(self.open[-1])
        elif tag == "td":
            self.open[-1].append("")
        self.inside = tag in ("td", "i")

    def handle_endtag(self, tag):
        self.inside = False
        if tag == "table":
            self.open.pop()

    def handle_data(self, data):
        if self.inside and self.open:
            self.open[-1][-1] += data


def test_what_is_saved_beside_it_has_the_tables(zoo):
    one, two = (Zoo(ranks=4)._repr_mimebundle_()[0] for _ in range(2))
    assert one["text/plain"] == "Zoo(ranks=4)" and one["text/html"] == two["text/html"]
    assert len(one["text/html"]) < 20_000 and not re.search(r"<script|class=|src=", one["text/html"])
    still = [table for table in _Still(one["text/html"]).tables if table[1:2] != ["→"]]
    live = [sum(table, []) for _, *tables in zoo.evaluate(TABLES) for table in tables]
    assert [[text.strip("()") for text in table] for table in still] == live


def test_it_opens_where_python_says(show):
    page = show(Zoo(ranks=4, opened="all_reduce.ring", step=3))
    page.wait_for_selector(".rs-player[data-step='3']")


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: Zoo(1), ValueError, "Zoo shows 2 to 8 ranks side by side, got 1"),
        (lambda: Zoo("4"), ValueError, "Zoo shows 2 to 8 ranks side by side, got '4'"),
        (lambda: Zoo(4, opened="all_reduce"), Exception, "this zoo has no 'all_reduce'"),
        (lambda: Zoo(4, colour=1), TypeError, "Zoo has no setting 'colour'"),
    ],
)
def test_bad_input_is_one_clear_sentence(make, error, words):
    with pytest.raises(error) as raised:
        make()
    assert words in str(raised.value)


def test_the_player_in_it_is_the_player():
    assert Zoo(2).player == str(Player._esm)
