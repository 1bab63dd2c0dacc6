"""check: the proof, from symbols, that a schedule does what its collective promises.

In each step no rank may send what it does not hold, add where there is nothing, or add something a second time or to
another chunk; and no two messages may race for one place. After the last step every rank must hold exactly what
`collectives.spec` promises. The first thing that is wrong is reported with step, rank and chunk. A recorded run that
is not a single collective promises nothing and may add what it likes: there only the messages are checked.

Left out: anything about real ranks (buffers that are still being sent, deadlocks). Time and memory grow with the
number of transfers times the contributions they carry: a ring of 64 ranks takes about 0.2 s.
"""

from typing import TYPE_CHECKING

import numpy as np

from collectives.columns import COPY, NEW, REDUCE, Columns
from collectives.errors import ScheduleError
from collectives.state import Cell, Part, Slot, single_chunks

if TYPE_CHECKING:
    from collectives.schedule import Schedule


def check(schedule: "Schedule") -> None:
    """None if the schedule is right, else ScheduleError."""
    Proof(schedule).promise(schedule.goal() or {})


class Proof:
    """A run on symbols that checks each transfer before it carries it out; ScheduleError at the first error.

    Its result can then be compared with several goals. A schedule that promises nothing (`schedule.goal()` is None) may
    add anything.
    """

    def __init__(self, schedule: "Schedule") -> None:
        self.schedule = schedule
        self.state = schedule.start()
        self.any_sum = schedule.goal() is None or self.state.knowledge
        self.number = 0  # of the step, from 1
        self.written: dict[Slot, int] = {}  # slot -> number of the last step that wrote it
        for step in schedule.steps:
            self.step(step.columns)

    def step(self, columns: Columns) -> None:
        self.number += 1
        self.bounds(columns)
        messages, local = single_chunks(columns)
        self.races(messages)
        arriving = [(op, source, target, self.sent(op, source, target)) for op, source, target in messages]
        for op, source, target, cell in arriving:
            self.write(op, source, target, cell)
        for op, source, target in local:
            self.write(op, source, target, self.sent(op, source, target))

    def bounds(self, columns: Columns) -> None:
        """Refuses ranks, chunks and counts that do not exist."""
        ranks, chunks = self.schedule.ranks, self.schedule.chunks
        src, dst, chunk, dst_chunk, count, op = map(np.asarray, columns[:6])
        place = np.where(op == NEW, dst_chunk, chunk)  # the chunk of a NEW is only a number: any will do
        for i in _first((src < 0) | (src >= ranks) | (dst < 0) | (dst >= ranks)):
            odd = dst[i] if 0 <= src[i] < ranks else src[i]
            wrong = f"rank {src[i]} sends chunk {place[i]} to rank {dst[i]}, but the ranks are 0 to {ranks - 1}"
            self.refuse(wrong, odd, place[i])
        for i in _first(count < 1):
            self.refuse(f"rank {src[i]} sends rank {dst[i]} {count[i]} chunks; at least 1 is needed", src[i], place[i])
        for rank, first, verb, does in (
            (src, chunk, "read", op != NEW),
            (dst, dst_chunk, "written", np.ones_like(op, bool)),
        ):
            for i in _first(does & ((first < 0) | (first + count > chunks))):
                last = first[i] + count[i] - 1
                wrong = f"rank {rank[i]}'s chunks {first[i]} to {last} are {verb}, but the chunks are 0 to {chunks - 1}"
                self.refuse(wrong, rank[i], first[i])

    def races(self, messages: list[Part]) -> None:
        """Messages of a step arrive in any order, so if one replaces a chunk, no other may write there."""
        touched: dict[Slot, tuple[int, int]] = {}
        for op, source, target in messages:
            if target in touched and COPY in (op, touched[target][0]):
                both = f"rank {touched[target][1]} and rank {source[1]} write to {self.place(target)}"
                self.refuse(f"{both} at the same time, and the last one wins", *target[1:])
            touched[target] = (op, source[1])

    def sent(self, op: int, source: Slot, target: Slot) -> Cell:
        """What the sender holds, which must not be empty; what a rank makes itself never is."""
        cell = self.state.taken(op, source)
        if not cell:
            wrong = f"rank {source[1]} sends {self.chunk_of(source)} to rank {target[1]}, but holds nothing there yet"
            self.refuse(wrong, *source[1:])
        return cell

    def write(self, op: int, source: Slot, target: Slot, cell: Cell) -> None:
        """A copy replaces. A sum needs data of the same chunk there already, and no contribution may be in both."""
        here = self.state.read(target)
        if op == REDUCE and not self.any_sum:
            adds = f"{cell} from rank {source[1]} is added to {self.place(target)}"
            if not here:
                self.refuse(f"{adds}, but there is nothing to add it to", *target[1:])
            if here.origins[0][1] != cell.origins[0][1]:
                self.refuse(f"{adds}, which holds {here}: that is another chunk", *target[1:])
            if twice := set(here.origins) & set(cell.origins):
                self.refuse(f"{adds}, but {Cell(sorted(twice))} is in there already", *target[1:])
        self.state.write(op, target, cell)
        self.written[target] = self.number

    def promise(self, goal: dict[str, np.ndarray]) -> None:
        """The post-condition, at every rank. The step reported is the one that wrote the place last."""
        for name, wanted in goal.items():
            held = self.state.cells[name]
            for rank, chunk in np.argwhere((held != wanted) & (wanted != None)).tolist():  # noqa: E711 (an array)
                slot = (self.schedule.buffers.index(name), rank, chunk)
                have, want = held[rank, chunk], wanted[rank, chunk]
                last = self.written.get(slot)
                when = f"last written in step {last}" if last else "never written"
                wrong = f"{self.place(slot)} ({when}) must hold {want or 'nothing'} after {self.schedule.collective}"
                self.refuse(f"{wrong}, but holds {have or 'nothing'}", rank, chunk, last)

    def refuse(self, problem: str, rank: int, chunk: int, step: int | None = None) -> None:
        step = step or self.number
        raise ScheduleError(f"step {step}: {problem}", step, int(rank), int(chunk))

    def chunk_of(self, slot: Slot) -> str:
        names = self.schedule.buffers
        return f"chunk {slot[2]}" + (f" of {names[slot[0]]!r}" if len(names) > 1 else "")

    def place(self, slot: Slot) -> str:
        return f"rank {slot[1]}'s {self.chunk_of(slot)}"


def _first(wrong: np.ndarray) -> list[int]:
    """Index of the first transfer that is wrong, as a list of at most one."""
    return [int(index) for index in np.flatnonzero(wrong)[:1]]
