"""A picture that stands still in a notebook: what a code host, nbconvert, a PDF or an untrusted clone shows.

It is an `<img>` with the SVG inside, because JupyterLab's sanitiser drops inline SVG; always the same bytes for the
same thing, so that nbval can compare it.

It has no paper of its own: the page's shows, light or dark. `prefers-color-scheme` would not know which: in an image it
is the system's, or what the page declares, and JupyterLab's dark theme declares nothing. So what stands on the page is
a grey that reads on both (at least 4 to 1 on white and on #111), and dark letters stand on light boxes only.
Left out: what is drawn (the widgets, `_strip.py`).
"""

from base64 import b64encode
from collections.abc import Iterable
from html import escape
from textwrap import wrap

INK = "#787878"  # on the page, whatever its colour
STUCK = "#d62839"  # a rank that waits forever, and what is wrong
BOXED = "#14171a"  # on a light box
LINE, HIGH = 78, 18  # letters of a line of a headline on 700 pixels, and pixels from line to line
TEXT = f"text{{font:600 14px system-ui,sans-serif;fill:{INK}}}"


def image(svg: str, alt: str) -> str:
    """The `<img>`, as wide as the page lets it be."""
    picture = b64encode(svg.encode()).decode()
    return f'<img alt="{escape(alt, quote=True)}" style="max-width:100%" src="data:image/svg+xml;base64,{picture}">'


def headline(words: str, x: int, y: int = 18, long: int = LINE) -> tuple[str, int]:
    """The headline, in lines of `long` letters, and by how many pixels it is higher than one line."""
    first, *lines = wrap(words, long)
    more = "".join(f' <tspan x="{x}" dy="{HIGH}">{escape(line)}</tspan>' for line in lines)
    return f'<text x="{x}" y="{y}">{escape(first)}{more}</text>', HIGH * len(lines)


def sheet(width: int, height: int, style: str, parts: Iterable[str]) -> str:
    """SVG text: `parts` on so many pixels of the page."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"<style>{style}</style>{''.join(parts)}</svg>"
    )
