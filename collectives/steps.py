"""The parts of a Schedule: Transfers, the Steps in which they happen, and the Phases that make steps when asked.

A step is held as arrays (`collectives.columns`), so that one of thousands of transfers is cheap; as Transfer objects,
which are easier to read and to write, only where they are asked for.

Left out: what a step does to the buffers; see `collectives.schedule` for the rules and `collectives.state` for the run.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple, overload

import numpy as np

from collectives.captions import describe
from collectives.columns import OPS, Columns
from collectives.errors import ScheduleError

Source = tuple[int, int, str]
"""(rank, line, code) of a call that sent."""


class _Transfer(NamedTuple):
    src: int
    dst: int
    chunk: int
    op: str = "copy"
    count: int = 1  # type: ignore[assignment]  # hides tuple.count
    dst_chunk: int = 0
    src_buffer: str = "data"
    dst_buffer: str = "data"


class Transfer(_Transfer):
    """`count` consecutive chunks from `chunk` on, from a buffer of rank `src` to a buffer of rank `dst`.

    op "copy" replaces what is there, "reduce" adds to it. They land at `dst_chunk`, which is `chunk` if not given.

    op "new" reads nothing: the rank (`src` and `dst` are the same) puts data of its own making there, something it
    computed by other arithmetic, or that was changed outside torch. `chunk` is then the number of the first new symbol:
    rank 2's "new" with chunk 7 puts `c7` at `dst_chunk`, `c8` behind it, and so on. A number beyond the schedule's
    chunks is none that anybody started with.
    """

    __slots__ = ()

    def __new__(
        cls,
        src: int,
        dst: int,
        chunk: int,
        op: str = "copy",
        count: int = 1,
        dst_chunk: int | None = None,
        src_buffer: str = "data",
        dst_buffer: str = "data",
    ) -> "Transfer":
        dst_chunk = chunk if dst_chunk is None else dst_chunk
        return super().__new__(cls, src, dst, chunk, op, count, dst_chunk, src_buffer, dst_buffer)


class Step:
    """The transfers that happen at the same time. `phase` names the part of the algorithm, `caption` is one sentence.

    `sources` is empty unless the step was recorded: then (rank, line, code) of the calls that sent. `effect` says that
    it shows only what a library's call did in the end: its messages were not seen. `in_network` says that a switch
    adds what goes to one place, and copies what one rank sends to many, on the way: a network must have one.
    """

    def __init__(
        self,
        moves: Columns,
        phase: str,
        caption: Callable[["Step"], str],
        buffers: Sequence[str],
        sources: Iterable[Source] = (),
        effect: bool = False,
        in_network: bool = False,
    ) -> None:
        self.moves = moves  # as the algorithm made them: fields may be one number for all transfers
        self.phase = phase
        self.buffers = buffers
        self.sources = tuple(sources)
        self.effect = effect
        self.in_network = in_network
        self._caption = caption

    def __repr__(self) -> str:
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
        return transfers_of(self.columns, self.buffers)


class Phase(NamedTuple):
    """`count` similar steps: `moves(k)` makes the Columns of the k-th, `says` or `says(k)` starts its caption."""

    name: str
    count: int  # type: ignore[assignment]  # hides tuple.count
    moves: Callable[[int], Columns]
    says: str | Callable[[int], str]
    in_network: bool = False  # see `Step`


class LazySteps(Sequence[Step]):
    """The steps of some phases, made when they are asked for and not kept."""

    def __init__(self, phases: Iterable[Phase], buffers: Sequence[str], chunks: int) -> None:
        self.phases = [phase for phase in phases if phase.count > 0]
        self.ends = list(accumulate(phase.count for phase in self.phases))
        self.buffers = buffers
        self.chunks = chunks

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Step, ...]: ...
    def __getitem__(self, index: int | slice) -> Step | tuple[Step, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        where = range(len(self))[index]  # IndexError and negative indices as lists have them
        number = bisect_right(self.ends, where)
        phase = self.phases[number]
        k = where - self.ends[number] + phase.count
        caption = lambda step: self._caption(phase, k, step)  # noqa: E731
        return Step(phase.moves(k), phase.name, caption, self.buffers, in_network=phase.in_network)

    def _caption(self, phase: Phase, k: int, step: Step) -> str:
        says = phase.says(k) if callable(phase.says) else phase.says
        return describe(says, step.moves, self.chunks)


def transfers_of(columns: Columns, buffers: Sequence[str]) -> tuple[Transfer, ...]:
    """Columns as Transfers, with the names of ops and buffers instead of their numbers."""
    return tuple(
        Transfer(src, dst, chunk, OPS[op], count, dst_chunk, buffers[src_buffer], buffers[dst_buffer])
        for src, dst, chunk, dst_chunk, count, op, src_buffer, dst_buffer in columns.rows()
    )


def columns_of(transfers: Iterable[Transfer], buffers: dict[str, int]) -> Columns:
    """Transfers as Columns; `buffers` is name -> number, in order. ScheduleError for words that mean nothing, and for a
    "new" that cannot be one."""
    rows = []
    for transfer in transfers:
        transfer = transfer if type(transfer) is Transfer else Transfer(*transfer)
        src, dst, chunk, op, count, dst_chunk, src_buffer, dst_buffer = transfer
        if problem := _problem(src, dst, chunk, op, (src_buffer, dst_buffer), buffers):
            raise ScheduleError(problem, rank=dst, chunk=dst_chunk)
        rows.append((src, dst, chunk, dst_chunk, count, OPS.index(op), buffers[src_buffer], buffers[dst_buffer]))
    return Columns(*np.array(rows, np.int64).reshape(-1, 8).T)


def _problem(src: int, dst: int, chunk: int, op: str, names: tuple[str, str], buffers: dict[str, int]) -> str | None:
    """What is wrong with a Transfer in itself. Whether its places exist is for `Schedule.check` to say."""
    if op not in OPS:
        return f'op of a Transfer is "copy", "reduce" or "new", got {op!r}'
    if unknown := [name for name in names if name not in buffers]:
        return f"no buffer is called {unknown[0]!r}; this schedule has {', '.join(buffers)}"
    if op == "new" and src != dst:
        return f'rank {src} cannot make something new on rank {dst}: src and dst of a "new" are the same rank'
    if op == "new" and chunk < 0:
        return f'rank {src} makes something new with the number {chunk}: chunk of a "new" is a number from 0 on'
    return None
