"""What the ranks end with: what is in their variables when the cell has ended, byte by byte.

Moves and symbols tell how a picture comes to its end; the student may have changed the result since, without any
message. So both questions about the end are put to the accounts, not to a picture:

* `Ending` says whether the ranks hold what a collective demands; only then the run gets its name.
* `made_of` says what a variable holds in terms of what all ranks had, the answer to "where is the mistake?": element 4
  of rank 1's `y` is rank 0's element 4 of `x`, and twice rank 2's.

Left out: which collective demands what (`replay._names`), and what an exercise wants (the course's judge).
"""

from typing import NamedTuple

import numpy as np

from collectives.state import Cell
from launch.replay._happened import Happened
from launch.replay._layout import Layout
from launch.replay._places import Memory
from launch.replay._symbols import Pieces
from launch.replay._torch_ops import SIZES
from launch.replay.provenance import Kind, Piece, Region

Wanted = list[tuple[Region, Cell]]
Scale = tuple[float, str | None]  # by what a sum was multiplied, and how it was put together (None: it is a copy)


class Ending:
    """`stands_for` maps (rank, number) to the pieces of that symbol, as `Symbols` has them."""

    def __init__(
        self,
        happened: Happened,
        memories: dict[int, Memory],
        layout: Layout,
        stands_for: dict[tuple[int, int], Pieces],
    ):
        self.happened, self.memories, self.layout, self.stands_for = happened, memories, layout, stands_for

    def holds(self, goal: dict[str, np.ndarray]) -> bool:
        """Whether every rank ends with what `goal` says (buffer -> [rank, chunk] of Cells, None where anything may
        stand), in a variable that is left; all of it may have been divided by the number of ranks."""
        scales: set[Scale] = set()
        for buffer, cells in goal.items():
            for rank in sorted({rank for rank, _ in np.argwhere(cells != None).tolist()}):  # noqa: E711 (an array)
                due = [(chunk, cell) for chunk, cell in enumerate(cells[rank]) if cell is not None]
                regions = [(self.layout.region(rank, buffer, chunk), cell) for chunk, cell in due]
                wanted = [(region, cell) for region, cell in regions if region is not None]
                if len(wanted) < len(due):
                    return False
                found = self._somewhere(rank, wanted)
                if found is None:
                    return False
                scales |= found
        return len({scale for scale, _ in scales}) <= 1 and len({how for _, how in scales} - {None}) <= 1

    def _somewhere(self, rank: int, wanted: Wanted) -> set[Scale] | None:
        """How one of the variables that are left on a rank holds all that, rather the one that was worked in; None if
        there is none."""
        if rank not in self.memories or not self.happened.seen(rank):
            return None
        place, first = wanted[0][0].place, wanted[0][0].lo
        for bound, at in self._left(rank, place, first):
            parts = [
                self._scales(self._held(rank, bound, region.lo - at, region.hi - at), cell, region.hi - region.lo)
                for region, cell in wanted
            ]
            known = [part for part in parts if part is not None]
            if len(known) == len(parts):
                return set().union(*known)
        return None

    def _left(self, rank: int, place: str, first: int):
        """(memory, shift) of what may hold a place's content in the end: the variable of that name, where it was worked
        on last if a variable still reaches that, and any other variable, where the content may begin with byte
        `first`."""
        memory = self.memories[rank]
        own = memory.bound_last(place)
        if own is not None:
            yield own, 0
            if memory.size(place) == sum(nbytes for *_, nbytes in own):
                return  # it is bound to something of that size: that is what the student looks at
        for name in [path for path in memory.final if path != place] + [*memory.lists]:
            bound = memory.bound_last(name)
            if bound is not None:
                yield bound, 0
                if first:
                    yield bound, first

    def _held(self, rank: int, bound: list[tuple[int, int, int]], lo: int, hi: int) -> list[Piece]:
        """What bytes lo up to hi of some memory hold when the cell has ended, counted from the first of them."""
        found, at = [], 0
        for storage, start, nbytes in bound:
            a, b = max(lo, at), min(hi, at + nbytes)
            if a < b:
                for p in self.happened.ends[rank].held(storage, start + a - at, start + b - at):
                    by = start - at + lo
                    found.append(Piece(p.lo - by, p.hi - by, p.value.shifted(by)))
            at += nbytes
        return found

    def _scales(self, held: list[Piece], cell: Cell, nbytes: int) -> set[Scale] | None:
        """How the pieces are all that a Cell names, once each; None if they are not. Zeros that only began a sum do not
        count."""
        wanted = [self.stands_for.get(origin, ()) for origin in cell.origins]
        if not held or not all(wanted) or sum(p.hi - p.lo for p in held) != nbytes:
            return None
        edges = {edge for pieces in wanted for a, b, _ in pieces for edge in (a, b)}
        scales: set[Scale] = set()
        for p in held:
            for at in [p.lo, *sorted(edge for edge in edges if p.lo < edge < p.hi)]:
                found = self._scale(p, [_at(pieces, at) for pieces in wanted])
                if found is None:
                    return None
                scales.add(found)
        return scales if self._may_scale(scales) else None

    def _scale(self, piece: Piece, wanted: list[tuple[int, int] | None]) -> Scale | None:
        """The same for bytes that each of the wanted (leaf, shift) covers as a whole."""
        value = piece.value
        there = {(leaf, shift): times for leaf, shift, times in value.terms}
        known = {term for term in wanted if term in there}
        if len(known) < len(wanted):
            return None
        extra = there.keys() - known
        if any(self.happened.leaves.all[leaf].kind is not Kind.ZERO for leaf, _ in extra) or (
            extra and value.how != "sum"
        ):
            return None
        times = {round(there[term], 9) for term in known}
        return (times.pop(), value.how if len(wanted) > 1 else None) if len(times) == 1 else None

    def _may_scale(self, scales: set[Scale]) -> bool:
        """All of a sum once, or all of it divided by the number of ranks: a mean."""
        ranks = len(self.memories)
        return all(abs(scale - 1) < 1e-6 or abs(scale * ranks - 1) < 1e-6 for scale, _ in scales)


