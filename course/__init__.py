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

if "RANK" in os.environ:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'course' has no attribute {name!r}")
        from course.again import again
        from course.ask import ask
        from course.judge import check
        from course.memory import show as progress

        globals().update(again=again, ask=ask, check=check, progress=progress)
        return globals()[name]

else:
    from course.again import again
    from course.ask import ask
    from course.judge import check
    from course.memory import show as progress
    from course.screen import watch

    watch()
