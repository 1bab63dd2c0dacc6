"""The chapters as web pages: they ask nobody, their formulas are MathML, and their links lead to each other."""

import re
from pathlib import Path

import pytest

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


def test_a_folder_that_cannot_be_made_is_said_in_a_sentence(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert pages.main([str(tmp_path / "file" / "pages")]) == 1
    assert "name another: python" in capsys.readouterr().out
