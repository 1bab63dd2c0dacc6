"""What bytes are made of: the algebra of values, and the map from memory to values.

A `Value` says what is in a range of memory: a sum, a maximum, a product ... of leaves, element by element. A leaf is
data whose origin is not followed further: what a rank had at the start, zeros, the result of other arithmetic
("computed"), bytes that were changed outside torch. A term (leaf, shift, times) means: byte b of this memory holds
`times` the leaf's byte b + shift. So a value stays the same when its range is cut, and two copies have equal values
wherever they lie, whatever their numbers.

Nothing is ever kept per element: `Ranges` maps ranges of one storage to values, and only cuts where the program does.

Left out: which op makes which value (`replay._torch_ops`), and who sent what to whom (`replay._replay`).
"""

from bisect import bisect_left, bisect_right
from enum import Enum, auto
from operator import attrgetter
from typing import NamedTuple

MOST_TERMS = 600  # a value with more is only "computed"
OUTSIDE = -1  # in `Leaf.ranks`: data of unknown ranks


class Kind(Enum):
    """The origin of a leaf."""

    OWN = auto()  # a rank had it at the start, or made it of its own data alone
    ZERO = auto()
    EMPTY = auto()  # memory that was never filled
    COMPUTED = auto()  # by arithmetic that is no reduction, from several ranks' data
    OUTSIDE = auto()  # changed outside torch
    LIBRARY = auto()  # left by a collective in memory that it need not fill
    UNSEEN = auto()


OF_ANY_RANK = (Kind.OUTSIDE, Kind.LIBRARY, Kind.UNSEEN)


class Leaf(NamedTuple):
    """Data whose origin is not followed further."""

    kind: Kind
    ranks: frozenset[int]  # whose data is in it


class Value(NamedTuple):
    """`how` is "sum" (also of a single term: a copy), "max", "min", "product", "band" ...; `terms` are sorted."""

    how: str
    terms: tuple[tuple[int, int, float], ...]  # (leaf, shift in bytes, times)

    def shifted(self, by: int) -> "Value":
        """The same value for memory whose byte b was byte b + by of this."""
        return self if by == 0 else Value(self.how, tuple([(leaf, shift + by, n) for leaf, shift, n in self.terms]))

    @property
    def plain(self) -> bool:
        """Whether it is a copy of one leaf."""
        return len(self.terms) == 1 and self.how == "sum" and self.terms[0][2] == 1


class Leaves:
    """All leaves of a run, by number. A compound value becomes a leaf too where it is part of another reduction."""

    def __init__(self):
        self.all: list[Leaf] = []
        self._compound: dict[Value, int] = {}
        self.inside: dict[int, Value] = {}  # leaf -> what it stands for, with its first term's shift taken off
        # leaf -> the number that is everywhere in it, None if there are several; of leaves that are no rank's data
        self.constants: dict[int, float | None] = {}
        self.wider: dict[int, tuple[Value, str, str]] = {}  # leaf -> (value, type, the wider type in which it is this)
        # leaves of no op, such as `torch.tensor([1, 2])`, and of variables made of constants
        self.given: set[int] = set()
        self.made_by: dict[int, str] = {}  # leaf -> the torch op that made it, if that is not followed

    def fresh(self, rank: int, kind: Kind, ranks: frozenset[int] | None = None) -> Value:
        """A copy of a new leaf in the memory of a rank."""
        self.all.append(Leaf(kind, ranks or frozenset((rank, OUTSIDE) if kind in OF_ANY_RANK else (rank,))))
        return Value("sum", ((len(self.all) - 1, 0, 1),))

    def computed(self, rank: int, ranks: frozenset[int], own: Kind = Kind.OWN, by: str = "") -> Value:
        """New data, of kind `own` if only this rank's data went in; `by` is the op that made it."""
        value = self.fresh(rank, own if ranks == {rank} else Kind.COMPUTED, ranks)
        if by:
            self.made_by[value.terms[0][0]] = by
        return value

    def ranks_of(self, value: Value) -> frozenset[int]:
        return frozenset().union(*[self.all[leaf].ranks for leaf, _, _ in value.terms])

    def is_own(self, value: Value, rank: int) -> bool:
        """Whether only that rank's data is in it."""
        return all([self.all[leaf].ranks == {rank} for leaf, _, _ in value.terms])

    def atom(self, value: Value, rank: int) -> Value:
        """The value as a copy of one leaf; equal values give the same leaf."""
        if value.plain:
            return value
        by = value.terms[0][1]
        inside = value.shifted(-by)
        if inside not in self._compound:
            self._compound[inside] = number = self.computed(rank, self.ranks_of(value)).terms[0][0]
            self.inside[number] = inside
        return Value("sum", ((self._compound[inside], by, 1),))

    def settled(self, value: Value, rank: int) -> Value:
        """What a rank computed from its own data alone becomes one leaf, without the zeros that it was added to. A sum
        of zeros alone stays as it is: which zeros are data is not known yet."""
        if value.plain or not self.is_own(value, rank):
            return value
        if value.how == "sum":
            terms = tuple([term for term in value.terms if self.all[term[0]].kind is not Kind.ZERO])
            if not terms and all([n == 1 for *_, n in value.terms]):
                return value
            value = value._replace(terms=terms or value.terms)
        return self.atom(value, rank)

    def combined(self, how: str, operands: list[tuple[Value, float]], rank: int) -> Value:
        """The operands (value, times) put together in that way, element by element."""
        if len(operands) == 1 and how == "sum" and operands[0][1] == 1:
            return operands[0][0]
        counts: dict[tuple[int, int], float] = {}
        for value, times in operands:
            if value.how != how and not value.plain:
                value = self.atom(value, rank)
            for leaf, shift, n in value.terms:
                if how == "sum":
                    counts[leaf, shift] = counts.get((leaf, shift), 0) + n * times
                else:
                    counts[leaf, shift] = counts.get((leaf, shift), 0) + n if how in ("product", "bxor") else 1
        terms = tuple(sorted([(*key, n) for key, n in counts.items() if n]))
        if not terms:
            return self.fresh(rank, Kind.ZERO)
        if len(terms) > MOST_TERMS:
            return self.fresh(rank, Kind.COMPUTED, self.ranks_of(Value(how, terms)))
        return Value(how if len(terms) > 1 or how == "product" and terms[0][2] != 1 else "sum", terms)


