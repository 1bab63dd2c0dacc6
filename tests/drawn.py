"""Each chapter's last test under nbval: Chromium draws and plays all widgets that its cells have just displayed.

In the chapter's kernel each widget is saved at the end of its cell: the first one with some code as a page of its own
(`widgets.base.html`), the state of others with that code beside it. Then every page is opened, and shows one after the
other: an error on it, or a request to another host, fails the test. So real runs are drawn for each chapter without a
JupyterLab for each.

Left out: RankLog, which shows what the cell's output says too; plotly's charts; JupyterLab (tests/lab).
"""

import os
import tempfile
from pathlib import Path

import pytest

from tests.chromium import NoChromium, launched

KEEP = '''
from pathlib import Path
from IPython import get_ipython
from widgets.base import Widget, as_script, html, page_state
from widgets.ranklog import RankLog

MOUNTED = "window.model = await mount("
SHOW = """window.show = async (kept) => {
    document.title = kept.title;
    const place = document.getElementById("widget");
    place.replaceChildren();
    window.model = await mount(widget, revived(kept), place);
};
"""
shown, pages = [], {}
bundle = Widget._repr_mimebundle_

def noting(self, **kwargs):
    shown.append(self)
    return bundle(self, **kwargs)

def write(_):
    for widget in shown:
        if isinstance(widget, RankLog):
            continue
        if (code := widget.code()) not in pages:
            pages[code] = Path(folder, f"{len(pages):02}.html")
            pages[code].write_text(html(widget).replace(MOUNTED, SHOW + MOUNTED))
            pages[code].with_suffix(".js").touch()
        else:
            with open(pages[code].with_suffix(".js"), "a") as others:
                print(as_script(page_state(widget) | {"title": repr(widget)}), file=others)
    shown.clear()

Widget._repr_mimebundle_ = noting
get_ipython().events.register("post_run_cell", write)
'''
PLAYED = """async () => {
    const frame = () => new Promise(requestAnimationFrame);
    for (const limit = performance.now() + 60_000; !window.model; await frame())
        if (performance.now() > limit) return "is not drawn within 60 s";
    if (!document.querySelector(".ringside")) return "is not there";
    for (const player of document.querySelectorAll(".rs-player")) {
        // a Player that asks for a prediction: until then nothing says how many steps there are
        [...player.querySelectorAll("button")].find((button) => button.textContent === "skip")?.click();
        await frame();
        const slider = player.querySelector("input[type=range]");
        for (const [key, step] of [["Home", "0"], ["ArrowRight", "1"], ["End", slider.max]]) {
            slider.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
            await frame();
            if (player.dataset.step !== step) return `is at step ${player.dataset.step} after ${key}`;
        }
    }
    return "";
}"""
"""What is wrong with a widget. In one question: a new page that Playwright's locators look at reads all of its code."""
_kept = tempfile.TemporaryDirectory()


def keep(client) -> None:
    """From now on the kernel writes a page of each widget that a cell displays."""
    folder = tempfile.mkdtemp(dir=_kept.name)
    reply = client.execute(f"exec({KEEP!r}, {{'folder': {folder!r}}})", silent=True, reply=True, timeout=60)
    assert reply["content"]["status"] == "ok", reply["content"]
    client.kept = Path(folder)


class Drawn(pytest.Item):
    """All widgets that the cells of a chapter have displayed."""

    def runtest(self):
        cells = [item for item in self.session.items if item.parent is self.parent and item is not self]
        if len(cells) < sum(cell.cell_type == "code" for cell in self.parent.nb.cells):
            pytest.skip("widgets are drawn when all cells of the chapter run")
        pages = sorted(self.parent.kernel.kc.kept.glob("*.html"))
        assert pages, "no cell has displayed a widget"
        wrong = []
        with _browser(self.config).new_context(viewport={"width": 1280, "height": 720}) as context:
            tab = context.new_page()
            tab.on("pageerror", lambda error: wrong.append(str(error)))
            tab.on("console", lambda message: message.type == "error" and wrong.append(message.text))
            tab.on(
                "request", lambda asked: asked.url.startswith(("file:", "data:", "blob:")) or wrong.append(asked.url)
            )
            for page in pages:
                tab.goto(page.as_uri())
                for another in ["", *page.with_suffix(".js").read_text().splitlines()]:
                    if another:
                        tab.evaluate(f"show({another})")
                    if found := tab.evaluate(PLAYED):
                        wrong.append(found)
                    assert not wrong, (tab.title(), wrong)

    def reportinfo(self):
        return self.path, None, f"{self.path.name}: widgets"


def _browser(config):
    """The Chromium of this run of pytest."""
    if not hasattr(config, "chromium"):
        started = launched()
        try:
            config.chromium = started.__enter__()
        except NoChromium as missing:
            complain = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
            complain(str(missing))
        config.add_cleanup(lambda: started.__exit__(None, None, None))
    return config.chromium


def pytest_collection_modifyitems(items):
    """After the last cell of each chapter."""
    last = {item.parent: number for number, item in enumerate(items) if item.path.suffix == ".ipynb"}
    for chapter, number in sorted(last.items(), key=lambda each: -each[1]):
        items.insert(number + 1, Drawn.from_parent(chapter, name="widgets"))
