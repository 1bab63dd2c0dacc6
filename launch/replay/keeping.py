"""What a rank put in place itself, among what others sent it: `parts[rank] = x`, `out[rank * n:(rank + 1) * n] = x`.

Nothing is sent for that, and no call is made. It shows where a tensor, or a list of them, is filled piece by piece by
what arrives, one piece excepted, and in the end that piece holds just what the rank had of its own.

Left out: several pieces of one's own in one tensor.
"""

from launch.replay.matching import Move
from launch.replay.memory import Region


def kept(reading, moves: list[Move]) -> list[Move]:
    """The copies of ranks' own parts into what `moves` fill, each in the step of the last message before it."""
    filled: dict[tuple[int, str], list[Move]] = {}
    for move in moves:
        if move.op == "copy":
            filled.setdefault((move.dst, move.target.place), []).append(move)
    found = []
    for (rank, place), arriving in filled.items():
        gap = _gap(reading, rank, place, [move.target for move in arriving])
        own = gap and _own(reading, rank, gap, [move.source for move in arriving])
        if own:
            look = reading.memories[rank].changes(gap)[-1]
            first = min(move.step for move in arriving)
            found.append(Move(_step(reading, rank, look, first), rank, rank, own, gap, "copy", look, (), 0))
    return found


def _gap(reading, rank: int, place: str, targets: list[Region]) -> Region | None:
    """The one piece of a place that no message touches, all others being filled in pieces of that size."""
    sizes = {region.hi - region.lo for region in targets}
    if len(sizes) > 1:
        return None
    sent = [region for message in reading.sent[rank] if (region := reading.sources[message])]
    pieces = reading.ranks[rank].candidates.get(sizes.pop(), [])
    pieces = [piece for piece in pieces if piece.place == place]
    free = [piece for piece in pieces if not any(piece.overlaps(other) for other in targets)]
    alone = len(free) == 1 and len(pieces) > 1 and not any(free[0].overlaps(other) for other in sent)
    return free[0] if alone and reading.memories[rank].changes(free[0]) else None


def _own(reading, rank: int, gap: Region, sources: list[Region]) -> Region | None:
    """The region of the rank's own that the gap holds a copy of, rather one like those that the others sent from."""
    memory = reading.memories[rank]
    look = memory.changes(gap)[-1]
    value = memory.value(gap, look).tobytes()
    size = gap.hi - gap.lo
    regions = [*reading.ranks[rank].candidates[size]]
    regions += [Region(path, 0, size) for path in memory.variables if memory.size(path) == size]
    same = [
        region
        for region in regions
        if region.place != gap.place and not reading.arrived(rank, region, look)
        if (held := memory.value(region, look)) is not None and held.tobytes() == value
    ]
    likely = [*sources, *(reading.sources[message] for message in reading.sent[rank])]
    return next((region for region in same if region in likely), next(iter(same), None))


def _step(reading, rank: int, look: int, first: int) -> int:
    """The step of the last message that was over on the rank by then, at least `first`."""
    over = [message.step for message in reading.received[rank] if message.receive.end < look]
    over += [message.step for message in reading.sent[rank] if message.send.end < look]
    return max([first, *over])
