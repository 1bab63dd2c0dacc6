"""A page that is reloaded while ranks run: what they print later arrives in it, and the kernel answers.

JupyterLab itself gives a cell that runs nothing more after a reload. The log is a widget, which a page asks for
everything that was said: so it must have it, and the kernel must be able to answer while the ranks go on talking.
"""

import pytest

from tests.lab.conftest import LIMIT

pytestmark = pytest.mark.timeout(900)

MORE = 3  # times that a page which gave up on the log is reloaded
GAVE_UP = "Error displaying widget: model not found"
"""ipywidgets looks for a model ten times a second. After two seconds it waits for the kernel's answer, if that is yet
to come. An answer after the last look and before the end of these two seconds is missed: the page has the model and
shows this forever (jupyter-widgets/ipywidgets#4026, #4040). On a busy machine the answer takes about two seconds, and
up to 0.8 s pass between two looks. A student reloads once more."""
TALKS = """%%ranks 4
import os, time
step = 0
while not os.path.exists({gate!r}):
    step += 1
    print("rank", rank, "step", step, flush=True)
    time.sleep(0.01)
print("the end of rank", rank)
"""
KERNEL = "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel"
ASK = f"""async (limit) => {{
    const asked = {KERNEL}.requestExecute({{ code: '6 * 7' }}).done;
    const late = new Promise((_, reject) => setTimeout(() => reject(`no answer within ${{limit}} ms`), limit));
    return (await Promise.race([asked, late])).content.status;
}}"""


def reload(page):
    page.reload()
    page.wait_for_function(f"() => {KERNEL}?.connectionStatus === 'connected'", timeout=LIMIT)


def log_of(page):
    """The log, once it is drawn; a page that gave up on it is reloaded."""
    log, gave_up = page.locator(".rs-log"), page.get_by_text(GAVE_UP)
    log.or_(gave_up).wait_for()
    for _ in range(MORE):
        if gave_up.count():
            reload(page)
            log.or_(gave_up).wait_for()
    log.wait_for()
    return log


@pytest.fixture
def own_page(desk):
    """The page has the notebook's address, by which a reload finds it, and no other test meets what is left of it."""
    desk.close()
    yield
    desk.close()


def test_what_ranks_say_after_a_reload_arrives_and_the_kernel_answers(own_page, open_notebook, tmp_path):
    notebook = open_notebook("reload.ipynb", ["%load_ext launch", TALKS.format(gate=str(tmp_path / "gate"))])
    page = notebook.page
    notebook.clear_outputs()  # the log that is saved is this run's
    notebook.run_all()
    page.locator(".rs-log").get_by_text("step").first.wait_for()
    page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
    reload(page)
    (tmp_path / "gate").touch()
    page.wait_for_function(f"() => {KERNEL}.status === 'idle'", timeout=LIMIT)
    assert page.evaluate(ASK, LIMIT) == "ok"
    log = log_of(page)
    log.get_by_role("button", name="show").click()
    for rank in range(4):
        log.get_by_text(f"the end of rank {rank}").wait_for()
    assert [words for words in page.complaints if "widget model not found" not in words] == []
