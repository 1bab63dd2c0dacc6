"""What a chapter shows, kept for the site: runs in the chapter's kernel while the site is built.

A widget's HTML in the saved output becomes a place, `<div class="alive">` around its still. At the end of the cell the
state of each widget is written to a file that has the name of its place.

Left out: RankLog, which shows what the cell's output says too; how a place comes alive (static/site.js).
"""

import json
from pathlib import Path
from typing import Any

from IPython import get_ipython

from widgets.base import Widget, page_state
from widgets.ranklog import RankLog

PLACE = '<div class="alive" data-kind="{kind}" data-state="{name}">{still}</div>'


def keep(folder: str) -> None:
    """Write the state of each widget that is displayed from now on into `folder`."""
    shown: list[Widget] = []
    kept = 0
    bundle = Widget._repr_mimebundle_

    def with_place(self: Widget, **kwargs) -> tuple[dict, dict]:
        data, metadata = bundle(self, **kwargs)
        if not isinstance(self, RankLog):
            place = PLACE.format(kind=type(self).__name__, name=f"{kept + len(shown)}.json", still=data["text/html"])
            data = data | {"text/html": place}
            shown.append(self)
        return data, metadata

    def at_the_end_of_a_cell(_: Any) -> None:
        nonlocal kept
        for widget in shown:
            Path(folder, f"{kept}.json").write_text(json.dumps(page_state(widget)), encoding="utf-8")
            kept += 1
        shown.clear()

    Widget._repr_mimebundle_ = with_place  # type: ignore[method-assign]
    get_ipython().events.register("post_run_cell", at_the_end_of_a_cell)
