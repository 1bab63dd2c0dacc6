"""Which ranks are partners: rings, binomial and Bine trees, NCCL's binary trees, and the pairs of recursive halving.

Algorithms share these shapes: a reduce climbs the tree that a broadcast goes down, a ring is a ring whether it adds or
copies. This module has only the shapes, as arrays of ranks; the algorithms decide what is sent along them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from collectives.errors import ScheduleError, whole


class Rings(NamedTuple):
    """One ring of ranks, or many side by side. Each ring's vector is cut into `size` blocks of `width` chunks.

    rank[i] sends to right[i] and is at position[i] of its ring; the ring's first block starts at chunk first[i].
    """

    rank: np.ndarray
    right: np.ndarray
    position: np.ndarray
    size: int
    first: np.ndarray | int = 0
    width: int = 1

    def chunk(self, block: np.ndarray) -> np.ndarray:
        """For each rank, the first chunk of that block of its ring; block numbers wrap around."""
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


def rings_by_rail(nodes: int, local: int) -> Rings:
    """`local` rings over all ranks, as NCCL lays them: each enters and leaves the machines through its own NICs.

    Ring j enters a machine at local rank j and goes through all its ranks to j - 1; through the next machine it goes
    backwards. So what leaves through NIC j - 1 arrives through NIC j - 1, and every NIC sends for one ring and receives
    for one. (With an odd number of machines the rings change NICs once, where they close.) Ring j has the blocks from
    j * ranks on.
    """
    ranks = nodes * local
    ring, place = np.divmod(np.arange(local * ranks), ranks)
    node, hop = np.divmod(place, local)
    rank = node * local + np.where(node % 2 == 0, ring + hop, ring - 1 - hop) % local
    right = np.roll(rank.reshape(local, ranks), -1, axis=1).ravel()
    return Rings(rank, right, place, ranks, first=ring * ranks)


def torus_rings(rows: int, columns: int, lane: int) -> tuple[Rings, Rings]:
    """The two sets of rings of one quarter (`lane`) of the vector on a torus, in the order in which it uses them.

    Quarters 0 and 1 go along the rows first, 2 and 3 along the columns; 0 and 2 go right and down, 1 and 3 left and up.
    """
    rank = np.arange(rows * columns)
    row, column = np.divmod(rank, columns)
    way = -1 if lane % 2 else 1
    along_row = Rings(rank, row * columns + (column + way) % columns, way * column % columns, columns)
    along_column = Rings(rank, (row + way) % rows * columns + column, way * row % rows, rows)
    first, then = (along_row, along_column) if lane < 2 else (along_column, along_row)
    first = first._replace(first=lane * len(rank), width=then.size)
    return first, then._replace(first=first.chunk(first.position))


def rounds(ranks: int) -> int:
    """How often a group can be halved until one rank is left: log2(ranks), rounded up."""
    return (ranks - 1).bit_length()


class Edges(NamedTuple):
    """One level of a binomial tree: parent[i] has child[i], whose subtree is size[i] ranks from the child on."""

    child: np.ndarray
    parent: np.ndarray
    size: np.ndarray


def binomial(ranks: int, distance: int, root: int = 0) -> Edges:
    """The edges of length `distance` (1, 2, 4, ...) of the binomial tree: odd multiples are children of even ones.

    The subtree of a child is the ranks from it on to the right (wrapping around if the root is not 0).
    """
    child = np.arange(distance, ranks, 2 * distance)
    size = np.minimum(distance, ranks - child)
    return Edges((child + root) % ranks, (child - distance + root) % ranks, size)


def doubling(ranks: int, distance: int, root: int = 0) -> Edges:
    """A tree with as many ranks in each level, but neighbours first: rank r is a child of r - distance, for the ranks
    from `distance` up to, not including, twice that."""
    child = np.arange(distance, min(2 * distance, ranks))
    return Edges((child + root) % ranks, (child - distance + root) % ranks, np.ones_like(child))


def swing_partner(ranks: int, step: int) -> np.ndarray:
    """Partner of every rank in one step of Swing, and of Bine butterflies: 1, 1, 3, 5, 11, ... places away, even ranks
    first to the right, then to the left, and so on; odd ranks the other way (wrapping around).

    The distance is 1 - 2 + 4 - ... up to (-2)**step (De Sensi et al., "Swing", NSDI 2024).
    """
    rank = np.arange(ranks)
    distance = (1 - (-2) ** (step + 1)) // 3
    partner: np.ndarray = (rank + np.where(rank % 2 == 0, distance, -distance)) % ranks
    return partner


def bine(ranks: int, level: int, root: int = 0) -> Edges:
    """The edges of one level of the Bine tree. Level 0 is at the root, with the longest edge; `ranks` is a power of 2.

    A binomial tree whose edges are written in base -2 instead of 2: each rank that has the data sends it to its Swing
    partner, so edges span a third less and cross fewer switches (De Sensi et al., "Bine Trees", SC 2025, distance
    halving).
    """
    have = np.array([0])
    for step in range(rounds(ranks) - 1, -1, -1):
        child = swing_partner(ranks, step)[have]
        if step == rounds(ranks) - 1 - level:
            return Edges((child + root) % ranks, (have + root) % ranks, np.full(len(child), 1 << step))
        have = np.concatenate([have, child])
    raise ScheduleError(f"a Bine tree of {ranks} ranks has {rounds(ranks)} levels, got {level}")


def btree(ranks: int) -> np.ndarray:
    """Parent of every rank in NCCL's binary tree (trees.cc), -1 for rank 0, its root.

    Odd ranks are leaves. The parent of a rank whose lowest set bit is b has the next bit set instead of b; if there is
    no such rank, the parent is the rank without b. Depth: log2(ranks), rounded up.
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
    )  # rank in the first tree -> rank in the second
    second = np.empty(ranks, np.int64)
    second[image] = np.where(first < 0, -1, image[first])
    return first, second


