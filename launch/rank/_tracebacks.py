"""Which tracebacks a rank renders, and how much of them: the student's own lines, and only those that are shown.

The functions change the shell that they are given, not its class: plotly, tqdm and others look at the class to find
out where they are, and show rich output only to ipykernel's own.

Left out: how a traceback looks, which is IPython's, and which ranks' are shown (launch/kernel/output.py).
"""

from __future__ import annotations

import inspect
import os
import traceback
from types import TracebackType

from launch.rank import _reducer, callsite, interruptible
from launch.rank.patches import replace

MOST_FRAMES = 20


def shorten_tracebacks(shell) -> None:
    """Tracebacks end at the last line that the student can change, without the frames of torch and the tap below it."""
    show = shell.showtraceback

    def showtraceback(exc_tuple=None, *args, **kwargs):
        try:
            kind, error, traceback = shell._get_exc_info(exc_tuple)
        except ValueError:  # there is no exception; IPython has words for that
            return show(exc_tuple, *args, **kwargs)
        traceback = as_it_was(error, traceback)
        _reducer.in_our_words(error)
        chain = [error]
        while (before := chain[-1].__cause__ or chain[-1].__context__) and all(before is not seen for seen in chain):
            chain.append(before.with_traceback(without_libraries(before, before.__traceback__)))
        return show((kind, error, without_libraries(error, traceback)), *args, **kwargs)

    replace(shell, "showtraceback", showtraceback)


def keep(error: BaseException) -> BaseException:
    """The exception, to be raised again from another place; it is shown as it is now."""
    error.__dict__.setdefault("_ringside_seen", (error.__traceback__, error.__context__))
    return error


def as_it_was(error: BaseException, traceback):
    """The traceback of an exception, and its context, from before it was raised again."""
    if "_ringside_seen" in error.__dict__:
        traceback, error.__context__ = error.__dict__["_ringside_seen"]
    return traceback


def without_libraries(error: BaseException, traceback):
    """The traceback up to its last frame outside installed packages and this one; whole if there is none.

    Of an endless recursion it keeps the first and the last calls; the error says so.
    """
    frames = []
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    own = [i for i, entry in enumerate(frames) if callsite.is_students(entry.tb_frame.f_code.co_filename)]
    frames = frames[: own[-1] + 1] if own else frames
    if (excess := len(frames) - MOST_FRAMES) > 0:
        error.add_note(f"{excess} calls in the middle of this traceback are not shown")
        frames = frames[: MOST_FRAMES // 2] + frames[-MOST_FRAMES // 2 :]
    shortened = None
    for entry in reversed(frames):
        if entry.tb_frame.f_globals.get("__name__") == "__main__":
            # A cell is no module's file: for each of its frames inspect would look through thousands of modules.
            inspect.modulesbyfile[os.path.abspath(entry.tb_frame.f_code.co_filename)] = "__main__"
        shortened = TracebackType(shortened, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return shortened


def end_cell_first(shell, requests) -> None:
    """When the cell's own code has raised: restores the streams that it took, and ends a child that it forked.

    IPython needs standard output and many modules to show a traceback.
    """
    show = shell.showtraceback

    def showtraceback(exc_tuple=None, *args, **kwargs):
        requests.streams.restore()
        requests.stopping.cell_has_ended()
        if requests.forked:
            kind, error, tb = shell._get_exc_info(exc_tuple)
            if issubclass(kind, SystemExit):
                requests.end_forked(error.code if isinstance(error.code, int) else int(error.code is not None))
            traceback.print_exception(
                kind, error, without_libraries(error, tb and tb.tb_next)
            )  # the first frame is IPython's
            requests.end_forked(1)
        show(exc_tuple, *args, **kwargs)

    replace(shell, "showtraceback", showtraceback)


def skip_unseen_tracebacks(shell) -> None:
    """Skips tracebacks that are not shown: one through torch's long files takes half a second to render.

    IPython renders each a second time, for a history of exceptions that %notebook writes; a rank's is never written.
    """
    render = shell.showtraceback
    replace(shell, "_format_exception_for_storage", lambda *_, **__: {})

    def showtraceback(exc_tuple=None, *args, **kwargs):
        kind, error, _ = shell._get_exc_info(exc_tuple)
        own = "_ringside_seen" in error.__dict__  # which it had before it was freed
        if issubclass(kind, KeyboardInterrupt) or (interruptible.has_let_go() and not own):
            shell._showtraceback(kind, error, [f"{kind.__name__}: {error}"])
        else:
            render(exc_tuple, *args, **kwargs)

    replace(shell, "showtraceback", showtraceback)
