"""What else could have made the same numbers: a run whose data leave that open gets no name.

What happened to received data is read from values (`replay.evidence`), and so is which tensor began as a copy of
which. If everything is ones, `acc += buf` and `acc += x` leave the same trace, and the run of a wrong program looks
like that of a right one. So for everything that was read from values the other ways to the same values are listed here.
Lines of code are few, the traces of one line are many: another way is open only if it fits all traces of the line, on
all ranks.

Left out: constants other than 0 and 1; lines that do something else on one rank, just where its data do not show it;
lines that change nothing, such as a chunk overwritten by its equal.
"""

from collections import Counter

from launch.replay.memory import Region

FILLS = (0, 1)  # what a program fills new tensors with


def in_doubt(reading, layout, begins) -> bool:
    """Whether anything that the moves or what the run begins with rest on could have been otherwise."""
    traces: dict[tuple, list[set]] = {}  # what was read -> for each of its traces, the other ways to it
    reductions = {use.operation for arrival in reading.arrivals.values() for use in arrival.uses} - {"copy"}
    guesses = set()
    together = Counter((a.call.rank, use.region, use.look) for a in reading.arrivals.values() for use in a.uses)
    for arrival in reading.arrivals.values():
        for use in arrival.uses:
            several = together[arrival.call.rank, use.region, use.look] > 1  # by a line of its own, in some loop
            line = (id(arrival if several else arrival.siblings), use.region.place)
            if use.assumed:
                guesses |= set() if arrival.found else {("use", *line)}
                continue
            traces.setdefault(("use", *line), []).append(_other_uses(reading, arrival, use, reductions))
            if several and _tells_little(reading.memories[arrival.call.rank].value(arrival.region, arrival.call.end)):
                return True  # one of several that were added up at once: 1 + 3 may have been 2 + 2
            if use.seed is not None:
                traces.setdefault(("seed", *line), []).append(_other_seeds(reading, arrival, use))
    for rank, region in [*layout.copied, *begins.copied]:
        traces.setdefault(("name", region.place), []).append(_other_copies(reading, rank, region))
    if not guesses <= set(traces) or any(set.intersection(*ways) for ways in traces.values()):
        return True
    believed: dict[tuple, list[set]] = {}  # the same for what is a matter of chunks: the way that is believed in
    for message, others in reading.alternatives.items():
        line = ("sent", message.send.event["stack"])
        traces.setdefault(line, []).append(set().union(*(_ways_to(message, other) for other in others)))
        believed.setdefault(line, []).append(_ways_to(message, reading.sources[message]))
    for move in reading.kept:
        line = ("kept", move.target.place)
        traces.setdefault(line, []).append(_other_parts(reading, move))
        believed.setdefault(line, []).append(_ways_to(move, move.source))
    for buffer, chunk, rank in begins.copies:
        fits, believes = _starts(reading, layout, begins.cells, (buffer, chunk, rank))
        traces.setdefault(("start", buffer, chunk), []).append(fits)
        believed.setdefault(("start", buffer, chunk), []).append(believes)
    return any(set.intersection(*traces[line]) - set.intersection(*ways) for line, ways in believed.items())


def _other_parts(reading, move) -> set:
    """What a rank's own part may be instead of a copy of the part it seems to be."""
    memory, known = reading.memories[move.dst], reading.ranks[move.dst]
    value = memory.value(move.target, move.look)
    parts = [part for part in known.candidates[move.target.hi - move.target.lo] if part.place == move.source.place]
    ways = set().union(*(_ways_to(move, part) for part in parts if _same(memory.value(part, move.look), value)))
    others = _places_like(reading, move.dst, move.target, value, move.look)
    return ways | {way for way in others if way[0] == "received"} | _fill(value)


def _ways_to(message, region: Region) -> set:
    """How a program can have come to send that region: by its place, or counted from the sender's or receiver's."""
    size = region.hi - region.lo
    return {(region.place, kind, region.lo - size * rank) for kind, rank in enumerate((0, message.src, message.dst))}


