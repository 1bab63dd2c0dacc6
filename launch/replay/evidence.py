"""What the values say about received data: every place it may have been copied to or added to.

If a region of the student's memory changed to exactly old + received (or the maximum, minimum, product, or the received
itself) while the received was there, it may be that this is what happened. Whether it did, `replay.dataflow` decides.

Sums of floating point numbers are compared exactly for one summand, and within rounding for several, whose order is not
known.

Left out: arithmetic that is none of these (a mean, a scaled sum).
"""

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from launch.replay.footage import rounded
from launch.replay.matching import Call, Message
from launch.replay.memory import Memory, Region

OPERATIONS = {
    "copy": lambda old, new: new,
    "sum": lambda old, new: old + new,
    "max": np.maximum,
    "min": np.minimum,
    "product": lambda old, new: old * new,
}


@dataclass
class Use:
    """Something received was put into `region` at a look by one of `operations` (all that fit the values).

    `value` is what was there afterwards. `fresh`: it lies in memory that was not there before. `seed` is set when a sum
    began as a copy of another region: x + b1 + b2. `operation` is the one that all receives from the same lines agree
    on. `assumed`: nobody saw it, because the function was over at the next look.
    """

    region: Region
    look: int
    operations: set[str]
    value: np.ndarray
    fresh: bool = False
    seed: Region | None = None
    operation: str = ""
    assumed: bool = False


@dataclass
class Arrival:
    """One receive of one rank: where the data lay (`region`), until when it can have been used, and how it was.

    `found` are all uses that the values allow, `uses` those that `explain` believes in; `siblings` are the arrivals at
    the same lines, itself included.
    """

    message: Message
    region: Region
    until: int
    forwarded: bool
    found: list[Use] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)
    siblings: list["Arrival"] = field(default_factory=list, repr=False)

    @property
    def call(self) -> Call:
        return self.message.receive

    @property
    def site(self) -> tuple:
        return self.message.receive.event["stack"]

    def first(self) -> list[Use]:
        """The uses at the first look that has any: later ones are uses of the use. New memory counts only if there is
        nothing else."""
        old = [use for use in self.found if not use.fresh] or self.found
        look = min((use.look for use in old), default=None)
        return [use for use in old if use.look == look]


class Rank:
    """One rank's memory, and the regions of it that are worth looking at: parts that are sent or received anywhere."""

    def __init__(self, memory: Memory):
        self.memory = memory
        self.candidates: dict[int, list[Region]] = {}  # bytes -> regions of that size
        self.received: dict[int, list[Region]] = {}  # look -> regions whose receive was over at that look
        self._changes: dict[int, list] = {}

    def add_candidate(self, region: Region) -> None:
        known = self.candidates.setdefault(region.hi - region.lo, [])
        if region not in known:
            known.append(region)

    def local(self, region: Region, look: int) -> bool:
        """Whether a change seen at that look was the student's own doing, not something that arrived."""
        return not any(region.overlaps(other) for other in self.received.get(look, ()))

    def inbox(self, region: Region) -> bool:
        """Whether anything is ever received into that place."""
        return any(region.place == other.place for regions in self.received.values() for other in regions)

    def changes(self, nbytes: int):
        """(look, region) of everything of that size that the student changed, in order."""
        if nbytes not in self._changes:
            found = []
            for number, region in enumerate(self.candidates.get(nbytes, [])):
                found += [(look, number, region) for look in self.memory.changes(region) if self.local(region, look)]
            self._changes[nbytes] = [(look, region) for look, _, region in sorted(found)]
        return self._changes[nbytes]

    def others(self, region: Region, look: int):
        """(region, value) of everything else of the same size that was there at that look."""
        for other in self.candidates.get(region.hi - region.lo, []):
            if not other.overlaps(region) and (value := self.memory.value(other, look)) is not None:
                yield other, value


def find(ranks: dict[int, Rank], arrivals: list[Arrival]) -> None:
    """Give every arrival all uses that the values allow (`found`)."""
    for arrival in arrivals:
        _find_uses(ranks[arrival.call.rank], arrival)
    _find_sums(ranks, arrivals)


