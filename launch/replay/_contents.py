"""Checks a picture: its moves are carried out, and what its places then hold is compared with what the ranks held.

The picker leaves scratch tensors and copies out of a picture where it thinks that they do not matter. Here the moves
are carried out in order, on the values that the ranks began with. Whenever a move reads a place, the picture must have
there what the rank really read, and at the end each variable must hold what it holds on the rank.

This also finds what places held at first: what is read before it is overwritten, and what no move overwrites.

Where the picture disagrees, what the rank really had is put there as new data, before the move that reads it or after
the last one. So a picture never goes on from something that was not there.

Left out: how to tell the moves such that nothing must be put right (`replay._moves`), symbols (`replay._layout`), and
the numbers (`replay._numbers`).
"""

from collections import defaultdict
from functools import partial
from itertools import chain

from collectives.as_if import Region
from launch.replay._places import Places, Spot, content
from launch.replay._replay import Replay
from launch.replay.provenance import Kind, Piece, Pieces, Ranges, Span, Value, cut, joined, meeting, moved

UNKNOWN = Value("sum", ())


class Contents:
    """By (rank, place), in bytes of the place: `held` after all moves, `began` before them, and `seen`, a list of
    (first byte, Spot) with the memory that shows what it began with. `wrong`: those that differ from the rank;
    `put_right`: (before which move, rank, Region, Spot, pieces) of what it really had there."""

    def __init__(self, moves: list, replay: Replay, places: Places):
        self.replay, self.variables, self.leaves, self.places = replay, replay.variables, replay.leaves, places
        self.means = {round(1 / n, 9) for n in (len(self.variables), *(len(c.ranks) for c in replay.collectives))}
        self.held: dict[tuple[int, str], Ranges] = defaultdict(Ranges)
        self.began: dict[tuple[int, str], Ranges] = defaultdict(Ranges)
        self.seen: dict[tuple[int, str], list[tuple[int, Spot]]] = defaultdict(list)
        self.wrong: set[tuple[int, str]] = set()
        self.put_right: list[tuple[int, int, Region, Spot, list[Piece]]] = []
        self.number = 0  # of moves that were carried out
        self._carry_out(moves)
        self._compare_ends()
        self._add_what_was_left_alone()

    def of(self, rank: int, region: Region) -> Pieces:
        """What a region held at first, counted from its first byte; () for nothing."""
        ranges = self.began.get((rank, region.place))
        return joined(ranges.read(region.lo, region.hi), region.lo) if ranges else ()

    def at_first(self, rank: int, name: str, lo: int, hi: int, size: int | None = None) -> Pieces | None:
        """What bytes lo up to hi of a variable of `size` bytes held when its rank made its first call; None if it has
        no such variable."""
        bound = self.variables[rank].named(name, 0) if rank in self.variables else []
        if not bound or size not in (None, sum(b.nbytes for b in bound)):
            return None
        inside = cut(self._variable(rank, name), lo, hi)
        return joined([p._replace(value=self.places.cleaned(p.value)) for p in inside])

    def _variable(self, rank: int, name: str) -> list[Piece]:
        return content([b.span for b in self.variables[rank].named(name, 0)], partial(self.replay.held_first, rank))

    def alike(self, rank: int, place: str, name: str) -> bool:
        """Whether a place held at first what the variable `name` held; True if there is no such variable."""
        size = self.variables[rank].size(place)
        if self.at_first(rank, name, 0, size, size) is None:
            return True
        held = self.began.get((rank, place))
        pieces = held.pieces if held else ()
        return all(self.at_first(rank, name, p.lo, p.hi, size) == joined([p], p.lo) for p in pieces)

    def _carry_out(self, moves: list) -> None:
        latest: dict[tuple, float] = {}  # (rank, region) -> the row that wrote it last
        for group in _groups(moves):
            reduced = defaultdict(list)
            for move in group:
                if move.source is not None:
                    self._read(move.src, move.source, move.held, move.origin)
                if move.op == "reduce":
                    reduced[move.dst, move.target.place].append(move.target)
            for move in group if reduced else ():  # the messages of a step arrive in any order
                key, target = (move.dst, move.target.place), move.target
                if move.op == "copy" and any(t.lo < target.hi and target.lo < t.hi for t in reduced.get(key, ())):
                    self.wrong.add(key)
            for move in sorted(group, key=lambda move: move.spot.row):  # as the rank added them up
                where = (move.dst, move.target)
                if (
                    move.op == "reduce" and latest.get(where) != move.spot.row
                ):  # not if the same op has just added something else
                    self._read(move.dst, move.target, move.onto, move.under)
                self._write(move)
                latest[where] = move.spot.row
            self.number += len(group)

    def _read(self, rank: int, region: Region, pieces, spot: Spot | None) -> None:
        self._compare(rank, region, pieces, spot)
        key = (rank, region.place)
        ranges = self.held[key]
        gaps = ranges.gaps(region.lo, region.hi)
        for a, b in gaps:
            ranges.write(a, b, UNKNOWN)
            for p in moved(cut(pieces, a - region.lo, b - region.lo), -a):
                ranges.write(*p)
                if self.leaves.is_own(p.value, rank):
                    self.began[key].write(p.lo, p.hi, self.places.cleaned(p.value))
                else:  # it cannot have been there from the start
                    self._put_right(rank, region, p.lo, p.hi, pieces, spot)
        if gaps and spot is not None:
            self.seen[key].append((region.lo, spot))

    def _write(self, move) -> None:
        region = move.target
        ranges = self.held[move.dst, region.place]
        if not move.held:
            ranges.write(region.lo, region.hi, UNKNOWN)
        for p in moved(move.held, -region.lo):
            there = ranges.read(p.lo, p.hi) if move.op == "reduce" else []
            ranges.write(*p)
            for before in there:
                if before.value.terms:
                    both = [(before.value, 1.0), (p.value, 1.0)]
                    how = "sum" if move.how == "avg" else move.how  # `_same` allows for the 1/p of a mean
                    ranges.write(before.lo, before.hi, self.leaves.combined(how, both, move.dst))

    def _compare_ends(self) -> None:
        for rank, memory in self.variables.items():
            for span in [last.span for last in chain(*memory.left.values())] if self.replay.seen(rank) else ():
                held = moved(self.replay.ends[rank].held(span), span.lo)
                last = Spot(rank, span, self.replay.ranks[rank].looks[-1][0])
                self._compare(rank, self.places.of(rank, span), held, last)

    def _compare(self, rank: int, region: Region, pieces, spot: Spot | None) -> None:
        """`pieces` are what the rank really held there, counted from the region's first byte."""
        ranges = self.held.get((rank, region.place))
        for there in ranges.read(region.lo, region.hi) if ranges else ():
            inside = meeting(pieces, there.lo - region.lo, there.hi - region.lo) if there.value.terms else ()
            if not all(self._same(there.value, p.value.shifted(-region.lo)) for p in inside):
                self._put_right(rank, region, there.lo, there.hi, pieces, spot)

    def _put_right(self, rank: int, region: Region, lo: int, hi: int, pieces, spot: Spot | None) -> None:
        self.wrong.add((rank, region.place))
        spot = spot or Spot(rank, Span(-1, region.lo, region.hi), -1)
        span = spot.span._replace(lo=spot.span.lo + lo - region.lo, hi=spot.span.lo + hi - region.lo)
        held = cut(pieces, lo - region.lo, hi - region.lo)
        if all(self.leaves.all[leaf].kind is Kind.UNSEEN for p in held for leaf, *_ in p.value.terms):
            return  # a receive that never ended: the rank may hold what it held before
        self.put_right.append((self.number, rank, region._replace(lo=lo, hi=hi), spot._replace(span=span), held))
        for p in moved(held, -lo):
            self.held[rank, region.place].write(*p)

    def _same(self, told: Value, held: Value) -> bool:
        """Whether a rank held what is told of it, or, where that is a sum, the mean of the same terms."""
        if told == held:
            return True
        (how, terms), (way, others) = self._plain(told), self._plain(held)
        if how != way or terms.keys() != others.keys():
            return False
        times = {round(others[key] / n, 9) for key, n in terms.items()}
        return times <= {1} or len(times) == 1 and times <= self.means

    def _plain(self, value: Value) -> tuple[str, dict[tuple[int, int], float]]:
        """The value in terms of its innermost leaves, without zeros that only begin a sum."""
        counts: dict[tuple[int, int], float] = {}
        self._expand(value, 1, counts)
        terms = {key: n for key, n in counts.items() if n}
        if value.how == "sum":
            terms = {key: n for key, n in terms.items() if self.leaves.all[key[0]].kind is not Kind.ZERO}
            own = {key: n for key, n in terms.items() if self.leaves.all[key[0]].kind is not Kind.EMPTY}
            terms = own or terms
        return value.how, terms

    def _expand(self, value: Value, times: float, counts: dict) -> None:
        for leaf, shift, n in value.terms:
            inside = self.leaves.inside.get(leaf)
            if inside is not None and inside.how == value.how or inside is not None and len(value.terms) == 1:
                self._expand(inside.shifted(shift), n * times, counts)
            else:
                counts[leaf, shift] = counts.get((leaf, shift), 0) + n * times

    def _add_what_was_left_alone(self) -> None:
        for (rank, place), touched in self.held.items():
            memory, at = self.variables[rank], 0
            for first, later in zip(memory.named(place, 0), memory.named(place, memory.last_snapshot), strict=False):
                b = later if later.nbytes == first.nbytes else first  # `parts[rank] = x` changes an item without an op
                by = b.span.lo - at
                for p in moved(self.replay.held_first(rank, b.span), by):
                    for lo, hi in () if self.places.is_nothing([p.value]) else touched.gaps(p.lo, p.hi):
                        self.began[rank, place].write(lo, hi, self.places.cleaned(p.value))
                        spot = Spot(rank, b.span._replace(lo=lo + by, hi=hi + by), 0)
                        self.seen[rank, place].append((lo, spot))
                at += b.nbytes


def _groups(moves: list):
    """Groups of moves that all read before any of them writes: the messages of a step; each move within a rank
    alone."""
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
