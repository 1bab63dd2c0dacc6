"""reduce_scatter: every rank has a vector of N bytes; rank r gets chunk r (of p) of the sum. All-gather backwards.

Every rank must send the (p-1)/p N that belong to others. Ring, pairwise and PAT send exactly that for any p, recursive
halving for a power of two; they differ in the number of steps.
"""

import numpy as np

from collectives.captions import places
from collectives.columns import REDUCE, Columns, move
from collectives.errors import check_ranks
from collectives.groups import aggregated_trees, halves, one_ring
from collectives.phases import fold, halve, ring_reduce_scatter
from collectives.schedule import Phase, Schedule


def ring(ranks: int) -> Schedule:
    """Every chunk goes once round the ring to its rank; each rank on the way adds its own. p-1 steps of N/p bytes."""
    p = check_ranks("reduce_scatter.ring", ranks)
    return Schedule.from_phases("reduce_scatter", "ring", p, p, [ring_reduce_scatter(one_ring(p))])


def pairwise(ranks: int) -> Schedule:
    """In step k every rank sends a chunk straight to its owner, k places on: p-1 steps of N/p, nothing is passed on."""
    p = check_ranks("reduce_scatter.pairwise", ranks)
    rank = np.arange(p)

    def deliver(k: int) -> Columns:
        owner = (rank + 1 + k) % p
        return move(rank, owner, owner, op=REDUCE)

    def says(k: int) -> str:
        return f"Every rank sends the chunk that belongs to the rank {places(k + 1)} to the right"

    return Schedule.from_phases("reduce_scatter", "pairwise", p, p, [Phase("reduce-scatter", p - 1, deliver, says)])


def recursive_halving(ranks: int) -> Schedule:
    """Partners share out the vector, then halves of it, then quarters: log2(p) steps, (p-1)/p N per rank.

    That is for a power of two. Otherwise the extra ranks give their vector to a neighbour first, and get their
    chunk of the sum from it at the end.
    """
    p = check_ranks("reduce_scatter.recursive_halving", ranks)
    group = halves(p, chunks=p)
    folded = 2 * np.arange(group.extra) + 1
    says = "The ranks that folded get their chunk of the sum"
    hand_back = Phase("unfold", int(group.extra > 0), lambda _: move(folded - 1, folded, folded), says)
    phases = [fold(group), halve(group), hand_back]
    return Schedule.from_phases("reduce_scatter", "recursive_halving", p, p, phases)


def pat(ranks: int, aggregate: int | None = None) -> Schedule:
    """NCCL's parallel aggregated trees: p binomial trees, one towards each rank, climbed at the same time.

    Neighbours come first and far partners last, with little data; recursive halving sends half of the vector farthest.
    A message carries the chunks of up to `aggregate` trees (a power of two; NCCL takes what its buffers hold). By
    default all trees that can share a message do: log2(p) steps, rounded up. A smaller `aggregate` takes more steps:
    q / aggregate - 1 + log2(aggregate), where q is p rounded up to a power of two. Always (p-1)/p N per rank. After
    NCCL's collectives.h and Jeaugey, "PAT" (arXiv 2506.20252); left out is that NCCL runs the steps of a long call as a
    pipeline.
    """
    p = check_ranks("reduce_scatter.pat", ranks)
    trees = aggregated_trees("reduce_scatter.pat", p, aggregate)
    rank = np.arange(p)[:, None]

    def climb(k: int) -> Columns:
        offsets, distance = trees[k]
        dst, chunk = np.broadcast_arrays((rank + distance) % p, (rank + offsets) % p)
        src = np.broadcast_to(rank, dst.shape)
        return move(src.ravel(), dst.ravel(), chunk.ravel(), op=REDUCE)

    says = "Every rank sends the partial sums of several trees up one edge at once"
    return Schedule.from_phases("reduce_scatter", "pat", p, p, [Phase("reduce-scatter", len(trees), climb, says)])


ALGORITHMS = (ring, pairwise, recursive_halving, pat)