class Span(NamedTuple):
    """Bytes lo up to hi of a storage."""

    storage: int
    lo: int
    hi: int

    def meets(self, other: "Span") -> bool:
        """Whether they have a byte in common."""
        return self.storage == other.storage and self.lo < other.hi and other.lo < self.hi

    def holds(self, other: "Span") -> bool:
        return self.storage == other.storage and self.lo <= other.lo and other.hi <= self.hi


class Piece(NamedTuple):
    """Bytes lo up to hi of a storage. `expr` is what it was made of in terms of the rank's other memory."""

    lo: int
    hi: int
    value: Value
    expr: object = None


Pieces = tuple[tuple[int, int, Value], ...]


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


def moved(pieces, lo: int) -> list[Piece]:
    """The pieces counted from byte `lo`."""
    if lo == 0:
        return [*pieces]
    return [Piece(p.lo - lo, p.hi - lo, p.value.shifted(lo), p.expr and p.expr.shifted(lo)) for p in pieces]


def cut(pieces, lo: int, hi: int) -> list[Piece]:
    """What of some pieces lies between two bytes, counted from the first of them."""
    return moved(within(pieces, lo, hi), lo)


def within(pieces, lo: int, hi: int) -> list[Piece]:
    """The pieces of a range, cut at its ends."""
    inside = meeting(pieces, lo, hi)
    return [p if lo <= p.lo and p.hi <= hi else p._replace(lo=max(lo, p.lo), hi=min(hi, p.hi)) for p in inside]


def meeting(pieces, lo: int, hi: int):
    """The pieces that have bytes in a range."""
    return pieces[slice(*_found(pieces, lo, hi))]


def _found(pieces, lo: int, hi: int) -> tuple[int, int]:
    """Which pieces have bytes in a range. They are in order, so none before it is looked at."""
    first = bisect_right(pieces, lo, key=attrgetter("hi"))
    return first, bisect_left(pieces, hi, first, key=attrgetter("lo")) if lo < hi else first


def gaps_in(pieces, lo: int, hi: int) -> list[tuple[int, int]]:
    """The parts of a range that none of its pieces covers."""
    found, at = [], lo
    for p in pieces:
        if p.lo > at:
            found.append((at, p.lo))
        at = p.hi
    return found + [(at, hi)] if at < hi else found


class Ranges:
    """One storage: which value each range of it has. What was never written has none."""

    def __init__(self):
        self.pieces: list[Piece] = []

    def read(self, lo: int, hi: int) -> list[Piece]:
        """The pieces of a range, cut at its ends; gaps are left out."""
        return within(self.pieces, lo, hi)

    def gaps(self, lo: int, hi: int) -> list[tuple[int, int]]:
        """The parts of a range that have no value yet."""
        return gaps_in(self.read(lo, hi), lo, hi)

    def write(self, lo: int, hi: int, value: Value, expr=None) -> None:
        """The range holds `value` from now on."""
        first, end = _found(self.pieces, lo, hi)
        new = [Piece(lo, hi, value, expr)]
        if first < end:
            if self.pieces[first].lo < lo:
                new.insert(0, self.pieces[first]._replace(hi=lo))
            if self.pieces[end - 1].hi > hi:
                new.append(self.pieces[end - 1]._replace(lo=hi))
        self.pieces[first:end] = new
