"""What every rank's buffers hold, in symbols: `c1` is what rank 2 had in its chunk 1 at the start, `a0+b0` a sum,
`max(a0,b0)` a maximum.

Symbols prove what numbers only suggest: a sum of numbers can be right by accident, a multiset of origins cannot. A
`Cell` is such a multiset, a `State` one cell per rank, buffer and chunk, and `State.apply` carries out one step.

Left out: whether a step makes sense. `apply` does what it is told; `collectives.proof` judges.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from collectives.columns import NEW, REDUCE, Columns

SIGNS = {"sum": "+", "product": "×"}  # how an operation is written; any other by its name: "max"
SPELLED = 3  # a symbol that is in a sum more often is not written out
MANY = 1000
Origin = tuple[int, int]
"""(rank, chunk): where a rank's own data was at the start."""

Slot = tuple[int, int, int]
"""(buffer index, rank, chunk)."""

Part = tuple[int, Slot, Slot]
"""(op, source, destination) of one chunk. The source of a NEW is not a slot: its chunk is the symbol's number."""

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def letter(rank: int) -> str:
    """a for rank 0, b for rank 1, ... z, aa, ab, ... as spreadsheets name their columns."""
    name = ""
    rank += 1
    while rank:
        rank, digit = divmod(rank - 1, 26)
        name = LETTERS[digit] + name
    return name


def symbol(rank: int, chunk: int) -> str:
    """What rank `rank` starts with in chunk `chunk`: `c1` for rank 2's chunk 1."""
    return f"{letter(rank)}{chunk}"


def number(rank: int, chunk: int, chunks: int) -> int:
    """The number that stands for a symbol and names its origin: rank 2's chunk 1 is 21; 201 from 11 chunks on."""
    return rank * (10 if chunks <= 10 else 100) + chunk


class Cell:
    """The content of one chunk of one buffer: the (rank, chunk) of everything that was added into it, sorted, each
    once; `times` says how often each was added, and is () if each was added once. `sign` is "+", "max" ...; "," if they
    were combined in several ways. Two Cells with the same origins and times are equal however these were combined.

    A loop of `x = x + got` can double the terms with every turn, so they are counted and never listed.
    """

    __slots__ = ("origins", "sign", "times")

    def __init__(self, origins: Iterable[Origin] = ()) -> None:
        self.origins: tuple[Origin, ...] = tuple(origins)
        self.times: tuple[int, ...] = ()
        self.sign = "+"
        if len(set(self.origins)) < len(self.origins):
            self._count(Counter(self.origins))

    def _count(self, counts: dict[Origin, int]) -> None:
        self.origins = tuple(sorted(counts))
        self.times = tuple([counts[origin] for origin in self.origins])

    @property
    def terms(self) -> list[tuple[Origin, int]]:
        """((rank, chunk), how many times it is in here)."""
        return [*zip(self.origins, self.times or (1,) * len(self.origins), strict=True)]

    @property
    def contributors(self) -> tuple[int, ...]:
        """The ranks whose data is in here, each once, in order."""
        return tuple(sorted({rank for rank, _ in self.origins}))

    @property
    def kind(self) -> int:
        """The chunk that everything in here was in at the start; -1 if there are several, or none."""
        chunks = {chunk for _, chunk in self.origins}
        return chunks.pop() if len(chunks) == 1 else -1

    def combined(self, other: "Cell", way: str) -> "Cell":
        """Both in one: their "sum", "max" ..."""
        cell, sign = self + other, SIGNS.get(way, way)
        alone = [not part.times and len(part.origins) < 2 for part in (self, other)]
        same = all(one or part.sign == sign for one, part in zip(alone, (self, other), strict=True))
        cell.sign = sign if same else ","
        return cell

    def averaged(self) -> "Cell":
        """The sum divided by the number of its terms."""
        cell = Cell(self.origins)
        cell.times, cell.sign = self.times, "avg" if self.sign == "+" else self.sign
        return cell

    def __add__(self, other: "Cell") -> "Cell":
        if not self.times and not other.times:
            return Cell(sorted(self.origins + other.origins))
        counts = Counter(dict(self.terms))
        counts.update(dict(other.terms))
        cell = Cell()
        cell._count(counts)
        return cell

    def __or__(self, other: "Cell") -> "Cell":
        """Knowledge instead of a sum: what is known twice is known once (barrier)."""
        return Cell(sorted({*self.origins, *other.origins}))

    def __bool__(self) -> bool:
        return bool(self.origins)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.origins == other.origins and self.times == other.times

    def __hash__(self) -> int:
        return hash((self.origins, self.times))

    def __str__(self) -> str:
        between = self.sign if len(self.sign) == 1 else ","
        names = between.join(_term(symbol(*origin), times, between) for origin, times in self.terms)
        return f"{self.sign}({names})" if between != self.sign and between in names else names

    def __repr__(self) -> str:
        return f"Cell({str(self)!r})"


