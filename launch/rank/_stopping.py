"""The stop button inside a rank: KeyboardInterrupt in the running cell, once for each SIGINT.

A cell that catches it and goes on is not forced: the kernel asks `why_deaf` and ends the process (kernel/cell.py).

Left out: coroutines, which ipykernel cancels in its own way.
"""

from __future__ import annotations

import signal
import threading

from launch.rank import callsite


class Stopping:
    """Of one rank. `namespace` is the cells' globals, by which a cell's frames are recognised."""

    def __init__(self, namespace: dict):
        self._namespace = namespace
        self._interrupted = False  # whether the running cell was

    def begin(self) -> None:
        """From here on SIGINT raises. On the main thread."""
        self._interrupted = False
        signal.signal(signal.SIGINT, self._on_signal)

    def end(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    def cell_has_ended(self) -> None:
        """Only IPython's own work is left, such as showing a traceback; it is not interrupted."""
        self._interrupted = True

    def interrupt(self) -> None:
        """SIGINT to the main thread. From any thread."""
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]  # it has begun

    def why_deaf(self) -> str:
        """Why the cell goes on after an interrupt; "" if its code has ended. From any thread."""
        if not self._in_cell(callsite.frame_of(threading.main_thread())):
            return ""
        handler = signal.getsignal(signal.SIGINT)
        if handler != self._on_signal:
            return "SIGINT is ignored there" if handler is signal.SIG_IGN else "the cell handles SIGINT itself"
        line, file = callsite.line_of_main_thread()
        where = f"line {line}" + (f" of {file}" if file else "")
        if self._interrupted:
            return f"{where} went on after KeyboardInterrupt"
        return f"no interrupt ends the C code of {where}"

    def _on_signal(self, signum, frame) -> None:
        if not self._interrupted or self._in_cell(frame):
            self._interrupted = True
            raise KeyboardInterrupt

    def _in_cell(self, frame) -> bool:
        while frame is not None and frame.f_globals is not self._namespace:
            frame = frame.f_back
        return frame is not None
