"""A picture that stands still in a notebook: what a code host, nbconvert, a PDF or an untrusted clone shows.

It is an `<img>` with the SVG inside, because JupyterLab's sanitiser drops inline SVG; always the same bytes for the
same thing, so that nbval can compare it. Left out: what is drawn (the widgets, `_strip.py`).
"""

from base64 import b64encode
from collections.abc import Iterable
from html import escape

TEXT = "text{font:12px system-ui,sans-serif}"


def image(svg: str, alt: str) -> str:
    """The `<img>`, as wide as the page lets it be."""
    picture = b64encode(svg.encode()).decode()
    return f'<img alt="{escape(alt, quote=True)}" style="max-width:100%" src="data:image/svg+xml;base64,{picture}">'


def sheet(width: int, height: int, style: str, parts: Iterable[str]) -> str:
    """SVG text: `parts` on white paper of that many pixels."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f'<style>{style}</style><rect width="100%" height="100%" rx="6" fill="#fff"/>{"".join(parts)}</svg>'
    )
