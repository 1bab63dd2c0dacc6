"""Every picture that a chapter shows, as a page of its own: what runs in the chapter's kernel while the pack is built.

Only there are the widgets alive, with the run that they play. Whatever is displayed asks for its mimebundle: there it
is noted, and at the end of the cell it writes itself, as it then stands. `PICTURES` lists what was written.

Left out: RankLog, which shows what the cell's output says too, and charts that a chapter draws with plotly itself.
"""

import json
from pathlib import Path
from typing import Any

from IPython import get_ipython

from widgets.base import Widget
from widgets.cost_explorer import for_a_wall
from widgets.figure import Figure
from widgets.ranklog import RankLog

WALLS = (720, 1080)  # pixels of height
PICTURES = "pictures.json"  # in the folder: [cell, page, title] of each


def keep(folder: str, cells: list[str]) -> None:
    """Write a page of all that is displayed from now on into `folder`; `cells` has the ids of the code cells."""
    shown: list[Any] = []
    written: list[list[str]] = []

    def at_the_end_of_a_cell(result) -> None:
        if result.execution_count is None:  # not a cell of the chapter
            return
        cell = cells[result.execution_count - 1]
        for number, picture in enumerate(shown, start=1):
            page = f"{cell}{f'-{number}' if number > 1 else ''}"
            written.extend([cell, *each] for each in _write(picture, Path(folder), page))
        shown.clear()
        (Path(folder) / PICTURES).write_text(json.dumps(written), encoding="utf-8")

    for kind in (Widget, Figure):
        _note(kind, shown)
    get_ipython().events.register("post_run_cell", at_the_end_of_a_cell)


def _note(kind: type, shown: list) -> None:
    """Let what is shown of this kind go into `shown`, once."""
    bundle = kind._repr_mimebundle_  # type: ignore[attr-defined]

    def noting(self, *args, **kwargs):
        if not isinstance(self, RankLog) and not any(each is self for each in shown):
            shown.append(self)
        return bundle(self, *args, **kwargs)

    kind._repr_mimebundle_ = noting  # type: ignore[attr-defined]


def _write(picture: Any, folder: Path, page: str) -> list[tuple[str, str]]:
    """The names and titles of the pages: one, or, of a figure whose letters do not grow by themselves, one a wall."""
    if not isinstance(picture, Figure):
        picture.save_html(folder / f"{page}.html")
        return [(f"{page}.html", repr(picture))]
    written = []
    for height in WALLS:
        wall = Figure(picture)
        for_a_wall(wall, height)
        wall.write_html(folder / f"{page}-{height}.html", include_plotlyjs="directory")  # one plotly.min.js for all
        written.append((f"{page}-{height}.html", f"{picture!r}, for {height} pixels"))
    return written