def _at(pieces: Pieces, at: int) -> tuple[int, int] | None:
    """The leaf and its shift at a byte of a symbol; None where it is no copy of one leaf."""
    value = next((value for lo, hi, value in pieces if lo <= at < hi), None)
    return value.terms[0][:2] if value is not None and value.plain else None


class Made(NamedTuple):
    """Elements lo up to hi of a variable are put together in one way, `how` ("sum" also for a copy).

    terms  (rank, element, times): element lo is made of that element of the rank's input, lo + 1 of the next one ...
    other  what else is in it, None if nothing
    lines  of the cell on which the rank wrote there last itself
    """

    lo: int
    hi: int
    how: str
    terms: tuple[tuple[int, int, float], ...]
    other: Kind | None
    lines: tuple[int, ...]


def made_of(happened: Happened, memories: dict[int, Memory], rank: int, name: str, of: str) -> list[Made]:
    """The pieces of a variable of one rank. See `Recording.made_of`."""
    memory = memories.get(rank)
    bound = memory.bound_last(name) if memory else None
    if memory is None or bound is None or not all(happened.seen(each) for each in memories):
        return []
    inputs = _inputs(happened, memories, of)
    found, at = [], 0
    for storage, lo, nbytes in bound:
        size = SIZES.get(memory.storages[storage]["dtype"], 1)
        for p in happened.ends[rank].held(storage, lo, lo + nbytes):
            for a, b, terms, other in _parts(happened, p, inputs, size):
                lines = [
                    w.line for w in happened.writes[rank] if w.storage == storage and w.lo < b and a < w.hi and w.line
                ]
                first, last = (a - lo + at) // size, (b - lo + at) // size
                found.append(Made(first, last, p.value.how, tuple(terms), other, tuple(lines[-1:])))
        at += nbytes
    return found


def _inputs(happened: Happened, memories: dict[int, Memory], of: str) -> dict[int, list]:
    """Leaf -> (lo, hi, rank, shift): its bytes lo up to hi are those of the rank's input, from byte lo + shift on."""
    found: dict[int, list] = {}
    for rank, starts in happened.starts.items():
        at = 0
        for b in memories[rank].named(of, 0):
            for p in starts.get(b.storage, ()):
                lo, hi = max(p.lo, b.lo), min(p.hi, b.lo + b.nbytes)
                if lo < hi and p.value.plain:
                    leaf, shift, _ = p.value.terms[0]
                    found.setdefault(leaf, []).append((lo + shift, hi + shift, rank, at - b.lo - shift))
            at += b.nbytes
    return found


def _parts(happened: Happened, piece, inputs: dict[int, list], size: int):
    """(lo, hi, terms, other) of a piece, cut where it comes from another place of an input."""
    cuts = {piece.lo, piece.hi}
    for leaf, shift, _ in piece.value.terms:
        for a, b, *_ in inputs.get(leaf, ()):
            cuts |= {edge - shift for edge in (a, b) if piece.lo < edge - shift < piece.hi}
    for lo, hi in zip(sorted(cuts), sorted(cuts)[1:], strict=False):
        terms, others = [], []
        for leaf, shift, times in piece.value.terms:
            source = next((s for s in inputs.get(leaf, ()) if s[0] <= lo + shift < s[1]), None)
            if source is None:
                others.append(happened.leaves.all[leaf].kind)
            else:
                terms.append((source[2], (lo + shift + source[3]) // size, times))
        others = [kind for kind in others if kind is not Kind.ZERO] or (others if not terms else [])
        yield lo, hi, sorted(terms), next(iter(others), None)
