"""What combines is drawn as what it is: a maximum of real ranks has no plus in the Player, on arrow, cell or word."""

import base64
import re

import pytest

import collectives
from tests.launch.programs import SETUP
from widgets import Player
from widgets._packing import pack

BY_HAND = {
    "max": "torch.maximum({0}, {1})",
    "min": "torch.minimum({0}, {1})",
    "product": "{0} * {1}",
    "sum": "{0} + {1}",
}
SIGN = {"max": "max", "min": "min", "product": "×", "sum": "+"}
SYMBOL = {"max": "max(a0,b0)", "min": "min(a0,b0)", "product": "a0×b0", "sum": "a0+b0"}
WORDS = {"max": "the maximum", "min": "the minimum", "product": "the product", "sum": "the sum"}
VERB = {"max": "combined", "min": "combined", "product": "combined", "sum": "added"}


def by_message(how):
    source = "torch.manual_seed(rank); x = torch.randn(4)\nbuf = torch.empty(4)\n"
    source += "dist.send(x, 0) if rank else dist.recv(buf, 1)\n"
    return source + f"if rank == 0:\n    x[:] = {BY_HAND[how].format('x', 'buf')}\n"


@pytest.fixture
def shown(browser, tmp_path):
    """shown(schedule, step) -> a page with its Player, at a width in which words fit."""
    opened = []

    def shown(schedule, step=1):
        Player(schedule, step=step).save_html(tmp_path / "player.html")
        page = browser.new_page()
        opened.append(page)
        page.set_viewport_size({"width": 1280, "height": 720})
        page.goto((tmp_path / "player.html").as_uri())
        page.wait_for_function("window.model")
        return page

    yield shown
    for page in opened:
        page.close()


def drawn(page):
    """What stands on arrows and at cells, and whether a cross is drawn there, and turned."""
    words = [*page.locator(".rs-tagtext").all_text_contents(), *page.locator(".rs-sign text").all_text_contents()]
    turned = page.locator(".rs-sign path").evaluate_all("(n) => n.map((p) => p.getAttribute('transform'))")
    return words, turned


@pytest.mark.parametrize("how", BY_HAND)
def test_an_arrow_and_the_cell_it_writes_bear_the_operation(recorded, shown, how):
    page = shown(recorded(by_message(how), 2))
    crosses = {"product": ["rotate(45)"], "sum": [None]}.get(how, [])  # of a maximum the cell's own text says it
    assert drawn(page) == ([SIGN[how]], crosses)
    assert page.locator(".rs-arrow.rs-reduce").count() == 1
    assert SYMBOL[how] in page.locator(".rs-text").all_text_contents()
    page.hover("[data-slot='0']")
    assert f"{SYMBOL[how]}, {WORDS[how]} of all 2 ranks" in page.inner_text(".rs-detail")
    assert f"; {VERB[how]} from rank 1 in step 1" in page.inner_text(".rs-detail")
    page.focus(".rs-scrub input")
    page.keyboard.press("ArrowDown")
    assert f"{'adds' if how == 'sum' else 'combines'} from rank 1" in page.inner_text(".rs-detail")
    assert (WORDS[how] in page.inner_text(".rs-sentence")) == (how != "sum")


@pytest.mark.parametrize("how", ["max", "product", "sum"])
def test_a_built_in_bears_its_operation_too(recorded, shown, how):
    page = shown(recorded(SETUP + f"dist.all_reduce(x, op=dist.ReduceOp.{how.upper()})", 3))
    words, crosses = drawn(page)
    assert {*words} == {SIGN[how]} and len(words) == 6 and bool(crosses) == (how != "max")
    three = {"max": "max(a0,b0,c0)", "product": "a0×b0×c0", "sum": "a0+b0+c0"}[how]
    assert three in page.locator(".rs-text").all_text_contents()


def test_cells_too_narrow_for_a_maximum_do_not_claim_a_sum(recorded, shown):
    page = shown(recorded(SETUP + "dist.all_reduce(x, op=dist.ReduceOp.MAX)", 8))
    words = page.locator(".rs-text").all_text_contents()
    assert words and not any("Σ" in word or "+" in word for word in words)


def test_data_that_was_added_and_then_compared_is_neither(recorded, shown):
    run = recorded(SETUP + "dist.all_reduce(x)\ndist.all_reduce(x, op=dist.ReduceOp.MAX)", 2)
    assert str(run.states(-1)[0]["x"][0]) == "a0,a0,b0,b0"
    page = shown(run, step=2)
    page.hover("[data-slot='0']")
    assert "a0,a0,b0,b0, the combination of all 2 ranks" in page.inner_text(".rs-detail")


def test_steps_with_several_operations_draw_each(recorded, shown):
    """Two groups at the same time: one adds, the other takes the maximum."""
    source = SETUP + "low, high = dist.new_group([0, 1]), dist.new_group([2, 3])\n"
    source += "if rank < 2:\n    dist.all_reduce(x, group=low)\n"
    source += "else:\n    dist.all_reduce(x, op=dist.ReduceOp.MAX, group=high)\n"
    run = recorded(source, 4)
    assert len(run.steps) == 1 and "the maximum or the sum" in run.steps[0].caption
    page = shown(run)
    words, crosses = drawn(page)
    assert {*words} == {"+", "max"} and crosses == [None, None]


@pytest.mark.parametrize("how, held", SYMBOL.items())
def test_the_still_picture_and_states_claim_no_sum_either(recorded, how, held):
    run = recorded(by_message(how), 2)
    assert held in map(str, run.states(-1)[0]["x"])
    still = Player(run).fallback()
    picture = base64.b64decode(re.search(r"base64,([^\"]+)", still)[1]).decode()
    assert f">{held}<" in picture and ("+" in re.sub("<style>.*</style>", "", picture)) == (how == "sum")


def test_a_saved_run_keeps_its_operations(recorded, tmp_path):
    run = recorded(by_message("max"), 2)
    run.save(tmp_path / "max.json")
    loaded = collectives.load(tmp_path / "max.json")
    assert pack(loaded) == pack(run) and loaded.ways(0) == run.ways(0) == ["max"]
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "max.json").read_bytes()
    text = (tmp_path / "max.json").read_text()
    (tmp_path / "wrong.json").write_text(text.replace('"ways": {"0": ["max"]}', '"ways": {"0": []}'))
    with pytest.raises(ValueError, match="not said of every transfer"):
        collectives.load(tmp_path / "wrong.json")
