"""Symbols for a recorded run: what every place held before the first move, and which data each symbol stands for.

A chunk that is read before it is written held something at the start, and gets a symbol of its rank: `c1`. Chunks that
held the same data (copies of each other, as `replay.provenance` knows) get the same symbol; one that holds other data
than the chunk of that number in an earlier buffer is numbered on, on all ranks alike.

Left out: the numbers; see `Recording.start_values`.
"""

from collectives.state import Cell, empty_cells
from launch.replay._layout import Layout
from launch.replay._moves import Move
from launch.replay._picture import Picture
from launch.replay._places import nameless
from launch.replay.provenance import Piece, Pieces, Value, cut, joined

MANY = 16  # buffers; a run with more gets no name


def _found_at(value: Value, content: list[Piece]) -> int | None:
    """At which byte of some content a value begins; None if it is not in there."""
    for p in content if value.plain else ():
        at = value.terms[0][1] - p.value.terms[0][1]
        if p.value.plain and p.value.terms[0][0] == value.terms[0][0] and p.lo <= at < p.hi:
            return at
    return None


class Symbols:
    """`start`: buffer -> array [rank, chunk] of Cells; `stands_for`: (rank, number) -> the pieces of a symbol.

    `variable(rank, name, lo, hi, size)` gives the pieces at first in a variable of `size` bytes (of any, if that is not
    given), None if a rank has no such variable; `variables(rank, value)` the (name, byte) where such a value begins.
    """

    def __init__(self, layout: Layout, begin: Picture, ranks: int, is_nothing, variable, variables, given):
        self.layout, self.begin, self.ranks, self.is_nothing = layout, begin, ranks, is_nothing
        self.variable, self.variables = variable, variables
        self.stands_for: dict[tuple[int, int], Pieces] = {}
        self.start = {name: empty_cells(ranks, layout.chunks) for name in layout.buffers}
        self._numbers: dict[int, dict[Pieces, int]] = {rank: {} for rank in range(ranks)}
        self._number_by_input(given)
        # A rank's own data fill a buffer; a buffer that is partly filled has a part of them where the rest will arrive.
        order = sorted(layout.buffers, key=lambda name: not self._is_full(name))
        for index, buffer in enumerate(order, bool(self.stands_for)):
            for chunk in range(len(layout.cuts.get(buffer, ())) - 1):
                self._number(index, buffer, chunk)
        self.next = {rank: layout.chunks * (len(layout.buffers) + bool(self.stands_for)) for rank in range(ranks)}

    def _number_by_input(self, given: dict[int, list[Piece]]) -> None:
        """Numbers the data of the input of a collective by where they are in it, wherever else they are: rank 2's `x`
        in `parts[2]` is c0."""
        found: dict[tuple[int, Pieces], tuple[int, int]] = {}  # (first byte, last) in the input
        for rank, content in given.items():
            for buffer in self.layout.buffers:
                for chunk in range(len(self.layout.cuts.get(buffer, ())) - 1):
                    pieces = self._first(rank, buffer, chunk)
                    at = _found_at(pieces[0][2], content) if pieces else None
                    if at is not None:
                        found[rank, pieces] = (at, at + pieces[-1][1])
        spans = sorted({*found.values()})
        if len(spans) <= self.layout.chunks and all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False)):
            for (rank, pieces), span in found.items():
                self._name(rank, spans.index(span), pieces)

    def _is_full(self, buffer: str) -> bool:
        cells = range(len(self.layout.cuts.get(buffer, ())) - 1)
        held = [[bool(self._first(rank, buffer, chunk)) for chunk in cells] for rank in range(self.ranks)]
        return all(all(chunks) or not any(chunks) for chunks in held)

    def _first(self, rank: int, buffer: str, chunk: int) -> Pieces:
        """What a chunk held at first, () for nothing."""
        region = self.layout.region(rank, buffer, chunk)
        pieces = self.begin.of(rank, region) if region else ()
        return () if self.is_nothing([value for *_, value in pieces]) else pieces

    def _variable(self, rank: int, buffer: str, chunk: int) -> Pieces | None:
        """What a chunk held at first in the variable of the buffer's name, whether the rank works in it or not."""
        cuts = self.layout.cuts[buffer]
        if chunk + 1 >= len(cuts):
            return None
        return self.variable(rank, buffer, cuts[chunk], cuts[chunk + 1], cuts[-1])

    def _number(self, index: int, buffer: str, chunk: int) -> None:
        """Gives one chunk of a buffer its symbols."""
        new: dict[int, Pieces] = {}
        for rank in range(self.ranks):
            pieces = self._first(rank, buffer, chunk)
            known = self._numbers[rank].get(pieces)
            if pieces and known is None:
                new[rank] = pieces
            elif known is not None:
                self.start[buffer][rank, chunk] = Cell(((rank, known),))
        clash = new and self._clashes(buffer, chunk, new)
        number = chunk + self.layout.chunks * index if clash else chunk
        for rank, pieces in new.items():
            self._name(rank, number, pieces)
            self.start[buffer][rank, chunk] = Cell(((rank, number),))
        if new and not clash:
            for rank in range(self.ranks):  # ranks that do not use this variable may have the same data elsewhere
                same = self._variable(rank, buffer, chunk)
                if same and same not in self._numbers[rank] and (rank, number) not in self.stands_for:
                    self._name(rank, number, same)

    def _name(self, rank: int, number: int, pieces: Pieces) -> None:
        self.stands_for[rank, number] = pieces
        self._numbers[rank][pieces] = number

    def _clashes(self, buffer: str, chunk: int, new: dict[int, Pieces]) -> bool:
        """Whether what has that number on other ranks is something else: it is the same data only if all of them have
        had it in a variable of one name."""
        if any((rank, chunk) in self.stands_for for rank in new):
            return True
        others = [rank for rank in range(self.ranks) if (rank, chunk) in self.stands_for]
        group = new | {rank: self.stands_for[rank, chunk] for rank in others}
        if len(group) == 1 or len(self.layout.buffers) > MANY:
            return False
        return not set.intersection(*[self._names_of(rank, pieces) for rank, pieces in group.items()])

    def _names_of(self, rank: int, pieces: Pieces) -> set[tuple[str, int]]:
        """(variable, first byte) of all that held just this at first."""
        size = pieces[-1][1]
        found = set()
        for (r, place), held in self.begin.began.items():
            if r == rank and not nameless(place):
                found |= {(place, p.lo) for p in held.pieces if self._is(held.read(p.lo, p.lo + size), p.lo, pieces)}
        for name, lo in self.variables(rank, pieces[0][2]):
            if self.variable(rank, name, lo, lo + size) == pieces:
                found.add((name, lo))
        return found

    def _is(self, read: list[Piece], lo: int, pieces: Pieces) -> bool:
        return joined(read, lo) == pieces

    def new(self, move: Move) -> int:
        """The number of the first symbol for what a "new" move brings, a symbol for each chunk of its target."""
        rank, (buffer, first, count) = move.dst, self.layout.at(move.dst, move.target)
        number = self.next[rank]
        self.next[rank] += count
        cuts = self.layout.cuts[buffer]
        for i in range(count):
            lo, hi = cuts[first + i] - move.target.lo, cuts[first + i + 1] - move.target.lo
            self.stands_for[rank, number + i] = joined(cut(move.held, lo, hi))
        return number
