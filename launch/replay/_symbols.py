"""Symbols for a recorded run: what every place held before the first move, and which data each symbol stands for.

A chunk that is read before it is written held something at the start, and gets a symbol of its rank: `c1`. Chunks that
held the same data (copies of each other, as `replay.provenance` knows) get the same symbol; one that holds other data
than the chunk of that number in an earlier buffer is numbered on, on all ranks alike.

Left out: the numbers; see `Recording.start_values`.
"""

from typing import NamedTuple

from collectives.as_if import Region
from collectives.state import Cell, empty_cells
from launch.replay._contradictions import groups
from launch.replay._layout import Layout
from launch.replay._moves import Move
from launch.replay._places import Places, Spot, Variables, nameless
from launch.replay._replay import Replay
from launch.replay.provenance import Piece, Ranges, Value, cut

MANY = 16  # buffers; a run with more gets no name
Pieces = tuple[tuple[int, int, Value], ...]


class Beginning(NamedTuple):
    """What the places of all ranks held before the first move: (rank, place) -> Ranges, in bytes of the place; and
    where that could be seen: (rank, place) -> [(lo, Spot)]."""

    held: dict[tuple[int, str], Ranges]
    seen: dict[tuple[int, str], list[tuple[int, Spot]]]

    def of(self, rank: int, region: Region) -> Pieces:
        """What a region held, counted from its first byte; () for nothing."""
        ranges = self.held.get((rank, region.place))
        return joined(ranges.read(region.lo, region.hi), region.lo) if ranges else ()


def joined(pieces, lo: int = 0) -> Pieces:
    """Pieces as (lo, hi, value) counted from byte `lo`, neighbours of one value as one."""
    found: list[tuple[int, int, Value]] = []
    for p in pieces:
        value = p.value.shifted(lo)
        if found and found[-1][1] == p.lo - lo and found[-1][2] == value:
            found[-1] = (found[-1][0], p.hi - lo, value)
        else:
            found.append((p.lo - lo, p.hi - lo, value))
    return tuple(found)


def beginning_of(moves: list[Move], replay: Replay, memories: dict[int, Variables], places: Places) -> Beginning:
    """What is read before it is overwritten was there; and what the moves leave alone of the variables that they
    use."""
    is_nothing = places.is_nothing
    held: dict[tuple[int, str], Ranges] = {}
    seen: dict[tuple[int, str], list[tuple[int, Spot]]] = {}
    touched: dict[tuple[int, str], Ranges] = {}
    over: set[tuple[int, Region]] = set()  # touched as a whole: what comes later says nothing of the start
    nothing = Value("sum", ())

    def read(rank: int, region: Region, pieces, spot: Spot | None) -> None:
        if (rank, region) in over:
            return
        key = (rank, region.place)
        gaps = touched.setdefault(key, Ranges()).gaps(region.lo, region.hi)
        for a, b in gaps:
            for p in pieces:
                lo, hi = max(a, p.lo + region.lo), min(b, p.hi + region.lo)
                if lo < hi:
                    held.setdefault(key, Ranges()).write(lo, hi, places.cleaned(p.value).shifted(-region.lo))
        if gaps and spot is not None:
            seen.setdefault(key, []).append((region.lo, spot))
        write(rank, region)

    def write(rank: int, region: Region) -> None:
        if (rank, region) not in over:
            over.add((rank, region))
            touched.setdefault((rank, region.place), Ranges()).write(region.lo, region.hi, nothing)

    for group in groups(moves):
        for move in group:
            if move.source is not None:
                read(move.src, move.source, move.held, move.origin)
        for move in sorted(group, key=lambda move: move.spot.row):
            if move.op == "reduce":
                read(move.dst, move.target, move.onto, move.under)
        for move in group:
            write(move.dst, move.target)
    for rank, place in touched:
        untouched, at = touched[rank, place], 0
        last = memories[rank].last_snapshot
        bound = [*zip(memories[rank].named(place, 0), memories[rank].named(place, last), strict=False)]
        for first, later in bound:  # `parts[rank] = x` puts the rank's own data there, without any op
            b = later if later.nbytes == first.nbytes else first
            for p in replay.held_first(rank, b.storage, b.lo, b.lo + b.nbytes):
                for a, z in () if is_nothing([p.value]) else untouched.gaps(p.lo - b.lo + at, p.hi - b.lo + at):
                    held.setdefault((rank, place), Ranges()).write(a, z, places.cleaned(p.value).shifted(b.lo - at))
                    spot = Spot(rank, b.storage, b.lo + a - at, b.lo + z - at, 0)
                    seen.setdefault((rank, place), []).append((a, spot))
            at += b.nbytes
    return Beginning(held, seen)


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

    def __init__(self, layout: Layout, begin: Beginning, ranks: int, is_nothing, variable, variables, given):
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
        for (r, place), held in self.begin.held.items():
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