def chained_trees(nodes: int, local: int) -> list[np.ndarray]:
    """Parents in NCCL's trees over machines. For every local rank j: both double trees over ranks j of all machines,
    and below each of these ranks a chain through the others of its machine, j + 1 first."""
    rank = np.arange(nodes * local)
    node, place = np.divmod(rank, local)
    trees = []
    for head in range(local):
        chain = node * local + (place - 1) % local  # the parent of all but the head
        for above in double_btree(nodes) if nodes > 1 else (np.array([-1]),):
            trees.append(np.where(place != head, chain, np.where(above[node] < 0, -1, above[node] * local + head)))
    return trees


def trees_by_rail(nodes: int, local: int) -> list[np.ndarray]:
    """For every local rank j: parents in both double trees over local rank j of all machines; all others have -1."""
    node, place = np.divmod(np.arange(nodes * local), local)
    found = []
    for rail in range(local):
        for above in double_btree(nodes) if nodes > 1 else (np.array([-1]),):
            inside = (place == rail) & (above[node] >= 0)
            found.append(np.where(inside, above[node] * local + rail, -1))
    return found


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
    """The ranks of recursive halving: the largest power of two that fits; the `extra` others fold into a neighbour.

    Of the first 2 * extra ranks every odd one gives its vector to the even one before it and waits for the result.
    `place[i]` is the rank of survivor i. In step k it works with survivor partner[k][i]; after the step it has the
    blocks from first[k + 1][i] on, half as many as before. Block b is chunks bounds[b] to bounds[b + 1].
    """

    survivors: int
    extra: int
    place: np.ndarray
    bounds: np.ndarray
    partner: np.ndarray
    first: np.ndarray

    def block(self, first: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        """First chunk, and number of chunks, of `size` blocks from block `first` on."""
        return self.bounds[first], self.bounds[first + size] - self.bounds[first]


def far_first(survivors: int, step: int) -> np.ndarray:
    """Partners p/2 apart first, neighbours last: finally survivor i has block i."""
    return np.arange(survivors) ^ (survivors >> (step + 1))


def near_first(survivors: int, step: int) -> np.ndarray:
    """Neighbours first, partners p/2 apart last: the distance doubles while the vector halves (Rabenseifner 2004)."""
    return np.arange(survivors) ^ (1 << step)


def halves(ranks: int, chunks: int | None = None, pairs: Callable[[int, int], np.ndarray] = far_first) -> Halves:
    """`chunks` is the number of survivors (the default: one chunk each) or of ranks (one for each folded rank too).

    `pairs` gives the partners: `far_first`, `near_first` or `swing_partner`.
    """
    survivors = 1 << (ranks.bit_length() - 1)
    extra = ranks - survivors
    number = np.arange(survivors)
    place = number + np.minimum(number, extra)
    bounds = np.append(place, ranks) if chunks == ranks else np.arange(survivors + 1)
    partner = np.array([pairs(survivors, step) for step in range(rounds(survivors))])
    return Halves(survivors, extra, place, bounds, partner, _blocks(partner))


def _blocks(partner: np.ndarray) -> np.ndarray:
    """first[k][i]: the first of the survivors >> k blocks that survivor i answers for after k steps.

    Survivors that have the same blocks are a group. A step splits it into two groups, of partners, which share its
    blocks. The group of the lowest rank takes the lower half, so blocks stay contiguous in any order of partners.
    """
    steps, survivors = partner.shape
    group = np.arange(survivors) + np.zeros((steps + 1, 1), np.int64)  # its lowest survivor, after k steps
    for k in range(steps - 1, -1, -1):
        group[k] = np.minimum(group[k + 1], group[k + 1][partner[k]])
    first = np.zeros((steps + 1, survivors), np.int64)
    for k in range(steps):
        first[k + 1] = first[k] + (group[k + 1] != group[k]) * (survivors >> (k + 1))
    return first


def aggregated_trees(name: str, ranks: int, aggregate: int | None) -> list[tuple[np.ndarray, int]]:
    """NCCL's PAT, the steps towards the roots: in each, every rank r sends chunks r + offsets to rank r + distance.

    Every rank's tree is binomial: offset s sends to its root by way of s without its lowest bit. First come the offsets
    that are not multiples of `delta`, highest first; those that differ by a multiple of it go together. Then come the
    multiples, level by level.
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
