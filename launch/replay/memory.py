"""What one rank's tensors held at every look of its film, and what the student called them.

The value of a variable's bytes at a look, when it changed, which variable a sent tensor belongs to. A variable may be
bound to new memory on the way (`x = x + buf`): it stays the same place. A list whose tensors lie in different memory is
one place too, item after item.

Left out: why a value changed; `replay.dataflow` finds out.
"""

from bisect import bisect_right
from itertools import chain, count
from typing import NamedTuple

import numpy as np

from launch.replay.footage import Footage


class Region(NamedTuple):
    """Bytes lo up to hi of a place. A place is a variable's name, or "#3" for memory that no variable reaches."""

    place: str
    lo: int
    hi: int

    def overlaps(self, other: "Region") -> bool:
        return self.place == other.place and self.lo < other.hi and other.lo < self.hi


class _Binding(NamedTuple):
    look: int
    storage: int
    lo: int
    nbytes: int
    index: int | None
    length: int
    shape: tuple[int, ...]


class Memory:
    """`arriving` is (storage, lo, hi, first look, last look) of everything received: it counts as there at the last
    look."""

    def __init__(self, film: dict, arriving):
        self.storages = film["storages"]
        self.last_look = film["looks"] - 1
        self.footage = Footage(film, arriving)
        self.variables: dict[str, list[_Binding]] = {}
        self.lists: dict[str, dict[int, list[_Binding]]] = {}
        for look, path, base, storage, lo, nbytes, index, length, shape in film["bindings"]:
            binding = _Binding(look, storage, lo, nbytes, index, length, tuple(shape))
            if index is None:
                self.variables.setdefault(path, []).append(binding)
            else:
                self.lists.setdefault(base, {}).setdefault(index, []).append(binding)
        self.lists = {base: items for base, items in self.lists.items() if self._own_memory(items)}
        self.imagined: dict[str, tuple[int, str]] = {}  # place -> (bytes, dtype) of what was never there
        self._histories: dict[Region, tuple[list[int], list]] = {}

    @staticmethod
    def _own_memory(items) -> bool:
        """Whether the tensors of a list ever lay in different storages, and never changed their sizes."""
        first = {bindings[0].storage for bindings in items.values()} | {
            bindings[-1].storage for bindings in items.values()
        }
        sizes = all(len({binding.nbytes for binding in bindings}) == 1 for bindings in items.values())
        return len(items) > 1 and len(first) > 1 and sizes and sorted(items) == list(range(len(items)))

    def locate(self, storage: int, lo: int, nbytes: int, look: int, preferred=()) -> Region:
        """The place of some bytes at a look: of `preferred` the first that covers them, else the largest variable that
        does."""
        for base, items in self.lists.items():
            start = 0
            for index in range(len(items)):
                binding = _at(items[index], look)
                if binding and (binding.storage, binding.lo, binding.nbytes) == (storage, lo, nbytes):
                    return Region(base, start, start + nbytes)
                start += items[index][0].nbytes
        covering = self._reaching(storage, lo, nbytes, look)
        for path in preferred:
            if path in covering:
                return Region(path, lo - covering[path].lo, lo - covering[path].lo + nbytes)
        if covering:
            path = max(
                covering, key=lambda path: covering[path].nbytes
            )  # of equal ones the first: the innermost frame's
            return Region(path, lo - covering[path].lo, lo - covering[path].lo + nbytes)
        return Region(f"#{storage}", lo, lo + nbytes)

    def covering(self, storage: int, lo: int, nbytes: int, look: int) -> list[str]:
        """All variables that reach these bytes at that look, larger ones first."""
        found = self._reaching(storage, lo, nbytes, look)
        return sorted(found, key=lambda path: -found[path].nbytes)

    def _reaching(self, storage: int, lo: int, nbytes: int, look: int) -> dict:
        """Path -> binding of every variable that reaches these bytes at that look, innermost frame first."""
        found = {}
        for path, bindings in self.variables.items():
            binding = _at(bindings, look)
            if (
                binding
                and binding.storage == storage
                and binding.lo <= lo
                and lo + nbytes <= binding.lo + binding.nbytes
            ):
                found[path] = binding
        return found

    def imagine(self, name: str, nbytes: int, dtype: str) -> str:
        """A place that the run did not have, called `name`, or "name 2" if that is one of another size or type."""
        names = chain([name], (f"{name} {number}" for number in count(2)))
        place = next(each for each in names if self.imagined.get(each, (nbytes, dtype)) == (nbytes, dtype))
        self.imagined[place] = (nbytes, dtype)
        return place

    def size(self, place: str) -> int:
        """Bytes of a place."""
        if place in self.imagined:
            return self.imagined[place][0]
        if place.startswith("#"):
            return self.storages[int(place[1:])]["nbytes"]
        if place in self.lists:
            return sum(bindings[0].nbytes for bindings in self.lists[place].values())
        return max(binding.nbytes for binding in self.variables[place])

    def shape(self, place: str) -> tuple[int, ...]:
        return self.variables[place][0].shape if place in self.variables else ()

    def dtype(self, place: str) -> str:
        if place in self.imagined:
            return self.imagined[place][1]
        storage = int(place[1:]) if place.startswith("#") else self._pieces(Region(place, 0, 1))[0][1]
        return self.storages[storage]["dtype"]

    def items(self, place: str) -> list[int]:
        """Where the items of a list place begin and end: [0, 8, 16]; [] for other places."""
        items = self.lists.get(place, {})
        return [0, *np.cumsum([items[index][0].nbytes for index in range(len(items))]).tolist()] if items else []

    def value(self, region: Region, look: int):
        """The numbers there at a look, as an array (samples, if it is large); None before they were seen first, or
        never."""
        looks, values = self.history(region)
        at = bisect_right(looks, look) - 1
        return None if at < 0 else values[at]

    def changes(self, region: Region) -> list[int]:
        """The looks at which it was seen changed, the first sight included."""
        return self.history(region)[0]

    def address(self, region: Region, look: int) -> tuple[int, int] | None:
        """(storage, first byte) of the memory in which the region lay at that look."""
        found = [(storage, lo) for since, storage, lo, until in self._pieces(region) if since <= look < until]
        return found[0] if found else None

    def fresh(self, region: Region, look: int) -> bool:
        """Whether that memory was seen then for the first time."""
        address = self.address(region, look)
        return address is None or self.storages[address[0]]["first"] == look

    def renamed(self, storage: int, lo: int, nbytes: int, after: int, until: int):
        """(look, region) of variables and list items that came to be bound to just these bytes: `passing = came`.

        A variable not at the last look, when a function's result gets the name it is known by afterwards.
        """
        names = [(path, 0, bindings, min(until, self.last_look - 1)) for path, bindings in self.variables.items()]
        for base, items in self.lists.items():
            names += [(base, self.items(base)[index], bindings, until) for index, bindings in items.items()]
        for place, start, bindings, last in names:
            for binding in bindings[1:]:
                there = (binding.storage, binding.lo, binding.nbytes) == (storage, lo, nbytes)
                if there and after < binding.look <= last:
                    yield binding.look, Region(place, start, start + nbytes)

    def history(self, region: Region):
        """(looks, values): what was seen there, in order. Bytes that are being received keep their old value until they
        are there."""
        if region not in self._histories:
            looks, values = [], []
            for since, storage, lo, until in self._pieces(region):
                raw_looks, raws = self.footage.history(storage, lo, region.hi - region.lo)
                moments = [since, *(look for look in raw_looks if since < look < until)]
                for look in moments:
                    at = bisect_right(raw_looks, look) - 1
                    if at >= 0 and (not values or not _same(values[-1], raws[at])):
                        looks.append(look)
                        values.append(raws[at])
            self._histories[region] = (looks, values)
        return self._histories[region]

    def _pieces(self, region: Region):
        """Which memory a region was, when: (from look, storage, first byte, until look)."""
        if region.place in self.imagined:
            return []
        if region.place.startswith("#"):
            return [
                (self.storages[int(region.place[1:])]["first"], int(region.place[1:]), region.lo, self.last_look + 1)
            ]
        if region.place in self.lists:
            start = 0
            for _, bindings in sorted(self.lists[region.place].items()):
                if start <= region.lo < start + bindings[0].nbytes:
                    return _intervals(bindings, region.lo - start, self.last_look)
                start += bindings[0].nbytes
            return []
        return _intervals(self.variables[region.place], region.lo, self.last_look)


def _at(bindings: list[_Binding], look: int) -> _Binding | None:
    at = bisect_right(bindings, look, key=lambda binding: binding.look) - 1
    return bindings[at] if at >= 0 else None


def _intervals(bindings, offset: int, last: int):
    ends = [binding.look for binding in bindings[1:]] + [last + 1]
    return [
        (binding.look, binding.storage, binding.lo + offset, end) for binding, end in zip(bindings, ends, strict=True)
    ]


def _same(left, right) -> bool:
    return left.shape == right.shape and left.tobytes() == right.tobytes()
