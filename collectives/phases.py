"""The parts that algorithms are put together from: an all-reduce is a reduce-scatter phase, then an all-gather phase.

Only what more than one algorithm uses stands here; everything else is in its collective's module. `p` is the number of
ranks. Who is whose partner comes from `collectives.groups`.
"""

import numpy as np

from collectives.columns import REDUCE, join, move, split_at
from collectives.groups import Halves, Rings, binomial, rounds
from collectives.schedule import Phase

# Flat: the root deals with one rank after the other.


def flat_broadcast(p: int, root: int) -> Phase:
    says = f"Rank {root} sends its vector to another rank"
    return Phase("broadcast", p - 1, lambda k: move(root, (root + 1 + k) % p), says)


def flat_reduce(p: int, root: int) -> Phase:
    says = f"Rank {root} adds the vector of another rank to its own"
    return Phase("reduce", p - 1, lambda k: move((root + 1 + k) % p, root, op=REDUCE), says)


# Binomial trees: down with the longest edges first, up with the shortest first.


def tree_broadcast(p: int, root: int, count: int = 1) -> Phase:
    """A vector of `count` chunks; every step doubles the number of ranks that have it."""

    def down(k):
        edges = binomial(p, 1 << (rounds(p) - 1 - k), root)
        return move(edges.parent, edges.child, count=count)

    return Phase("broadcast", rounds(p), down, "Every rank that has the vector sends it to one that lacks it")


def tree_reduce(p: int, root: int) -> Phase:
    """Every step halves the number of ranks that still hold a sum nobody else has."""

    def up(k):
        edges = binomial(p, 1 << k, root)
        return move(edges.child, edges.parent, op=REDUCE)

    return Phase("reduce", rounds(p), up, "Of every two ranks that still count, one sends its sum to the other")


def tree_scatter(p: int, root: int) -> Phase:
    """p chunks; every message carries those of the whole subtree below it."""

    def down(k):
        edges = binomial(p, 1 << (rounds(p) - 1 - k), root)
        return split_at(p, move(edges.parent, edges.child, edges.child, count=edges.size))

    return Phase("scatter", rounds(p), down, "Every rank that holds chunks of others hands on the farther half of them")


def tree_gather(p: int, root: int) -> Phase:
    """The mirror image of `tree_scatter`."""

    def up(k):
        edges = binomial(p, 1 << k, root)
        return split_at(p, move(edges.child, edges.parent, edges.child, count=edges.size))

    return Phase("gather", rounds(p), up, "Of every two ranks that still collect, one sends all it has to the other")


# Rings. After the reduce-scatter position b of a ring holds the finished block b, as in NCCL and gloo.


def ring_reduce_scatter(rings: Rings, name: str = "reduce-scatter") -> Phase:
    """Block b sets out from the right of position b, so that b itself is the last to add to it."""

    def pass_on(k):
        return move(rings.rank, rings.right, rings.chunk(rings.position - 1 - k), count=rings.width, op=REDUCE)

    return Phase(
        name, rings.size - 1, pass_on, "Every rank sends a partial sum to the right and adds its own to what arrives"
    )


def ring_all_gather(rings: Rings, name: str = "all-gather") -> Phase:
    """Every position sends its own block first, then always the one that came last."""

    def pass_on(k):
        return move(rings.rank, rings.right, rings.chunk(rings.position - k), count=rings.width)

    return Phase(
        name, rings.size - 1, pass_on, "Every rank passes on to the right what it received last, and keeps a copy"
    )


def both_ways_reduce_scatter(p: int) -> Phase:
    """Half of the summands of a chunk come to its rank from the left, half from the right: p/2 steps, rounded down."""
    rank, reach = np.arange(p), p // 2

    def pass_on(k):
        distance = reach - k  # of the chunk's rank from here
        to_right = move(rank, (rank + 1) % p, (rank + distance) % p, op=REDUCE)
        to_left = move(rank, (rank - 1) % p, (rank - distance) % p, op=REDUCE)
        return join(to_right, to_left) if 2 * distance < p else to_right  # the rank opposite is reached one way only

    return Phase(
        "reduce-scatter", reach, pass_on, "Every rank sends partial sums both ways and adds its own to what arrives"
    )


def both_ways_all_gather(p: int) -> Phase:
    """Every chunk goes half way round in both directions: p/2 steps, rounded down."""
    rank, reach = np.arange(p), p // 2

    def pass_on(k):
        to_right = move(rank, (rank + 1) % p, (rank - k) % p)
        to_left = move(rank, (rank - 1) % p, (rank + k) % p)
        return join(to_right, to_left) if 2 * (k + 1) < p else to_right

    return Phase(
        "all-gather", reach, pass_on, "Every rank passes on, both ways, what it received last, and keeps a copy"
    )


# Recursive halving and doubling, with the fold for ranks too many for a power of two.


def itself(place):
    return place


def fold(group: Halves, rank=itself) -> Phase:
    """The ranks too many hand their vector to a neighbour and wait. `rank` turns places into ranks (for a root)."""
    odd, chunks = 2 * np.arange(group.extra) + 1, int(group.bounds[-1])
    says = "The ranks too many for a power of two give their vector to a neighbour, which adds it"
    return Phase("fold", int(group.extra > 0), lambda _: move(rank(odd), rank(odd - 1), count=chunks, op=REDUCE), says)


def unfold(group: Halves) -> Phase:
    """The ranks that waited get the whole result."""
    odd, chunks = 2 * np.arange(group.extra) + 1, int(group.bounds[-1])
    says = "The ranks that folded get the result back from their neighbour"
    return Phase("unfold", int(group.extra > 0), lambda _: move(odd - 1, odd, count=chunks), says)


def halve(group: Halves, rank=itself) -> Phase:
    """Recursive halving: partners far apart first; in the end survivor i has the sum of its own block."""
    survivor = np.arange(group.survivors)

    def swap_halves(k):
        distance = group.survivors >> (k + 1)
        partner = survivor ^ distance
        first, count = group.block(partner & -distance, distance)
        return move(rank(group.place[survivor]), rank(group.place[partner]), first, count=count, op=REDUCE)

    says = "Partners share out what they both hold: each sends the half it gives up and adds to the half it keeps"
    return Phase("reduce-scatter", rounds(group.survivors), swap_halves, says)


def double(group: Halves) -> Phase:
    """Recursive doubling: neighbours first, every step doubles what a survivor has."""
    survivor = np.arange(group.survivors)

    def swap(k):
        distance = 1 << k
        first, count = group.block(survivor & -distance, distance)
        return move(group.place[survivor], group.place[survivor ^ distance], first, count=count)

    return Phase(
        "all-gather", rounds(group.survivors), swap, "Partners send each other all the finished chunks they have"
    )
