"""What the student calls a rank's memory.

A place is a variable's name. A variable that is bound to new memory (`x = x + buf`) stays the same place, unless its
size changes. A list whose tensors lie in different memory is one place too, item after item. Memory that no variable
ever reaches is "#3", by its number.

A `Use` is a read or a write of a range by a call or by the rank itself, a `LocalWrite` is what a rank wrote itself in
one piece. `Places` maps ranges of memory to places. Two of them that are in use at the same time have different names.

Left out: why a number changed (`replay._replay`), and which uses are worth showing (`replay._moves`).
"""

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain, count, islice, pairwise
from typing import NamedTuple

import numpy as np

from collectives.as_if import Region
from launch.replay._calls import Call, Matched
from launch.replay._memory import Write
from launch.replay.provenance import Piece, Span, Value, moved


def nameless(place: str) -> bool:
    """Whether a place is memory that no variable ever reaches: "#3"."""
    return place.startswith("#")


MOST_ELEMENTS = 1 << 14  # compared one by one, of a tensor whose elements do not lie one after the other
MOST_PIECES = 64  # that these may be in: time grows with their square


class Binding(NamedTuple):
    """A name for memory: a variable's, or with `index` that of an item of the list `base`."""

    snapshot: int
    path: str
    base: str
    span: Span
    index: int | None  # type: ignore[assignment]  # a tuple has a method of that name
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def elements(self) -> list[Span]:
        return in_order(self.span, self.shape, self.strides)

    @property
    def nbytes(self) -> int:
        return self.span.hi - self.span.lo


def elements(bindings: list[Binding]) -> list[Span]:
    """The memory of a tensor, or of the items of a list, in the order of the elements."""
    return [span for binding in bindings for span in binding.elements]


