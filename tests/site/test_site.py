"""The web site, with one chapter run: its widgets live from files alone, and no other host is asked for anything."""

import re
import subprocess
import sys
from urllib.parse import unquote, urlsplit

import pytest

from course import chapters
from course.questions import QUESTIONS
from course.site.__main__ import main

STEM = "10_compose"
pytestmark = pytest.mark.timeout(1200)  # the first test waits for Sphinx and a chapter: most of a minute of CPU
LINK = re.compile(r'(?:href|src)="([^"#]+)')
VIOLATIONS = """async () => {
    const seen = new Set(); // classes of the words of code: a block that has no new one has the colours of others
    const alike = [...document.querySelectorAll(".highlight")].filter((block) => {
        const before = seen.size;
        for (const { className } of block.querySelectorAll("span")) seen.add(className);
        return seen.size === before;
    });
    const { violations } = await axe.run({ exclude: alike }, { resultTypes: ["violations"], preload: false });
    return violations.map(({ id, nodes }) => [id, nodes[0].html]);
}"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "out"
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-m", "course.site", str(folder), STEM]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stdout + done.stderr
    return folder


@pytest.fixture
def page(browser, built):
    """A page of the site; an error on it, or a request to another host, fails the test."""
    wrong: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: message.type == "error" and wrong.append(message.text))
    page.on("request", lambda asked: urlsplit(asked.url).scheme in ("http", "https") and wrong.append(asked.url))
    yield page
    context.close()
    assert not wrong


def test_links_lead_to_files_that_are_there(built):
    for page in built.rglob("*.html"):
        for target in LINK.findall(page.read_text()):
            if not urlsplit(target).scheme:
                assert (page.parent / unquote(target.partition("?")[0])).exists(), (
                    f"{page.relative_to(built)}: {target}"
                )


def test_every_chapter_has_a_page_and_a_notebook_without_outputs(built):
    for chapter in chapters.notebooks():
        assert (built / "course" / f"{chapter.stem}.html").exists()
        assert '"outputs": []' in (built / "notebooks" / chapter.name).read_text()


def test_the_front_page_plays_at_once(page, built):
    page.goto((built / "index.html").as_uri())
    page.wait_for_function("document.querySelector('.alive input[type=range]')?.value > 1")


def test_reduced_motion_plays_nothing(page, built):
    page.emulate_media(reduced_motion="reduce")
    page.goto((built / "index.html").as_uri())
    page.wait_for_selector(".alive input[type=range]")
    assert page.locator(".alive input[type=range]").first.input_value() == "0"


def test_a_question_is_answered_on_the_page(page, built):
    page.goto((built / "course" / f"{STEM}.html").as_uri())
    asks = QUESTIONS["compose_reduce_twice"].text[:30]
    question = page.locator('[data-kind="Question"]', has_text=asks)
    question.scroll_into_view_if_needed()
    question.get_by_text("false", exact=True).click()
    asked = len(question.inner_text())
    below = question.locator("xpath=ancestor::div[starts-with(@class, 'cell ')]/following-sibling::div[1]/*[1]")
    blurred = "element => getComputedStyle(element.querySelector('.cell_output') ?? element).filter !== 'none'"
    assert below.evaluate(blurred)
    question.get_by_role("button", name="check").click()
    question.get_by_role("button", name="check").wait_for(state="hidden")
    assert len(question.inner_text()) > asked  # the verdict and why
    assert not below.evaluate(blurred)


def test_all_widgets_of_a_chapter_live(page, built):
    page.goto((built / "course" / f"{STEM}.html").as_uri())
    places = page.locator(".alive")
    assert places.count() > 5
    for place in places.all():
        place.scroll_into_view_if_needed()
        place.locator(".ringside, .js-plotly-plot").first.wait_for()


def test_what_a_cell_on_ranks_shows_lives_too(tmp_path):
    cell = (
        "from launch import magics; from widgets import Player; magics.show(get_ipython(), Player(all_reduce.ring(4)))"
    )
    code = f"""from IPython.core.interactiveshell import InteractiveShell
from course.site.keep import keep
shell = InteractiveShell.instance()
keep({str(tmp_path)!r})
shell.run_cell("from collectives import all_reduce; {cell}")"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "all_reduce ring" in (tmp_path / "0.json").read_text(), done.stdout + done.stderr


def test_without_javascript_the_stills_are_there(browser, built):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((built / "gallery" / "broadcast.html").as_uri())
    stills = page.locator(".alive > img")
    assert stills.count() == page.locator(".alive").count() > 3
    context.close()


def test_the_search_finds_from_the_file_system(page, built):
    page.goto((built / "search.html").as_uri() + "?q=reduce_scatter")
    page.locator("ul.search li").first.wait_for()


def test_a_widget_follows_the_theme_of_the_page(page, built):
    page.goto((built / "gallery" / "barrier.html").as_uri())
    widget = page.locator(".ringside").first
    papers = set()
    for theme in ("light", "dark"):
        page.evaluate("(theme) => { document.body.dataset.theme = theme; }", theme)
        papers.add(widget.evaluate("(node) => getComputedStyle(node).backgroundColor"))
    assert len(papers) == 2


@pytest.mark.parametrize("name", ["index", "gallery/scatter", f"course/{STEM}", "reference/launch"])
def test_axe_finds_nothing(page, axe, built, name):
    page.goto((built / f"{name}.html").as_uri())
    page.evaluate(axe)
    assert page.evaluate(VIOLATIONS) == []


def test_an_unknown_chapter_is_said_in_a_sentence(tmp_path, capsys):
    assert main([str(tmp_path / "site"), "99"]) == 2
    assert "there is no chapter 99" in capsys.readouterr().out
