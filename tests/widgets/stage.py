"""A page of one widget (`widgets.base.html`) on which another one can follow, for tests and pictures.

To go to another page for each widget costs Chromium a tenth of a second, and as much again for all of Playwright's own
code, which every new page has to read. Here a view ends as in a notebook: its signal is aborted, its element goes.
"""

import functools
import json
import threading
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zlib import crc32

from widgets import base as pages

LAPTOP = {"width": 1280, "height": 720}
LIMIT = 120  # seconds, for whatever is waited for: a bound for what hangs, far from what a busy machine needs
WIDGETS = Path(__file__).parents[2] / "widgets"
STAGE = (
    pages.PAGE.partition("<script")[0].format(title="t", css="")
    + """<script type="module">
import { Model, lendKeys, revived } from "/js/host.js";
const style = document.head.appendChild(document.createElement("style"));
const heads = document.head.childElementCount;
let view;
let pointed = false;
addEventListener("mousemove", ({ clientX, clientY }) => { pointed = clientX + clientY > 0; }, true);
window.show = async (module, css, kept) => {
    await leave();
    const { default: made } = await import(module);
    const widget = typeof made === "function" ? await made() : made;
    if (style.textContent !== css) style.textContent = css;
    const closing = new AbortController();
    window.model = new Model(revived(kept));
    view = { closing };
    const { signal } = closing;
    await widget.initialize?.({ model, signal });
    view.cleanup = await widget.render({ model, el: document.querySelector("#widget"), signal });
    for (let frames = 0; frames < 2; frames++) await new Promise(requestAnimationFrame);
    return null;
};
/** Closes the view; says how it leaves the page. */
window.leave = async () => {
    if (document.fullscreenElement) await document.exitFullscreen();
    view?.closing.abort();
    view?.cleanup?.();
    const el = document.createElement("div");
    el.id = "widget";
    document.querySelector("#widget")?.replaceWith(el);
    view = window.model = undefined;
    const left = [document.documentElement.attributes.length - 1, document.body.attributes.length];
    left.push(document.head.childElementCount - heads, document.body.childElementCount - 2);
    const asked = (query) => matchMedia(`(prefers-${query})`).matches;
    return {
        tidy: left.every((each) => each === 0) && el.isConnected,
        plain: asked("color-scheme: light") && asked("reduced-motion: reduce"),
        pointed,
    };
};
lendKeys();
window.ready = true;
</script>
"""
)


class _Server(SimpleHTTPRequestHandler):
    """`widgets/` and the texts of `written`."""

    written = {"/empty": "<!doctype html><title>t</title>", "/stage": STAGE, "/favicon.ico": ""}

    def do_GET(self):
        if (text := self.written.get(self.path)) is None:
            super().do_GET()
            return
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if self.path.endswith(".js") else "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextmanager
def served():
    """Address of a server that has `widgets/` at its root: `await import("/js/schedule.js")` works on its pages."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Server, directory=WIDGETS))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@contextmanager
def opened(browser, site):
    """A tab, on which motion is unwelcome; `tab.wrong` has its errors and what it requested from elsewhere."""
    context = browser.new_context(viewport=LAPTOP, color_scheme="light", reduced_motion="reduce")
    context.set_default_timeout(LIMIT * 1000)
    tab = context.new_page()
    tab.wrong = []
    tab.on("pageerror", lambda error: tab.wrong.append(str(error)))
    tab.on("console", lambda message: message.type == "error" and tab.wrong.append(message.text))
    tab.on("request", lambda asked: asked.url.startswith(("data:", "blob:", site)) or tab.wrong.append(asked.url))
    yield tab
    context.close()


def put(tab, site, widget, **more):
    """Shows the widget in place of the one before, mounted and told what room it has. `more` is for its model alone."""
    if tab.url != f"{site}/stage":
        tab.goto(f"{site}/stage")
        settle(tab, "window.ready")
    esm, css = widget.code()
    module = f"/joined/{type(widget).__name__}-{crc32(esm.encode())}.js"
    _Server.written[module] = esm
    kept = pages.page_state(widget)
    ask(tab, "show", module, css, kept | {"state": kept["state"] | more})


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
        for (const limit = performance.now() + {LIMIT}_000; !({when}); await frame())
            if (performance.now() > limit) throw new Error({json.dumps(f"waited {LIMIT} s for {when}")});
        await frame();
        await frame();
    }}""")
