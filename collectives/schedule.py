"""The noun of the house: a Schedule says who sends which chunks to whom, step by step, for one collective.

An algorithm, a student's recorded run and a hand-written counterexample are all Schedules, so all of them can be run on
symbols, checked, counted, costed and played. A schedule is plain data: steps are made only when somebody asks for them
(`Phase`), and as arrays, so that one for thousands of ranks costs nothing until it is used.

In a step all messages (source and destination differ) happen at the same time, each reading what was there before the
step; then local transfers (source = destination) run in the order they stand. All transfers of a step between the same
two ranks are one message.

Left out: time. A Schedule knows order, not seconds; `collectives.cost` adds a network.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from collectives import cost as costing
from collectives import counting, meaning, proof
from collectives.captions import describe
from collectives.columns import OPS, Columns
from collectives.errors import ScheduleError
from collectives.state import Cell, State, empty_cells

__all__ = ["Cell", "Phase", "Schedule", "ScheduleError", "State", "Step", "Transfer"]


class _Transfer(NamedTuple):
    src: int
    dst: int
    chunk: int
    op: str = "copy"
    count: int = 1
    dst_chunk: int | None = None
    src_buffer: str = "data"
    dst_buffer: str = "data"


class Transfer(_Transfer):
    """`count` consecutive chunks from `chunk` on, from a buffer of rank `src` to a buffer of rank `dst`.

    op "copy" replaces what is there, "reduce" adds to it. They land at `dst_chunk`, which is `chunk` if not given.
    """

    __slots__ = ()

    def __new__(cls, src, dst, chunk, op="copy", count=1, dst_chunk=None, src_buffer="data", dst_buffer="data"):
        dst_chunk = chunk if dst_chunk is None else dst_chunk
        return super().__new__(cls, src, dst, chunk, op, count, dst_chunk, src_buffer, dst_buffer)


class Step:
    """The transfers that happen at the same time. `phase` names the part of the algorithm, `caption` is one sentence.

    `sources` is empty unless the step was recorded: then (rank, line, code) of the calls that sent.
    """

    def __init__(self, moves: Columns, phase: str, caption: Callable[["Step"], str], buffers, sources=()):
        self.moves = moves  # as the algorithm made them: fields may be one number for all transfers
        self.phase = phase
        self.buffers = buffers
        self.sources = tuple(sources)
        self._caption = caption

    def __repr__(self):
        return f"Step({self.phase!r}, {len(self.moves.src)} transfers)"

    @property
    def caption(self) -> str:
        return self._caption(self)

    @cached_property
    def columns(self) -> Columns:
        """Eight int64 arrays of one length; see `collectives.columns` for what they say."""
        return self.moves.full()

    @cached_property
    def transfers(self) -> tuple[Transfer, ...]:
        rows = zip(*(field.tolist() for field in self.columns), strict=True)
        return tuple(
            Transfer(src, dst, chunk, OPS[op], count, dst_chunk, self.buffers[src_buffer], self.buffers[dst_buffer])
            for src, dst, chunk, dst_chunk, count, op, src_buffer, dst_buffer in rows
        )


class Phase(NamedTuple):
    """`count` similar steps: `moves(k)` makes the Columns of the k-th, `says` or `says(k)` starts its caption."""

    name: str
    count: int
    moves: Callable[[int], Columns]
    says: str | Callable[[int], str]


class _LazySteps(Sequence):
    """The steps of some phases, made when they are asked for and not kept."""

    def __init__(self, phases: Iterable[Phase], buffers, chunks: int):
        self.phases = [phase for phase in phases if phase.count > 0]
        self.ends = list(accumulate(phase.count for phase in self.phases))
        self.buffers = buffers
        self.chunks = chunks

    def __len__(self):
        return self.ends[-1] if self.ends else 0

    def __getitem__(self, index):
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        where = range(len(self))[index]  # IndexError and negative indices as lists have them
        number = bisect_right(self.ends, where)
        phase = self.phases[number]
        k = where - self.ends[number] + phase.count
        return Step(phase.moves(k), phase.name, lambda step: self._caption(phase, k, step), self.buffers)

    def _caption(self, phase: Phase, k: int, step: Step) -> str:
        says = phase.says(k) if callable(phase.says) else phase.says
        return describe(says, step.moves, self.chunks)


class Schedule:
    """A collective algorithm, or a recorded run, as data. See the module's docstring for what a step means.

    ranks, chunks  every buffer of every rank has `chunks` chunks; a chunk is nbytes / chunks bytes
    buffers        their names, the first is where the input is; `result` names the one that holds the result
    root           for broadcast, scatter, gather, reduce; else None
    start, goal    dict buffer -> [rank][chunk] of Cells, lists or arrays; by default what the collective's name means
                   (`collectives.meaning`); a buffer that is not in `start` is empty, None in `goal` may hold anything
    chunk_bytes    bytes of every chunk, where they are not all alike (recordings)
    local          ranks per machine, for algorithms with levels (rank = machine * local + local rank); else None
    """

    def __init__(
        self,
        collective,
        algorithm,
        ranks,
        chunks,
        steps,
        *,
        root=None,
        buffers=("data",),
        result=None,
        start=None,
        goal=None,
        chunk_bytes=None,
        local=None,
    ):
        self.collective, self.algorithm = collective, algorithm
        self.ranks, self.chunks, self.root, self.local = ranks, chunks, root, local
        self.buffers = tuple(buffers)
        self.result = self.buffers[0] if result is None else result
        self.steps: Sequence[Step] = steps
        self.chunk_bytes = None if chunk_bytes is None else np.asarray(chunk_bytes)
        self._start, self._goal = start, goal
        self._latest: tuple[int, State] | None = None

    @classmethod
    def from_phases(cls, collective, algorithm, ranks, chunks, phases: Iterable[Phase], *, buffers=("data",), **more):
        """What the algorithms use: steps are made from array expressions when they are asked for."""
        steps = _LazySteps(phases, tuple(buffers), chunks)
        return cls(collective, algorithm, ranks, chunks, steps, buffers=buffers, **more)

    @classmethod
    def from_steps(cls, collective, algorithm, ranks, chunks, steps, *, buffers=("data",), **more):
        """From explicit steps: (phase, caption, [Transfer, ...]), and for recordings a fourth item, the sources."""
        buffers = tuple(buffers)
        made = tuple(
            Step(_columns(transfers, buffers), phase, lambda _, caption=caption: caption, buffers, *sources)
            for phase, caption, transfers, *sources in steps
        )
        return cls(collective, algorithm, ranks, chunks, made, buffers=buffers, **more)

    def __repr__(self):
        sizes = f"ranks={self.ranks}, chunks={self.chunks}, steps={len(self.steps)}"
        return f"Schedule({self.collective}.{self.algorithm}, {sizes})"

    @property
    def title(self) -> str:
        """What to call it in one line: "all_reduce ring"."""
        return f"{self.collective} {self.algorithm}"

    def start(self) -> State:
        """What every rank holds before the first step."""
        cells = {name: empty_cells(self.ranks, self.chunks) for name in self.buffers}
        cells.update(meaning.start(self) if self._start is None else self._start)
        copies = {name: np.array(buffer, dtype=object) for name, buffer in cells.items()}
        return State(copies, knowledge=self.collective == "barrier")

    def goal(self) -> dict[str, np.ndarray] | None:
        """What every rank must hold at the end, None where anything is allowed; None if nothing is promised at all."""
        if self._goal is None:
            return meaning.goal(self)
        return {name: np.array(buffer, dtype=object) for name, buffer in self._goal.items()}

    def states(self, index: int) -> State:
        """What all buffers hold after `steps[index]` (negative: from the end). Forward in order is cheapest."""
        index = range(len(self.steps))[index]
        done, state = self._latest if self._latest and self._latest[0] <= index else (-1, self.start())
        state = state.copy()
        for step in range(done + 1, index + 1):
            state.apply(self.steps[step].moves)
        self._latest = (index, state.copy())
        return state

    def check(self) -> None:
        """None if this schedule is proved to do its collective; else ScheduleError with step, rank and chunk.

        Of a recorded run that is no one collective only the messages are checked: nobody sends what it does not hold.
        """
        return proof.check(self)

    def counts(self, nbytes=None):
        """Steps, messages and bytes, as `collectives.counting.Counts`; `nbytes` is the larger buffer of one rank."""
        return counting.counts(self, nbytes)

    def save(self, path) -> None:
        """Writes this schedule to `path` as plain JSON; `collectives.load(path)` gives it back, lines and all."""
        from collectives import saved  # which needs this module

        saved.save(self, path)

    def cost(self, nbytes=None, *, network):
        """Seconds on a Network or Topology, as `collectives.cost.Cost`; `nbytes` is the larger buffer of one rank."""
        return costing.cost(self, nbytes, network)


def _columns(transfers: Sequence[Transfer], buffers: tuple[str, ...]) -> Columns:
    """Explicit transfers as Columns, names as numbers."""
    rows = []
    for transfer in transfers:
        src, dst, chunk, op, count, dst_chunk, src_buffer, dst_buffer = Transfer(*transfer)
        if op not in OPS:
            raise ScheduleError(f'op of a Transfer is "copy" or "reduce", got {op!r}', rank=dst, chunk=dst_chunk)
        for name in (src_buffer, dst_buffer):
            if name not in buffers:
                problem = f"no buffer is called {name!r}; this schedule has {', '.join(buffers)}"
                raise ScheduleError(problem, rank=dst, chunk=dst_chunk)
        rows.append(
            (src, dst, chunk, dst_chunk, count, OPS.index(op), buffers.index(src_buffer), buffers.index(dst_buffer))
        )
    return Columns(*np.array(rows, np.int64).reshape(-1, 8).T)
