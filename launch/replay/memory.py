"""What the student calls a rank's memory, and which numbers it held at every look of the film.

A place is a variable's name. A variable may be bound to new memory on the way (`x = x + buf`): it stays the same
place, unless it has another size there. A list whose tensors lie in different memory is one place too, item after
item. Memory that no variable ever reaches is "#3", by its number.

Left out: why a number changed; `replay.happened` knows.
"""

import base64
from bisect import bisect_right
from collections import Counter
from itertools import chain, count
from typing import NamedTuple

import numpy as np


class Region(NamedTuple):
    """Bytes lo up to hi of a place."""

    place: str
    lo: int
    hi: int

    def overlaps(self, other: "Region") -> bool:
        return self.place == other.place and self.lo < other.hi and other.lo < self.hi


class Binding(NamedTuple):
    """A name for bytes of a storage: a variable's, or with `index` that of an item of the list `base`."""

    look: int
    path: str
    base: str
    storage: int
    lo: int
    nbytes: int
    index: int | None
    length: int
    shape: tuple[int, ...]


class Memory:
    """One rank's names and numbers, from its film; `prefer` must have been called for it."""

    def __init__(self, film: dict):
        self.storages = {int(number): known for number, known in film["storages"].items()}
        self.last_look = film["looks"] - 1
        self.bindings = [Binding(*row[:8], tuple(row[8])) for row in film["bindings"]]
        self.by_storage: dict[int, list[Binding]] = {}
        self.lists: dict[str, dict[int, list[Binding]]] = {}
        for binding in self.bindings:
            self.by_storage.setdefault(binding.storage, []).append(binding)
            if binding.index is not None:
                self.lists.setdefault(binding.base, {}).setdefault(binding.index, []).append(binding)
        self.lists = {base: items for base, items in self.lists.items() if _own_memory(items)}
        self.sizes: dict[str, int] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.types: dict[str, str] = {}
        self.preferred: Counter = Counter()
        self.variables: dict[tuple[str, int], str] = {}  # (name, bytes) -> place
        self.by_place: dict[str, list[Binding]] = {}
        self._parts = film["parts"]
        self._whole = {part["storage"]: n for n, part in enumerate(self._parts) if part["whole"]}
        self._first: dict[tuple[int, int], int] = {}  # where a part of a large storage begins -> the largest such part
        for number, part in sorted(enumerate(self._parts), key=lambda each: each[1]["nbytes"]):
            if not part["whole"]:
                self._first[part["storage"], part["lo"]] = number
        self.final = {path: (storage, lo, nbytes) for path, storage, lo, nbytes in film["final"]}
        self._patches: dict[int, list] = {}
        for look, part, lo, data in film["changes"]:
            self._patches.setdefault(part, []).append((look, lo, base64.b64decode(data)))
        self._placed: dict[tuple, Region] = {}
        self._histories: dict[tuple, tuple[list[int], list[bytes]]] = {}

    def use(self, preferred: Counter, first: dict[str, int]) -> None:
        """`preferred` counts the calls that concern a (name, bytes), `first` is the size that has the plain name."""
        self.preferred = preferred
        for b in self.bindings:
            plain = b.nbytes == first[b.path] and (b.index is not None or b.path not in self.lists)
            place = b.path if plain else f"{b.path} ({b.nbytes} bytes)"
            self.variables[b.path, b.nbytes] = place
            self.sizes[place] = b.nbytes
            self.shapes.setdefault(place, b.shape)
            key = b.base if b.index is not None and b.base in self.lists else place
            self.by_place.setdefault(key, []).append(b)
        self.sizes |= {base: sum(each[0].nbytes for each in items.values()) for base, items in self.lists.items()}

    def reaching(self, storage: int, lo: int, nbytes: int) -> list[Binding]:
        """The variables that ever reached these bytes."""
        bindings = self.by_storage.get(storage, ())
        return [b for b in bindings if b.index is None and b.lo <= lo and lo + nbytes <= b.lo + b.nbytes]

    def locate(self, storage: int, lo: int, nbytes: int) -> Region:
        """The place of some bytes: an item of a list, else the largest variable, of these the one most calls
        concern."""
        key = (storage, lo, nbytes)
        if key not in self._placed:
            self._placed[key] = region = self._locate(*key)
            self.types.setdefault(region.place, self.storages.get(storage, {}).get("dtype", "uint8"))
        return self._placed[key]

    def _locate(self, storage: int, lo: int, nbytes: int) -> Region:
        for b in self.by_storage.get(storage, ()):
            if b.base in self.lists and b.index is not None and b.lo <= lo and lo + nbytes <= b.lo + b.nbytes:
                start = self.items(b.base)[b.index]
                return Region(b.base, start + lo - b.lo, start + lo - b.lo + nbytes)
        if found := self.reaching(storage, lo, nbytes):
            best = max(found, key=lambda b: (b.nbytes, self.preferred[b.path, b.nbytes], -b.look))
            return Region(self.variables[best.path, best.nbytes], lo - best.lo, lo - best.lo + nbytes)
        return Region(f"#{storage}", lo, lo + nbytes)

    def imagine(self, name: str, nbytes: int, dtype: str) -> str:
        """A place that the run did not have, called `name`, or "name 2" if that is one of another size or type."""
        names = chain([name], (f"{name} {number}" for number in count(2)))
        place = next(n for n in names if n not in self.sizes or (self.sizes[n], self.types.get(n)) == (nbytes, dtype))
        self.sizes[place], self.types[place] = nbytes, dtype
        return place

    def size(self, place: str) -> int:
        """Bytes of a place."""
        return self.storages[int(place[1:])]["nbytes"] if place.startswith("#") else self.sizes[place]

    def dtype(self, place: str) -> str:
        return self.types.get(place, "uint8")

    def shape(self, place: str) -> tuple[int, ...]:
        return self.shapes.get(place, ())

    def items(self, place: str) -> list[int]:
        """Where the items of a list place begin and end: [0, 8, 16]; [] for other places."""
        items = self.lists.get(place, {})
        return [0, *np.cumsum([items[index][0].nbytes for index in range(len(items))]).tolist()] if items else []

    def named(self, name: str, look: int) -> list[Binding]:
        """The memory that a variable, or the items of a list, had at a look (or when it was seen first)."""
        found: dict[int | None, Binding] = {}
        for b in self.by_place.get(name, ()):
            if b.look <= look or b.index not in found:
                found[b.index] = b
        whole = found.pop(None, None)
        return [whole] if whole else [found[index] for index in sorted(found)]

    def is_left(self, storage: int, lo: int, hi: int) -> bool:
        """Whether a variable reaches these bytes when the cell has ended."""
        return any([s == storage and a <= lo and hi <= a + nbytes for s, a, nbytes in self.final.values()])

    def bound_last(self, name: str) -> list[tuple[int, int, int]] | None:
        """(storage, lo, nbytes) that a variable has when the cell has ended, of a list item by item; None if there is
        no such variable any more."""
        if name in self.lists:
            items = [self.final.get(f"{name}[{index}]") for index in range(len(self.lists[name]))]
            return items if all(items) else None
        bound = self.by_place.get(name, ())
        there = self.final.get(bound[0].path if bound else name)
        return [there] if there and (not bound or there[2] == bound[0].nbytes) else None

    def value(self, storage: int, lo: int, nbytes: int, look: int, dtype: str):
        """The numbers there at a look, as an array; of a large tensor the first ones. None if they were never seen."""
        looks, raws = self._history(storage, lo, nbytes)
        at = bisect_right(looks, look) - 1
        return None if at < 0 else decode(raws[at], dtype)

    def _history(self, storage: int, lo: int, nbytes: int):
        """(looks, bytes): what was seen there, in order."""
        key = (storage, lo, nbytes)
        if key not in self._histories:
            whole = self._whole.get(storage)
            part = self._first.get((storage, lo)) if whole is None else whole
            if part is None or (whole is None and self._parts[part]["nbytes"] < nbytes):
                self._histories[key] = ([], [])
            else:
                self._histories[key] = self._sliced(part, *((0, nbytes) if whole is None else (lo, lo + nbytes)))
        return self._histories[key]

    def _sliced(self, part: int, lo: int, hi: int):
        looks, raws, now = [], [], None
        for look, start, data in self._patches.get(part, []):
            if now is None or not self._parts[part]["whole"]:
                now = data[lo:hi]
            else:
                first, last = max(start, lo), min(start + len(data), lo + len(now))
                if first >= last:
                    continue
                now = now[: first - lo] + data[first - start : last - start] + now[last - lo :]
            if not raws or now != raws[-1]:
                looks.append(look)
                raws.append(now)
        return looks, raws


