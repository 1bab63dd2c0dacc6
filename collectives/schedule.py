"""The central type of this package: a Schedule says who sends which chunks to whom, step by step, for one collective.

An algorithm, a student's recorded run and a hand-written counterexample are all Schedules, so all of them can be run on
symbols, checked, counted, costed and played. A schedule is plain data: steps are made only when they are asked for
(`Phase`), and as arrays, so that a schedule for thousands of ranks costs nothing until it is used.

In a step all messages (source and destination differ) happen at the same time, each reading what was there before the
step; then local transfers (source = destination) run in the order they stand. All transfers of a step between the same
two ranks are one message.

Left out: time. A Schedule knows order, not seconds; `collectives.cost` adds a network.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from collectives import cost as costing
from collectives import counting, proof, spec
from collectives import trace as tracing
from collectives.columns import OPS
from collectives.errors import ScheduleError
from collectives.network import Network, Topology
from collectives.state import Cell, State, empty_cells
from collectives.steps import LazySteps, Phase, Step, Transfer, columns_of

__all__ = ["Cell", "Phase", "Schedule", "ScheduleError", "State", "Step", "Transfer"]

WAYS = {"copy": "", "reduce": "sum", "new": "computed"}  # what an op does, where no run knows better


class Schedule:
    """A collective algorithm, or a recorded run, as data. See the module's docstring for what a step means.

    ranks, chunks  every buffer of every rank has `chunks` chunks; a chunk is nbytes / chunks bytes
    buffers        their names, the first is where the input is; `result` names the one that holds the result
    root           for broadcast, scatter, gather, reduce; else None
    start, goal    dict buffer -> [rank][chunk] of Cells, lists or arrays; by default what the collective's name means
                   (`collectives.spec`); a buffer that is not in `start` is empty, None in `goal` may hold anything
    chunk_bytes    bytes of every chunk, where they are not all alike (recordings)
    local          ranks per machine, for algorithms with levels (rank = machine * local + local rank); else None
    """

    def __init__(
        self,
        collective: str,
        algorithm: str,
        ranks: int,
        chunks: int,
        steps: Sequence[Step],
        *,
        root: int | None = None,
        buffers: Sequence[str] = ("data",),
        result: str | None = None,
        start: Mapping[str, Any] | None = None,
        goal: Mapping[str, Any] | None = None,
        chunk_bytes: ArrayLike | None = None,
        local: int | None = None,
    ) -> None:
        self.collective, self.algorithm = collective, algorithm
        self.ranks, self.chunks, self.root, self.local = ranks, chunks, root, local
        self.buffers = tuple(buffers)
        self.result = self.buffers[0] if result is None else result
        self.steps = steps
        self.chunk_bytes = None if chunk_bytes is None else np.asarray(chunk_bytes)
        self._start, self._goal = start, goal
        self._latest: tuple[int, State] | None = None

    @classmethod
    def from_phases(
        cls,
        collective: str,
        algorithm: str,
        ranks: int,
        chunks: int,
        phases: Iterable[Phase],
        *,
        buffers: Sequence[str] = ("data",),
        **more: Any,
    ) -> Self:
        """What the algorithms use: steps are made from array expressions when they are asked for."""
        steps = LazySteps(phases, tuple(buffers), chunks)
        return cls(collective, algorithm, ranks, chunks, steps, buffers=buffers, **more)

    @classmethod
    def from_steps(
        cls,
        collective: str,
        algorithm: str,
        ranks: int,
        chunks: int,
        steps: Iterable[tuple[Any, ...]],
        *,
        buffers: Sequence[str] = ("data",),
        **more: Any,
    ) -> Self:
        """From explicit steps: (phase, caption, [Transfer, ...]), of a recording sources and effect (see `Step`)."""
        buffers = tuple(buffers)
        numbers = {name: number for number, name in enumerate(buffers)}
        made = tuple(
            Step(columns_of(transfers, numbers), phase, _always(caption), buffers, *recorded)
            for phase, caption, transfers, *recorded in steps
        )
        return cls(collective, algorithm, ranks, chunks, made, buffers=buffers, **more)

    def __repr__(self) -> str:
        sizes = f"ranks={self.ranks}, chunks={self.chunks}, steps={len(self.steps)}"
        return f"Schedule({self.collective}.{self.algorithm}, {sizes})"

    @property
    def title(self) -> str:
        """What to call it in one line: "all_reduce ring"."""
        return f"{self.collective} {self.algorithm}"

    def start(self) -> State:
        """What every rank holds before the first step."""
        cells = {name: empty_cells(self.ranks, self.chunks) for name in self.buffers}
        cells.update(spec.start(self) if self._start is None else self._start)
        copies = {name: np.array(buffer, dtype=object) for name, buffer in cells.items()}
        return State(copies, knowledge=self.collective == "barrier")

    def goal(self) -> dict[str, np.ndarray] | None:
        """What every rank must hold at the end, None where anything is allowed; None if nothing is promised at all."""
        if self._goal is None:
            return spec.goal(self)
        return {name: np.array(buffer, dtype=object) for name, buffer in self._goal.items()}

    def states(self, index: int) -> State:
        """What all buffers hold after `steps[index]` (negative: from the end). Forward in order is cheapest."""
        index = range(len(self.steps))[index]
        done, state = self._latest if self._latest and self._latest[0] <= index else (-1, self.start())
        state = state.copy()
        for step in range(done + 1, index + 1):
            state.apply(self.steps[step].moves, self.ways(step))
        self._latest = (index, state.copy())
        return state

    def trace(self, rank: int, chunk: int, step: int, buffer: str | None = None) -> tracing.Trace:
        """Where what stands in a chunk after `steps[step]` came from: its origins, and the way they came.

        `step` counts as in `states`; `buffer` is the one that holds the result unless given. ScheduleError if there is
        no such place or step.
        """
        return tracing.trace(self, rank, chunk, step, buffer)

    def start_values(self) -> list[tuple[int, str, int, str]]:
        """(rank, buffer, chunk, text) of the numbers of a real run before the first step. Only a `Run` has any."""
        return []

    def stale_values(self) -> list[tuple[int, str, int, str]]:
        """(rank, buffer, chunk, text) of numbers that a real run only wrote over. Only a recording has any."""
        return []

    def values(self, index: int) -> list[tuple[int, str, int, str]]:
        """(rank, buffer, chunk, text) of the numbers that `steps[index]` wrote in a real run. Only a `Run` has any."""
        return []

    def ways(self, index: int) -> list[str]:
        """What each transfer of `steps[index]` does: "" for a copy, "sum" for a reduce, "computed" for a new."""
        return [WAYS[OPS[op]] for _, _, _, _, _, op, _, _ in self.steps[index].moves.rows()]

    def beginning(self, buffers: int) -> "Schedule":
        """As many of the first steps as touch no more than that many buffers. All: only a long run can be cut."""
        return self

    def check(self) -> None:
        """None if this schedule is proved to do its collective; else ScheduleError with step, rank and chunk.

        If a recorded run is not one collective, only its messages are checked: no rank sends what it does not hold.
        """
        return proof.check(self)

    def counts(self, nbytes: float | None = None) -> counting.Counts:
        """Steps, messages and bytes, as `collectives.counting.Counts`; `nbytes` is the larger buffer of one rank."""
        return counting.counts(self, nbytes)

    def save(self, path: "str | PathLike[str]") -> None:
        """Writes this schedule to `path` as plain JSON; `collectives.load(path)` gives it back, lines and all."""
        from collectives import saved  # which needs this module

        saved.save(self, path)

    def cost(
        self, nbytes: float | None = None, *, network: Network | Topology, pipelined: bool = False
    ) -> costing.Cost:
        """Seconds on a Network or Topology, as `collectives.cost.Cost`; `nbytes` is the larger buffer of one rank.

        `pipelined`: not step by step, but as a library runs it that cuts messages into slices and lets nobody wait.
        """
        return costing.cost(self, nbytes, network, pipelined)


def _always(caption: str) -> Callable[[Step], str]:
    return lambda _: caption
