"""One rank's memory while its op log is replayed: which value each range of each storage holds.

Memory that has a name, or was in a call, is `kept`: each write of the rank to it is noted, with an expression that says
what it was made of in terms of other such memory. Unnamed temporaries in between are not part of that expression.

Left out: what torch's ops mean (`replay._torch_ops`), and when each row is replayed (`replay._replay`).
"""

from collections import defaultdict
from typing import NamedTuple

from launch.replay._numbers import SIZES
from launch.replay.provenance import Kind, Leaves, Piece, Ranges, Span, Value, gaps_in


class LocalExpr(NamedTuple):
    """What some bytes were made of, in terms of kept memory: like a `Value`, but its leaves are storages. `since` is
    the row at which these were read, `held` what each of them held then."""

    value: Value
    since: float
    held: tuple[Value, ...]

    def shifted(self, by: int) -> "LocalExpr":
        if by == 0:
            return self
        return LocalExpr(self.value.shifted(by), self.since, tuple([value.shifted(by) for value in self.held]))


class Write(NamedTuple):
    """The rank itself wrote there, at that row of its op log, on that line of the cell.

    `expr` is None for what is no copy and no reduction of what the rank had.
    """

    rank: int
    row: float
    span: Span
    value: Value
    expr: LocalExpr | None
    line: int
    found: bool = False  # no op wrote it: memory that is seen for the first time


