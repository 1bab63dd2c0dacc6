"""JupyterLab in a real browser: what a student sees while a cell runs, and when it has ended."""

import os
import signal

import pytest
from playwright.sync_api import expect

from tests.lab.conftest import LIMIT

pytestmark = pytest.mark.timeout(900)

CHAPTER = "05_all_reduce.ipynb"
"""It shows Players, of recorded runs too, a race, a timeline, a network that is played, questions. Under nbval all
chapters run, and their widgets are drawn (tests/drawn.py); test_widgets.py has every kind of widget, ranks that are
stuck, and plotly's charts."""

LIVE = """%%ranks 4
import os, time
print("rank", rank, "is here", flush=True)
while not os.path.exists({gate!r}):
    time.sleep(0.01)
"""


def press(player, key, step):
    """A key press in the Player, which is at that step afterwards; one that has no room yet follows when it has."""
    player.locator("input[type=range]").focus()
    player.page.keyboard.press(key)
    expect(player).to_have_attribute("data-step", str(step), timeout=LIMIT)


def skip_question(player):
    """Open the gate of a Player that asks for a prediction first."""
    skip = player.get_by_role("button", name="skip")
    if skip.count():
        skip.click()


def test_a_chapter_runs_and_plays_and_asks_nobody_else(open_notebook):
    """Run All; then every output that lives is looked up, as a reader would, and every Player is stepped."""
    notebook = open_notebook(CHAPTER)
    notebook.clear_outputs()  # what is seen afterwards is of this run
    notebook.run_all()
    notebook.wait_until_idle()
    assert notebook.failures() == []
    for number in notebook.cells_with("application/vnd.jupyter.widget-view+json"):
        cell = notebook.scroll_to(number)
        cell.locator(".ringside").first.wait_for()
        for player in cell.locator(".rs-player").all():
            skip_question(player)  # until then nothing says how many steps there are
            press(player, "Home", 0)
            press(player, "ArrowRight", 1)
            press(player, "End", player.locator("input[type=range]").get_attribute("max"))
    assert notebook.page.strangers == []
    assert notebook.page.complaints == []


def test_lines_arrive_while_the_cell_runs(open_notebook, tmp_path):
    """The four ranks print and then wait for a file that only this test makes: what is seen is seen live."""
    gate = tmp_path / "gate"
    notebook = open_notebook("live.ipynb", ["%load_ext launch", LIVE.format(gate=str(gate))])
    notebook.run_all()
    log = notebook.page.locator(".rs-log")
    for rank in range(4):
        log.get_by_text(f"rank {rank} is here").wait_for()
    assert notebook.outputs()[1].count("is here") == 0, "nothing durable yet: the cell still runs"
    gate.touch()
    notebook.wait_until_idle()
    printed = notebook.outputs()[1]
    assert [printed.index(f"[rank {rank}] rank {rank} is here") for rank in range(4)] == sorted(
        printed.index(f"[rank {rank}] rank {rank} is here") for rank in range(4)
    )


AT_ONCE = """() => {
    window.patient = AbortSignal.timeout;
    AbortSignal.timeout = () => {
        const over = new AbortController();
        setTimeout(() => over.abort());
        return over.signal;
    };
}"""


def test_a_log_that_was_slow_to_start_goes_on(open_notebook, tmp_path):
    """anywidget drops all messages to a widget that took more than two seconds to start; here it takes any time for too
    long. What came meanwhile is there at the latest when the cell ends."""
    gate = tmp_path / "gate"
    notebook = open_notebook("late.ipynb", ["%load_ext launch", LIVE.format(gate=str(gate)) + "print('and gone')"])
    notebook.page.evaluate(AT_ONCE)
    try:
        notebook.run_all()
        log = notebook.page.locator(".rs-log")
        log.get_by_text("line 5").first.wait_for()  # where the ranks are is told again and again
        gate.touch()
        notebook.wait_until_idle()
        log.get_by_text("done").nth(3).wait_for()
        log.get_by_role("button", name="show 8 lines").click()
        for rank in range(4):
            log.get_by_text(f"rank {rank} is here").wait_for()
    finally:
        notebook.page.evaluate("AbortSignal.timeout = window.patient")


