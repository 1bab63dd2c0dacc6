"""Holds the moves of a picture against what the ranks really held.

The picker leaves scratch tensors and copies out of a picture where it takes them for unimportant. Here the moves are
carried out, in order, on the values that the ranks began with. Whenever a move reads a place, the picture must have
there what the rank really read; and at the end the picture must have in each variable what the rank holds.

Left out: what to do about a contradiction (`replay._moves`), and the numbers (`replay._numbers`).
"""

from collections import defaultdict

from launch.replay._replay import Replay
from launch.replay.provenance import Kind, Leaves, Piece, Ranges, Value


def contradictions(moves: list, replay: Replay, memories: dict, places) -> set[tuple[int, str]]:
    """The (rank, place) whose content in the picture is not what the rank held there."""
    picture = _Picture(replay.leaves, places, {1 / len(memories), *(1 / len(c.ranks) for c in replay.collectives)})
    latest: dict[tuple, float] = {}  # (rank, region) -> the row that wrote it last
    for group in groups(moves):
        reduced = defaultdict(list)
        for move in group:
            if move.source is not None:
                picture.read(move.src, move.source, move.held)
            if move.op == "reduce":
                reduced[move.dst, move.target.place].append(move.target)
        for move in group if reduced else ():  # messages of a step arrive in any order
            key, target = (move.dst, move.target.place), move.target
            if move.op == "copy" and any(t.lo < target.hi and target.lo < t.hi for t in reduced.get(key, ())):
                picture.wrong.add(key)
        for move in sorted(group, key=lambda move: move.spot.row):  # as the rank added them up
            key = (move.dst, move.target)
            if move.op == "reduce" and latest.get(key) != move.spot.row:  # what else one op adds comes on top
                picture.read(move.dst, move.target, move.onto)
            picture.write(move)
            latest[key] = move.spot.row
    for rank, memory in memories.items():
        if replay.seen(rank):
            for storage, lo, nbytes in memory.final.values():
                region = places.of(rank, storage, lo, lo + nbytes)
                held = replay.ends[rank].held(storage, lo, lo + nbytes)
                there = tuple(Piece(p.lo - lo, p.hi - lo, p.value.shifted(lo)) for p in held)
                picture.compare(rank, region, there)
    return picture.wrong


def groups(moves: list):
    """Moves that read what was there before any of them: the messages of a step; then a rank's own, one by one."""
    group: list = []
    for move in moves:
        if move.src != move.dst and (not group or group[0].step == move.step and group[0].src != group[0].dst):
            group.append(move)
            continue
        if group:
            yield group
        group = [move]
    if group:
        yield group


class _Picture:
    """What every place of the picture holds. What is read before it was written was there from the start."""

    def __init__(self, leaves: Leaves, places, means: set[float]):
        self.leaves, self.places, self.means = leaves, places, means
        self.held: dict[tuple[int, str], Ranges] = {}
        self.wrong: set[tuple[int, str]] = set()

    def read(self, rank: int, region, pieces) -> None:
        self.compare(rank, region, pieces)
        ranges = self.held.setdefault((rank, region.place), Ranges())
        for a, b in ranges.gaps(region.lo, region.hi):
            for p in pieces:
                lo, hi = max(a, p.lo + region.lo), min(b, p.hi + region.lo)
                if lo < hi:
                    ranges.write(lo, hi, p.value.shifted(-region.lo))
                    if not self.leaves.is_own(p.value, rank):
                        self.wrong.add((rank, region.place))  # it cannot have been there from the start

    def write(self, move) -> None:
        region = move.target
        ranges = self.held.setdefault((move.dst, region.place), Ranges())
        there = ranges.read(region.lo, region.hi) if move.op == "reduce" else []
        edges = {edge - region.lo for p in there for edge in (p.lo, p.hi)}
        for p in move.held:
            cuts = sorted({p.lo, p.hi, *(edge for edge in edges if p.lo < edge < p.hi)})
            for a, b in zip(cuts, cuts[1:], strict=False):
                lo, hi, value = a + region.lo, b + region.lo, p.value.shifted(-region.lo)
                before = next((q.value for q in there if q.lo <= lo and hi <= q.hi), None)
                if before is not None:
                    value = self.leaves.combined(move.how, [(before, 1), (value, 1)], move.dst)
                ranges.write(lo, hi, value)

    def compare(self, rank: int, region, pieces) -> None:
        """`pieces` are what the rank really held there, counted from the region's first byte."""
        ranges = self.held.get((rank, region.place))
        if ranges is None or (rank, region.place) in self.wrong:
            return
        for there in ranges.read(region.lo, region.hi):
            for p in pieces:
                if p.lo + region.lo < there.hi and there.lo < p.hi + region.lo:
                    if not self._same(there.value, p.value.shifted(-region.lo)):
                        self.wrong.add((rank, region.place))
                        return

    def _same(self, one: Value, other: Value) -> bool:
        return one == other or self._plain(one) == self._plain(other)

    def _plain(self, value: Value) -> Value:
        """Told by what it is made of in the end, without zeros that only begin sums, and without the 1/p of a mean."""
        counts: dict[tuple[int, int], float] = {}
        self._expand(value, 1, counts)
        terms = {key: n for key, n in counts.items() if n}
        if value.how == "sum":
            own = {key: n for key, n in terms.items() if self.leaves.all[key[0]].kind not in (Kind.ZERO, Kind.EMPTY)}
            terms = own or terms
        times = {round(n, 9) for n in terms.values()}
        if len(times) == 1 and any(abs(n - mean) < 1e-9 for n in times for mean in self.means):
            terms = dict.fromkeys(terms, 1)
        return Value(value.how, tuple(sorted((*key, round(n, 9)) for key, n in terms.items())))

    def _expand(self, value: Value, times: float, counts: dict) -> None:
        for leaf, shift, n in value.terms:
            inside = self.leaves.inside.get(leaf)
            if inside is not None and inside.how == value.how or inside is not None and len(value.terms) == 1:
                self._expand(inside.shifted(shift), n * times, counts)
            else:
                counts[leaf, shift] = counts.get((leaf, shift), 0) + n * times
