"""Where else a Player is met than in a JupyterLab that has run its cell: Notebook 7, a fresh clone, an HTML export.

VS Code and Colab are not started by any test; what they promise a widget is held to in tests/widgets/test_host.py.
"""

import json
import shutil
from urllib.parse import urlsplit

import nbformat
import pytest
from nbconvert import HTMLExporter

from collectives import all_reduce
from tests.lab.conftest import COURSE, LIMIT, READY, Notebook, serving, write_notebook
from tests.lab.test_lab import press
from widgets import Player

pytestmark = pytest.mark.timeout(900)

WIDGET = "application/vnd.jupyter.widget-view+json"
SHOW = "from widgets import Player\nfrom collectives import all_reduce\nPlayer(all_reduce.ring(4))"
CHAPTER = "05_all_reduce.ipynb"


@pytest.fixture
def tab(browser):
    """A tab that keeps a list of what it was refused: requests to anywhere but this machine."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    page = context.new_page()
    page.set_default_timeout(LIMIT)
    page.strangers = []

    def gate(route):
        if route.request.url.startswith(("http://127.0.0.1", "file:", "data:", "blob:")):
            route.continue_()
        else:
            page.strangers.append(route.request.url)
            route.abort()

    page.route("**/*", gate)
    yield page
    context.close()


def test_notebook_7_shows_and_steps_a_player(tab, tmp_path_factory):
    """It takes its own arrow keys in the capture phase, before a widget hears of them: js/keys.js keeps them."""
    root = tmp_path_factory.mktemp("notebook")
    write_notebook(root / "one.ipynb", [SHOW])
    with serving("notebook", root, tmp_path_factory) as address:
        tab.goto(f"{address}/notebooks/one.ipynb")
        tab.wait_for_function(f"() => {READY}")
        notebook = Notebook(tab)
        notebook.run_all()
        player = tab.locator(".rs-player")
        notebook.wait_until_idle()
        for key, step in [("Home", 0), ("ArrowRight", 1), ("End", 6), ("ArrowLeft", 5), ("Home", 0)]:
            press(player, key, step)
        assert tab.strangers == []


@pytest.fixture
def passed_on(tmp_path):
    """A notebook as a student saves it and passes it on: the output names a widget, whose state is not in the file."""
    data, _ = Player(all_reduce.ring(ranks=4))._repr_mimebundle_()
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(SHOW)])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.cells[0].outputs = [nbformat.v4.new_output("execute_result", data, execution_count=1)]
    assert WIDGET in data
    path = tmp_path / "passed_on.ipynb"
    nbformat.write(notebook, path)
    return path


def strips(place):
    """How many pictures of schedules stand there; each must have been drawn and say what it shows."""
    images = place.locator("img[src^='data:image/svg+xml']").all()
    for image in images:
        assert image.evaluate("(node) => node.decode().then(() => node.naturalWidth)") > 100
        assert image.get_attribute("alt")
    return len(images)


def saved_strips(path):
    return path.read_text().count("data:image/svg+xml")


def test_a_fresh_clone_shows_the_strips_of_a_chapter(open_notebook):
    """Nobody has trusted it and nothing has run: JupyterLab shows what is saved, without what could be code."""
    notebook = open_notebook(CHAPTER)
    cells = "window.jupyterapp.shell.currentWidget.content.widgets.filter((cell) => cell.model.type === 'code')"
    assert not any(notebook.page.evaluate(f"{cells}.map((cell) => cell.model.trusted)"))
    seen = 0
    for number in notebook.cells_with("text/html"):
        output = notebook.scroll_to(number).locator(".jp-OutputArea-output")
        output.first.wait_for(state="attached")
        seen += strips(output)
    assert seen == saved_strips(COURSE / CHAPTER) >= 3
    assert notebook.page.strangers == []


def test_a_notebook_passed_on_shows_the_strip_until_it_is_run(open_notebook, lab, passed_on):
    shutil.copy(passed_on, lab[1])
    notebook = open_notebook(passed_on.name)
    output = notebook.page.locator(".jp-OutputArea-output")
    output.locator("img").wait_for()
    assert strips(output) == 1 and notebook.page.locator(".ringside").count() == 0
    notebook.run_all()
    notebook.page.locator(".rs-player").wait_for()
    notebook.wait_until_idle()
    assert notebook.page.strangers == []


@pytest.mark.parametrize("which", ["chapter", "passed on"])
def test_an_html_export_shows_the_strips_offline(tab, tmp_path, passed_on, which):
    """nbconvert's page itself asks CDNs for mathematics and require.js; without a network the strips still stand."""
    source = COURSE / CHAPTER if which == "chapter" else passed_on
    path = tmp_path / "export.html"
    path.write_text(HTMLExporter().from_filename(str(source))[0], encoding="utf-8")
    tab.goto(path.as_uri(), wait_until="domcontentloaded")
    assert strips(tab.locator(".jp-OutputArea-output")) == saved_strips(source) >= 1
    assert {urlsplit(url).hostname for url in tab.strangers} <= {"cdnjs.cloudflare.com", "cdn.jsdelivr.net"}


def test_no_chapter_saves_the_state_of_a_widget():
    """With it an export would be blank, and an untrusted notebook carry code."""
    for path in sorted(COURSE.glob("*.ipynb")):
        assert "widgets" not in json.loads(path.read_text())["metadata"], path.name


def test_a_saved_page_plays_without_a_network(tab, tmp_path):
    path = tmp_path / "ring.html"
    Player(all_reduce.ring(ranks=4), step=1).save_html(path)
    tab.context.set_offline(True)
    tab.goto(path.as_uri())
    player = tab.locator(".rs-player")
    press(player, "ArrowRight", 2)
    assert "Step 2 of 6" in player.locator(".rs-caption").inner_text()
    assert tab.strangers == []
