"""Buffers and chunks for a recorded run: the regions that its moves touch, as numbers a Schedule can use.

A variable is a buffer; two variables of the same size that no rank uses both of (`total` on rank 0, `x` on the others)
are one. Where any rank's moves cut a buffer, it is cut on every rank: what lies between two cuts is a chunk. So chunks
come out as the student made them, also when they are not all of one size.

Left out: what the chunks hold; see `Recording`.
"""

from bisect import bisect_left
from collections import Counter
from functools import cached_property

from launch.replay.matching import Move
from launch.replay.memory import Memory, Region


class Layout:
    """`buffers`: names, the one that collects results first; `cuts[name]`: where its chunks begin, and its end, in
    bytes.

    `together` are lists of (rank, place) that stand for each other: what the ranks gave one call of a built-in.
    """

    def __init__(self, moves: list[Move], memories: dict[int, Memory], together=()):
        self.memories = memories
        used: Counter = Counter()  # (rank, place) -> moves
        summed: Counter = Counter()
        for move in moves:
            used[move.src, move.source.place] += 1
            used[move.dst, move.target.place] += 1
            summed[move.dst, move.target.place] += move.op == "reduce"
        self.names = self._merge(used, _labels(used, together))  # (rank, place) -> buffer
        self.places = {(rank, name): place for (rank, place), name in self.names.items()}
        weights: dict[str, tuple] = {}
        for key, name in self.names.items():
            sums, moved = weights.get(name, (0, 0))
            weights[name] = (sums - summed[key], moved - used[key])
        size = {name: memories[rank].size(place) for (rank, place), name in self.names.items()}
        self.buffers = tuple(sorted(weights, key=lambda name: (-size[name], weights[name], name))) or ("data",)
        self.cuts = self._cut(moves, size)

    def _merge(self, used, labels) -> dict[tuple[int, str], str]:
        """Places that are one buffer: those of one name, and those of one size and type that never meet on a rank."""
        ranks: dict[str, set[int]] = {}
        kinds: dict[str, tuple] = {}
        for rank, place in used:
            ranks.setdefault(labels[rank, place], set()).add(rank)
            memory = self.memories[rank]
            kinds.setdefault(labels[rank, place], (memory.size(place), memory.dtype(place)))
        everywhere = set().union(*ranks.values())
        names: dict[str, str] = {}
        taken: dict[tuple, dict[str, set[int]]] = {}  # kind -> name -> its ranks; full names are left out
        for place in sorted(ranks, key=lambda place: (-len(ranks[place]), place.startswith("#"), place)):
            alike = taken.setdefault(kinds[place], {})
            name = next((name for name, others in alike.items() if not others & ranks[place]), place)
            names[place] = name
            alike[name] = alike.get(name, set()) | ranks[place]
            if alike[name] == everywhere:
                del alike[name]
        return {key: names[labels[key]] for key in used}

    def _cut(self, moves: list[Move], size: dict[str, int]) -> dict[str, list[int]]:
        cuts = {name: {0, nbytes} for name, nbytes in size.items()}
        links = set()
        for move in moves:
            ends = (
                (self.names[move.src, move.source.place], move.source),
                (self.names[move.dst, move.target.place], move.target),
            )
            for name, region in ends:
                cuts[name] |= {region.lo, region.hi}
            links.add((ends[0][0], ends[0][1].lo, ends[1][0], ends[1][1].lo, move.source.hi - move.source.lo))
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
