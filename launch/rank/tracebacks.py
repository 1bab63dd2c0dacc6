"""Which tracebacks a rank shows, and how much of them: the student's own lines, and none that nobody sees.

Both functions change the shell that they are given, not its class: plotly, tqdm and others look at the class to find
out where they are, and show rich output only to ipykernel's own.

Left out: how a traceback looks, which is IPython's, and which ranks' are shown (launch/output.py).
"""

from __future__ import annotations

import os
import sys
from types import TracebackType


def shorten_tracebacks(shell) -> None:
    """Tracebacks end at the last line that the student can change, and do not go on into torch and the tap."""
    show = shell.showtraceback

    def showtraceback(exc_tuple=None, *args, **kwargs):
        try:
            kind, error, traceback = shell._get_exc_info(exc_tuple)
        except ValueError:  # there is no exception; IPython has words for that
            return show(exc_tuple, *args, **kwargs)
        return show((kind, error, without_libraries(traceback)), *args, **kwargs)

    shell.showtraceback = showtraceback


def without_libraries(traceback):
    """The traceback up to its last frame outside installed packages and this one; whole if there is none."""
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    own = [i for i, entry in enumerate(frames) if not is_library(entry.tb_frame.f_code.co_filename)]
    shortened = None
    for entry in reversed(frames[: own[-1] + 1] if own else frames):
        shortened = TracebackType(shortened, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return shortened


def is_library(file: str) -> bool:
    return file.startswith((sys.prefix, sys.base_prefix, os.path.dirname(__file__)))


def skip_unseen_tracebacks(shell, rescue) -> None:
    """Spends no time on tracebacks that nobody sees: one through torch's long files takes half a second to render."""
    render = shell.showtraceback

    def showtraceback(exc_tuple=None, *args, **kwargs):
        kind, error, _ = shell._get_exc_info(exc_tuple)
        if issubclass(kind, KeyboardInterrupt) or rescue.has_freed:
            shell._showtraceback(kind, error, [f"{kind.__name__}: {error}"])
        else:
            render(exc_tuple, *args, **kwargs)

    shell.showtraceback = showtraceback
