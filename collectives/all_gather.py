"""all_gather: rank r has chunk r of p; at the end every rank has all of them, N bytes in total (not N each).

Every rank must receive the (p-1)/p N it lacks. All algorithms here but the last receive nothing twice; they differ in
the number of steps and in how far messages travel.
"""

import numpy as np

from collectives.columns import Columns, join, move
from collectives.errors import check_power_of_two, check_ranks
from collectives.groups import aggregated_trees, halves, one_ring, rounds
from collectives.phases import both_ways_all_gather, double, ring_all_gather, tree_broadcast, tree_gather
from collectives.schedule import Phase, Schedule


def ring(ranks: int) -> Schedule:
    """Every chunk goes once round the ring: p-1 steps of N/p bytes."""
    p = check_ranks("all_gather.ring", ranks)
    return Schedule.from_phases("all_gather", "ring", p, p, [ring_all_gather(one_ring(p))])


def bidirectional_ring(ranks: int) -> Schedule:
    """Chunks go both ways at once, so none goes farther than half way round: p/2 steps, rounded down.

    The same bytes per rank as the ring. With an even number of ranks the last step goes one way only.
    """
    p = check_ranks("all_gather.bidirectional_ring", ranks)
    return Schedule.from_phases("all_gather", "bidirectional_ring", p, p, [both_ways_all_gather(p)])


def recursive_doubling(ranks: int) -> Schedule:
    """Partners swap all they have, first neighbours, then at distance 2, 4, ...: log2(p) steps, p a power of two."""
    p = check_ranks("all_gather.recursive_doubling", ranks)
    check_power_of_two("all_gather.recursive_doubling", p, "all_gather.bruck")
    return Schedule.from_phases("all_gather", "recursive_doubling", p, p, [double(halves(p))])


def bruck(ranks: int) -> Schedule:
    """Recursive doubling for any p: log2(p) steps, rounded up, because the distances go round the end.

    Every rank collects in "scratch", its own chunk first, so that each message is one piece, and sorts at the end.
    """
    p = check_ranks("all_gather.bruck", ranks)
    rank = np.arange(p)
    data, scratch = 0, 1

    def own_first(_: int) -> Columns:
        return move(rank, rank, rank, dst_chunk=0, src_buffer=data, dst_buffer=scratch)

    def fetch(k: int) -> Columns:
        have = 1 << k
        return move(
            rank,
            (rank - have) % p,
            0,
            dst_chunk=have,
            count=min(have, p - have),
            src_buffer=scratch,
            dst_buffer=scratch,
        )

    def sort(_: int) -> Columns:
        from_own_on = move(rank, rank, 0, dst_chunk=rank, count=p - rank, src_buffer=scratch, dst_buffer=data)
        turned = rank[1:]  # rank 0 has nothing before its own chunk
        before_own = move(turned, turned, p - turned, dst_chunk=0, count=turned, src_buffer=scratch, dst_buffer=data)
        return join(from_own_on, before_own)

    phases = [
        Phase("own first", 1, own_first, "Every rank puts its own chunk first in its scratch buffer"),
        Phase("all-gather", rounds(p), fetch, "Every rank sends the first chunks of its scratch buffer to the left"),
        Phase("sort", 1, sort, "Every rank turns its scratch buffer round until chunk 0 comes first"),
    ]
    return Schedule.from_phases("all_gather", "bruck", p, p, phases, buffers=("data", "scratch"))


def pat(ranks: int, aggregate: int | None = None) -> Schedule:
    """NCCL's parallel aggregated trees: `reduce_scatter.pat` backwards, far partners first.

    `aggregate` is the most chunks one message carries; see there.
    """
    p = check_ranks("all_gather.pat", ranks)
    trees = aggregated_trees("all_gather.pat", p, aggregate)[::-1]
    rank = np.arange(p)[:, None]

    def hand_on(k: int) -> Columns:
        offsets, distance = trees[k]
        src, chunk = np.broadcast_arrays((rank + distance) % p, (rank + offsets) % p)
        dst = np.broadcast_to(rank, src.shape)
        return move(src.ravel(), dst.ravel(), chunk.ravel())

    phases = [
        Phase("all-gather", len(trees), hand_on, "Every rank hands the chunks of several trees down one edge at once")
    ]
    return Schedule.from_phases("all_gather", "pat", p, p, phases)


def gather_broadcast(ranks: int) -> Schedule:
    """Collect at rank 0, then hand out everything: two trees, and N bytes in every message of the second."""
    p = check_ranks("all_gather.gather_broadcast", ranks)
    return Schedule.from_phases(
        "all_gather", "gather_broadcast", p, p, [tree_gather(p, 0), tree_broadcast(p, 0, count=p)]
    )


ALGORITHMS = (ring, bidirectional_ring, recursive_doubling, bruck, pat, gather_broadcast)
