"""What a chapter shows, kept for the site: runs in the chapter's kernel while the site is built.

A widget's HTML in the saved output becomes a place, `<div class="alive">` around its still. At the end of the cell the
state of each widget is written to a file that has the name of its place.

Left out: RankLog, which shows what the cell's output says too; how a place comes alive (static/site.js).
"""

import json
from pathlib import Path
from typing import Any

from IPython import get_ipython
from IPython.display import display

from launch import magics
from widgets.base import Widget, page_state
from widgets.ranklog import RankLog

PLACE = '<div class="alive" data-kind="{kind}" data-state="{name}">{still}</div>'


def keep(folder: str) -> None:
    """Write the state of each widget that is displayed from now on into `folder`."""
    shown: list[Widget] = []
    kept = 0
    formatter = get_ipython().display_formatter
    as_it_was = formatter.format

    def with_places(shows: Any, *args, **kwargs) -> tuple[dict, dict]:
        data, metadata = as_it_was(shows, *args, **kwargs)
        if isinstance(shows, Widget) and not isinstance(shows, RankLog) and "text/html" in data:
            name = f"{kept + len(shown)}.json"
            shown.append(shows)
            data["text/html"] = PLACE.format(kind=type(shows).__name__, name=name, still=data["text/html"])
        return data, metadata

    def at_the_end_of_a_cell(_: Any) -> None:
        nonlocal kept
        for widget in shown:
            Path(folder, f"{kept}.json").write_text(json.dumps(page_state(widget)), encoding="utf-8")
            kept += 1
        shown.clear()

    formatter.format = with_places
    # what a cell on ranks shows passes the formatter, too
    magics.show = lambda _, widget: display(widget)  # type: ignore[assignment]
    get_ipython().events.register("post_run_cell", at_the_end_of_a_cell)