class Variables:
    """One rank's names; `prefer` must have been called for it. `left` are the variables, and the lists of tensors, that
    are there when the cell has ended."""

    def __init__(self, snapshots: dict):
        self.storages = {int(number): known for number, known in snapshots["storages"].items()}
        self.last_snapshot = snapshots["looks"] - 1
        self.bindings = [
            Binding(snapshot, path, base, Span(storage, lo, lo + nbytes), index, tuple(shape), tuple(strides))
            for snapshot, path, base, storage, lo, nbytes, index, _, shape, strides in snapshots["bindings"]
        ]
        known = {b.path: (b.base, b.index) for b in self.bindings}
        self.left: dict[str, list[Binding]] = {}
        for path, storage, lo, nbytes, *form in snapshots["final"]:
            base, index = known.get(path, (path, None))
            last = Binding(self.last_snapshot, path, base, Span(storage, lo, lo + nbytes), index, *map(tuple, form))
            self.left.setdefault(base, []).append(last)
        self._rename()
        self.by_storage: dict[int, list[Binding]] = {}
        self.lists: dict[str, dict[int, list[Binding]]] = {}
        for binding in self.bindings:
            self.by_storage.setdefault(binding.span.storage, []).append(binding)
            if binding.index is not None:
                self.lists.setdefault(binding.base, {}).setdefault(binding.index, []).append(binding)
        self.lists = {base: items for base, items in self.lists.items() if _own_memory(items)}
        self.sizes: dict[str, int] = {}
        self.types: dict[str, str] = {}
        self.preferred: Counter = Counter()
        self.variables: dict[tuple[str, int], str] = {}  # (name, bytes) -> place
        self.by_place: dict[str, list[Binding]] = {}
        self._placed: dict[Span, Region] = {}

    def _rename(self) -> None:
        """Memory that a variable has left to the list of its chunks has the list's name: after `c = list(y.chunk(p))`
        and `y = y - x` the sum is in c, and y is something else."""
        for name, parts in self.left.items():
            spans = [part.span for part in parts]
            in_a_row = all(a.storage == b.storage and a.hi == b.lo for a, b in pairwise(spans))
            if parts[0].index is None or not in_a_row:
                continue
            whole = spans[0]._replace(hi=spans[-1].hi)
            for number, b in enumerate(self.bindings):
                now = self.left.get(b.path, ()) if b.span == whole and b.index is None else ()
                if now and all(last.span.storage != whole.storage for last in now):
                    self.bindings[number] = b._replace(path=name, base=name)

    def use(self, preferred: Counter, first: dict[str, int]) -> None:
        """`preferred` counts the calls that concern a (name, bytes), `first` is the size that has the plain name."""
        self.preferred = preferred
        for b in self.bindings:
            plain = b.nbytes == first[b.path] and (b.index is not None or b.path not in self.lists)
            place = b.path if plain else f"{b.path} ({b.nbytes} bytes)"
            self.variables[b.path, b.nbytes] = place
            self.sizes[place] = b.nbytes
            key = b.base if b.index is not None and b.base in self.lists else place
            self.by_place.setdefault(key, []).append(b)
        self.sizes |= {base: sum(each[0].nbytes for each in items.values()) for base, items in self.lists.items()}

    def reaching(self, span: Span) -> list[Binding]:
        """The variables that ever reached these bytes."""
        return [b for b in self.by_storage.get(span.storage, ()) if b.index is None and b.span.holds(span)]

    def locate(self, span: Span) -> Region:
        """The place of some bytes: an item of a list, else the largest variable, of these the one most calls
        concern."""
        if span not in self._placed:
            self._placed[span] = region = self._locate(span)
            self.types.setdefault(region.place, self.type_in(span.storage))
        return self._placed[span]

    def _locate(self, span: Span) -> Region:
        for b in self.by_storage.get(span.storage, ()):
            if b.base in self.lists and b.index is not None and b.span.holds(span):
                by = self.items(b.base)[b.index] - b.span.lo
                return Region(b.base, span.lo + by, span.hi + by)
        if found := self.reaching(span):
            best = max(found, key=lambda b: (b.nbytes, self.preferred[b.path, b.nbytes], -b.snapshot))
            return Region(self.variables[best.path, best.nbytes], span.lo - best.span.lo, span.hi - best.span.lo)
        return Region(f"#{span.storage}", span.lo, span.hi)

    def type_in(self, storage: int) -> str:
        return self.storages.get(storage, {}).get("dtype", "uint8")

    def imagine(self, name: str, nbytes: int, dtype: str) -> str:
        """A place that the run did not have, called `name`, or "name 2" if that is one of another size or type."""
        names = chain([name], (f"{name} {number}" for number in count(2)))
        place = next(n for n in names if n not in self.sizes or (self.sizes[n], self.types.get(n)) == (nbytes, dtype))
        self.sizes[place], self.types[place] = nbytes, dtype
        return place

    def size(self, place: str) -> int:
        """Bytes of a place."""
        return self.storages[int(place[1:])]["nbytes"] if nameless(place) else self.sizes[place]

    def dtype(self, place: str) -> str:
        return self.types.get(place, "uint8")

    def items(self, place: str) -> list[int]:
        """Where the items of a list place begin and end: [0, 8, 16]; [] for other places."""
        items = self.lists.get(place, {})
        return [0, *np.cumsum([items[index][0].nbytes for index in range(len(items))]).tolist()] if items else []

    def named(self, name: str, snapshot: int) -> list[Binding]:
        """The memory that a variable, or the items of a list, had at a snapshot (or when it was seen first)."""
        found: dict[int | None, Binding] = {}
        for b in self.by_place.get(name, ()):
            if b.snapshot <= snapshot or b.index not in found:
                found[b.index] = b
        whole = found.pop(None, None)
        return [whole] if whole else [found[index] for index in sorted(index for index in found if index is not None)]

    def is_left(self, span: Span) -> bool:
        """Whether a variable reaches these bytes when the cell has ended."""
        return any([last.span.holds(span) for last in chain(*self.left.values())])

    def at(self, snapshot: int) -> dict[str, list[Binding]]:
        """The variables, and the lists of tensors, that were there at a snapshot."""
        found: dict[str, dict] = {}
        for b in self.bindings:
            if b.snapshot <= snapshot:
                found.setdefault(b.base, {})[b.index] = b
        return {
            name: [items[None]] if None in items else [items[index] for index in sorted(items)]
            for name, items in found.items()
        }

    def last(self, name: str) -> list[Binding]:
        """The memory of a variable, or of the items of a list, when the cell has ended; [] if it is gone."""
        return self.left.get(name) or [last for last in chain(*self.left.values()) if last.path == name]


