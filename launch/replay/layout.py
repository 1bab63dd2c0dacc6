"""Buffers and chunks for a recorded run: the regions that its moves touch, as numbers a Schedule can use.

A variable is a buffer; two variables of the same size that no rank uses both of (`total` on rank 0, `x` on the others)
are one. Where any rank's moves cut a buffer, it is cut on every rank: what lies between two cuts is a chunk. So chunks
come out as the student made them, also when they are not all of one size.

Left out: what the chunks hold; see `replay.symbols`.
"""

from bisect import bisect_left
from collections import Counter
from functools import cached_property

from launch.replay.memory import Memory, Region
from launch.replay.moves import Move


class Layout:
    """`buffers`: names, the one that collects results first; `cuts[name]`: where its chunks begin, and its end, in
    bytes.

    `together` are lists of (rank, place) that stand for each other: what the ranks gave one call of a built-in.
    `alike(rank, place, name)` says whether a place held at first what the variable `name` held, which no move uses.
    """

    def __init__(self, moves: list[Move], memories: dict[int, Memory], together, alike):
        self.memories, self.alike = memories, alike
        used: Counter = Counter()  # (rank, place) -> moves
        summed: Counter = Counter()
        for move in moves:
            if move.source is not None:
                used[move.src, move.source.place] += 1
            used[move.dst, move.target.place] += 1
            summed[move.dst, move.target.place] += move.op == "reduce"
        self.full = _full(moves)
        self.names = self._merge(used, _labels(used, together))  # (rank, place) -> buffer
        spoken = _spoken(moves, self.names)
        self.names = {key: spoken.get(name, name) for key, name in self.names.items()}
        self.places = {(rank, name): place for (rank, place), name in self.names.items()}
        weights: dict[str, tuple] = {}
        for key, name in self.names.items():
            sums, moved = weights.get(name, (0, 0))
            weights[name] = (sums - summed[key], moved - used[key])
        size = {name: memories[rank].size(place) for (rank, place), name in self.names.items()}
        self.buffers = tuple(sorted(weights, key=lambda name: (-size[name], weights[name], name))) or ("data",)
        self.cuts = self._cut(moves, size)

    def _merge(self, used, labels) -> dict[tuple[int, str], str]:
        """Places that are one buffer: those of one name, and those of one size and type that stand for each other."""
        members: dict[str, dict[int, str]] = {}  # label -> rank -> place
        kinds: dict[str, tuple] = {}
        for rank, place in used:
            members.setdefault(labels[rank, place], {})[rank] = place
            memory = self.memories[rank]
            kinds.setdefault(labels[rank, place], (memory.size(place), memory.dtype(place)))
        everywhere = {rank for rank, _ in used}
        names: dict[str, str] = {}
        taken: dict[tuple, dict[str, dict[int, str]]] = {}  # kind -> name -> its members; full names are left out
        for label in sorted(members, key=lambda label: (-len(members[label]), label.startswith("#"), label)):
            here, alike = members[label], taken.setdefault(kinds[label], {})
            name = next((name for name, there in alike.items() if self._together(label, here, name, there)), label)
            names[label] = name
            alike[name] = alike.get(name, {}) | here
            if alike[name].keys() == everywhere:
                del alike[name]
        return {key: names[labels[key]] for key in used}

    def _together(self, label: str, here: dict[int, str], name: str, there: dict[int, str]) -> bool:
        """Whether places stand for each other: no rank uses both, and who has a variable of the other's name too,
        unused, has the same in it.

        A rank that sums up in `total` what the others have in `x`, but began with something else than its own `x`, does
        not stand for its `x`. What nothing was in at first may stand for anything.
        """
        if here.keys() & there.keys():
            return False
        idle = [(rank, place, name) for rank, place in here.items()]
        idle += [(rank, place, label) for rank, place in there.items()]
        return all(self.alike(*each) for each in idle if each[:2] in self.full)

    def _cut(self, moves: list[Move], size: dict[str, int]) -> dict[str, list[int]]:
        cuts = {name: {0, nbytes} for name, nbytes in size.items()}
        links = set()
        for move in moves:
            there = (self.names[move.dst, move.target.place], move.target)
            cuts[there[0]] |= {move.target.lo, move.target.hi}
            if move.source is not None:
                here = (self.names[move.src, move.source.place], move.source)
                cuts[here[0]] |= {move.source.lo, move.source.hi}
                links.add((here[0], here[1].lo, there[0], there[1].lo, move.source.hi - move.source.lo))
        changed = True
        while changed:  # a range that is cut at one end of a move is cut at the other too
            changed = False
            for name, lo, other, start, length in links:
                here = {cut - lo for cut in cuts[name] if lo <= cut <= lo + length}
                there = {cut - start for cut in cuts[other] if start <= cut <= start + length}
                if here != there:
                    cuts[name] |= {lo + cut for cut in here | there}
                    cuts[other] |= {start + cut for cut in here | there}
                    changed = True
        return {name: sorted(places) for name, places in cuts.items()}

    @cached_property
    def chunks(self) -> int:
        """Chunks of the buffer that has most."""
        return max((len(cuts) - 1 for cuts in self.cuts.values()), default=1)

    @property
    def chunk_bytes(self) -> list[int]:
        """Bytes of each chunk of the first buffer; 0 for chunks that only other buffers have."""
        cuts = self.cuts.get(self.buffers[0], [0, 0])
        sizes = [after - before for before, after in zip(cuts, cuts[1:], strict=False)]
        return sizes + [0] * (self.chunks - len(sizes))

    @property
    def sizes(self) -> dict[str, list[int]]:
        """Bytes of the chunks of every buffer."""
        return {name: [b - a for a, b in zip(cuts, cuts[1:], strict=False)] for name, cuts in self.cuts.items()}

    def buffer(self, rank: int, region: Region) -> str:
        return self.names[rank, region.place]

    def span(self, rank: int, region: Region) -> tuple[int, int]:
        """(first chunk, number of chunks) of a region."""
        cuts = self.cuts[self.names[rank, region.place]]
        first = bisect_left(cuts, region.lo)
        return first, bisect_left(cuts, region.hi) - first

    def region(self, rank: int, buffer: str, chunk: int) -> Region | None:
        """Where a chunk lies on a rank; None if the rank never used that buffer or it has fewer chunks."""
        place, cuts = self.places.get((rank, buffer)), self.cuts.get(buffer, ())
        if place is None or chunk + 1 >= len(cuts):
            return None
        return Region(place, cuts[chunk], cuts[chunk + 1])


