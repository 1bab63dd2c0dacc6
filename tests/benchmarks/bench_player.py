"""The Player in headless Chromium against its goals, and against a peer's page where one is given.

`python -m tests.benchmarks player`. The peer is gpu-comm-visualizer (github.com/devinjeon/gpu-comm-visualizer), the one
other page that plays a ring all-reduce of any size. It is not part of this repository: check it out, build it
(`npm ci && npm run build`) and name the folder it was built into: `RINGSIDE_PEER=/path/to/dist`. Both pages are opened,
played and stepped in the same browser, one after the other, by the same code (measure.js).
"""

import functools
import os
import statistics
import threading
from base64 import b64encode
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

from collectives import all_reduce
from tests.chromium import launched
from widgets import Player
from widgets.base import html, join

MEASURE = Path(__file__).with_name("measure.js")
PLAYED = 6  # seconds
FIRST, KEY, PAGE, TRANSFER = 300, 16, 170_000, 16  # goals: milliseconds, milliseconds, bytes, bytes
FRAMES = {16: 55, 64: 50}  # goals: frames per second while so many ranks play

OURS = {"drawn": ".rs-picture .rs-cell", "play": ".rs-play", "pause": ".rs-play", "back": ".rs-back"}
PEER = {"drawn": "#cv", "play": ".bg .bp", "pause": ".bg .bpa", "back": ".bg .bsb"}
UNITS = {"opened": "ms", "playing": "frames/s", "main thread while playing": "%", "a step back": "ms"}


def main():
    sizes()
    with launched() as browser:
        tab = browser.new_page(viewport={"width": 1280, "height": 720})
        tab.add_init_script(path=MEASURE)
        alone(tab)
        twelve(tab)
        if folder := os.environ.get("RINGSIDE_PEER"):
            against(tab, folder)
        else:
            print("peer: not run, RINGSIDE_PEER names no folder (see the top of bench_player.py)")


def sizes():
    """Bytes of a saved page, and of one transfer."""
    told("saved page of a ring of 4", len(html(Player(all_reduce.ring(ranks=4))).encode()), "bytes", PAGE)
    schedule = all_reduce.ring(ranks=64)
    told("data", len(Player(schedule).data) / schedule.counts(nbytes=64).messages, "bytes a transfer", TRANSFER)


def alone(tab):
    """One Player: first frame and keys at 64 x 64, frames at 16 x 16 and 64 x 64."""
    took = mounted(tab, 64, times=7)
    told("64 x 64, data to first painted frame", statistics.median(took), "ms", FIRST, f"worst {max(took):.0f}")
    took = sorted(tab.evaluate("presses(126)"))
    told("64 x 64, key press to new state, p95", took[int(0.95 * len(took))], "ms", KEY, f"worst {took[-1]:.1f}")
    for ranks, goal in FRAMES.items():
        mounted(tab, ranks, times=1)
        tab.click(".rs-more")
        tab.select_option(".rs-speed select", "2")  # so that most of the time chunks fly
        tab.click(".rs-play")
        gaps = tab.evaluate(f"frames({PLAYED})")
        told(f"{ranks} x {ranks}, playing", per_second(gaps), "frames/s", goal, longest(gaps))


def twelve(tab):
    """A page with 12 Players, all of them playing, lies still and is then scrolled up and down."""
    mounted(tab, 8, times=12, stay=True)
    found = tab.evaluate(f"scrolled({PLAYED})")
    rest = f"at rest {found['rest']['inside']} changes in the window, {found['rest']['outside']} outside"
    more = f"{longest(found['gaps'])}; {rest}"
    told(
        f"{found['players']} players on a page, all playing, scrolled", per_second(found["gaps"]), "frames/s", 55, more
    )


def mounted(tab, ranks: int, times: int, stay: bool = False) -> list[float]:
    """Milliseconds from the data to the first frame of a ring all-reduce, each time it is mounted on an empty page."""
    player = Player(all_reduce.ring(ranks=ranks))
    state = {"step": 0, "playing": False, "meta": player.meta, "question": None, "predicted": None}
    given = {"host": join("host.js"), "esm": str(player._esm), "css": str(player._css), "state": state}
    tab.goto("about:blank")
    given["data"] = b64encode(player.data).decode()
    return tab.evaluate("([given, times, stay]) => mounts(given, times, stay)", [given, times, stay])


def against(tab, folder: str):
    """The same ring all-reduce on the peer's page and on ours."""
    for ranks in FRAMES:
        with TemporaryDirectory() as own:
            Player(all_reduce.ring(ranks=ranks)).save_html(Path(own) / "index.html")
            ours = measured(tab, own, "", OURS)
        peer = measured(tab, folder, f"?op=allreduce&alg=ring&gpu={ranks}&chunk={ranks}&speed=1000", PEER)
        for what, unit in UNITS.items():
            ratio = f"ours / peer {ours[what] / peer[what]:.2f}"
            print(f"{ranks} x {ranks}, {what}: ours {ours[what]:.1f} {unit}, peer {peer[what]:.1f} {unit} ({ratio})")


def measured(tab, folder: str, query: str, parts: dict[str, str]) -> dict[str, float]:
    """What one page takes until its first frame, of the main thread while it plays, and for a step back."""
    with served(folder) as address:
        # a peer that calls its statistics or a font server waits for nobody
        tab.route("**/*", lambda route: route.continue_() if address in route.request.url else route.abort())
        opened = []
        for _ in range(5):
            tab.goto(f"{address}/index.html{query}", wait_until="commit")
            opened.append(tab.evaluate(f"opened({parts['drawn']!r})"))
        devtools = tab.context.new_cdp_session(tab)
        devtools.send("Performance.enable")
        tab.click(parts["play"])
        before = busy(devtools)
        gaps = tab.evaluate(f"frames({PLAYED})")
        spent = busy(devtools) - before
        tab.click(parts["pause"])
        back = tab.evaluate(f"clicks({parts['back']!r}, 3)")
        tab.unroute_all()
    figures = statistics.median(opened), per_second(gaps), 100_000 * spent / sum(gaps), statistics.median(back)
    return dict(zip(UNITS, figures, strict=True))


def busy(devtools) -> float:
    """Seconds that the page's main thread has worked so far."""
    values = {each["name"]: each["value"] for each in devtools.send("Performance.getMetrics")["metrics"]}
    return values["TaskDuration"]


@contextmanager
def served(folder: str):
    """Address of a server of that folder."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def told(what: str, value: float, unit: str, goal: float, more: str = ""):
    print(f"{what}: {value:,.1f} {unit} ({value / goal:.2f} of the goal{more and '; ' + more})", flush=True)


def per_second(gaps: list[float]) -> float:
    return 1000 * len(gaps) / sum(gaps)


def longest(gaps: list[float]) -> str:
    late = sum(gap > 25 for gap in gaps)
    return f"{late} of {len(gaps)} frames late, longest {max(gaps):.0f} ms"
