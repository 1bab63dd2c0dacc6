"""What became of received data: which part of which tensor it was added to or copied into.

A student receives into a scratch tensor and adds that to a chunk; the second half is ordinary arithmetic, which leaves
no event, only a changed value in the film. `replay.evidence` finds every change that the values allow to be that. One
coincidence proves little (0 + 5 looks like a copy), so receives that come from the same lines of code, on all ranks,
must agree on the operation. What left no trace, because adding 0 changes nothing, follows its siblings from the same
lines.

Left out: what the values cannot tell. If every rank's data is all zeros, nothing is seen to be added: then the data
stays where it was received.
"""

from collections import Counter

import numpy as np

from launch.replay.evidence import OPERATIONS, Arrival, Rank, Use, equal, find
from launch.replay.footage import rounded
from launch.replay.memory import Memory, Region


def explain(ranks: dict[int, Rank], arrivals: list[Arrival], mirror) -> None:
    """Give every arrival its `uses`. `mirror(arrival)` is the receiver's region of the name and place of the sender's,
    or None."""
    find(ranks, arrivals)
    taken: set[tuple] = set()
    received = Counter((arrival.call.rank, arrival.region) for arrival in arrivals)
    for siblings in _by_site(arrivals).values():
        agreed = {place: operation for place, operation in _agreed(siblings).items() if operation}
        hits = [_mirrored(arrival, mirror(arrival)) for arrival in siblings if arrival.found]
        mirrored = 2 * sum(hits) >= len(hits) > 0
        usual = {
            place: {use.region for arrival in siblings for use in arrival.first() if use.region.place == place}
            for place in agreed
        }
        for arrival in siblings:
            arrival.siblings = siblings
            where = mirror(arrival)
            likely = {place: next(iter(regions)) for place, regions in usual.items() if len(regions) == 1}
            if mirrored and where is not None and where.place in agreed:
                likely[where.place] = where
            memory = ranks[arrival.call.rank].memory
            _decide(arrival, agreed, likely, where, taken, memory)
            alone = received[arrival.call.rank, arrival.region] == 1
            if alone and memory.size(arrival.region.place) > arrival.region.hi - arrival.region.lo:
                # Received for good into its part of a whole: `torch.cat(parts)` of that is no news.
                arrival.uses = [use for use in arrival.uses if not (use.fresh and use.operation == "copy")]


def _by_site(arrivals: list[Arrival]) -> dict:
    """Receives from the same lines of code; one by one, in turn on every rank, where the lines do different things in
    turn."""
    groups: dict = {}
    for arrival in arrivals:
        groups.setdefault(arrival.site, []).append(arrival)
    for site, siblings in list(groups.items()):
        if None in _agreed(siblings).values():
            del groups[site]
            turns: dict[int, int] = {}
            for arrival in sorted(siblings, key=lambda arrival: arrival.call.end):
                turn = turns[arrival.call.rank] = turns.get(arrival.call.rank, 0) + 1
                groups.setdefault((site, turn), []).append(arrival)
    return groups


def _agreed(siblings: list[Arrival]) -> dict[str, str | None]:
    """Place -> the operation that fits all receives from the same lines that were put there, None if there is none.

    A place that fewer than half of them were put into is a coincidence.
    """
    fits: dict[str, list[set]] = {}
    for arrival in siblings:
        here: dict[str, set] = {}
        for use in arrival.first():
            here.setdefault(use.region.place, set()).update(use.operations)
        for place, operations in here.items():
            fits.setdefault(place, []).append(operations)
    told = sum(1 for arrival in siblings if arrival.found)
    agreed = {}
    for place, sets in fits.items():
        common = set.intersection(*sets)
        if 2 * len(sets) >= told:
            agreed[place] = next((name for name in OPERATIONS if name in common), None)
    return agreed


def _mirrored(arrival: Arrival, where: Region | None) -> bool:
    return where is not None and any(use.region == where for use in arrival.first())


def _decide(
    arrival: Arrival,
    agreed: dict[str, str],
    likely: dict[str, Region],
    where: Region | None,
    taken: set,
    memory: Memory,
) -> None:
    """One use for each place that the siblings agree on; `likely` says in which region of it, where siblings show that.

    `where` is the receiver's region that mirrors the sender's.
    """
    first = arrival.first()
    gone = not any(use.region.place in agreed for use in first)
    for place, operation in agreed.items():
        fitting = [use for use in first if use.region.place == place and operation in use.operations]
        fitting = [use for use in fitting if use.region == likely.get(place)] or fitting
        fitting = [use for use in fitting if (arrival.call.rank, use.region, use.look) not in taken] or fitting
        if not fitting and place in likely:
            fitting = _unseen(arrival, operation, likely[place], memory, gone)
        if fitting:
            use = fitting[0]
            use.operation = operation
            arrival.uses.append(use)
            if operation != "sum":  # one region holds one received thing; it can be the sum of many
                taken.add((arrival.call.rank, use.region, use.look))
    if arrival.uses and where is not None and all(use.fresh and use.operation == "copy" for use in arrival.uses):
        # No trace but a copy in new memory (`y = torch.cat(parts)`): the tensors of a list may have been replaced
        # unseen.
        if where.place in memory.lists or where.place in likely:
            arrival.uses = _unseen(arrival, agreed.get(where.place, "copy"), where, memory, True) or arrival.uses


def _unseen(arrival: Arrival, operation: str, where: Region, memory: Memory, gone: bool) -> list[Use]:
    """The use that changed nothing (0 was added); if `gone`, also one that nobody saw, the tensor being gone at the
    next look."""
    received, held = memory.value(arrival.region, arrival.call.end), memory.value(where, arrival.call.end)
    if received is None or held is None or received.shape != held.shape or where.overlaps(arrival.region):
        return []
    with np.errstate(all="ignore"):
        result = rounded(OPERATIONS[operation](held, received), memory.dtype(where.place))
    idle = equal(result, held)
    if idle or (gone and memory.changes(where)[-1] <= arrival.call.end):
        return [Use(where, arrival.call.end + 1, {operation}, result, operation=operation, assumed=not idle)]
    return []
