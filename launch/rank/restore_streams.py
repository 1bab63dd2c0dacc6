"""Restores standard output and error after a cell that closed or replaced them.

A cell runs inside the rank. It can close its standard output, or set `sys.stdout` to None or to another stream, and
Python then answers as in any script. But the rank has to report how the cell ended and to run the next one, so that the
student loses no variables. `restore` reopens what is gone and says so on standard error.

Left out: a descriptor 1 that the student has redirected into a file; whatever only the cell itself needs; and damage
that ends the rank, such as deleted builtins or an empty `sys.modules`.
"""

from __future__ import annotations

import fcntl
import os
import sys

HIGH = 512  # descriptors from here on: no number that a student would close by hand


class Streams:
    """Owns the streams of the rank; made before its first cell."""

    def __init__(self):
        self._pipes = {fd: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH) for fd in (1, 2)}
        self._streams: dict[str, object] = {}
        self._open("stdout")
        self._open("stderr")

    def _open(self, name: str) -> None:
        """A new Python stream on descriptor 1 or 2."""
        fd = 1 if name == "stdout" else 2
        stream = open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
        self._streams[name] = stream

    def restore(self) -> None:
        """Reopens what the cell has closed or replaced; says on standard error what that was."""
        told = []
        for fd, pipe in self._pipes.items():
            if not _is_open(fd):
                os.dup2(pipe, fd)
                told.append(f"file descriptor {fd} was closed")
        for name, own in list(self._streams.items()):
            stream = getattr(sys, name, None)
            why = _unusable(stream)
            if not why and stream is not own:
                why = f"was another stream ({type(stream).__name__})"
            if why:
                self._open(name)
                told.append(f"sys.{name} {why}")
        if told:
            print(f"after this cell {', '.join(told)}; the rank has put it back", file=sys.stderr)


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _unusable(stream) -> str:
    """Why the stream cannot be written to ("was None"); "" if it can. Flushes what it holds back."""
    if stream is None:
        return "was None"
    try:
        stream.write("")
        stream.flush()
    except AttributeError:
        return f"was {type(stream).__name__}, which cannot be written to"
    except Exception:
        return "was closed" if getattr(stream, "closed", False) else "could not be written to"
    return ""
