"""The parts that algorithms are made of: an all-reduce is a reduce-scatter phase, then an all-gather phase.

Only what more than one algorithm uses stands here; everything else is in its collective's module. `p` is the number of
ranks. Who is whose partner comes from `collectives.groups`.
"""

from collections.abc import Callable, Sequence

import numpy as np

from collectives.columns import REDUCE, Columns, join, move, split_at, where
from collectives.groups import Halves, Rings, bine, binomial, depths, doubling, heights, rounds
from collectives.schedule import Phase

# Flat: the root deals with one rank after the other.


def flat_broadcast(p: int, root: int) -> Phase:
    says = f"Rank {root} sends its vector to another rank"
    return Phase("broadcast", p - 1, lambda k: move(root, (root + 1 + k) % p), says)


def flat_reduce(p: int, root: int) -> Phase:
    says = f"Rank {root} adds the vector of another rank to its own"
    return Phase("reduce", p - 1, lambda k: move((root + 1 + k) % p, root, op=REDUCE), says)


# Binomial and Bine trees: down with the longest edges first, up with the shortest first.


def tree_broadcast(p: int, root: int, count: int = 1, near_first: bool = False) -> Phase:
    """A vector of `count` chunks; every step doubles the number of ranks that have it."""

    def down(k: int) -> Columns:
        edges = doubling(p, 1 << k, root) if near_first else binomial(p, 1 << (rounds(p) - 1 - k), root)
        return move(edges.parent, edges.child, count=count)

    return Phase("broadcast", rounds(p), down, "Every rank that has the vector sends it to one that lacks it")


def tree_reduce(p: int, root: int, far_first: bool = False) -> Phase:
    """Every step halves the number of ranks that still hold a sum no other rank has."""

    def up(k: int) -> Columns:
        edges = doubling(p, 1 << (rounds(p) - 1 - k), root) if far_first else binomial(p, 1 << k, root)
        return move(edges.child, edges.parent, op=REDUCE)

    return Phase("reduce", rounds(p), up, "Of every two ranks that still count, one sends its sum to the other")


def bine_broadcast(p: int, root: int) -> Phase:
    """As `tree_broadcast`, for p a power of two, to the right and to the left by turns."""

    def down(k: int) -> Columns:
        edges = bine(p, k, root)
        return move(edges.parent, edges.child)

    return Phase("broadcast", rounds(p), down, "Every rank that has the vector sends it to one that lacks it")


def bine_reduce(p: int, root: int) -> Phase:
    """The mirror image of `bine_broadcast`."""

    def up(k: int) -> Columns:
        edges = bine(p, rounds(p) - 1 - k, root)
        return move(edges.child, edges.parent, op=REDUCE)

    return Phase("reduce", rounds(p), up, "Of every two ranks that still count, one sends its sum to the other")


def tree_scatter(p: int, root: int) -> Phase:
    """p chunks; every message carries those of the whole subtree below it."""

    def down(k: int) -> Columns:
        edges = binomial(p, 1 << (rounds(p) - 1 - k), root)
        return split_at(p, move(edges.parent, edges.child, edges.child, count=edges.size))

    return Phase("scatter", rounds(p), down, "Every rank that holds chunks of others hands on the farther half of them")


def tree_gather(p: int, root: int) -> Phase:
    """The mirror image of `tree_scatter`."""

    def up(k: int) -> Columns:
        edges = binomial(p, 1 << k, root)
        return split_at(p, move(edges.child, edges.parent, edges.child, count=edges.size))

    return Phase("gather", rounds(p), up, "Of every two ranks that still collect, one sends all it has to the other")


# Rings. After the reduce-scatter position b of a ring holds the finished block b, as in NCCL and gloo.


def ring_reduce_scatter(rings: Rings, name: str = "reduce-scatter") -> Phase:
    """Block b sets out from the right of position b, so that b itself is the last to add to it."""

    def pass_on(k: int) -> Columns:
        return move(rings.rank, rings.right, rings.chunk(rings.position - 1 - k), count=rings.width, op=REDUCE)

    return Phase(
        name, rings.size - 1, pass_on, "Every rank sends a partial sum to the right and adds its own to what arrives"
    )


def ring_all_gather(rings: Rings, name: str = "all-gather") -> Phase:
    """Every position sends its own block first, then always the one that came last."""

    def pass_on(k: int) -> Columns:
        return move(rings.rank, rings.right, rings.chunk(rings.position - k), count=rings.width)

    return Phase(
        name, rings.size - 1, pass_on, "Every rank passes on to the right what it received last, and keeps a copy"
    )


def both_ways_reduce_scatter(p: int) -> Phase:
    """Half of the summands of a chunk come to its rank from the left, half from the right: p/2 steps, rounded down."""
    rank, reach = np.arange(p), p // 2

    def pass_on(k: int) -> Columns:
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

    def pass_on(k: int) -> Columns:
        to_right = move(rank, (rank + 1) % p, (rank - k) % p)
        to_left = move(rank, (rank - 1) % p, (rank + k) % p)
        return join(to_right, to_left) if 2 * (k + 1) < p else to_right

    return Phase(
        "all-gather", reach, pass_on, "Every rank passes on, both ways, what it received last, and keeps a copy"
    )


