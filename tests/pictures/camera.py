"""Photographs a scene at a size and in a colour scheme, and compares two photographs.

A picture is WebP, encoded by the browser: a tenth of the bytes of a PNG, so that all of them fit in the repository, and
as readable. Comparing is done in the browser too (compare.js), which spares a picture library. Whatever the page is
asked goes through `evaluate` and not a locator, which has each new page read all of Playwright's own code first.

The words are set in DejaVu Sans, which Debian's fontconfig brings along (tests/chromium.py); a machine without it
cannot draw the approved pictures.
"""

from base64 import b64encode
from contextlib import ExitStack
from pathlib import Path

from tests.pictures.scenes import SCENES
from tests.widgets.conftest import click
from tests.widgets.stage import opened, put, served, settle

HERE = Path(__file__).parent
APPROVED = HERE / "approved"
DRAWN = HERE / "drawn"  # what a test run found different
SIZES = {"laptop": (1280, 720), "projector": (1280, 720), "phone": (360, 740)}
SCHEMES = ("light", "dark")
# What a scene has drawn in inks that the first scene of its kind has not.
OWN_INKS = ("player-16", "player-gate", "player-stuck", "player-trace", "player-wrong", "timeline-ddp", "memory-run")
_firsts = {name.partition("-")[0]: name for name in reversed(SCENES)}.values()
NAMES = [  # a colour is the same at every size, and in all scenes of a kind, so the dark ones are taken once
    f"{name}-{size}-{scheme}"
    for name, scene in SCENES.items()
    for size in scene.sizes
    for scheme in (SCHEMES if size == scene.sizes[0] and name in (*_firsts, *OWN_INKS) else SCHEMES[:1])
]
MOST = 12  # of the 144 pixels of a square may stay unexplained; see compare.js

STILL = "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(() => drawn(true))))"
FONT_IS_THERE = """() => {
    const ink = document.createElement("canvas").getContext("2d");
    return ["DejaVu Sans", "DejaVu Sans Mono"].map((font) => {
        ink.font = `100px "${font}"`;
        return Math.round(ink.measureText("mmmmmmmmmm").width);
    });
}"""
TO_KEYS = """document.querySelector(
    ":is(.rs-question, .rs-closed), .rs-frame:not(.rs-closed) .rs-scrub input").focus()"""


class Camera:
    """A tab that shows scenes, and a second one that compares pictures."""

    def __init__(self, browser):
        self.open = ExitStack()
        self.site = self.open.enter_context(served())
        self.desk = self.open.enter_context(opened(browser, self.site))
        self.stage = self.open.enter_context(opened(browser, self.site))
        self.desk.add_script_tag(path=HERE / "compare.js")

    def has_fonts(self) -> bool:
        """Whether the machine has DejaVu Sans and DejaVu Sans Mono: told by how wide ten m are."""
        return self.desk.evaluate(FONT_IS_THERE) == [974, 602]

    def take(self, name: str, meddle: str = "() => {}") -> bytes:
        """The picture `SCENE-SIZE-SCHEME`: a phone and a laptop scroll, so they show all of it; a projector does not.

        `meddle` is JavaScript that changes the page before.
        """
        scene, size, scheme = name.rsplit("-", 2)
        width, height = SIZES[size]
        page = self.stage
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        self.show(SCENES[scene].make())
        for key in SCENES[scene].keys:
            page.evaluate(TO_KEYS)
            page.keyboard.press(key)
        projected = size == "projector" and page.evaluate("document.querySelector('.rs-project') !== null")
        if projected:
            click(page, ".rs-project")
            settle(page, "document.fullscreenElement")
            page.mouse.move(0, 0)
        page.evaluate(STILL)
        page.evaluate(meddle)
        return page.screenshot(type="webp", quality=40, full_page=not projected, animations="disabled", caret="hide")

    def show(self, widget) -> None:
        """Puts the widget on the stage; AssertionError with its words if it shows an error instead."""
        self.stage.wrong.clear()
        put(self.stage, self.site, widget)
        wrong = self.stage.evaluate("document.querySelector('.rs-error')?.innerText") or self.stage.wrong
        assert not wrong, wrong

    def compare(self, approved: bytes, drawn: bytes) -> dict:
        """What `compare` of compare.js says: `worst`, `where` that is, and both `sizes`."""
        return self.desk.evaluate(
            "([approved, drawn]) => compare(approved, drawn)", [b64encode(each).decode() for each in (approved, drawn)]
        )

    def difference(self, approved: bytes, drawn: bytes) -> str:
        """In words what an eye would see, "" if nothing: the same bytes are not even decoded, which is most of them."""
        if approved == drawn:
            return ""
        found = self.compare(approved, drawn)
        if found["worst"] <= MOST and found["sizes"][0] == found["sizes"][1]:
            return ""
        return f"near {found['where']} ({found['worst']} pixels of a square; sizes {found['sizes']})"

    def close(self) -> None:
        self.open.close()