def prefer(variables: dict[int, Variables], runs: list[dict]) -> None:
    """Of several names for one memory the one that most calls concern, on all ranks together, is used; and of tensors
    of several sizes under one name those have the name itself."""
    counts: Counter = Counter()
    for run in runs:
        calls = Counter(span for event in run["events"] for span in [*event["ins"], *event["outs"]] if span)
        for span, times in calls.items():
            for key in {(b.path, b.nbytes) for b in variables[run["rank"]].reaching(span)}:
                counts[key] += times
    sizes: dict[str, list[int]] = {}
    for path, nbytes in [*counts, *((b.path, b.nbytes) for memory in variables.values() for b in memory.bindings)]:
        sizes.setdefault(path, []).append(nbytes)
    first = {path: max(found, key=lambda nbytes: counts[path, nbytes]) for path, found in sizes.items()}
    for memory in variables.values():
        memory.use(counts, first)


def _own_memory(items) -> bool:
    """Whether the tensors of a list lay in different storages, at first or at last, and never changed their sizes."""
    first = {bindings[0].span.storage for bindings in items.values()}
    last = {bindings[-1].span.storage for bindings in items.values()}
    sizes = all(len({binding.nbytes for binding in bindings}) == 1 for bindings in items.values())
    apart = max(len(first), len(last)) > 1
    return len(items) > 1 and apart and sizes and sorted(items) == list(range(len(items)))


def in_order(whole: Span, shape, strides) -> list[Span]:
    """The memory of a tensor in the order of its elements: in one piece, unless it is a column, a transposed matrix ...
    None of it if those would be too many pieces."""
    if not strides:
        return [whole]
    if (count := math.prod(shape)) > MOST_ELEMENTS:
        return []
    at = np.tensordot(strides, np.indices(shape), axes=1).ravel()
    size = (whole.hi - whole.lo) // (int(at.max()) + 1)
    ends = [*np.flatnonzero(np.diff(at) != 1) + 1, count]
    if len(ends) > MOST_PIECES:
        return []
    begins = [0, *ends[:-1]]
    firsts = [whole.lo + int(at[a]) * size for a in begins]
    return [Span(whole.storage, lo, lo + int(b - a) * size) for lo, a, b in zip(firsts, begins, ends, strict=True)]


def content(spans, held: Callable[[Span], list[Piece]]) -> list[Piece]:
    """The pieces of a variable, counted from its first byte; `spans` are its memory, of a list item by item."""
    found, at = [], 0
    for span in spans:
        found += moved(held(span), span.lo - at)
        at += span.hi - span.lo
    return found


class Spot(NamedTuple):
    """Where and when the outcome of a move can be looked at: memory of a rank, from a row of its op log on."""

    rank: int
    span: Span
    row: float


class Term(NamedTuple):
    """Of what a write was made: so many times what was at that span."""

    number: int
    span: Span
    times: float


class Use(NamedTuple):
    """Memory is read or written at a row, by a call or by the rank itself."""

    row: float
    writes: bool
    span: Span
    by: "Matched | LocalWrite"


class LocalWrite:
    """Some bytes written by a rank itself: neighbouring writes of one op with one expr.

    Found out in `replay._moves`: `region`, where that is; `parts`, its terms without zeros that only begin a sum;
    `tellable`, whether it is a copy of something, or all of it put together once each; `averages`, whether it divides
    a sum by the number of its terms, or adds as many terms and divides by their number.
    """

    def __init__(self, write: Write):
        self.rank, self.row, self.span, self.expr, self.step = write.rank, write.row, write.span, write.expr, 0
        self.pieces = [write]
        self.region: Region
        self.parts: list[Term] = []
        self.drawn = self.tellable = self.averages = False
        self.folded: set[int] = set()  # terms that are told as the message that brought them

    def takes(self, write: Write) -> bool:
        """Adds the next write, if it continues this one."""
        mine, other = self.expr, write.expr
        next_ = Span(self.span.storage, self.span.hi, write.span.hi)
        if (self.row, next_) != (write.row, write.span) or (mine is None) != (other is None):
            return False
        if mine and other and mine.value != other.value:
            return False
        self.pieces.append(write)
        self.span = self.span._replace(hi=write.span.hi)
        return True

    @cached_property
    def terms(self) -> list[Term]:
        """What it was made of; ask when it takes no more writes."""
        terms = self.expr.value.terms if self.expr else ()
        lo, hi = self.span[1:]
        return [Term(n, Span(storage, lo + by, hi + by), times) for n, (storage, by, times) in enumerate(terms)]

    @property
    def spot(self) -> Spot:
        return Spot(self.rank, self.span, self.row)

    @property
    def how(self) -> str:
        """How its terms were put together; "" if that cannot be told."""
        return "avg" if self.averages and len(self.terms) > 1 else self.expr.value.how if self.expr else ""

    @property
    def since(self) -> float:
        """The row at which its terms were read."""
        return self.expr.since if self.expr else self.row

    def values(self, number: int) -> list[Value]:
        """What that term held, write by write."""
        return [write.expr.held[number] for write in self.pieces if write.expr]

    def held(self, number: int) -> tuple[Piece, ...]:
        """What that term held."""
        values = zip(self.pieces, self.values(number), strict=True)
        return tuple(moved([Piece(w.span.lo, w.span.hi, value) for w, value in values], self.span.lo))


