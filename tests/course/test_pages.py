"""The chapters as web pages: they ask nobody, their formulas are MathML, and their links lead to each other."""

import re
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course import chapters, pages

LOADED = re.compile(r"<(?:script|img|iframe|link|source|video)\b[^>]*?(?:src|href)=[\"'](?!data:|#)([^\"']+)")


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> dict[str, str]:
    return {page.name: page.read_text() for page in pages.write(tmp_path_factory.mktemp("pages"))}


def test_there_is_a_page_of_every_chapter(written):
    assert {Path(name).stem for name in written} == {path.stem for path in chapters.notebooks()}


def test_a_page_loads_nothing_from_elsewhere(written):
    assert LOADED.search('<script src="https://example.org/mathjax.js"></script>')
    for name, html in written.items():
        assert not LOADED.findall(html), name
        assert "import(" not in html and "@import" not in html, name


def test_formulas_are_mathml(written):
    assert "<math" in written["06_cost.html"]
    for name, html in written.items():
        outside = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", html, flags=re.S)
        assert not re.search(r"\\(?:frac|alpha|beta)\b", outside), name


def test_links_between_chapters_lead_to_pages_that_are_there(written):
    for name, html in written.items():
        linked = re.findall(r'<a href="(?!https?:|#)([^"#]+)', html)
        assert linked and set(linked) <= set(written), name


def test_what_follows_a_question_is_folded_and_a_new_part_is_not():
    cells = [
        new_code_cell('ask("groups_rank_5")'),
        new_code_cell("first", outputs=[new_output("stream", text="the answer")]),
        new_markdown_cell("It is so because"),
        new_code_cell("second", outputs=[new_output("stream", text="the next run")]),
        new_code_cell('shown = ask("groups_outsider")'),
        new_markdown_cell("# A new part"),
    ]
    page = pages.page(new_notebook(cells=cells), "x")
    folded = " ".join(re.findall(r'<details class="rs-after">(.*?)</details>', page, re.S))
    for text, inside in [("the answer", 1), ("It is so because", 1), ("the next run", 0), ("A new part", 0)]:
        assert (folded.count(text), page.count(text)) == (inside, 1), text


def test_a_folder_that_cannot_be_made_is_said_in_a_sentence(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert pages.main([str(tmp_path / "file" / "pages")]) == 1
    assert "name another: python" in capsys.readouterr().out