class Memory:
    """One rank's memory at a moment of its op log, as `torch_ops.Meaning` reads and writes it."""

    def __init__(self, rank: int, leaves: Leaves, kept: set[int], firsts: dict[int, int], itemsizes: dict[int, int]):
        self.rank, self.leaves, self.kept, self.firsts, self.itemsizes = rank, leaves, kept, firsts, itemsizes
        self.storages: dict[int, Ranges] = defaultdict(Ranges)
        self.row = 0.0
        self.line = 0
        self.first_arrival = None  # the snapshot at which the first received data are there
        self.dirty: dict[int, list] = {}  # by storage: the ranges written since its last snapshot
        self.left: list[Span] = []  # what the library may have written since its last snapshot
        self.writes: list[Write] = []

    def held(self, span: Span) -> list[Piece]:
        """The pieces of a range, without gaps: bytes that no op has written were there before."""
        storage, lo, hi = span
        ranges = self.storages[storage]
        pieces = ranges.read(lo, hi)
        if gaps := gaps_in(pieces, lo, hi):
            for a, b in gaps:
                value = self._found(storage)
                ranges.write(a, b, value)
                if storage in self.kept:
                    self.writes.append(Write(self.rank, self.row - 0.5, Span(storage, a, b), value, None, 0, True))
            pieces = ranges.read(lo, hi)
        return pieces

    def read(self, span: Span) -> list[Piece]:
        """The same for an op: for kept memory, the exprs say that it was read there."""
        pieces = self.held(span)
        if span.storage in self.kept:
            itself = Value("sum", ((span.storage, 0, 1),))
            return [Piece(p.lo, p.hi, p.value, LocalExpr(itself, self.row, (p.value,))) for p in pieces]
        return pieces

    def _found(self, storage: int) -> Value:
        """The value of memory that is met for the first time: the rank's own data, if nothing had been received by
        then."""
        first = self.firsts.get(storage)
        early = self.first_arrival is None or first is not None and first <= self.first_arrival
        value = self.leaves.fresh(self.rank, Kind.OWN if early else Kind.UNSEEN)
        self.leaves.given.add(value.terms[0][0])
        return value

    def write(self, span: Span, value: Value, expr: LocalExpr | None = None) -> None:
        """An op of the rank's own has written there."""
        storage, lo, hi = span
        if lo >= hi:
            return
        if storage in self.kept:
            size = self.itemsizes.get(storage, 1)
            if lo % size or hi % size:  # writing a part of a number changes the whole number
                span = Span(storage, lo // size * size, -(-hi // size) * size)
                ranks = self.leaves.ranks_of(value).union(*(self.leaves.ranks_of(p.value) for p in self.held(span)))
                value, expr = self.leaves.computed(self.rank, ranks), None
            if expr is not None and any([s < 0 for s, *_ in expr.value.terms]):  # in terms of numbers in a wider type
                expr = None
            self.writes.append(Write(self.rank, self.row, span, value, expr, self.line))
            for leaf, *_ in value.terms if self.leaves.constants else ():
                if leaf in self.leaves.constants:  # in a variable it may be a rank's data
                    del self.leaves.constants[leaf]
                    self.leaves.given.add(leaf)
            expr = None
        self.put(span, value, expr)

    def put(self, span: Span, value: Value, expr: LocalExpr | None = None) -> None:
        """That value is there now, written by an op or by a call."""
        storage, lo, hi = span
        ranges = self.storages[storage]
        ranges.write(lo, hi, value, expr)
        self.dirty.setdefault(storage, []).append((lo, hi))

    def expr(self, how: str, operands: list) -> LocalExpr | None:
        """The exprs (expr, times) reduced in that way; None if that is no single reduction."""
        if len(operands) == 1 and how == "sum" and operands[0][1] == 1:
            return operands[0][0]
        counts: dict[tuple[int, int], float] = {}
        held: dict[tuple[int, int], Value] = {}
        since = self.row
        for expr, times in operands:
            if expr is None or (expr.value.how != how and not expr.value.plain):
                return None
            since = min(since, expr.since)
            for (storage, shift, n), value in zip(expr.value.terms, expr.held, strict=True):
                counts[storage, shift] = counts.get((storage, shift), 0) + n * times
                held[storage, shift] = value
        keys = sorted(key for key, n in counts.items() if n)
        return LocalExpr(
            Value(how, tuple((*key, counts[key]) for key in keys)), since, tuple(held[key] for key in keys)
        )

    def settle(self) -> None:
        """What the rank has computed before its first call is what it started with."""
        for ranges in self.storages.values():
            ranges.pieces = [p._replace(value=self.leaves.settled(p.value, self.rank)) for p in ranges.pieces]


class Types:
    """Conversions between types of numbers in the memory of one rank.

    Numbers of a wider type are the same numbers, and are again what they were when they are converted back. What other
    conversions leave is not followed: those that round, or change the kind of number.
    """

    def __init__(self, memory, rank: int):
        self.memory, self.leaves, self.rank = memory, memory.leaves, rank
        self.same: dict[tuple[Value, str], int] = {}  # (value, type) -> the leaf of the same numbers in a wider type
        self.exprs: dict[int, tuple] = {}  # a number below 0, in place of a storage -> (expr, type, wider type)

    def converted(self, p, at: int, before: str, after: str) -> tuple:
        """(value, expr) after a conversion: to a wider type the same numbers, and back again what they were. None if
        that is not known."""
        if SIZES.get(after, 1) > SIZES.get(before, 1) and _family(before) == _family(after) in ("flo", "int"):
            return self._widened(p, at, before, after)
        value = self._narrowed(self.leaves.wider, p.value, p.lo, at, before, after)
        if value is None:
            return None, None
        expr = self._narrowed(self.exprs, p.expr.value, p.lo, at, before, after) if p.expr else None
        return self.leaves.combined(p.value.how, value, self.rank), expr and self.memory.expr(p.expr.value.how, expr)

    def as_before(self, pieces: list[Piece], own: set[int]) -> tuple[list[Piece], int]:
        """The same numbers in the type they had before a sum made them wider, as torch's of int32 is int64, and how
        many times as wide they are; as they are, and 1, if they were not all made so, or are `own` leaves: those that
        ranks began with in this type."""
        wide = ({t[0] for p in pieces for t in p.value.terms} - own) & self.leaves.wider.keys()
        known = {self.leaves.wider[leaf][1:] for leaf in wide}
        found = []
        for before, after in known if len(known) == 1 else ():
            by = SIZES[after] // SIZES.get(before, 1)
            for p in pieces:
                value, _ = self.converted(p._replace(expr=None), p.lo // by, after, before)
                found += [Piece(p.lo // by, p.hi // by, value)] if value else []
            if len(found) == len(pieces):
                return found, by
        return pieces, 1

    def _widened(self, p, at: int, before: str, after: str) -> tuple:
        def itself(number: int, by: int) -> Value:
            return Value("sum", ((number, (p.lo + by) // SIZES.get(before, 1) * SIZES[after] - at, 1),))

        by = p.value.terms[0][1]
        inside = p.value.shifted(-by)
        if (inside, before) not in self.same:
            leaf = self.leaves.computed(self.rank, self.leaves.ranks_of(p.value)).terms[0][0]
            self.same[inside, before], self.leaves.wider[leaf] = leaf, (inside, before, after)
        value = itself(self.same[inside, before], by)
        if p.expr is None or not p.expr.value.terms:
            return value, None
        by, number = p.expr.value.terms[0][1], -1 - len(self.exprs)
        self.exprs[number] = p.expr.shifted(-by), before, after
        return value, p.expr._replace(value=itself(number, by), held=(value,))

    def _narrowed(self, known: dict, wide: Value, lo: int, at: int, before: str, after: str) -> list | None:
        """[(value or expr, times)] of what was made wider; zeros in a sum are ignored."""
        found = []
        for number, shift, times in wide.terms:
            inside, *types = known.get(number, (None,))
            if types == [after, before]:
                by = (lo + shift) // SIZES[before] * SIZES.get(after, 1) - at
                found.append((inside.shifted(by), times))
            elif known is self.exprs or len(wide.terms) == 1 or self.leaves.all[number].kind is not Kind.ZERO:
                return None
        return found or None


def _family(dtype: str) -> str:
    """ "flo" for floats, "int" for integers."""
    return dtype.lstrip("b")[:3]