def _other_uses(reading, arrival, use, reductions) -> set:
    """Where the same numbers as the received ones stood just before, and operations with the same outcome.

    A run that reduces in some way is not thought to reduce in another.
    """
    rank, memory = arrival.call.rank, reading.memories[arrival.call.rank]
    if memory.address(use.region, use.look) == memory.address(arrival.region, arrival.call.end):
        return set()  # the same memory under another name
    received = memory.value(arrival.region, arrival.call.end)
    ways = _places_like(reading, rank, arrival.region, received, use.look - 1)
    if use.operation == "copy":
        old = memory.value(use.region, use.look - 1)
        if old is not None and old.any():
            ways |= use.operations & (reductions or use.operations - {"copy"})
        elif _zeros_for_data(reading, arrival, use):
            ways |= {"sum"}
    return ways


def _zeros_for_data(reading, arrival, use) -> bool:
    """Whether what the rank brings along is zeros: then it may have been added where received data seem to be kept."""
    rank = reading.ranks[arrival.call.rank]
    looks = {other: rank.memory.history(other) for other in rank.candidates.get(use.region.hi - use.region.lo, [])}
    own = [values[0] for other, (_, values) in looks.items() if len(values) == 1 and other.place != use.region.place]
    mirrored = reading.mirror(arrival)
    if mirrored is not None and looks[mirrored][1]:
        own.append(looks[mirrored][1][0])
    return any(not value.any() for value in own)


def _other_seeds(reading, arrival, use) -> set:
    """What else the sum may have begun with: something received, another part of the same tensor, a constant."""
    rank = arrival.call.rank
    value = reading.memories[rank].value(use.seed, use.look - 1)
    ways = _places_like(reading, rank, use.seed, value, use.look - 1)
    return {way for way in ways if way[0] == "received" or way[1] == use.seed.place} | _fill(value)


def _starts(reading, layout, start, copy) -> tuple[set, set]:
    """What a chunk that is said to begin as a copy may have been a copy of, and which of that has its symbols."""
    buffer, chunk, rank = copy
    region, memory = layout.region(rank, buffer, chunk), reading.memories[rank]
    begun, look = reading.at_start(rank, region), memory.changes(region)[0]
    fits, believes, block = _other_copies(reading, rank, region), set(), layout.chunks // len(start[buffer])
    for name, cells in start.items():
        for other in range(layout.chunks):
            place = layout.region(rank, name, other)
            if place and cells[rank, other] and (name, other) != (buffer, chunk):
                ways = {(name, other), (name, "block", other - rank * block)}
                if _same(memory.value(place, look), begun):
                    fits |= ways
                if cells[rank, other] == start[buffer][rank, chunk]:
                    believes |= ways
    return fits, believes


def _other_copies(reading, rank: int, region: Region) -> set:
    """Received data or a constant, if that is what stood in a region at first."""
    begun, look = reading.at_start(rank, region), reading.memories[rank].changes(region)[0]
    ways = {way for way in _places_like(reading, rank, region, begun, look) if way[0] == "received"} | _fill(begun)
    plain = begun is not None and len(begun) > 1 and (begun == begun[0]).all()
    return ways | {"rearranged"} if plain and region.place.startswith("#") else ways  # dist.send(x.flip(0), 1)


def _places_like(reading, rank: int, region: Region, value, look: int) -> set:
    """Places with other memory that held the same numbers at that look, as ("received" or "own", place)."""
    if value is None:
        return set()
    known, memory = reading.ranks[rank], reading.memories[rank]
    address = memory.address(region, look)
    return {
        ("received" if reading.arrived(rank, other, look) else "own", other.place)
        for other in known.candidates.get(region.hi - region.lo, [])
        if other != region and memory.address(other, look) != address and _same(memory.value(other, look), value)
    }


def _tells_little(value) -> bool:
    return not value.any() or (len(value) > 1 and bool((value == value[0]).all()))


def _fill(value) -> set:
    plain = value is not None and len(value) > 0 and (value == value[0]).all() and value[0] in FILLS
    return {("fill", float(value[0].real))} if plain else set()


def _same(left, right) -> bool:
    return left is not None and right is not None and left.shape == right.shape and left.tobytes() == right.tobytes()
