"""What a cell may take from its rank and the rank needs itself: put back when the cell has ended.

A cell runs inside the rank and can close its standard output, set `sys.stdout` to None or empty `sys.modules`. In that
cell Python answers as it does everywhere. But the rank has to report how the cell ended and to run the next one, so
that the student loses no variables by it: `mend` puts back what is gone and says so. So it does with another stream as
`sys.stdout`, which would swallow what later cells print.

Left out: a descriptor 1 that leads into a file, which is the student's will. What only the cell itself needs.
Descriptors of the rank that only `os.closerange` would find. Builtins that the cell deletes: the rank dies of it.
"""

from __future__ import annotations

import fcntl
import os
import sys
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType

HIGH = 512  # descriptors from here on: no number that a student would close by hand
_before: dict[str, ModuleType] = {}


def note_modules() -> None:
    """What is in `sys.modules` now is what `Upkeep.mend` puts back. The agent notes it before it forks a rank, which
    then need not copy the table: references are counted inside of the modules, and each would cost it a page of memory.
    """
    if len(_before) != len(sys.modules):
        _before.clear()
        _before.update(sys.modules)


class Upkeep:
    """Owns the streams of the rank. `begin` before a cell, `mend` after it."""

    def __init__(self):
        self._pipes = {fd: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH) for fd in (1, 2)}
        self._modules = Modules()
        self._streams: dict[str, object] = {}
        self.open_streams(("stdout", "stderr"))

    def open_streams(self, names) -> None:
        """Python's streams, new ones, on descriptors 1 and 2."""
        for name in names:
            fd = 1 if name == "stdout" else 2
            stream = open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
            self._streams[name] = stream

    def begin(self) -> None:
        self._modules.begin()

    def mend(self) -> None:
        """Puts back what the cell has taken; a word on standard error about each."""
        told = []
        if self._modules.mend():
            told.append("sys.modules was emptied")
        for fd, pipe in self._pipes.items():
            if not _is_open(fd):
                os.dup2(pipe, fd)
                told.append(f"file descriptor {fd} was closed")
        for name in ("stdout", "stderr"):
            stream, own = getattr(sys, name, None), self._streams[name]
            why = _useless(stream)
            if not why and stream is not own:
                why = f"was another stream ({type(stream).__name__})"
            if why:
                self.open_streams([name])
                told.append(f"sys.{name} {why}")
        if told:
            print(f"after this cell {', '.join(told)}; the rank has put it back", file=sys.stderr)


class Modules(Loader):
    """`sys.modules` from before the cell. Other threads of the rank import something every moment, while the cell runs:
    the first that does not find it any more puts everything back (Python asks `find_spec` for what is not there)."""

    def __init__(self):
        self._modules = sys.modules
        self._emptied = False
        sys.meta_path.insert(0, self)

    def begin(self) -> None:
        note_modules()

    def mend(self) -> bool:
        """Puts them back if they are gone. Says whether they were, since it was asked last."""
        if sys.modules is not self._modules or __name__ not in self._modules:
            sys.modules = self._modules
            self._modules.update(_before)
            self._emptied = True
        emptied, self._emptied = self._emptied, False
        return emptied

    def find_spec(self, name, path=None, target=None):
        self._emptied = self.mend()
        return ModuleSpec(name, self) if self._emptied and name in _before else None

    def create_module(self, spec):
        return _before[spec.name]

    def exec_module(self, module):
        """It has been executed long ago."""


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _useless(stream) -> str:
    """Why nobody can write to the stream: "was None"; "" if somebody can. What it holds back is written out."""
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
