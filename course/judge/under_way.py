"""What a check is doing, shown while it does it and gone when it is over: starting ranks, trying them.

It is a display that is empty at first and empty in the end, so that the saved notebook is the same with it and without.
The bar moves by itself in the browser (an HTML progress element), whatever the kernel is busy with.

Left out: front ends without displays, where nothing is shown.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from itertools import count

_serial = count(1)


@contextmanager
def under_way(name: str) -> Iterator[Callable[[str], None]]:
    """Gives a function to say what is going on: `say("starting 4 ranks")`."""
    from IPython.display import display

    from course.judge.playback import shell

    if shell() is None:
        yield lambda text: None
        return
    display_id = f"ringside-check-{next(_serial)}"
    display({}, raw=True, display_id=display_id)

    def say(text: str) -> None:
        words = f"checking {name}: {text} ... (the stop button ends it)"
        bundle = {"text/plain": words, "text/html": f"<progress></progress> <small>{escape(words)}</small>"}
        display(bundle, raw=True, display_id=display_id, update=True)

    try:
        yield say
    finally:
        display({}, raw=True, display_id=display_id, update=True)
