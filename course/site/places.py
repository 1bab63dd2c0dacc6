"""The places of widgets on a page: a still, which a page without JavaScript shows, and the state that brings it alive.

Left out: what brings it alive (static/site.js).
"""

import json
from html import escape
from pathlib import Path
from typing import Any

import widgets
from widgets import base
from widgets.base import Widget, as_script, join, lean, page_state

LOADER = "(window.ringside ??= {{}}).{kind} = (() => {{\n{module}\n}})();\n"


def place(widget: Widget, *, plays: bool = False) -> str:
    """HTML of a place for this widget as it is now; `plays`: it plays as soon as it is seen."""
    return with_state(type(widget).__name__, page_state(widget), widget.fallback(), plays)


def with_state(kind: str, state: dict, still: str, plays: bool = False) -> str:
    """The same from the state that was kept. No empty line is left in it: for Markdown that would be its end."""
    told = f'<div class="alive" data-kind="{escape(kind)}"{" data-plays" if plays else ""}>'
    kept = f'<script type="application/json">{as_script(state)}</script>'
    return f"{told}{kept}{still}</div>".replace("\n", " ")


def figure(data: dict, still: str) -> str:
    """A place for a figure of plotly."""
    return with_state("plotly", data, still)


def write_scripts(folder: Path) -> None:
    """A script for each kind of widget, the host that they live on, their styles, and plotly's own script."""
    from plotly.offline import get_plotlyjs

    for kind in _kinds():
        _write(folder, kind.__name__, kind._esm.replace("export default", "return"))
    _write(folder, "host", join("host.js").replace("export ", "") + "return { mount, revived };")
    sheets = sorted((base.HERE / "css").glob("*.css"), key=lambda sheet: sheet.name != "theme.css")
    (folder / "widgets.css").write_text(lean("".join(sheet.read_text(encoding="utf-8") for sheet in sheets)))
    (folder / "plotly.min.js").write_text(get_plotlyjs(), encoding="utf-8")


def _write(folder: Path, kind: str, module: str) -> None:
    (folder / f"{kind}.js").write_text(LOADER.format(kind=kind, module=module), encoding="utf-8")


def _kinds() -> list[type[Widget]]:
    known: list[Any] = [getattr(widgets, name) for name in widgets.__all__]
    return [each for each in known if isinstance(each, type)]


def read(state: Path) -> dict:
    return json.loads(state.read_text(encoding="utf-8"))
