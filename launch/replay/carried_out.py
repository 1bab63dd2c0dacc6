"""One rank's memory while its account is carried out again: which value every range has, and who wrote it.

`Memory` is what torch's ops read and write (`replay.torch_ops`). Memory that has a name, or was in a call, is kept
apart: writes to it are noted, with a recipe that says what they were made of in terms of other such memory. `Film`
finds bytes that changed though no op was seen to write them.

Left out: the order in which the ranks' accounts are carried out (`replay.happened`).
"""

import base64
from typing import NamedTuple

import numpy as np

from launch.replay.provenance import OUTSIDE, Leaves, Piece, Ranges, Value
from launch.replay.torch_ops import SIZES


class Recipe(NamedTuple):
    """What some bytes were made of, in terms of memory that has a name or was in a call: like a `Value`, but the leaves
    are numbers of storages. `since` is the row at which they were read; ops on unnamed memory lie in between. `held` is
    what each of them held then."""

    value: Value
    since: int
    held: tuple[Value, ...]

    def shifted(self, by: int) -> "Recipe":
        if by == 0:
            return self
        return Recipe(self.value.shifted(by), self.since, tuple([value.shifted(by) for value in self.held]))


class Write(NamedTuple):
    """Bytes lo up to hi of a storage were written by the rank itself at that row of its account, on that line of the
    cell.

    `recipe` is None for what is neither copy nor sum nor another reduction of what the rank had.
    """

    rank: int
    row: int
    storage: int
    lo: int
    hi: int
    value: Value
    recipe: Recipe | None
    line: int


class Memory:
    """One rank's memory at a moment of its account, as `torch_ops.Meaning` reads and writes it."""

    def __init__(self, rank: int, leaves: Leaves, kept: set[int], firsts: dict[int, int]):
        self.rank, self.leaves, self.kept, self.firsts = rank, leaves, kept, firsts
        self.storages: dict[int, Ranges] = {}
        self.row = 0
        self.line = 0
        self.step = -1
        self.first_arrival = None  # the look at which the first data from elsewhere had come
        self.dirty: dict[int, list] = {}  # what was written in a storage since it was looked at last
        self.left: list[tuple[int, int, int]] = []  # what the library may have left anything in, since the last look
        self.writes: list[Write] = []

    def read(self, storage: int, lo: int, hi: int) -> list[Piece]:
        """The pieces of a range, without gaps: what nobody was seen to write was there."""
        ranges = self.storages.get(storage)
        if ranges is None:
            ranges = self.storages[storage] = Ranges()
        for a, b in ranges.gaps(lo, hi):
            ranges.write(a, b, self._found(storage))
        pieces = ranges.read(lo, hi)
        if storage in self.kept:
            itself = Value("sum", ((storage, 0, 1),))
            return [Piece(p.lo, p.hi, p.value, Recipe(itself, self.row, (p.value,))) for p in pieces]
        return pieces

    def _found(self, storage: int) -> Value:
        """Memory that is met for the first time: the rank's own, if it was there before anything had come in."""
        first = self.firsts.get(storage)
        early = self.first_arrival is None or first is not None and first <= self.first_arrival
        if early:
            return self.leaves.fresh(self.rank, "own")
        return self.leaves.fresh(self.rank, "unseen", frozenset((self.rank, OUTSIDE)))

    def write(self, storage: int, lo: int, hi: int, value: Value, recipe: Recipe | None = None) -> None:
        """An op of the rank's own has written there."""
        if lo >= hi:
            return
        if storage in self.kept:
            self.writes.append(Write(self.rank, self.row, storage, lo, hi, value, recipe, self.line))
            recipe = None
        self.put(storage, lo, hi, value, recipe)

    def put(self, storage: int, lo: int, hi: int, value: Value, recipe: Recipe | None = None) -> None:
        """That value stands there now, whoever wrote it."""
        ranges = self.storages.get(storage)
        if ranges is None:
            ranges = self.storages[storage] = Ranges()
        ranges.write(lo, hi, value, recipe)
        self.dirty.setdefault(storage, []).append((lo, hi))

    def recipe(self, how: str, operands: list) -> Recipe | None:
        """The recipes (recipe, times) put together in that way; None where it cannot be told as one reduction."""
        if len(operands) == 1 and how == "sum" and operands[0][1] == 1:
            return operands[0][0]
        counts: dict[tuple[int, int], float] = {}
        held: dict[tuple[int, int], Value] = {}
        since = self.row
        for recipe, times in operands:
            if recipe is None or (recipe.value.how != how and not recipe.value.plain):
                return None
            since = min(since, recipe.since)
            for (storage, shift, n), value in zip(recipe.value.terms, recipe.held, strict=True):
                counts[storage, shift] = counts.get((storage, shift), 0) + n * times
                held[storage, shift] = value
        keys = sorted(key for key, n in counts.items() if n)
        return Recipe(Value(how, tuple((*key, counts[key]) for key in keys)), since, tuple(held[key] for key in keys))

    def settle(self) -> None:
        """What the rank has computed before its first call is what it started with."""
        for ranges in self.storages.values():
            ranges.pieces = [p._replace(value=self.leaves.settled(p.value, self.rank)) for p in ranges.pieces]


class Film:
    """The bytes of what is filmed whole, look by look, to find changes that no op made."""

    def __init__(self, film: dict):
        self.parts = film["parts"]
        self.sizes = {int(number): known for number, known in film["storages"].items()}
        self.changes, self.looked = film["changes"], film["looked"]
        self.at = 0
        self.now: dict[int, bytearray] = {}
        self._whole = {part["storage"] for part in self.parts if part["whole"]}

    def itemsize(self, storage: int) -> int:
        return SIZES.get(self.sizes[storage]["dtype"], 1)

    def whole(self, storage: int) -> bool:
        """Whether all bytes of a storage are filmed."""
        return storage in self._whole

    def changed(self, look: int):
        """(storage, bytes) that are others at this look than at the one before; of what is not filmed whole, all
        bytes of the part that changed somewhere."""
        while self.at < len(self.changes) and self.changes[self.at][0] <= look:
            _, number, lo, data = self.changes[self.at]
            data = base64.b64decode(data)
            self.at += 1
            part, before = self.parts[number], self.now.get(number)
            if before is None:
                self.now[number] = bytearray(data) if part["whole"] else bytearray()
            elif not part["whole"]:
                yield part["storage"], np.array([part["lo"], part["lo"] + part["nbytes"] - 1])
            else:
                old, new = np.frombuffer(before, np.uint8)[lo : lo + len(data)], np.frombuffer(data, np.uint8)
                differs = lo + np.flatnonzero(old != new)
                before[lo : lo + len(data)] = data
                if len(differs):
                    yield part["storage"], differs
