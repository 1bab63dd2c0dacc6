"""The wait-for picture: same bytes on every run, every edge an arrow, readable without colour or eyes."""

import base64
import re
import xml.etree.ElementTree as ElementTree

import pytest

from widgets.wait_for import WaitFor, stuck

EDGES = [(0, 2, "all_reduce", 4), (1, 2, "all_reduce", 4), (3, 2, "all_reduce", 4)]


def test_every_edge_is_an_arrow_with_its_words():
    root = ElementTree.fromstring(WaitFor(EDGES, 4).picture)
    titles = [node.text for node in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles[1:] == [f"rank {rank} waits for rank 2: all_reduce, line 4" for rank in (0, 1, 3)]
    numbers = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert numbers == ["0", "1", "2", "3"]
    dashed = [node for node in root.iter("{http://www.w3.org/2000/svg}circle") if node.get("stroke-dasharray")]
    assert len(dashed) == 1  # rank 2, who is not coming


def test_the_saved_form_is_stable_and_survives_a_sanitiser():
    html = WaitFor(EDGES, 4).fallback()
    assert html == WaitFor(EDGES, 4).fallback()
    assert 'alt="ranks 0, 1, 3 wait for rank 2"' in html
    (data,) = re.findall(r"base64,([^\"]+)", html)
    assert base64.b64decode(data).startswith(b"<svg")
    assert repr(WaitFor(EDGES, 4)) == "WaitFor(ranks=4, waiting=3)"


def test_what_is_written_on_an_arrow_is_text():
    svg = WaitFor([(0, 1, "<script>alert(1)</script>", 0)], 2).picture
    assert "<script>" not in svg


def test_many_ranks_are_told_in_words_and_wrong_ones_refused():
    assert WaitFor([(0, 63, "recv", 1)], 64).fallback() == "<span>rank 0 waits for rank 63</span>"
    with pytest.raises(ValueError, match="rank 4: there are ranks 0 to 3"):
        WaitFor([(0, 4, "", 0)], 4)


@pytest.mark.parametrize(
    "edges, words",
    [
        (EDGES, "Ranks 0, 1, 3 wait for rank 2"),
        ([(0, 1, "", 0), (1, 3, "", 0), (0, 2, "", 0)], "Rank 0 waits for ranks 1, 2; rank 1 waits for rank 3"),
        ([(0, 2, "", 0), (1, 2, "", 0), (3, 1, "", 0)], "Ranks 0, 1 wait for rank 2; rank 3 waits for rank 1"),
        ([(1, 0, "", 0), (2, 1, "", 0), (3, 2, "", 0)], "Rank 0 keeps ranks 1 to 3 waiting"),
        ([(0, 1, "", 0), (1, 0, "", 0), (2, 0, "", 0)], "Ranks 0, 1 wait for each other"),
        ([(0, 1, "", 0), (1, 2, "", 0), (2, 0, "", 0)], "Ranks 0 to 2 wait in a circle"),
        ([(0, 1, "", 0), (1, 0, "", 0), (1, 2, "", 0), (2, 1, "", 0)], "Ranks 0 to 2 wait for each other"),
        ([(0, 1, "", 0), (0, 2, "", 0)], "Rank 0 waits for ranks 1, 2"),
        ([(1, 1, "", 0)], "Rank 1 waits for itself"),
        ([(0, 1, "", 0), (1, 0, "", 0), (2, 3, "", 0), (3, 2, "", 0)], "Ranks 0 to 3 can never go on"),
    ],
)
def test_the_headline_says_which_ranks_wait_for_which(show, edges, words):
    assert WaitFor(edges, 4).headline == words
    assert show(WaitFor(edges, 4)).inner_text(".rs-title") == words


def lit(page):
    return page.evaluate("""() => ({
        arrows: [...document.querySelectorAll(".rs-wait.rs-lit")].map((node) => node.dataset.ends),
        ranks: [...document.querySelectorAll("[data-rank].rs-lit")].map((node) => node.dataset.rank),
    })""")


def test_a_row_of_the_table_lights_up_its_arrow(show):
    page = show(WaitFor([*EDGES[:2], (3, 1, "recv", 7)], 4))
    rows = page.locator("tbody tr")
    assert rows.all_inner_texts()[2].split("\t") == ["rank 3", "rank 1", "recv, line 7"]
    for _ in range(3):  # past the two buttons above
        page.keyboard.press("Tab")
    assert lit(page) == {"arrows": ["0 2"], "ranks": ["0", "2"]}
    page.keyboard.press("End")
    assert lit(page) == {"arrows": ["3 1"], "ranks": ["1", "3"]}
    page.keyboard.press("ArrowUp")
    assert lit(page) == {"arrows": ["1 2"], "ranks": ["1", "2"]}
    page.keyboard.press("Tab")
    assert lit(page) == {"arrows": [], "ranks": []}, "the table is one stop"
    page.hover("[data-rank='3'] text")
    assert lit(page)["arrows"] == ["3 1"] and "rs-lit" in rows.nth(2).get_attribute("class")


@pytest.mark.parametrize(
    "edges, words",
    [
        ([(r, 5, "barrier", 4) for r in (0, 1, 2, 3, 6)], "barrier, line 4: ranks 0 to 3, 6 wait for rank 5"),
        ([(0, 1, "a", 3), (1, 0, "b", 0)], "a, line 3 and b: rank 0 waits for rank 1; rank 1 waits for rank 0"),
        ([(0, 1, "barrier", 2), (0, 2, "barrier", 2)], "barrier, line 2: rank 0 waits for ranks 1, 2"),
    ],
)  # fmt: skip
def test_who_is_stuck_is_one_sentence(edges, words):
    assert stuck(edges) == f"Stuck in {words}." and stuck([]) == ""


@pytest.mark.parametrize("scheme, red", [("light", "rgb(198, 40, 40)"), ("dark", "rgb(255, 138, 128)")])
def test_the_live_picture_has_the_colours_of_the_page(show, page, scheme, red):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 360, "height": 720})
    show(WaitFor(EDGES, 4))
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    fill = "(node) => getComputedStyle(node).fill"
    assert page.locator(".rs-circle rect").count() == 0  # the page is its paper
    assert page.locator(".rs-waits circle").first.evaluate(fill) == red


def test_calls_are_text_in_the_table_too(show):
    page = show(WaitFor([(0, 1, "<b>recv</b>", 0)], 2))
    assert page.inner_text("tbody td:last-child") == "<b>recv</b>"
