"""A real JupyterLab on a copy of the course, and a page in a real browser that notes every request and complaint."""

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import playwright.sync_api
import pytest

from launch.shared.processes import free_port

HERE = Path(__file__).parent
COURSE = HERE.parents[1] / "course"
LIMIT = 120_000
"""Milliseconds until what should happen must have happened; enough for a loaded machine, and never waited for."""
LOGS: list[Path] = []
"""What each server has said, the newest last."""


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """Start JupyterLab once; return (address, folder that it serves)."""
    root = tmp_path_factory.mktemp("lab")
    shutil.copytree(COURSE, root, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    with serving("jupyterlab", root, tmp_path_factory) as address:
        yield address, root


@contextmanager
def serving(application, root, tmp_path_factory):
    """Address of `python -m application`, which serves the folder `root` until the end of the block."""
    port = free_port()
    settings = tmp_path_factory.mktemp("settings")  # a test that changes the theme must not change the developer's
    env = os.environ | {
        "RINGSIDE_LAB_PORT": str(port),
        "RINGSIDE_LAB_ROOT": str(root),
        "RINGSIDE_LAB_SCRATCH": str(tmp_path_factory.mktemp("scratch")),
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(settings),
    }
    env.pop("PYTEST_CURRENT_TEST", None)  # a student's kernels do not run under pytest either
    log = (tmp_path_factory.mktemp("log") / "lab.txt").open("w")
    LOGS.append(Path(log.name))
    command = [sys.executable, "-m", application, "--config", str(HERE / "jupyter_server_config.py")]
    server = subprocess.Popen(command, env=env, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_until_up(address, server, log.name)
        yield address
    finally:
        _shut_kernels_down(address)
        server.terminate()
        try:
            server.wait(LIMIT / 1000)
        except subprocess.TimeoutExpired:
            # Seen once on a busy machine: it waited for a thread at its exit. Its kernels had ended.
            print(Path(log.name).read_text()[-3000:])
            server.kill()
            server.wait()


def _wait_until_up(address, server, log, limit=LIMIT / 1000):
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        assert server.poll() is None, Path(log).read_text()
        try:
            urllib.request.urlopen(f"{address}/api", timeout=limit)
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"JupyterLab did not answer within {limit} s: {Path(log).read_text()}")


def _shut_kernels_down(address, limit=LIMIT / 1000):
    """All of them; one that a test has killed is being restarted by the server, which then refuses once or twice."""
    deadline = time.monotonic() + limit
    while kernels := json.load(urllib.request.urlopen(f"{address}/api/kernels", timeout=limit)):
        for kernel in kernels:
            request = urllib.request.Request(f"{address}/api/kernels/{kernel['id']}", method="DELETE")
            try:
                urllib.request.urlopen(request, timeout=limit)
            except urllib.error.HTTPError:
                assert time.monotonic() < deadline, f"a kernel does not end: {kernel}"
                time.sleep(0.05)


READY = """window.jupyterapp?.shell.currentWidget?.sessionContext?.kernelDisplayStatus === 'idle'
    && window.jupyterapp.commands.isEnabled('notebook:run-all-cells')"""
"""A notebook is open, its kernel is idle, and its cells can be run."""

FAILURES = """window.jupyterapp.shell.currentWidget.content.widgets
    .filter((cell) => cell.model.type === 'code')
    .filter((cell) => !(cell.model.getMetadata('tags') ?? []).includes('raises-exception'))
    .flatMap((cell) => cell.model.outputs.toJSON())
    .filter((output) => output.output_type === 'error')
    .map((output) => `${output.ename}: ${output.evalue}`)"""


class Notebook:
    """One notebook open in JupyterLab, driven as a person would."""

    def __init__(self, page):
        self.page = page

    def run_all(self):
        self.command("notebook:run-all-cells")

    def clear_outputs(self):
        """Forget what is saved in the notebook, execution counts included."""
        self.page.evaluate("window.jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")

    def command(self, name):
        """Start a command of JupyterLab; its promise is not waited for, since the cells may wait for the test."""
        self.page.evaluate("name => { window.jupyterapp.commands.execute(name); }", name)

    def wait_until_idle(self, limit=3 * LIMIT):
        """Wait until the kernel is idle and every code cell has run, or an error has kept the rest from running."""
        self.page.wait_for_function(
            f"""() => {{
                const panel = window.jupyterapp.shell.currentWidget;
                const cells = panel.content.widgets.filter((cell) => cell.model.type === 'code');
                const ran = (cell) => cell.model.sharedModel.getSource() === '' || cell.model.executionCount !== null;
                return panel.sessionContext.kernelDisplayStatus === 'idle'
                    && cells.every((cell) => cell.model.executionState !== 'running')
                    && (cells.every(ran) || {FAILURES}.length > 0);
            }}""",
            polling=100,  # milliseconds; to look before every frame keeps the page drawing while the ranks compute
            timeout=limit,
        )

    def failures(self):
        """The errors of cells that are not meant to raise."""
        return self.page.evaluate(FAILURES)

    def cells_with(self, mimetype):
        """Numbers, markdown counted, of the cells with an output of that type."""
        return self.page.evaluate(
            """(mimetype) => window.jupyterapp.shell.currentWidget.content.widgets
                .map((cell, number) => [cell, number])
                .filter(([cell]) => cell.model.type === 'code'
                    && cell.model.outputs.toJSON().some((output) => mimetype in (output.data ?? {})))
                .map(([, number]) => number)""",
            mimetype,
        )

    def scroll_to(self, number):
        """Bring that cell, markdown counted, to the top of the window: JupyterLab draws only what is seen."""
        self.page.evaluate(
            """async (number) => {
                const { content } = window.jupyterapp.shell.currentWidget;
                content.activeCellIndex = number;
                await content.scrollToItem(number, 'start');
            }""",
            number,
        )
        return self.page.locator(".jp-Notebook .jp-Cell.jp-mod-active")

    def append_and_run(self, source):
        """Run the source in a new last cell and wait for it."""
        self.page.evaluate(
            """async (source) => {
                const { content, context } = window.jupyterapp.shell.currentWidget;
                content.activeCellIndex = content.widgets.length - 1;
                await window.jupyterapp.commands.execute('notebook:insert-cell-below');
                content.activeCell.model.sharedModel.setSource(source);
                await window.jupyterapp.commands.execute('notebook:run-cell');
            }""",
            source,
        )
        self.wait_until_idle()

    def shut_down_kernel(self):
        self.page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")

    def outputs(self):
        """Text of every code cell's outputs, as the notebook model holds them."""
        return self.page.evaluate(
            """() => window.jupyterapp.shell.currentWidget.content.widgets
                .filter((cell) => cell.model.type === 'code')
                .map((cell) => JSON.stringify(cell.model.outputs.toJSON()))"""
        )


@pytest.fixture(scope="session")
def desk(lab, browser):
    """The one page with JupyterLab that the tests share: opening one costs five times as much as opening a notebook."""
    desk = Desk(lab[0], browser)
    yield desk
    desk.close()


PATIENT = "{ const { timeout } = AbortSignal; AbortSignal.timeout = (ms) => timeout.call(AbortSignal, 30 * ms); }"
"""anywidget drops what is sent to a widget that has not started after two seconds; beside all other tests it may take
longer. What our log does then has a test of its own (test_lab.py)."""


class Desk:
    """A page with JupyterLab where notebooks are opened and closed; the next one is a new page after `close`."""

    def __init__(self, address, browser):
        self.address, self.browser = address, browser
        self.page = None

    def open(self, name):
        """Open the notebook; from here on complaints and requests to strangers are counted anew."""
        if self.page is None:
            self.page = self._new_page()
            self.page.goto(f"{self.address}/lab/tree/{name}?reset")
        else:
            self.page.strangers, self.page.complaints = [], []
            self.page.evaluate("(path) => { window.jupyterapp.commands.execute('docmanager:open', { path }); }", name)
        here = "window.jupyterapp?.shell.currentWidget?.context?.path"
        self.page.wait_for_function(f"(name) => {here} === name && {READY}", arg=name)
        return self.page

    def _new_page(self):
        page = self.browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
        page.set_default_timeout(LIMIT)
        page.add_init_script(PATIENT)
        page.strangers, page.complaints = [], []
        page.on("request", lambda request: _note_stranger(page, request.url, self.address))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("console", lambda message: message.type == "error" and page.complaints.append(message.text))
        return page

    def clear(self):
        """Close the notebooks without saving; with what cannot be closed that way, such as a dialog, the page goes."""
        if self.page and not self.page.evaluate(CLEARED):
            self.close()

    def close(self):
        if self.page:
            self.page.context.close()
            self.page = None


CLEARED = """async () => {
    const { shell } = window.jupyterapp;
    for (const panel of [...shell.widgets('main')].filter((widget) => widget.context)) panel.dispose();
    await new Promise((done) => setTimeout(done));
    return document.querySelector('.jp-Dialog') === null;
}"""


@pytest.fixture
def open_notebook(lab, desk):
    """Return a function that opens a notebook by name, or one made of the given cells, with a kernel of its own."""
    address, root = lab

    def open_(name, cells=None):
        if cells is not None:
            write_notebook(root / name, cells)
        return Notebook(desk.open(name))

    yield open_
    desk.clear()
    _shut_kernels_down(address)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A failure comes with what the notebook held then, which cells had run and what they had put out, and with what
    the server said last."""
    report = yield
    desk = item.funcargs.get("desk")
    if report.when == "call" and report.failed and desk and desk.page:
        try:
            held = [*desk.page.evaluate(HELD), *desk.page.complaints]
        except playwright.sync_api.Error as error:  # the page itself has gone
            held = [str(error)]
        report.sections.append(("the notebook", "\n".join(held)))
        report.sections.append(("the server", "\n".join(LOGS[-1].read_text().splitlines()[-40:])))
    return report


HELD = """() => {
    const panel = window.jupyterapp?.shell.currentWidget;
    const cells = (panel?.content?.widgets ?? []).filter((cell) => cell.model.type === 'code');
    return [
        `${panel?.context?.path}, kernel ${panel?.sessionContext?.kernelDisplayStatus}`,
        ...cells.map(({ model, node }) => `[${model.executionCount}] ${model.executionState}: `
            + JSON.stringify(model.outputs.toJSON()).slice(0, 2000)
            + ` drawn: ${node.isConnected} ${[...node.querySelectorAll('.jp-OutputArea-output')].map((output) =>
                `${output.className} ${output.innerText}`.slice(0, 500)).join(' | ')}`),
        ...[...document.querySelectorAll('.jp-Dialog')].map((dialog) => dialog.innerText),
    ];
}"""


def _note_stranger(page, url, address):
    if not url.startswith((address, address.replace("http", "ws"), "data:", "blob:")):
        page.strangers.append(url)


def write_notebook(path, cells):
    """Save a notebook of code cells."""
    import nbformat

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, path)
