"""Makes docs/ringside.webp, the moving picture of the README: `python -m tests.pictures.film`.

A cell is written in a real JupyterLab, run on four processes and played; then every rank sends first, and the deadlock
is explained. Each part has a caption below the notebook. The pictures are Chromium's screenshots; a page compares each
with the one before and encodes what has changed, and `animation` puts these pieces into one WebP file.

It plays twice and stops at the last frame, for readers whom motion disturbs. Left out: sound, and a mouse pointer.
"""

import struct
import sys
import tempfile
import time
from base64 import b64decode, b64encode
from pathlib import Path

from tests.chromium import launched
from tests.lab.conftest import Desk, Notebook, serving, write_notebook

OUT = Path(__file__).parents[2] / "docs" / "ringside.webp"
SIZE = {"width": 960, "height": 680}
SLOW = 16  # so much slower the Player plays while it is photographed, so that a busy machine misses nothing
TIMES = 2
QUALITY, LEAST = 0.65, 0.12  # of WebP, from 0 to 1; seconds between two frames while something moves

RING = """%%ranks 4 --watch
def ring_all_reduce(x):
    chunks = list(x.chunk(world_size))
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    arriving = torch.empty_like(chunks[0])
    for step in range(2 * (world_size - 1)):
        sent = dist.isend(chunks[(rank - step) % world_size], right)
        dist.recv(arriving, left)
        sent.wait()
        mine = chunks[(rank - step - 1) % world_size]
        if step < world_size - 1:
            mine += arriving
        else:
            mine.copy_(arriving)

x = torch.arange(4.0) + 10 * rank
ring_all_reduce(x)"""
STUCK = """%%ranks
dist.send(x, (rank + 1) % world_size)  # every rank sends first
dist.recv(x, (rank - 1) % world_size)"""
AFTER = "%%ranks\nx"

STYLE = """#jp-top-panel, #jp-bottom-panel, .jp-SideBar, .jp-NotebookPanel-toolbar, .jp-cell-toolbar,
  .lm-DockPanel-tabBar { visibility: hidden; }
.jp-LabShell { background: #fff; }
#film { position: fixed; inset: auto 0 0; height: 56px; z-index: 99999; display: grid; place-items: center;
  background: #14171a; color: #fff; font: 22px "DejaVu Sans"; }"""
ALONE = """() => {
    window.jupyterapp.shell.mode = "single-document";
    window.jupyterapp.shell.collapseLeft();
}"""
# From now on the page's time runs `rate` times as fast, for what is drawn frame by frame; `atRealSpeed` ends it.
SLOWED = """(rate) => {
    const names = ["setTimeout", "requestAnimationFrame"];
    const [later, frame] = names.map((name) => window[name].bind(window));
    const now = performance.now.bind(performance);
    const begin = now();
    const slowed = (at) => begin + (at - begin) * rate;
    performance.now = () => slowed(now());
    window.setTimeout = (call, delay = 0, ...rest) => later(call, delay / rate, ...rest);
    window.requestAnimationFrame = (call) => frame((at) => call(slowed(at)));
    window.atRealSpeed = () => Object.assign(window, { setTimeout: later, requestAnimationFrame: frame })
        && Object.assign(performance, { now });
}"""
TO_TOP = "(where) => [...document.querySelectorAll(where)].at(-1).scrollIntoView({ block: 'start' })"
CAPTION = """(text) => {
    const bar = document.querySelector("#film") ?? document.body.appendChild(document.createElement("div"));
    bar.id = "film";
    bar.textContent = text;
}"""
WRITE = """([number, text]) => window.jupyterapp.shell.currentWidget.content.widgets[number].model.sharedModel
    .setSource(text)"""
# What has changed since the picture before, as [x, y, width, height, WebP]; null if nothing has.
CHANGE = """async ([png, quality]) => {
    const bitmap = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
    const drawn = new OffscreenCanvas(bitmap.width, bitmap.height);
    const ink = drawn.getContext("2d", { alpha: false, willReadFrequently: true });
    ink.drawImage(bitmap, 0, 0);
    const now = new Uint32Array(ink.getImageData(0, 0, drawn.width, drawn.height).data.buffer);
    const before = window.before ?? [];
    window.before = now;
    let [left, top, right, bottom] = [drawn.width, drawn.height, -1, -1];
    for (let i = 0; i < now.length; i++) {
        if (now[i] === before[i]) continue;
        const [x, y] = [i % drawn.width, Math.floor(i / drawn.width)];
        [left, top, right, bottom] = [Math.min(left, x), Math.min(top, y), Math.max(right, x), Math.max(bottom, y)];
    }
    if (right < 0) return null;
    [left, top] = [left & ~1, top & ~1]; // WebP counts them in twos
    const piece = new OffscreenCanvas(right + 1 - left, bottom + 1 - top);
    piece.getContext("2d", { alpha: false }).drawImage(drawn, -left, -top);
    const bytes = new Uint8Array(await (await piece.convertToBlob({ type: "image/webp", quality })).arrayBuffer());
    const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
    return [left, top, piece.width, piece.height, text];
}"""