def _find_uses(rank: Rank, arrival: Arrival) -> None:
    """Regions that changed to some operation of what they held and what was received, the first change of each."""
    memory, end = rank.memory, arrival.call.end
    received = memory.value(arrival.region, end)
    if received is None:
        return
    seen = {arrival.region}
    whole = (
        memory.size(arrival.region.place) == arrival.region.hi - arrival.region.lo
    )  # else a name for a part: `row = y[2]`
    for look, region in memory.renamed(*arrival.call.event["outs"][0], end, arrival.until) if whole else ():
        if region not in seen and region.place != arrival.region.place:
            seen.add(region)
            arrival.found.append(Use(region, look, {"copy"}, received))
    dtype = memory.dtype(arrival.region.place)
    changes = rank.changes(arrival.region.hi - arrival.region.lo)
    first, last = (bisect_right(changes, at, key=lambda change: change[0]) for at in (end, arrival.until))
    for look, region in changes[first:last]:
        if region in seen or region.overlaps(arrival.region):
            continue
        seen.add(region)
        if memory.address(region, look) == tuple(arrival.call.event["outs"][0][:2]):
            continue  # the same memory under another name
        new, old = memory.value(region, look), memory.value(region, look - 1)
        if fits := fitting(old, received, new, dtype):
            arrival.found.append(Use(region, look, fits, new, memory.fresh(region, look)))
        elif old is None:  # new memory: `total + buf` that the student returned under another name
            for other, value in rank.others(region, look - 1):
                if not rank.inbox(other) and not equal(value, new) and "sum" in fitting(value, received, new, dtype):
                    arrival.found.append(Use(region, look, {"sum"}, new, memory.fresh(region, look), seed=other))
                    break


def fitting(old, received, new, dtype: str) -> set[str]:
    if received.shape != new.shape or received.dtype != new.dtype:
        return set()
    if old is None or old.shape != new.shape or old.dtype != new.dtype:
        return {"copy"} if equal(received, new) else set()
    with np.errstate(all="ignore"):
        return {name for name, operation in OPERATIONS.items() if equal(rounded(operation(old, received), dtype), new)}


def equal(left, right) -> bool:
    left = left.astype(right.dtype, copy=False)
    return bool(np.array_equal(left, right, equal_nan=right.dtype.kind in "fc"))


def _find_sums(ranks: dict[int, Rank], arrivals: list[Arrival]) -> None:
    """Several receives that were added to one region between two looks, where no single one explains what it became."""
    for number, rank in ranks.items():
        mine = sorted(
            (arrival for arrival in arrivals if arrival.call.rank == number), key=lambda arrival: arrival.call.end
        )
        for nbytes in sorted({arrival.region.hi - arrival.region.lo for arrival in mine}):
            group = [arrival for arrival in mine if arrival.region.hi - arrival.region.lo == nbytes]
            upcoming, there = deque(group), []
            for look, region in rank.changes(nbytes):
                while upcoming and upcoming[0].call.end < look:
                    there.append(upcoming.popleft())
                there = [a for a in there if look <= a.until and not any(use.look < look for use in a.found)]
                pending = [a for a in there if not region.overlaps(a.region)]
                alone = any(
                    use.region == region and use.look == look and "sum" in use.operations
                    for a in pending
                    for use in a.found
                )
                if len(pending) > 1 and not alone:
                    _try_sum(rank, region, look, pending)


def _try_sum(rank: Rank, region: Region, look: int, pending: list[Arrival]) -> None:
    memory = rank.memory
    old, new = memory.value(region, look - 1), memory.value(region, look)
    values = [memory.value(arrival.region, arrival.call.end) for arrival in pending]
    if any(value is None or value.shape != new.shape or value.dtype != new.dtype for value in values):
        return
    starts = [(None, old)] if old is not None else [*rank.others(region, look - 1), (None, 0 * new)]
    for seed, start in starts:
        if (
            start.shape == new.shape
            and start.dtype == new.dtype
            and _close(_total(start, values), new, [start, *values], memory.dtype(region.place))
        ):
            for arrival in pending:
                arrival.found = [Use(region, look, {"sum"}, new, memory.fresh(region, look), seed)]
            return


def _total(start, values):
    with np.errstate(all="ignore"):  # what was never written may be anything
        return sum(values, start)


def _close(total, new, terms, dtype: str) -> bool:
    if new.dtype.kind not in "fc":
        return bool(np.array_equal(total, new))
    precision = 2**-8 if dtype == "bfloat16" else np.finfo(new.dtype).eps
    with np.errstate(all="ignore"):
        slack = 2 * len(terms) * precision * max(np.abs(term).max(initial=0) for term in terms)
        return bool(np.isfinite(slack) and np.all(np.abs(total - new) <= slack))
