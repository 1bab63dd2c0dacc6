"""What goes wrong in a session, as exceptions that say it in one sentence.

They render themselves: a student sees the sentence, and the traceback of the rank that failed with the line numbers of
the cell, never the frames of this package. `ename` and `evalue` hold no pid, port, path or time, so that a notebook
compares equal from run to run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any


class LaunchError(Exception):
    """A request that cannot be met, in one sentence that says what to do instead."""

    hints: list[str] = []  # further sentences that may help (launch/hints), shown below it
    afterwards: Callable[[], object] | None = None  # shows what belongs below that (launch/load_hint.py calls it)

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class UsageError(LaunchError):
    """The magic or the function was called in a way that has no meaning."""


class CellSyntaxError(LaunchError):
    """The cell is not Python; no rank has seen it. `report` is what IPython shows for it."""

    def __init__(self, message: str, report: list[str]):
        super().__init__(message)
        self.report = report

    def _render_traceback_(self) -> list[str]:
        return self.report


class RankError(LaunchError):
    """One or more ranks failed in a cell.

    `ranks` are the ranks that failed of themselves (not those that were waiting for them); `report` is the text that is
    shown: the ranks' own tracebacks.
    """

    def __init__(self, message: str, ranks: tuple[int, ...] = (), report: tuple[str, ...] = ()):
        super().__init__(message)
        self.ranks = ranks
        self.report = report

    def _render_traceback_(self) -> list[str]:
        return [*self.report, f"{type(self).__name__}: {self}", *self.hints]


@dataclass(frozen=True)
class Trouble:
    """What went wrong between ranks, in a sentence, and which ranks waited: (rank, other rank, op, line or 0). If a
    call was refused because it does not fit, the other rank is None."""

    kind: type[RankError]
    sentence: str
    ranks: tuple[int, ...]
    edges: tuple[tuple[int, Any, str, int], ...] = ()


class DeadlockError(RankError):
    """Ranks waited for something that no rank could provide any more. `edges` as in `Trouble`."""

    edges: tuple[tuple[int, int, str, int], ...] = ()


class MismatchError(RankError):
    """Ranks made calls that do not fit together; they were refused before they could give wrong numbers."""


class LostMessageError(RankError):
    """A message was lost, though no rank has waited for it yet."""


class RanksStopped(KeyboardInterrupt):
    """The stop button ended a cell; the ranks live on. The text says where each rank was."""

    afterwards: Callable[[], object] | None = None  # as in LaunchError

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


def name_ranks(ranks: Iterable[int], between: str = ",", shortened: int = 2, of: str = "rank") -> str:
    """'rank 2', 'ranks 0-3', 'ranks 0,2': the ranks in ascending order; `shortened` or more in a row become a
    range. `of` is the word in place of "rank"."""
    found = sorted(ranks)
    if len(found) == 1:
        return f"{of} {found[0]}"
    runs: list[list[int]] = []
    for rank in found:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    parts: list[str] = []
    for run in runs:
        parts += [f"{run[0]}-{run[-1]}"] if len(run) >= shortened else map(str, run)
    return f"{of}s {between.join(parts)}"


class WaitEnded(RuntimeError):
    """A rank was released from a wait in the library that would never have ended (rank/interruptible.py)."""