class Film:
    """Frames, each the piece that changed and how long it stays."""

    def __init__(self, page, desk) -> None:
        self.page, self.desk = page, desk
        self.frames: list[list] = []  # [x, y, width, height, WebP, seconds]

    def take(self, seconds: float) -> None:
        picture = b64encode(self.page.screenshot(type="png", caret="hide")).decode()
        changed = self.desk.evaluate(CHANGE, [picture, QUALITY])
        if changed is None:
            self.frames[-1][-1] += seconds
        else:
            self.frames.append([*changed[:4], b64decode(changed[4]), seconds])

    def say(self, text: str) -> None:
        self.page.evaluate(CAPTION, text)

    def follow(self, until: str, slow: float, longest: float = 900) -> None:
        """Photographs the page as often as it can until `until` holds; shown `slow` times as fast as it happened."""
        began = last = time.monotonic()
        while not self.page.evaluate(until):
            assert time.monotonic() - began < longest, until
            self.take(0)
            self.page.wait_for_timeout(max(0, 1000 * (LEAST * slow - (time.monotonic() - last))))
            now = time.monotonic()
            self.frames[-1][-1] += (now - last) / slow
            last = now


def animation(frames: list[list], width: int, height: int) -> bytes:
    """An animated WebP: its header, and a piece of RIFF for each frame."""

    def three(number: int) -> bytes:
        return number.to_bytes(3, "little")

    def chunk(name: bytes, body: bytes) -> bytes:
        return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)

    pieces = [
        chunk(b"VP8X", b"\x02\0\0\0" + three(width - 1) + three(height - 1)),
        chunk(b"ANIM", struct.pack("<IH", 0, TIMES)),
    ]
    for x, y, wide, high, picture, seconds in frames:
        place = three(x // 2) + three(y // 2) + three(wide - 1) + three(high - 1)
        pieces.append(
            chunk(b"ANMF", place + three(round(1000 * seconds)) + b"\x02" + picture[picture.index(b"VP8 ") :])
        )  # 2: do not blend
    body = b"WEBP" + b"".join(pieces)
    return b"RIFF" + struct.pack("<I", len(body)) + body


class Folders:
    """What `serving` takes from pytest."""

    def __init__(self, root: str) -> None:
        self.root = root

    def mktemp(self, name: str) -> Path:
        return Path(tempfile.mkdtemp(prefix=name, dir=self.root))


def write(film: Film, cell: int, text: str, seconds: float) -> None:
    """Write `text` into the cell, a line every so many seconds."""
    lines = text.splitlines()
    for count in range(1, len(lines) + 1):
        film.page.evaluate(WRITE, [cell, "\n".join(lines[:count])])
        film.take(seconds)


def shoot(film: Film, notebook: Notebook) -> None:
    page = film.page
    notebook.scroll_to(0)
    notebook.command("notebook:run-cell")
    film.say("Write a collective in a notebook cell.")
    write(film, 1, RING, 0.2)
    film.take(1.3)
    film.say("Shift+Enter: four real processes run it.")
    film.take(0.6)
    page.evaluate("() => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = 1; }")
    notebook.command("notebook:run-cell")
    player = page.locator(".rs-player")
    player.wait_for()
    notebook.wait_until_idle()
    player.locator("input[type=range]").focus()
    page.keyboard.press("Home")
    page.evaluate(TO_TOP, ".rs-player")
    film.say("This is what they sent: your run, recorded, named and checked.")
    film.take(2)
    page.evaluate(SLOWED, 1 / SLOW)
    page.keyboard.press(" ")
    film.follow("document.querySelector('.rs-player .rs-play').title === 'play again'", SLOW)
    film.follow(f"Date.now() > {1000 * (time.time() + 1.2 * SLOW)}", SLOW)  # what is sent last is still in flight
    page.evaluate("atRealSpeed()")
    film.take(1)
    film.say("Now a mistake: every rank sends first, and none receives.")
    notebook.scroll_to(2)
    write(film, 2, STUCK, 0.5)
    film.take(1)
    notebook.command("notebook:run-cell")
    graph = page.locator(".rs-waiting")
    graph.wait_for()
    film.say("It does not hang: you read which rank waits where, and see the cycle.")
    notebook.wait_until_idle()
    page.evaluate(TO_TOP, ".jp-Cell:has(.rs-waiting)")
    film.take(6)
    film.say("The ranks live on, with all their variables.")
    notebook.scroll_to(3)
    page.evaluate(WRITE, [3, AFTER])
    film.take(1)
    notebook.command("notebook:run-cell")
    page.get_by_text("ranks 0-3: tensor([60., 64., 68., 72.])").last.wait_for()
    film.take(4)


def main() -> int:
    with tempfile.TemporaryDirectory() as root, launched() as browser:
        folders = Folders(root)
        place = folders.mktemp("notebooks")
        write_notebook(place / "film.ipynb", ["%load_ext launch", "", "", ""])
        with serving("jupyterlab", place, folders) as address:
            stage = Desk(address, browser)
            page = stage.open("film.ipynb")
            page.set_viewport_size(SIZE)
            desk = browser.new_page()
            desk.goto("about:blank")
            page.add_style_tag(content=STYLE)
            page.evaluate(ALONE)
            film = Film(page, desk)
            shoot(film, Notebook(page))
            stage.close()
            OUT.write_bytes(animation(film.frames, **SIZE))
    seconds = sum(frame[-1] for frame in film.frames)
    print(f"{OUT}: {len(film.frames)} frames, {seconds:.0f} s, {OUT.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