class Places:
    """The student's names for memory, such that two places which are in use at the same time never have one name."""

    def __init__(self, variables: dict[int, Variables], uses: dict[tuple[int, int], list[Use]]):
        self.variables, self.uses = variables, uses
        used: dict[tuple[int, str, int], list] = defaultdict(list)  # (rank, place, byte) -> (row, row, storage)
        for (rank, storage), found in uses.items():
            region = variables[rank].locate(min(found, key=lambda use: use.span.lo).span)
            used[rank, region.place, region.lo].append((min(u.row for u in found), max(u.row for u in found), storage))
        self._found: dict[tuple[int, Span], Region] = {}
        self._uses: dict[tuple[int, Span], list[Use]] = {}
        self.nothing: set[int] = set()
        self.divided: dict[int, int] = {}  # step -> by what ranks divide its outcome
        self.number: dict[tuple[int, int], int] = {}  # (rank, storage) -> 0 for the name itself, 1 for "name 2"
        self.replaced: set[tuple[int, int]] = set()  # (rank, storage) whose name went over to other memory
        for (rank, _, _), times in used.items():
            lanes: list[tuple[int, int]] = []  # the row until which it is taken, and by which storage
            for begin, last, storage in sorted(times):
                lane = next((i for i, (end, _) in enumerate(lanes) if end <= begin), len(lanes))
                self.replaced |= {(rank, before) for _, before in lanes[lane : lane + 1]}
                lanes[lane : lane + 1] = [(last, storage)]
                self.number[rank, storage] = lane

    def is_nothing(self, values) -> bool:
        """Whether these are zeros that only begin a sum, or memory that was never filled."""
        return all([leaf in self.nothing for value in values for leaf, _, _ in value.terms])

    def cleaned(self, value: Value) -> Value:
        """The value without zeros that only begin a sum, if there is anything else in it."""
        if len(value.terms) < 2 or value.how != "sum":
            return value
        left = tuple([term for term in value.terms if term[0] not in self.nothing])
        return value._replace(terms=left) if left else value

    def of(self, rank: int, span: Span) -> Region:
        key = (rank, span)
        if key not in self._found:
            self._found[key] = self._find(*key)
        return self._found[key]

    def _find(self, rank: int, span: Span) -> Region:
        memory = self.variables[rank]
        region, number = memory.locate(span), self.number.get((rank, span.storage), 0)
        if number == 0:
            return region
        place = f"{region.place} {number + 1}"
        memory.sizes[place], memory.types[place] = memory.size(region.place), memory.dtype(region.place)
        return region._replace(place=place)

    def tensor(self, call: Call, side: str, index: int) -> Region | None:
        """Where the index-th tensor that a call reads ("ins") or writes ("outs") lies; None if it cannot be looked
        at."""
        spans = call.event[side]
        return self.of(call.rank, spans[index]) if index < len(spans) and spans[index] else None

    def after(self, spot: Spot) -> Iterator[Use]:
        """The uses of those bytes from that row on."""
        key = (spot.rank, spot.span)
        if key not in self._uses:  # a training asks for the same ones in every step
            uses = self.uses.get((spot.rank, spot.span.storage), ())
            self._uses[key] = [use for use in uses if use.span.meets(spot.span)]
        found = self._uses[key]
        return islice(found, bisect_left(found, (spot.row,)), None)  # a Use begins with its row

    def next_write(self, spot: Spot) -> float | None:
        """The row at which those bytes are next written."""
        return next((use.row for use in self.after(spot) if use.writes and use.row > spot.row), None)
