"""Every kind of widget in a real JupyterLab, and what only some of them do there."""

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from tests.pictures.scenes import SCENES

pytestmark = pytest.mark.timeout(900)

ROOT = Path(__file__).parents[2]
SHOW = "from widgets import Zoo, cost_explorer\nfrom collectives import *\n"


@pytest.fixture
def shown(open_notebook):
    """shown(name, expression) -> the notebook whose first cell has displayed that."""

    def shown(name, expression):
        notebook = open_notebook(f"{name}.ipynb", [f"{SHOW}{expression}"])
        notebook.run_all()
        notebook.wait_until_idle()
        assert notebook.failures() == []
        return notebook

    return shown


def wrong(notebook):
    """Requests to elsewhere, and complaints in the console."""
    return notebook.page.strangers + notebook.page.complaints


def test_the_zoo_opens_a_player_without_the_kernel(shown):
    notebook = shown("zoo", "Zoo(ranks=4)")
    page = notebook.page
    page.locator("[data-name='all_reduce.ring']").wait_for()
    notebook.shut_down_kernel()
    page.click("[data-name='all_reduce.ring']")
    page.locator(".rs-player .rs-scrub input").wait_for()
    page.keyboard.press("End")
    page.locator(".rs-player[data-step='6']").wait_for()
    page.keyboard.press("Escape")
    page.locator("[data-name='all_reduce.ring']:focus").wait_for()
    unheard = "Could not send widget sync message"  # ipywidgets says so where no kernel hears of the step
    assert [words for words in wrong(notebook) if not words.startswith(unheard)] == []


def test_a_cost_explorer_is_drawn_by_what_is_on_this_machine(shown):
    notebook = shown("costs", "cost_explorer('all_reduce')")
    page = notebook.page
    page.locator(".jp-OutputArea .main-svg").first.wait_for()
    page.locator(".annotation-text", has_text="multi_ring from 283 MB on").wait_for()
    page.locator(".updatemenu-header").click()
    page.locator(".updatemenu-dropdown-button", has_text="PCIe box").click()
    page.locator(".annotation-text", has_text="halving_doubling from 718 kB on").wait_for()
    assert wrong(notebook) == []


LIT = """() => [...document.querySelectorAll(".jp-InputArea .rs-own-lines > div")].map((mark) => {
    const lines = [...mark.closest(".cm-editor").querySelectorAll(".cm-line")];
    const { top, height } = mark.getBoundingClientRect();
    return lines.find((line) => Math.abs(line.getBoundingClientRect().top - top) < 1 && height > 9)?.textContent;
})"""


def test_the_lines_of_the_cell_that_sent_light_up_in_the_editor(shown):
    lines = ["from widgets import Player", "x = 1  # dist.send(x, 1)", "y = 2  # dist.send(y, 0)"]
    steps = f"[('', '', [Transfer(0, 1, 0)], [(0, {SHOW.count(chr(10)) + 2}, 'dist.send(x, 1)')])]"
    player = f"Player(Schedule.from_steps('send_recv', 'recorded', 2, 1, {steps}))"
    notebook = shown("lines", "\n".join([*lines, player]))
    page = notebook.page
    page.locator(".rs-player .rs-scrub input").focus()
    page.keyboard.press("End")
    page.locator(".rs-own-lines b", has_text="rank 0").wait_for()
    assert page.evaluate(LIT) == [lines[1]]
    page.locator(".jp-InputArea .cm-content").first.click()
    page.locator(".rs-own-lines").wait_for(state="detached")
    assert wrong(notebook) == []


def test_the_text_below_an_open_question_waits_for_the_answer(open_notebook, lab):
    cells = [
        new_code_cell('from course import ask\nask("forgotten")'),
        new_code_cell("1", outputs=[new_output("stream", text="It is 4.")]),
        new_code_cell("2"),
        new_markdown_cell("# It waits\n[A link](x.ipynb)"),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel}), lab[1] / "waits.ipynb")
    notebook = open_notebook("waits.ipynb")
    page = notebook.page
    page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 0; }")
    notebook.command("notebook:run-cell")
    blur = "getComputedStyle(document.querySelector('.jp-MarkdownOutput > {}')).filter"
    page.locator(".rs-gate button:has-text('skip')").wait_for()
    page.locator(".jp-MarkdownOutput > p").wait_for()
    large, small = (float(page.evaluate(blur.format(tag))[5:-3]) for tag in ("h1", "p"))
    assert large > 1.5 * small > 10  # of large letters more than of small ones
    assert "blur" in page.evaluate(
        "getComputedStyle(document.querySelector('.jp-OutputArea-output pre').parentElement).filter"
    )
    link = page.locator(".jp-MarkdownOutput p a")
    link.focus()
    assert not link.evaluate("link => link === document.activeElement")
    page.click(".rs-gate button:has-text('skip')")
    page.wait_for_function(f"{blur.format('p')} === 'none'")
    link.focus()
    assert link.evaluate("link => link === document.activeElement")
    assert wrong(notebook) == []


WHOLE = """() => {
    const graph = document.querySelector(".rs-waitfor")?.getBoundingClientRect();
    const panel = document.querySelector(".jp-WindowedPanel-outer").getBoundingClientRect();
    const below = graph?.top - panel.top; // room for the sentence above it, as css/wait-for.css has it
    return document.querySelector(".rs-player") && Math.abs(below - 90) < 5 && graph.bottom <= panel.bottom;
}"""


def test_after_a_deadlock_the_graph_of_who_waits_is_wholly_in_view(open_notebook):
    run = "%%ranks 3 --watch\nx = torch.ones(1)\nif rank == 0:\n    dist.send(x, 1)\nelse:\n    dist.recv(x, 0)"
    notebook = open_notebook("stuck.ipynb", ["%load_ext launch", run])
    notebook.page.set_viewport_size({"width": 1280, "height": 640})
    notebook.page.emulate_media(reduced_motion="reduce")  # where it scrolls to, at once
    notebook.run_all()
    notebook.page.wait_for_function(WHOLE)
    notebook.wait_until_idle()
    assert len(notebook.failures()) == 1 and wrong(notebook) == []  # the cell's own error, and nothing else
    notebook.page.emulate_media(reduced_motion="no-preference")
    notebook.page.set_viewport_size({"width": 1440, "height": 900})


def test_every_kind_of_widget_lives_in_the_notebook(open_notebook):
    live = [name for name in reversed(SCENES) if not name.startswith("still-")]
    kinds = {name.partition("-")[0]: name for name in live}.values()
    scenes = f"import sys; sys.path.append({str(ROOT)!r})\nfrom tests.pictures.scenes import SCENES"
    notebook = open_notebook("kinds.ipynb", [scenes, *(f"SCENES[{name!r}].make()" for name in kinds)])
    notebook.run_all()
    notebook.wait_until_idle()
    assert notebook.failures() == []
    for number in range(1, len(kinds) + 1):
        notebook.scroll_to(number).locator(".ringside").first.wait_for()
    assert wrong(notebook) == []