def prefer(memories: dict[int, Memory], runs: list[dict]) -> None:
    """Of several names for one memory the one that most calls concern, on all ranks together, is used; and of tensors
    of several sizes under one name those have the name itself."""
    counts: Counter = Counter()
    for run in runs:
        memory, known = memories[run["rank"]], {}
        for event in run["events"]:
            for place in [*event["ins"], *event["outs"]]:
                if place is not None:
                    key = tuple(place)
                    if key not in known:
                        known[key] = {(b.path, b.nbytes) for b in memory.reaching(*place)}
                    counts.update(known[key])
    sizes: dict[str, list[int]] = {}
    for path, nbytes in [*counts, *((b.path, b.nbytes) for memory in memories.values() for b in memory.bindings)]:
        sizes.setdefault(path, []).append(nbytes)
    first = {path: max(found, key=lambda nbytes: counts[path, nbytes]) for path, found in sizes.items()}
    for memory in memories.values():
        memory.use(counts, first)


def _own_memory(items) -> bool:
    """Whether the tensors of a list lay in different storages, at first or at last, and never changed their sizes."""
    first = {bindings[0].storage for bindings in items.values()}
    last = {bindings[-1].storage for bindings in items.values()}
    sizes = all(len({binding.nbytes for binding in bindings}) == 1 for bindings in items.values())
    apart = max(len(first), len(last)) > 1
    return len(items) > 1 and apart and sizes and sorted(items) == list(range(len(items)))


def decode(raw: bytes, dtype: str) -> np.ndarray:
    """The numbers in some bytes; bfloat16, which numpy lacks, as float32; types it cannot show as bytes."""
    try:
        if dtype == "bfloat16":
            return (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
        return np.frombuffer(raw, np.dtype(dtype))
    except (TypeError, ValueError):  # a type of torch's own, or bytes that are no whole numbers of it
        return np.frombuffer(raw, np.uint8)
