"""The course: chapters, exercises and their judge. What a chapter imports from here: `ask`, `check`, `again`.

Ranks import our solutions. They would load all of this with it, for a tenth of a second each, so there it comes when it
is asked for: by a cell that belongs to the notebook, and is told so.
"""

import os
import sys
from typing import Any

__all__ = ["again", "ask", "check", "progress"]

# Else nbformat, with which plotly shows a figure and we read chapters, compiles a grammar of addresses for a second.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'course' has no attribute {name!r}")
    _load()
    return globals()[name]


def _load() -> None:
    """All at once: `course.ask` is a module, too, and the function has to stand in its place."""
    from course.again import again
    from course.ask import ask
    from course.judge.check import check
    from course.memory import show as progress

    globals().update(again=again, ask=ask, check=check, progress=progress)


if "RANK" not in os.environ:
    from course.judge.screen import watch

    _load()
    watch()
