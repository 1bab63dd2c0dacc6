"""What the browser tests of the widgets share: our JavaScript served unchanged, and pages with one widget each."""

import functools
import json
import threading
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from widgets import base as pages

WIDGETS = Path(__file__).parents[2] / "widgets"


EMPTY = b"<!doctype html><title>t</title>"


class _Quiet(SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/favicon.ico":  # Chromium asks when it likes, and would complain on whatever page it is then
            self.send_response(204)
            self.end_headers()
        elif self.path == "/empty":
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(EMPTY)))
            self.end_headers()
            self.wfile.write(EMPTY)
        else:
            super().do_GET()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def site():
    """Address of a server that has `widgets/` at its root: `await import("/js/schedule.js")` works on its pages."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=WIDGETS))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="session")
def tab(browser):
    """One tab for all tests: opening one costs more than most of them."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@contextmanager
def watched(tab, site):
    """An error on the tab, or a request to elsewhere, fails the test."""
    wrong = []
    listeners = {
        "pageerror": lambda error: wrong.append(str(error)),
        "console": lambda message: message.type == "error" and wrong.append(message.text),
        "request": lambda request: request.url.startswith(("data:", "blob:", site)) or wrong.append(request.url),
    }
    for event, listener in listeners.items():
        tab.on(event, listener)
    yield
    for event, listener in listeners.items():
        tab.remove_listener(event, listener)
    assert not wrong


@pytest.fixture
def page(request, tab, site):
    """A page of that server, empty unless the test uses `show`."""
    with watched(tab, site):
        tab.set_viewport_size({"width": 1280, "height": 720})
        tab.emulate_media(color_scheme="light", reduced_motion="no-preference")
        if "show" not in request.fixturenames:  # which goes to a page of its own
            tab.goto(f"{site}/empty")
        yield tab
        tab.unroute_all()


@pytest.fixture(scope="session")
def desk(browser, site):
    """An empty page for all tests that only call functions of our modules: going to one costs more than most do."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{site}/empty")
    yield page
    context.close()


@pytest.fixture
def modules(desk, site):
    """A page on which nothing is drawn and no test finds what another left: `await import("/js/schedule.js")`."""
    with watched(desk, site):
        yield desk
        assert not desk.evaluate("document.body.childNodes.length")


@pytest.fixture
def show(page, site):
    """show(widget) -> the page with that widget on it, mounted."""

    def show(widget):
        page.route("**/shown", lambda route: route.fulfill(content_type="text/html", body=pages.html(widget)))
        page.goto(f"{site}/shown")
        settle(page, "window.model")
        return page

    return show


def ask(page, function, *given):
    """What a function in JavaScript answers to `given`, as JSON: Playwright's own way takes ten times as long."""
    answer = f"async (given) => JSON.stringify(await ({function})(...JSON.parse(given)))"
    return json.loads(page.evaluate(answer, json.dumps(given)))


def settle(page, when="true"):
    """Until `when` holds, and two frames: after them a widget has heard what room it has, and has acted on it.

    In one question to the page. The first `wait_for_function` of a page makes it read all of Playwright's own code.
    """
    page.evaluate(f"""async () => {{
        const frame = () => new Promise(requestAnimationFrame);
        for (const limit = performance.now() + 30_000; !({when}); await frame())
            if (performance.now() > limit) throw new Error({json.dumps("waited 30 s for " + when)});
        await frame();
        await frame();
    }}""")


def click(page, selector):
    """The only such node, in its middle, as `page.click` does: which makes a new page read all of Playwright's code."""
    middles = """selector => [...document.querySelectorAll(selector)].map((node) => {
        const { x, y, width, height } = node.getBoundingClientRect();
        return [x + width / 2, y + height / 2];
    })"""
    (middle,) = ask(page, middles, selector)
    page.mouse.click(*middle)


def wait_for_wall(page):
    """Until the widget that goes into projector mode fills the screen, and is drawn for it."""
    settle(page, "document.fullscreenElement?.getBoundingClientRect().height === innerHeight")
