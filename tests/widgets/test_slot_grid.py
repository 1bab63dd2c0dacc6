"""SlotGrid: what the browser counts is what Python counts; the picture has a cell for each action and holes that are
the bubble; an order is typed and judged at once; a recorded run stands below."""

import base64
import random
import re
import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

import pytest

from collectives import pipeline
from collectives.pipeline import Order
from collectives.timed import Timed
from tests.widgets.conftest import ask, settle, wait_for_wall
from widgets import SlotGrid

FOUR = [pipeline.gpipe(4, 8), pipeline.one_f_one_b(4, 8), pipeline.interleaved(4, 8), pipeline.zero_bubble_h2(4, 8)]
PLAY = """async (orders) => {
    const { play } = await import("/js/slots.js");
    return orders.map(play);
}"""


def lists(rng):
    """What may be typed: right, at a standstill, or no order."""
    p, m = rng.randint(2, 4), rng.randint(1, 4)
    make = rng.choice([pipeline.gpipe, pipeline.one_f_one_b, pipeline.zero_bubble_h1, pipeline.interleaved])
    order = make(p, m * p if make is pipeline.interleaved else m)
    words = [text.split() for text in order.texts]
    for _ in range(rng.randint(0, 3)):
        mine = rng.choice(words)
        i = rng.randrange(len(mine) - 1)
        mine[i], mine[i + 1] = mine[i + 1], mine[i]
    if rng.random() < 0.2:
        rng.choice(words).append(rng.choice(["B1", "F0", "f1", "0F1", "9", "-2", "back"]))
    return [rng.choice([" ", ", "]).join(each) for each in words]


def test_the_browser_counts_what_python_counts(modules):
    rng = random.Random(8)
    typed = [lists(rng) for _ in range(200)] + [order.texts for order in FOUR] + [["1 -1", "−1 1"], ["", ""]]
    kinds = set()
    for lines, there in zip(typed, ask(modules, PLAY, typed), strict=True):
        try:
            here = Order("mine", lines)
        except ValueError as error:
            assert there["error"] == str(error)
            kinds.add("no order")
            continue
        kinds.add("stuck" if here.stuck else "right")
        assert there["error"] == "" and there["stuck"] == here.stuck
        slots = [(s["rank"], s["start"], s["end"], *s["action"].values()) for s in there["slots"]]
        assert slots == [(slot.rank, slot.start, slot.end, *slot.action) for slot in here.slots]
        assert (there["period"], there["length"], there["ticks"]) == (here.period, here.length, here.ticks)
        assert there["bubble"] == pytest.approx(here.bubble)
        assert [max(kept) / there["ticks"] for kept in there["kept"]] == pytest.approx(here.kept)
    assert kinds == {"right", "stuck", "no order"}


HEADLINE = "One step alone: Zero bubble H2 idles 11 %, GPipe 27 %"
ENDS = [  # orders, title, and the sentence at the end
    (
        FOUR[:1],
        "One training step by GPipe: each rank idles 27 % of the time",
        "Each rank works for 24 slots and has nothing to do for 9.",
    ),
    (
        FOUR[:2],
        "One step alone: each rank idles 27 % of the time",
        "Same work: GPipe keeps 8 micro-batches in memory, 1F1B 4.",
    ),
    (
        FOUR,
        HEADLINE,
        "Same work: Zero bubble H2 idles least and keeps 7 micro-batches in memory, 1F1B 4.",
    ),
    (
        FOUR[:3:2],
        "One step alone: Interleaved, 2 stages a rank idles 16 %, GPipe 27 %",
        "Same work: Interleaved, 2 stages a rank idles least and keeps 5.5 micro-batches in memory.",
    ),
]


def heads(page):
    return page.locator(".rs-order-name").all_text_contents()


@pytest.mark.parametrize("orders, title, end", ENDS)
def test_it_says_what_an_order_gains_and_its_price_in_memory(show, orders, title, end):
    page = show(SlotGrid(*orders))
    assert (page.inner_text(".rs-title"), page.inner_text(".rs-caption")) == (title, end)
    assert title in re.sub("<[^>]*>", "", svg(SlotGrid(*orders)))


