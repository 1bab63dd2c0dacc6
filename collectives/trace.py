"""trace: where the content of one chunk came from, and the transfers by which it came.

The walk goes backwards from the chunk in question. If a wanted chunk was copied there, it is wanted at the sender
before that step; if it was added, it is wanted on both ranks; if the rank made it itself, it is an origin. So only
transfers that matter are followed, and no state is computed: each step costs one look at which ranks receive in it.

Left out: the state itself (`Schedule.states`); the numbers that a run held (`Run.values`).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from collectives.columns import where
from collectives.errors import ScheduleError, within
from collectives.state import symbol
from collectives.steps import Transfer, transfers_of

if TYPE_CHECKING:
    from collectives.schedule import Schedule

NAMED = 6  # hops, and origins, that a sentence names

Slot = tuple[str, int, int]
"""Buffer, rank, chunk."""


@dataclass(frozen=True)
class Trace:
    """Where the content of a chunk came from.

    origins  (rank, chunk) of each symbol in it -> how many times that symbol is in it
    hops     the transfers it came by, oldest first, each cut to the one chunk that matters
    steps    for every hop the index of its step
    ways     for every hop what it did: "" for a copy, "sum", "max", "computed" ..., as `Schedule.ways`
    lines    for every hop the lines of the sender's cell from which it was sent; empty unless it was recorded
    place    the chunk in words: "rank 2's chunk 1"
    """

    origins: dict[tuple[int, int], int]
    hops: tuple[Transfer, ...]
    steps: tuple[int, ...]
    ways: tuple[str, ...] = field(repr=False)
    lines: tuple[tuple[int, ...], ...] = field(repr=False)
    place: str = field(repr=False)

    @property
    def sentence(self) -> str:
        """ "rank 2's chunk 1 = b1 + c1 + d1: from rank 3 in step 1, from rank 1 in step 2." Steps count from 1."""
        hops = [self._hop(number) for number in range(min(len(self.hops), NAMED))]
        if more := len(self.hops) - len(hops):
            hops.append(f"and {more} more hop{'s' if more > 1 else ''}")
        how = ", ".join(hops) or ("there from the start" if self.origins else "")
        return f"{self.place} {self._content()}{': ' if how else ''}{how}."

    def _content(self) -> str:
        if not self.origins:
            return "holds nothing"
        parts = [
            f"{times} {symbol(*origin)}" if times > 1 else symbol(*origin)
            for origin, times in islice(self.origins.items(), NAMED)
        ]
        if more := len(self.origins) - len(parts):
            parts.append(f"{more} more")
        adds = {way for hop, way in zip(self.hops, self.ways, strict=True) if hop.op != "new"} <= {"", "sum"}
        return f"= {' + '.join(parts)}" if adds else f"is made of {', '.join(parts)}"  # a maximum is not a sum

    def _hop(self, number: int) -> str:
        hop, way, lines = self.hops[number], self.ways[number], self.lines[number]
        how = f"{way} by" if hop.op == "new" else "within" if hop.src == hop.dst else "from"
        written = f" (line{'s' if len(lines) > 1 else ''} {' and '.join(map(str, lines))})" if lines else ""
        return f"{how} rank {hop.src} in step {self.steps[number] + 1}{written}"


def trace(schedule: "Schedule", rank: int, chunk: int, step: int, buffer: str | None = None) -> Trace:
    """The Trace of what a chunk holds after `schedule.steps[step]`; see `Schedule.trace`."""
    rank = within("trace", "rank", rank, 0, schedule.ranks)
    chunk = within("trace", "chunk", chunk, 0, schedule.chunks)
    step = within("trace", "step", step, -len(schedule.steps), len(schedule.steps)) % len(schedule.steps)
    buffer = schedule.result if buffer is None else buffer
    if buffer not in schedule.buffers:
        raise ScheduleError(f"trace: no buffer is called {buffer!r}; this schedule has {', '.join(schedule.buffers)}")
    walk = _Walk(schedule, (buffer, rank, chunk))
    for index in range(step, -1, -1):
        walk.back(index)
    hops = walk.hops[::-1]
    return Trace(
        origins=walk.begin(),
        hops=tuple(hop for hop, *_ in hops),
        steps=tuple(index for _, index, _, _ in hops),
        ways=tuple(way for _, _, way, _ in hops),
        lines=tuple(lines for _, _, _, lines in hops),
        place=f"rank {rank}'s chunk {chunk}" + (f" of {buffer!r}" if len(schedule.buffers) > 1 else ""),
    )


class _Walk:
    """What is wanted where, and how many times, before the steps undone so far; and the hops found so far."""

    def __init__(self, schedule: "Schedule", slot: Slot) -> None:
        self.schedule = schedule
        self.wanted: Counter[Slot] = Counter({slot: 1})
        self.origins: Counter[tuple[int, int]] = Counter()
        self.hops: list[tuple[Transfer, int, str, tuple[int, ...]]] = []  # with step, way and lines; latest first

    def back(self, index: int) -> None:
        """One step backwards: first its local transfers, the last one first, then its messages, all at once."""
        step = self.schedule.steps[index]
        numbers = np.flatnonzero(np.isin(step.moves.dst, [rank for _, rank, _ in self.wanted]))
        if not len(numbers):
            return
        transfers = transfers_of(where(numbers, step.moves), step.buffers)
        came: list[tuple[Transfer, int]] = []
        before: Counter[Slot] = Counter()  # all messages read what was there before any of them
        for local, read in ((True, self.wanted), (False, before)):
            for number, transfer in zip(numbers[::-1], transfers[::-1], strict=True):
                if (transfer.src == transfer.dst) == local:
                    came += [(hop, number) for hop in self.undo(transfer, read)]
        self.wanted += before
        if came:
            ways = self.schedule.ways(index)
            for hop, number in came:
                lines = sorted({line for rank, line, _ in step.sources if rank == hop.src})
                self.hops.append((hop, index, ways[number], tuple(lines)))

    def undo(self, transfer: Transfer, read: Counter[Slot]) -> Iterator[Transfer]:
        """Adds what is wanted at the transfer's target to `read` at its source; yields wanted chunks, last first."""
        for i in reversed(range(transfer.count)):
            target = (transfer.dst_buffer, transfer.dst, transfer.dst_chunk + i)
            times = self.wanted[target]
            if not times:
                continue
            if transfer.op != "reduce":
                del self.wanted[target]
            if transfer.op == "new":
                self.origins[transfer.src, transfer.chunk + i] += times
            else:
                read[transfer.src_buffer, transfer.src, transfer.chunk + i] += times
            yield transfer._replace(chunk=transfer.chunk + i, dst_chunk=target[2], count=1)

    def begin(self) -> dict[tuple[int, int], int]:
        """The origins, now that all steps are undone: what is still wanted was there at the start."""
        state = self.schedule.start()
        for (buffer, rank, chunk), times in self.wanted.items():
            for origin, held in state.cells[buffer][rank, chunk].terms:
                self.origins[origin] += held * times
        # In a barrier it does not matter how often a rank heard the news.
        return {origin: 1 if state.knowledge else times for origin, times in sorted(self.origins.items())}
