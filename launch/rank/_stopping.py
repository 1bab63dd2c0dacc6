"""The stop button inside a rank: KeyboardInterrupt in the cell under way, and on every line where the cell swallows it.

`while True: try: ... except: pass` catches KeyboardInterrupt like everything else and goes on. But an exception that
strikes while the handler runs, or between it and the next `try`, leaves the loop. So a cell that has swallowed the
first interrupt gets one more on each of its lines until it is over; all its variables are kept.

That is done with Python's line tracing, and by C functions alone: a tracing function that raises is switched off by
Python, and one that is written in Python would be struck itself.

A cell that is still in its `finally:` or in its `except KeyboardInterrupt:` has swallowed nothing: it is left alone.

Left out: a cell that handles SIGINT itself, and coroutines, which ipykernel cancels in its own way.
"""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
from collections.abc import Callable

from launch.rank import callsite

_trace = ctypes.PYFUNCTYPE(None, *[ctypes.py_object] * 3)  # of the C functions below, which ignore what they are given
_strike = _trace(("PyErr_SetInterrupt", ctypes.pythonapi))  # as if SIGINT had come: seen at the next call or jump
_nothing = _trace(("Py_IsInitialized", ctypes.pythonapi))


class Stopping:
    """Of one rank. `namespace` is the cells': a frame with these globals is the student's."""

    def __init__(self, namespace: dict):
        self._namespace = namespace
        self._raised: KeyboardInterrupt | None = None  # in the cell under way, the last one
        self._insisting = False
        self._tracer: Callable | None = None  # the student's own

    def begin(self) -> None:
        """From here on SIGINT means something. On the main thread."""
        self._raised, self._insisting = None, False
        signal.signal(signal.SIGINT, self._on_signal)

    def end(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if sys.gettrace() is _nothing:
            sys.settrace(self._tracer)
        self._raised = None

    def cell_has_ended(self) -> None:
        """What is left is IPython's: to show a traceback. That is not interrupted."""
        self._raised = self._raised or KeyboardInterrupt()

    def interrupt(self) -> None:
        """SIGINT to the main thread. From any thread."""
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]  # it has begun

    def insist(self) -> None:
        """Interrupts a cell on each of its lines, if it has swallowed an interrupt. From any thread."""
        if self._swallowed():
            self._insisting = True
            self.interrupt()

    def why_deaf(self) -> str:
        """Why the cell goes on after all interrupts; "" if it is on its way out. From any thread."""
        main = threading.main_thread().ident or 0
        if not self._frames_of_cell(sys._current_frames().get(main)):
            return ""
        handler = signal.getsignal(signal.SIGINT)
        if handler != self._on_signal:
            return "SIGINT is ignored there" if handler is signal.SIG_IGN else "the cell handles SIGINT itself"
        line, file = callsite.line_of_main_thread()
        where = f"line {line}" + (f" of {file}" if file else "")
        return (
            f"{where} went on after KeyboardInterrupt" if self._raised else f"no interrupt ends the C code of {where}"
        )

    def _on_signal(self, signum, frame) -> None:
        inside = self._frames_of_cell(frame)
        if self._insisting and inside and sys.gettrace() is not _nothing:
            self._tracer = sys.gettrace()
            sys.settrace(_nothing)
            for each in inside:
                each.f_trace = _strike
        if self._raised is None or inside:  # what IPython does after the cell is not cut short
            self._raised = KeyboardInterrupt()
            raise self._raised

    def _frames_of_cell(self, frame) -> list:
        """The frames from this one out to the cell's own; none if it is not the cell that runs."""
        frames, outermost = [], 0
        while frame is not None:
            frames.append(frame)
            if frame.f_globals is self._namespace:
                outermost = len(frames)
            frame = frame.f_back
        return frames[:outermost]

    def _swallowed(self) -> bool:
        """Whether the cell was interrupted, is through with that and goes on."""
        main = threading.main_thread().ident or 0
        if self._raised is None or not self._frames_of_cell(sys._current_frames().get(main)):
            return False
        handled = sys._current_exceptions().get(main)
        error = handled[1] if isinstance(handled, tuple) else handled  # a tuple up to Python 3.11
        while error is not None and error is not self._raised:
            error = error.__context__
        return error is None