def _full(moves: list[Move]) -> set[tuple[int, str]]:
    """The (rank, place) that held something before the first of the moves: they were read before they were filled."""
    first: dict[tuple[int, str], bool] = {}
    for move in moves:
        if move.source is not None:
            first.setdefault((move.src, move.source.place), True)
        first.setdefault((move.dst, move.target.place), move.op == "reduce")
    return {key for key, read in first.items() if read}


def _spoken(moves: list[Move], names: dict[tuple[int, str], str]) -> dict[str, str]:
    """What to call buffers that no variable reaches, in the order in which they come up: by what is done with them."""
    sent = dict.fromkeys(names[move.src, move.source.place] for move in moves if move.source is not None)
    filled = dict.fromkeys(names[move.dst, move.target.place] for move in moves)
    spoken: dict[str, str] = {}
    for name in (name for name in {**sent, **filled} if name.startswith("#")):
        role = "scratch" if name in sent and name in filled else "sent tensor" if name in sent else "received tensor"
        number = 1 + sum(other.startswith(role) for other in spoken.values())
        spoken[name] = role if number == 1 else f"{role} {number}"
    return spoken


def _labels(used, together) -> dict[tuple[int, str], str]:
    """What to call every (rank, place). Each rank numbers memory without a name for itself: here it is alike on all."""
    labels: dict[tuple[int, str], str] = {}
    given: set[tuple[int, str]] = set()  # (rank, label)
    for number, members in enumerate([*together, *([key] for key in sorted(used))]):
        members = [key for key in members if key in used and key[1].startswith("#")]
        label = next((labels[key] for key in members if key in labels), f"#{number}")
        for rank, place in members:
            if (rank, place) not in labels and (rank, label) not in given:
                labels[rank, place] = label
                given.add((rank, label))
    return {key: labels.get(key, key[1]) for key in used}