def _term(name: str, times: int, between: str) -> str:
    """ "c1", "c1+c1", "4·c1", of a product "c1^4"; "many·c1" for thousands."""
    if times <= SPELLED:
        return between.join([name] * times)
    shown = times if times < MANY else "many"
    return f"{name}^{shown}" if between == "×" else f"{shown}·{name}"


EMPTY = Cell()


def empty_cells(ranks: int, chunks: int) -> np.ndarray:
    """One buffer of every rank with nothing in it: an object array [ranks, chunks] of EMPTY."""
    return np.full((ranks, chunks), EMPTY, dtype=object)


def single_chunks(columns: Columns) -> tuple[list[Part], list[Part]]:
    """The transfers cut into single chunks, messages and local ones apart."""
    messages: list[Part] = []
    local: list[Part] = []
    for src, dst, chunk, dst_chunk, count, op, src_buffer, dst_buffer in columns.rows():
        kind = local if src == dst else messages
        kind.extend((op, (src_buffer, src, chunk + i), (dst_buffer, dst, dst_chunk + i)) for i in range(count))
    return messages, local


class State:
    """`state[rank]["data"][chunk]` is the Cell there; `state.cells["data"]` a whole buffer as an array [rank, chunk].

    `knowledge` is for barrier, where what arrives is not added but known: hearing of a rank twice changes nothing.
    """

    def __init__(self, cells: dict[str, np.ndarray], knowledge: bool = False):
        self.cells = cells
        self.knowledge = knowledge
        self._buffers = list(cells.values())

    def __getitem__(self, rank: int) -> dict[str, tuple[Cell, ...]]:
        return {name: tuple(cells[rank]) for name, cells in self.cells.items()}

    def __len__(self) -> int:
        return len(self._buffers[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and all(
            name in other.cells and np.array_equal(other.cells[name], self.cells[name]) for name in self.cells
        )

    __hash__ = None  # type: ignore[assignment]  # not hashable

    def __repr__(self) -> str:
        rows = (
            [f"{name}[{', '.join(map(str, row))}]" for name, row in self[rank].items()] for rank in range(len(self))
        )
        return "\n".join(f"rank {rank}: {'  '.join(row)}" for rank, row in enumerate(rows))

    def copy(self) -> "State":
        return State({name: cells.copy() for name, cells in self.cells.items()}, self.knowledge)

    def read(self, slot: Slot) -> Cell:
        buffer, rank, chunk = slot
        cell: Cell = self._buffers[buffer][rank, chunk]
        return cell

    def taken(self, op: int, source: Slot) -> Cell:
        """What a transfer brings: what its source holds, or a symbol that its rank made itself."""
        return Cell((source[1:],)) if op == NEW else self.read(source)

    def write(self, op: int, slot: Slot, cell: Cell, way: str = "sum") -> None:
        buffer, rank, chunk = slot
        here = self._buffers[buffer]
        if op == REDUCE:
            cell = here[rank, chunk] | cell if self.knowledge else here[rank, chunk].combined(cell, way)
        elif way == "avg":
            cell = cell.averaged()
        here[rank, chunk] = cell

    def apply(self, columns: Columns, ways: Iterable[str] = ()) -> None:
        """One step, in place: all messages at once, reading what was there before; then local transfers in order.
        `ways` says how each transfer combines if not all of them add, as `Schedule.ways`; a copy that is an "avg"
        divides the sum that it copies by the number of its terms."""
        messages, local = single_chunks(columns)
        taken = _ways_of(columns, ways) if {"", "sum"} < {"", "sum", *ways} else {}
        arriving = [(op, target, self.taken(op, source)) for op, source, target in messages]
        for op, target, cell in arriving:
            self.write(op, target, cell, taken.get((op, target), "sum"))
        for op, source, target in local:
            self.write(op, target, self.taken(op, source), taken.get((op, target), "sum"))


def _ways_of(columns: Columns, ways: Iterable[str]) -> dict[tuple[int, Slot], str]:
    """For each op and slot of a step, how the data is combined there or copied to it."""
    rows = zip(columns.rows(), ways, strict=True)
    return {
        (op, (dst_buffer, dst, dst_chunk + i)): way
        for (_, dst, _, dst_chunk, count, op, _, dst_buffer), way in rows
        for i in range(count if op != NEW else 0)
    }
