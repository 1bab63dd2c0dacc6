"""Who is whose partner: rings, binomial trees, NCCL's binary trees, and the pairs of recursive halving.

Algorithms share these shapes: a reduce climbs the tree that a broadcast goes down, a ring is a ring whether it adds or
copies. Here are the shapes alone, as arrays of ranks; what is sent along them is the algorithms' business.
"""

from typing import NamedTuple

import numpy as np

from collectives.errors import ScheduleError, whole


class Rings(NamedTuple):
    """One ring of ranks, or many side by side, whose vector is cut into `size` blocks of `width` chunks.

    rank[i] sends to right[i] and stands at position[i] of its ring; the ring's first block starts at chunk first[i].
    """

    rank: np.ndarray
    right: np.ndarray
    position: np.ndarray
    size: int
    first: np.ndarray | int = 0
    width: int = 1

    def chunk(self, block):
        """The first chunk of that block of each rank's ring; blocks are counted round the ring."""
        return self.first + block % self.size * self.width


def one_ring(ranks: int) -> Rings:
    """Rank r sends to r + 1; block r is chunk r."""
    rank = np.arange(ranks)
    return Rings(rank, (rank + 1) % ranks, rank, ranks)


def rings_inside(nodes: int, local: int) -> Rings:
    """One ring per machine over its `local` ranks; block b is the `nodes` chunks that local rank b answers for."""
    rank = np.arange(nodes * local)
    node, position = np.divmod(rank, local)
    return Rings(rank, node * local + (position + 1) % local, position, local, width=nodes)


def rings_between(nodes: int, local: int) -> Rings:
    """One ring per local rank over all machines, on the `nodes` chunks that this local rank answers for."""
    rank = np.arange(nodes * local)
    node, position = np.divmod(rank, local)
    return Rings(rank, (rank + local) % (nodes * local), node, nodes, first=position * nodes)


def rounds(ranks: int) -> int:
    """How often a group can be halved until one is left: the logarithm of `ranks` to base 2, rounded up."""
    return (ranks - 1).bit_length()


class Edges(NamedTuple):
    """One level of a binomial tree: child[i] hangs below parent[i] with a subtree of `size[i]` ranks, child first."""

    child: np.ndarray
    parent: np.ndarray
    size: np.ndarray


def binomial(ranks: int, distance: int, root: int = 0) -> Edges:
    """The edges of length `distance` (1, 2, 4, ...) of the binomial tree: odd multiples hang below even ones.

    The subtree of a child are the ranks from it on to the right (round the end, if the root is not 0).
    """
    child = np.arange(distance, ranks, 2 * distance)
    size = np.minimum(distance, ranks - child)
    return Edges((child + root) % ranks, (child - distance + root) % ranks, size)


def btree(ranks: int) -> np.ndarray:
    """Parent of every rank in NCCL's binary tree (trees.cc), -1 for rank 0, its root.

    Odd ranks are leaves; a rank whose lowest set bit is b hangs below the rank that has the next bit set instead of b,
    or, if there is no such rank, below the one without b. Depth: the logarithm of `ranks`, rounded up.
    """
    rank = np.arange(ranks)
    bit = rank & -rank
    parent = (rank ^ bit) | (bit << 1)
    parent = np.where(parent < ranks, parent, rank ^ bit)
    parent[0] = -1
    return parent


def double_btree(ranks: int) -> tuple[np.ndarray, np.ndarray]:
    """Parents in NCCL's two trees: the second is the first mirrored if `ranks` is even, shifted by one rank if odd.

    So every rank is a leaf of one tree and inside the other (Sanders, Speck and Träff 2009); only rank 0 is inside both
    if `ranks` is odd.
    """
    first = btree(ranks)
    image = (
        np.arange(ranks)[::-1] if ranks % 2 == 0 else (np.arange(ranks) + 1) % ranks
    )  # rank of the first -> of the second
    second = np.empty(ranks, np.int64)
    second[image] = np.where(first < 0, -1, image[first])
    return first, second


def depths(parent: np.ndarray) -> np.ndarray:
    """How many edges lie between every rank and the root."""
    depth, above = np.zeros(len(parent), np.int64), parent
    while (inside := above >= 0).any():
        depth += inside
        above = np.where(inside, parent[above], -1)
    return depth


def heights(parent: np.ndarray) -> np.ndarray:
    """How many edges lie between every rank and the deepest leaf below it."""
    height, depth = np.zeros(len(parent), np.int64), depths(parent)
    for level in range(depth.max(), 0, -1):
        here = np.flatnonzero(depth == level)
        np.maximum.at(height, parent[here], height[here] + 1)
    return height


class Halves(NamedTuple):
    """The ranks of recursive halving: the largest power of two of them; the `extra` others fold into a neighbour.

    Of the first 2 * extra places every odd one hands its vector to the even one before it and waits for the result.
    `place[i]` is where the i-th survivor stands; survivor i answers for the chunks bounds[i] to bounds[i + 1].
    """

    survivors: int
    extra: int
    place: np.ndarray
    bounds: np.ndarray

    def block(self, first: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        """First chunk, and number of chunks, of the blocks of `size` survivors from survivor `first` on."""
        return self.bounds[first], self.bounds[first + size] - self.bounds[first]


def halves(ranks: int, chunks: int | None = None) -> Halves:
    """`chunks` is the number of survivors (the default: one chunk each) or of ranks (one for each folded rank too)."""
    survivors = 1 << (ranks.bit_length() - 1)
    extra = ranks - survivors
    number = np.arange(survivors)
    place = number + np.minimum(number, extra)
    bounds = np.append(place, ranks) if chunks == ranks else np.arange(survivors + 1)
    return Halves(survivors, extra, place, bounds)


def aggregated_trees(name: str, ranks: int, aggregate: int | None) -> list[tuple[np.ndarray, int]]:
    """NCCL's PAT, the steps towards the roots: in each, every rank r sends r + distance the chunks r + offsets.

    The tree of every rank is binomial: offset s sends to its root by way of s without its lowest bit. First come the
    offsets that are no multiple of `delta`, highest first, with all those together that differ by multiples of it; then
    the multiples, level by level.
    """
    size = 1 << rounds(ranks)
    aggregate = size // 2 if aggregate is None else whole(name, aggregate, "trees to aggregate", 1)
    if aggregate & (aggregate - 1) or aggregate > size // 2:
        raise ScheduleError(
            f"{name}: aggregate is a power of two up to {size // 2} with {ranks} ranks, got {aggregate}"
        )
    delta = size // aggregate
    apart = [(np.arange(offset, ranks, delta), offset & -offset) for offset in range(min(delta, ranks) - 1, 0, -1)]
    levels = [(np.arange(delta << k, ranks, delta << (k + 1)), delta << k) for k in range(rounds(aggregate))]
    return apart + levels
