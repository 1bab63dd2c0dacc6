"""What every rank's buffers hold, in symbols: `c1` is what rank 2 had in its chunk 1 at the start, `a0+b0` a sum.

Symbols prove what numbers only suggest: a sum of numbers can be right by accident, a multiset of origins cannot. A
`Cell` is such a multiset, a `State` one cell per rank, buffer and chunk, and `State.apply` carries out one step.

Left out: whether a step makes sense. `apply` does what it is told; `collectives.proof` judges.
"""

import numpy as np

from collectives.columns import NEW, REDUCE, Columns

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
    """The content of one chunk of one buffer: the (rank, chunk) of everything that was added into it, sorted."""

    __slots__ = ("origins",)

    def __init__(self, origins=()):
        self.origins = tuple(origins)

    @property
    def contributors(self) -> tuple[int, ...]:
        """The ranks whose data is in here, each once, in order."""
        return tuple(sorted({rank for rank, _ in self.origins}))

    def __add__(self, other: "Cell") -> "Cell":
        return Cell(sorted(self.origins + other.origins))

    def __or__(self, other: "Cell") -> "Cell":
        """Knowledge instead of a sum: what is known twice is known once (barrier)."""
        return Cell(sorted({*self.origins, *other.origins}))

    def __bool__(self):
        return bool(self.origins)

    def __eq__(self, other):
        return isinstance(other, Cell) and self.origins == other.origins

    def __hash__(self):
        return hash(self.origins)

    def __str__(self):
        return "+".join(symbol(rank, chunk) for rank, chunk in self.origins)

    def __repr__(self):
        return f"Cell({str(self)!r})"


EMPTY = Cell()


def empty_cells(ranks: int, chunks: int) -> np.ndarray:
    """One buffer of every rank with nothing in it: an object array [ranks, chunks] of EMPTY."""
    return np.full((ranks, chunks), EMPTY, dtype=object)


def single_chunks(columns: Columns) -> tuple[list, list]:
    """The transfers cut into single chunks, messages and local ones apart, each (op, source slot, destination slot).

    A slot is (buffer index, rank, chunk). The source of a new is no slot: its chunk is the number of the symbol.
    """
    messages, local = [], []
    rows = zip(*(field.tolist() for field in columns.full()), strict=True)
    for src, dst, chunk, dst_chunk, count, op, src_buffer, dst_buffer in rows:
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

    def __len__(self):
        return len(self._buffers[0])

    def __eq__(self, other):
        return isinstance(other, State) and all(
            np.array_equal(other.cells.get(name), self.cells[name]) for name in self.cells
        )

    __hash__ = None

    def __repr__(self):
        rows = (
            [f"{name}[{', '.join(map(str, row))}]" for name, row in self[rank].items()] for rank in range(len(self))
        )
        return "\n".join(f"rank {rank}: {'  '.join(row)}" for rank, row in enumerate(rows))

    def copy(self) -> "State":
        return State({name: cells.copy() for name, cells in self.cells.items()}, self.knowledge)

    def read(self, slot) -> Cell:
        buffer, rank, chunk = slot
        return self._buffers[buffer][rank, chunk]

    def taken(self, op: int, source) -> Cell:
        """What a transfer brings: what stands in its source, or a symbol of its rank's own making."""
        return Cell((source[1:],)) if op == NEW else self.read(source)

    def write(self, op: int, slot, cell: Cell) -> None:
        buffer, rank, chunk = slot
        here = self._buffers[buffer]
        if op == REDUCE:
            cell = here[rank, chunk] | cell if self.knowledge else here[rank, chunk] + cell
        here[rank, chunk] = cell

    def apply(self, columns: Columns) -> None:
        """One step, in place: all messages at once, reading what was there before; then local transfers in order."""
        messages, local = single_chunks(columns)
        arriving = [(op, target, self.taken(op, source)) for op, source, target in messages]
        for op, target, cell in arriving:
            self.write(op, target, cell)
        for op, source, target in local:
            self.write(op, target, self.taken(op, source))