def test_the_player_works_while_the_kernel_is_busy(open_notebook, tmp_path):
    gate = tmp_path / "gate"
    show = "from widgets import Player\nfrom collectives import all_reduce\nPlayer(all_reduce.ring(4))"
    busy = f"import os, time\nprint('busy', flush=True)\nwhile not os.path.exists({str(gate)!r}):\n    time.sleep(0.01)"
    notebook = open_notebook("busy.ipynb", [show, busy])
    notebook.run_all()
    player = notebook.page.locator(".rs-player")
    player.wait_for()
    notebook.page.locator(".jp-OutputArea-output").get_by_text("busy", exact=True).wait_for()
    for key, step in [("Home", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", 6)]:
        press(player, key, step)
    gate.touch()
    notebook.wait_until_idle()


def test_the_stop_button_frees_ranks_that_compute(open_notebook):
    """Kernel > Interrupt during an endless loop: the cell ends, the variables are still there."""
    loop = "%%ranks\nprint('looping', flush=True)\nwhile True: pass"
    cells = ["%load_ext launch", "%%ranks 4\nkept = rank * 7", loop]
    notebook = open_notebook("stop.ipynb", cells)
    notebook.run_all()
    notebook.page.locator(".rs-log").last.get_by_text("looping").first.wait_for()
    notebook.command("notebook:interrupt-kernel")
    notebook.wait_until_idle()
    assert "RanksStopped" in notebook.outputs()[2]
    notebook.append_and_run("%%ranks\nkept")
    assert "rank 3: 21" in notebook.outputs()[-1]


def test_closing_the_kernel_leaves_no_process(open_notebook):
    notebook = open_notebook("closing.ipynb", ["%load_ext launch", "%%ranks 3\nimport os\nos.getpid()"])
    notebook.run_all()
    notebook.wait_until_idle()
    pids = [int(word) for word in notebook.outputs()[1].replace("\\n", " ").split() if word.isdigit()]
    pids = [pid for pid in pids if pid > 10]
    assert len(pids) == 3
    notebook.shut_down_kernel()
    for pid in pids:
        wait_until_gone(pid)


def wait_until_gone(pid, limit=LIMIT / 1000):
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    import select

    assert select.select([handle], [], [], limit)[0], f"process {pid} has outlived its notebook"
    os.close(handle)


def test_a_player_is_readable_in_both_themes(open_notebook):
    """Its text stands out from its ground by 4.5 to 1, whatever JupyterLab's colours are."""
    show = "from widgets import Player\nfrom collectives import all_reduce\nPlayer(all_reduce.ring(4))"
    notebook = open_notebook("theme.ipynb", [show])
    notebook.run_all()
    caption = notebook.page.locator(".rs-caption")
    caption.wait_for()
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        notebook.page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
        notebook.page.wait_for_function(
            "dark => (document.body.dataset.jpThemeLight === 'false') === dark", arg=theme.endswith("Dark")
        )
        assert contrast(*caption.evaluate(COLOURS)) >= 4.5, theme


COLOURS = """(node) => {
    const paint = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const rgb = (colour) => {
        paint.clearRect(0, 0, 1, 1);
        paint.fillStyle = colour;
        paint.fillRect(0, 0, 1, 1);
        return [...paint.getImageData(0, 0, 1, 1).data];
    };
    let ground = node;
    while (ground && rgb(getComputedStyle(ground).backgroundColor)[3] < 255) ground = ground.parentElement;
    return [rgb(getComputedStyle(node).color), rgb(getComputedStyle(ground ?? document.body).backgroundColor)];
}"""


def contrast(one, other):
    """WCAG 2.2's contrast ratio of two colours, each (red, green, blue, alpha) from 0 to 255."""

    def luminance(colour):
        parts = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_killing_the_kernel_leaves_no_process(open_notebook):
    cells = ["%load_ext launch", "%%ranks 3\nimport os\nos.getpid()", "import os; print('kernel', os.getpid())"]
    notebook = open_notebook("killed.ipynb", cells)
    notebook.run_all()
    notebook.wait_until_idle()
    words = " ".join(notebook.outputs()).replace("\\n", " ").replace('"', " ").split()
    pids = [int(word) for word in words if word.isdigit() and int(word) > 10]
    kernel = int(words[words.index("kernel") + 1])
    os.kill(kernel, signal.SIGKILL)
    for pid in {*pids} - {kernel}:
        wait_until_gone(pid)