def side_by_side(name: str, lanes: Sequence[Sequence[Phase]], says: str) -> Phase:
    """In each lane one phase after the other; all lanes, which have equally many steps, at the same time."""

    def step(lane: Sequence[Phase], k: int) -> Columns:
        for phase in lane:
            if k < phase.count:
                return phase.moves(k)
            k -= phase.count
        raise IndexError(k)

    count = sum(phase.count for phase in lanes[0])
    return Phase(name, count, lambda k: join(*(step(lane, k) for lane in lanes)), says)


# Every rank with every other, in groups: one step to add up, one to hand out.


def meet(
    members: np.ndarray,
    first: np.ndarray,
    width: int = 1,
    name: str = "reduce-scatter",
    says: str = "Every rank sends each of the others the part that this one adds up",
    in_network: bool = False,
) -> Phase:
    """members[group, place] is a rank; it gets the `width` chunks from first[group, place] on of all in its group.

    `in_network`: a switch adds them up on the way; `says` is what captions say of it.
    """
    src, dst, chunk = _all_pairs(members, first)
    return Phase(name, int(len(src) > 0), lambda _: move(src, dst, chunk, count=width, op=REDUCE), says, in_network)


def spread(
    members: np.ndarray,
    first: np.ndarray,
    width: int = 1,
    name: str = "all-gather",
    says: str = "Every rank sends all others the part that it has finished",
    in_network: bool = False,
) -> Phase:
    """The mirror image of `meet`: every rank has finished chunks and sends them to all in its group."""
    dst, src, chunk = _all_pairs(members, first)
    return Phase(name, int(len(src) > 0), lambda _: move(src, dst, chunk, count=width), says, in_network)


def _all_pairs(members: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(other rank, owner, owner's first chunk) of all ordered pairs within the groups."""
    size = members.shape[1]
    other, hop = np.divmod(np.arange(size * (size - 1)), max(size - 1, 1))
    owner = (other + 1 + hop) % size
    return members[:, other].ravel(), members[:, owner].ravel(), first[:, owner].ravel()


# Recursive halving and doubling; ranks beyond the largest power of two fold into a neighbour.


def itself(place: np.ndarray) -> np.ndarray:
    return place


def fold(group: Halves, rank: Callable[[np.ndarray], np.ndarray] = itself) -> Phase:
    """The ranks left over hand their vector to a neighbour and wait. `rank` turns places into ranks (for a root)."""
    odd, chunks = 2 * np.arange(group.extra) + 1, int(group.bounds[-1])
    says = "The ranks too many for a power of two give their vector to a neighbour, which adds it"
    return Phase("fold", int(group.extra > 0), lambda _: move(rank(odd), rank(odd - 1), count=chunks, op=REDUCE), says)


def unfold(group: Halves) -> Phase:
    """The ranks that waited get the whole result."""
    odd, chunks = 2 * np.arange(group.extra) + 1, int(group.bounds[-1])
    says = "The ranks that folded get the result back from their neighbour"
    return Phase("unfold", int(group.extra > 0), lambda _: move(odd - 1, odd, count=chunks), says)


def halve(group: Halves, rank: Callable[[np.ndarray], np.ndarray] = itself) -> Phase:
    """Recursive halving: in the end survivor i has the sum of block first[-1][i], its own if partners are far first."""
    src, dst = rank(group.place), [rank(group.place[partner]) for partner in group.partner]

    def swap_halves(k: int) -> Columns:
        given = group.first[k + 1][group.partner[k]]  # what the partner is left with
        first, count = group.block(given, group.survivors >> (k + 1))
        return move(src, dst[k], first, count=count, op=REDUCE)

    says = "Partners share out what they both hold: each sends the half it gives up and adds to the half it keeps"
    return Phase("reduce-scatter", rounds(group.survivors), swap_halves, says)


def double(group: Halves) -> Phase:
    """Recursive doubling, the steps of `halve` backwards: every one doubles what a survivor has."""
    last = rounds(group.survivors) - 1

    def swap(k: int) -> Columns:
        first, count = group.block(group.first[last - k + 1], 1 << k)
        return move(group.place, group.place[group.partner[last - k]], first, count=count)

    says = "Partners send each other all the finished chunks they have"
    return Phase("all-gather", rounds(group.survivors), swap, says)


# Trees through which pieces go one after the other.


def up_and_down(parents: Sequence[np.ndarray], chunks: int) -> Phase:
    """One pipeline per tree, each with its own `chunks`: a rank sends up what all below it have added to.

    The first chunk leaves a rank as soon as it can, after as many steps as the rank is high above its deepest leaf, and
    reaches the root after as many as the tree is deep; every further chunk follows one step behind. `parents` are -1
    for a root; there may be several, each of a tree of its own.
    """
    columns: list[list[np.ndarray]] = []
    for number, parent in enumerate(parents):
        child = np.flatnonzero(parent >= 0)
        height, depth = heights(parent), depths(parent)
        first = np.full_like(child, number * chunks)
        columns.append([child, parent[child], first, np.full_like(child, REDUCE), height[child]])
        columns.append([parent[child], child, first, np.zeros_like(child), height.max() + depth[child] - 1])
    src, dst, first, op, leaves_at = map(np.concatenate, zip(*columns, strict=True))

    def send(k: int) -> Columns:
        chunk = k - leaves_at
        return where((0 <= chunk) & (chunk < chunks), move(src, dst, first + chunk, op=op))

    says = "Chunks that everybody below has added to go up, finished ones go down"
    return Phase("pipeline", int(leaves_at.max()) + chunks, send, says)
