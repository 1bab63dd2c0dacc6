"""A picture that Python draws once and the browser steps through: what Butterfly and its kin have in common.

A picture is SVG text without colours: parts have classes, and `data-step` says with which step a part comes. The live
page gives it the colours of the page and shows the steps one after the other (js/drawn.js, css/drawn.css); the still
image has colours of its own and shows all steps at once. There are two pictures, one as wide as a notebook and one for
a phone, so that letters keep their size.

Left out: what is drawn (each widget), and the image around it (_still.py).
"""

from collections.abc import Sequence
from html import escape

import traitlets

from widgets import _still
from widgets._strip import HUES
from widgets.base import styles
from widgets.question import Asked

WIDE, NARROW = 700, 340  # pixels of the two pictures
FULL = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#8c8c8c")  # as in css/theme.css
STYLE = (
    f"{_still.TEXT}.rd-small,.rd-turned{{font-size:12px}}.rd-light{{font-weight:400}}"
    ".rd-end{text-anchor:end}.rd-mid{text-anchor:middle}"
    f".rd-line{{stroke:{_still.INK};fill:none}}.rd-slow{{stroke:#d55e00}}text.rd-slow{{fill:#d55e00;stroke:none}}"
    f".rd-own,.rd-empty{{stroke:{_still.INK};stroke-width:1;fill:none;stroke-opacity:.5}}"
    ".rd-own{stroke-dasharray:2 3}"
    f".rd-box{{fill:{_still.INK};fill-opacity:.12}}.rd-sum{{fill:{_still.BOXED}}}"
    f".rd-crossed{{stroke:{_still.BOXED};fill:none}}"
    ".rd-line.rd-slow,path.rd-band{stroke-linecap:round;stroke-linejoin:round;fill:none!important}"
    + "".join(f".rs-h{i}{{fill:{hue};stroke:{hue}}}" for i, hue in enumerate(HUES))
    + "".join(f".rd-full.rs-h{i}{{fill:{hue};stroke:{hue}}}" for i, hue in enumerate(FULL))
)


class Drawn(Asked):
    """Base of widgets that Python draws. A subclass sets `_entry` and `_esm`, and gives pictures and words.

    pictures   (SVG parts, height) at 700 and at 340 pixels
    headline   what the picture says, in one sentence
    processes  how many ranks; beside the headline, with `size`: how large the rest is
    told       the sentence of each step, the first before any
    phases     (name, number of steps) of consecutive steps
    legend     what colours and shapes say, in at most 84 letters a line
    """

    _sheets = ("frame.css", "player.css", "drawn.css")
    _css = styles(*_sheets, "question.css")
    _plays = False  # whether it plays by itself when it is first seen, if motion is welcome
    step = traitlets.Int(0).tag(sync=True)
    playing = traitlets.Bool(False).tag(sync=True)
    pictures = traitlets.Dict().tag(sync=True)
    headline = traitlets.Unicode().tag(sync=True)
    processes = traitlets.Int().tag(sync=True)
    size = traitlets.Unicode().tag(sync=True)
    told = traitlets.List().tag(sync=True)
    phases = traitlets.List().tag(sync=True)
    legend = traitlets.List().tag(sync=True)

    def __init__(self, wide: tuple[Sequence[str], int], narrow: tuple[Sequence[str], int], **traits):
        (parts, height), (thin, tall) = wide, narrow
        self._parts, self._height = parts, height
        pictures = {"wide": _svg(WIDE, height, parts), "narrow": _svg(NARROW, tall, thin)}
        super().__init__(pictures=pictures, **traits)

    @traitlets.validate("step")
    def _within(self, proposal):
        """Steps that there are not become the first or the last."""
        return max(0, min(proposal["value"], len(self.told) - 1))

    def _freshness(self) -> str:
        return "first" if self._plays and not self.question else "new"

    def fallback(self) -> str:
        """All steps at once, below the headline and above the legend."""
        parts = [part for part in self._parts if "rd-flight" not in part]
        head, more = _still.headline(self.headline, 4)
        low = self._height + 44 + more
        legend = [words(line, 4, low + 16 * k, "rd-small rd-light") for k, line in enumerate(self.legend)]
        tall = low + 16 * len(legend) - 8
        svg = _still.sheet(
            WIDE, tall, STYLE, [head, f'<g transform="translate(0 {28 + more})">', *parts, "</g>", *legend]
        )
        return _still.image(svg, f"{self.headline}: {' '.join(self.told)} {' '.join(self.legend)}")


class Followed(Drawn):
    """One in which a rank can be followed (js/follow.js).

    chosen      the rank whose parts stand out, -1 for none
    takes_part  by rank, the sentence about it
    """

    chosen = traitlets.Int(-1).tag(sync=True)
    takes_part = traitlets.List().tag(sync=True)

    @traitlets.validate("chosen")
    def _a_rank(self, proposal):
        """Ranks that there are not become none, or the last."""
        return max(-1, min(proposal["value"], len(self.takes_part) - 1))


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    return f'<svg class="rs-drawing" viewBox="0 0 {width} {height}" aria-hidden="true">{"".join(parts)}</svg>'


def words(text: str, x: float, y: float, kind: str = "", more: str = "") -> str:
    """A text element at a point; `kind` are its classes."""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}"{more}>{escape(text)}</text>'