def test_every_action_is_a_cell_and_the_holes_are_the_bubble(show):
    page = show(SlotGrid(*FOUR))
    assert page.inner_text(".rs-title") == HEADLINE
    assert heads(page)[0] == "GPipe: bubble 9 of 33 slots (27 %), keeps up to 8 micro-batches"
    h2 = "Zero bubble H2: bubble 3 of 27 slots (11 %), 0 of 24 if repeated, keeps up to 7 micro-batches"
    assert heads(page)[3] == h2 and h2.replace("11 %", "11%") in svg(SlotGrid(*FOUR))
    for index, order in enumerate(FOUR):
        grid = page.locator(".rs-order").nth(index)
        for kind in "FBIW":
            assert grid.locator(f"rect.rs-{kind}").count() == sum(slot.action.kind == kind for slot in order.slots)
        width = "(nodes) => nodes.map((node) => node.getBoundingClientRect().width + 1)"
        slot = min(page.locator(".rs-order").nth(0).locator("rect.rs-F").evaluate_all(width))
        holes = sum(grid.locator("rect.rs-idle").evaluate_all(width))
        assert holes / slot == pytest.approx(order.idle * 4, abs=0.05)
        assert grid.locator(".rs-kept").count() == sum(-(-kept // 1) for kept in order.kept)


def test_it_plays_slot_by_slot_and_what_is_kept_piles_up(show):
    page = show(SlotGrid(FOUR[1], step=0))
    page.focus(".rs-scrub input")
    now = "rect.rs-kept:not(.rs-ahead)"
    assert page.locator(now).count() == 0 and page.inner_text(".rs-caption") == "Nothing is done yet."
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    assert page.inner_text(".rs-caption") == "Slot 4: rank 0 F4, rank 1 F3, rank 2 F2, rank 3 F1."
    assert page.locator(now).count() == 4 + 3 + 2 + 1
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    assert page.inner_text(".rs-caption") == "Slot 6: rank 0 idle, rank 1 idle, rank 2 idle, rank 3 B1."
    assert page.get_attribute(".rs-scrub input", "aria-valuetext").startswith("slot 6 of 33: Slot 6: rank 0 idle")
    page.keyboard.press("End")
    assert page.locator(now).count() == 10 and page.evaluate("model.get('step')") == 33
    page.keyboard.press("+")
    page.keyboard.press("+")
    page.evaluate("window.seen = []; model.on('change:step', () => seen.push(model.get('step')))")
    page.keyboard.press("Space")
    settle(page, "seen.includes(2)")
    assert page.evaluate("seen.slice(0, 3)") == [0, 1, 2]


def test_an_order_is_typed_and_counted_at_once(show):
    page = show(SlotGrid(pipeline.gpipe(2, 3)))
    page.click(".rs-write")
    assert heads(page)[1] == "Your order: bubble 3 of 12 slots (25 %), keeps up to 3 micro-batches"
    first, second = page.locator(".rs-own-order input").all()
    first.fill("1 2 -1 3 -2 -3")
    second.fill("F1 B1 F2 B2 F3 B3")
    assert heads(page)[1] == "Your order: bubble 3 of 12 slots (25 %), keeps up to 2 micro-batches"
    assert page.evaluate("model.get('typed')") == ["1 2 -1 3 -2 -3", "F1 B1 F2 B2 F3 B3"]
    second.fill("B1 F1 F2 B2 F3 B3")
    assert heads(page)[1] == "Your order: rank 1 waits forever: its B1 needs F1 later in its own list"
    second.fill("F1 B1 F2 B2 F3")
    assert heads(page)[1] == "Your order: rank 1: B3 is missing"
    first.focus()
    page.keyboard.type("e")
    assert page.locator(".rs-own-order").is_visible(), "what is typed is no shortcut"
    page.focus(".rs-scrub input")
    page.keyboard.press("e")
    assert not page.locator(".rs-own-order").is_visible() and len(heads(page)) == 1


def test_what_is_typed_is_text(show):
    page = show(SlotGrid(pipeline.gpipe(2, 1), typed=["<b>1</b>", "1 -1"]))
    assert heads(page)[1].startswith("Your order: rank 0: <b>1</b> is no action")


def run(ranks=2):
    """Rank 1 waits for a second, computes for one, then rank 0, which has waited, computes for one."""
    calls = [(0, "isend", 1.0, 1.0, 3.0, 3.0), (1, "recv", 0.0, 0.0, 0.0, 1.0), (1, "isend", 2.0, 2.0, 2.0, 2.0)]
    calls.append((0, "recv", 1.0, 1.0, 1.0, 2.0))
    events = [Timed(rank, op, 1 - rank, 4, 1, "", None, a, b, c, d, None) for rank, op, a, b, c, d in calls]
    return SimpleNamespace(events=events, ranks=ranks)


def test_a_recorded_run_stands_below_the_order_that_it_ran(show):
    """Rank 0 waited from 1 to 2 and rank 1 until 1, and from 2 it was done: half of all time."""
    widget = SlotGrid([[1, -1], [1, -1]], run=run())
    blocked, ends = [[[1.0, 2.0]], [[0.0, 1.0]]], [3.0, 2.0]
    assert widget.recorded == {"seconds": 3.0, "idle": 0.5, "blocked": blocked, "ends": ends}
    page = show(widget)
    assert heads(page)[0].endswith("(50 %), keeps up to 1 micro-batch; recorded: 3 s, a rank idles 50 %")
    assert page.locator("path.rs-waited").count() == 2
    long, short = (page.locator("path.rs-work").nth(rank).bounding_box()["width"] for rank in (0, 1))
    assert short == pytest.approx(2 / 3 * long, rel=0.02), "a strip ends where its rank was done"
    assert "recorded: idle 50% of the time (the stronger gray" in svg(widget)
    assert widget.measured and not SlotGrid([[1, -1], [1, -1]]).measured


def svg(widget):
    return base64.b64decode(re.search(r"base64,([^\"]+)", widget.fallback())[1]).decode()


def test_the_still_picture_tells_it_without_a_browser(show):
    one, two = (SlotGrid(*FOUR)._repr_mimebundle_()[0] for _ in range(2))
    assert one["text/html"] == two["text/html"] and len(one["text/html"]) < 60_000
    names = "GPipe, 1F1B, Interleaved, 2 stages a rank, Zero bubble H2"
    assert one["text/plain"] == f"SlotGrid({names}; 4 ranks, 8 micro-batches)"
    assert HEADLINE in re.sub("<[^>]*>", "", svg(SlotGrid(*FOUR)))
    said = f'alt="{HEADLINE}; GPipe: bubble 9 of 33 slots (27%), keeps up to 8 micro-batches; 1F1B: bubble'
    assert said in one["text/html"]
    root = ElementTree.fromstring(svg(SlotGrid(FOUR[0])))
    cells = [p for p in root.iter("{http://www.w3.org/2000/svg}path") if p.get("fill") == "#56b4e9"]
    assert sum(p.get("d").count("M") for p in cells) == 1 + 32, "one in the legend, one for each forward pass"


def test_the_still_picture_cuts_nothing(show, page):
    show(SlotGrid(*FOUR))
    page.evaluate("(svg) => { document.body.innerHTML = svg; }", svg(SlotGrid(*FOUR)))
    ends = page.locator("svg :is(text, path)").evaluate_all("(all) => all.map((n) => n.getBoundingClientRect().right)")
    box = page.locator("svg").bounding_box()
    assert max(ends) <= box["x"] + box["width"] + 1


@pytest.mark.parametrize("width", [360, 900])
def test_it_fits(show, page, width):
    page.set_viewport_size({"width": width, "height": 720})
    show(SlotGrid(*FOUR, typed=FOUR[0].texts))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    picture = page.locator(".rs-grid").bounding_box()
    ends = "(nodes) => nodes.map((node) => node.getBoundingClientRect().right)"
    assert max(page.locator(".rs-grid :is(rect, text)").evaluate_all(ends)) <= picture["x"] + picture["width"] + 1


def test_projector_mode_has_large_words_on_one_screen(show):
    page = show(SlotGrid(*FOUR))
    page.focus(".rs-scrub input")
    page.keyboard.press("p")
    wait_for_wall(page)
    page.wait_for_function("document.querySelector('.rs-grid').style.getPropertyValue('--rs-scale') === '1.5'")
    sizes = page.locator(".rs-grid text").evaluate_all(
        "(nodes) => nodes.filter((n) => n.textContent).map((n) => parseFloat(getComputedStyle(n).fontSize))"
    )
    assert min(sizes) >= 18 and page.locator(".rs-buttons").bounding_box()["y"] < 720
    grid, caption = (page.locator(each).bounding_box() for each in (".rs-grid", ".rs-caption"))
    assert grid["y"] + grid["height"] <= caption["y"] + 2


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: SlotGrid(), ValueError, "SlotGrid needs an order"),
        (lambda: SlotGrid(FOUR[0], pipeline.gpipe(4, 4)), ValueError, "here: GPipe 4 and 8, GPipe 4 and 4"),
        (lambda: SlotGrid(pipeline.gpipe(64, 64)), ValueError, "draws up to 4,000 actions"),
        (lambda: SlotGrid([[1, -1], [1]]), ValueError, "rank 1: B1 is missing"),
        (lambda: SlotGrid(FOUR[0], run=run()), ValueError, "the run has 2 ranks, the order 4"),
        (lambda: SlotGrid(FOUR[0], run=7), TypeError, "launch.recording() after `%%ranks --record`"),
    ],
)
def test_bad_input_is_one_clear_sentence(make, error, words):
    with pytest.raises(error) as raised:
        make()
    assert words in str(raised.value)
