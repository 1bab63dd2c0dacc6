"""Which memory is used when, and what it is called: the places that moves go between.

`Use` is one reading or writing of a range by a call or by the rank itself; `Done` is what a rank wrote itself, in one
piece. `Places` turns ranges of storages into places with the student's names, so that two places which are in use at
the same time never have one name.

Left out: which uses are worth showing (`replay.moves`).
"""

from bisect import bisect_left
from collections import defaultdict
from typing import NamedTuple

from launch.replay.carried_out import Write
from launch.replay.memory import Memory, Region
from launch.replay.provenance import Piece, Value


class Use(NamedTuple):
    """A storage's bytes lo up to hi are read or written at a row, by a call or by the rank itself."""

    row: int
    writes: bool
    lo: int
    hi: int
    by: object  # a Message, a Collective, or a Done


class Done:
    """Some bytes written by a rank itself: neighbouring writes of one op with one recipe."""

    def __init__(self, write: Write):
        self.rank, self.row, self.storage, self.lo, self.hi = write[:5]
        self.recipe, self.line, self.step = write.recipe, write.line, 0
        self.pieces = [write]
        self.drawn = False
        self.folded: set[int] = set()  # terms that are told as the message that brought them

    def takes(self, write: Write) -> bool:
        """Adds the next write, if it continues this one."""
        mine, other = self.recipe, write.recipe
        same = (self.row, self.storage, self.hi) == (write.row, write.storage, write.lo)
        if not same or (mine is None) != (other is None) or (mine and mine.value != other.value):
            return False
        self.pieces.append(write)
        self.hi = write.hi
        return True

    def terms(self):
        """(number, storage, lo, hi, times) of what it was made of."""
        for number, (storage, shift, times) in enumerate(self.recipe.value.terms if self.recipe else ()):
            yield number, storage, self.lo + shift, self.hi + shift, times

    def held(self, number: int) -> tuple[Piece, ...]:
        """What that term held."""
        return tuple(Piece(w.lo - self.lo, w.hi - self.lo, w.recipe.held[number].shifted(self.lo)) for w in self.pieces)


class Places:
    """The student's names for memory, such that two places which are in use at the same time never have one name."""

    def __init__(self, memories: dict[int, Memory], uses: dict[tuple[int, int], list[Use]]):
        self.memories, self.uses = memories, uses
        spans: dict[tuple[int, str, int], list] = defaultdict(list)
        for (rank, storage), found in uses.items():
            first = min(found, key=lambda use: use.lo)
            region = memories[rank].locate(storage, first.lo, first.hi - first.lo)
            spans[rank, region.place, region.lo].append((min(u.row for u in found), max(u.row for u in found), storage))
        self.nothing: set[int] = set()
        self.number: dict[tuple[int, int], int] = {}  # (rank, storage) -> 0 for the name itself, 1 for "name 2"
        for (rank, _, _), found in spans.items():
            lanes: list[int] = []
            for first, last, storage in sorted(found):
                lane = next((i for i, end in enumerate(lanes) if end <= first), len(lanes))
                lanes[lane : lane + 1] = [last]
                self.number[rank, storage] = lane

    def is_nothing(self, pieces) -> bool:
        """Whether these are zeros that only begin a sum, or memory that nobody has filled yet."""
        return all([leaf in self.nothing for p in pieces for leaf, _, _ in p.value.terms])

    def cleaned(self, value: Value) -> Value:
        """The value without zeros that only begin a sum, if there is anything else in it."""
        if len(value.terms) < 2 or value.how != "sum":
            return value
        left = tuple([term for term in value.terms if term[0] not in self.nothing])
        return value._replace(terms=left) if left else value

    def of(self, rank: int, storage: int, lo: int, hi: int) -> Region:
        region = self.memories[rank].locate(storage, lo, hi - lo)
        number = self.number.get((rank, storage), 0)
        if number == 0:
            return region
        memory, place = self.memories[rank], f"{region.place} {number + 1}"
        memory.sizes[place], memory.types[place] = memory.size(region.place), memory.dtype(region.place)
        memory.shapes.setdefault(place, memory.shape(region.place))
        return region._replace(place=place)

    def after(self, rank: int, storage: int, row: int):
        """The uses of a storage from a row on."""
        uses = self.uses.get((rank, storage), [])
        at = bisect_left(uses, row, key=lambda use: use.row)
        return (uses[i] for i in range(at, len(uses)))

    def next_write(self, rank: int, storage: int, lo: int, hi: int, row: int) -> int | None:
        """The row at which those bytes are next written after `row`."""
        for use in self.after(rank, storage, row):
            if use.writes and use.row > row and use.lo < hi and lo < use.hi:
                return use.row
        return None
