"""reduce: every rank has a vector of N bytes; at the end the root has the sum of all of them.

What the other ranks hold afterwards is not promised: here, as in gloo, they are left with partial sums.
"""

import numpy as np

from collectives.columns import REDUCE, Columns, move, where
from collectives.errors import check_power_of_two, check_ranks, check_root, whole
from collectives.groups import binomial as edges_of
from collectives.groups import halves, near_first, rounds
from collectives.phases import bine_reduce, flat_reduce, fold, halve, tree_reduce
from collectives.schedule import Phase, Schedule


def flat(ranks: int, root: int = 0) -> Schedule:
    """Every rank sends its vector to the root, one after the other: p-1 messages, and the root receives (p-1)N."""
    p, root = check_ranks("reduce.flat", ranks), check_root("reduce.flat", root, ranks)
    return Schedule.from_phases("reduce", "flat", p, 1, [flat_reduce(p, root)], root=root)


def binomial(ranks: int, root: int = 0, far_first: bool = False) -> Schedule:
    """Pairs add up, then pairs of pairs: log2(p) steps, rounded up, of N bytes; every rank but the root sends once.

    With `far_first` the first pairs are the ranks that are farthest apart.
    """
    p, root = check_ranks("reduce.binomial", ranks), check_root("reduce.binomial", root, ranks)
    return Schedule.from_phases("reduce", "binomial", p, 1, [tree_reduce(p, root, far_first)], root=root)


def bine(ranks: int, root: int = 0) -> Schedule:
    """`broadcast.bine` backwards: a binomial tree with shorter edges; log2(p) steps of N bytes, p a power of two."""
    p, root = check_ranks("reduce.bine", ranks), check_root("reduce.bine", root, ranks)
    check_power_of_two("reduce.bine", p, "reduce.binomial")
    return Schedule.from_phases("reduce", "bine", p, 1, [bine_reduce(p, root)], root=root)


def chain(ranks: int, root: int = 0, chunks: int = 8) -> Schedule:
    """A pipeline towards the root: every rank adds its own chunk to the one that arrives and passes the sum on.

    p - 2 + chunks steps of N / chunks bytes.
    """
    p, root = check_ranks("reduce.chain", ranks), check_root("reduce.chain", root, ranks)
    chunks = whole("reduce.chain", chunks, "chunks", 1)
    place = np.arange(p - 1, 0, -1)  # places left of which the root is 0, the farthest first

    def pass_on(k: int) -> Columns:
        chunk = k - (p - 1 - place)
        to_the_left = move((place + root) % p, (place - 1 + root) % p, chunk, op=REDUCE)
        return where((0 <= chunk) & (chunk < chunks), to_the_left)

    says = "Every rank whose next chunk has all sums from farther off passes it on towards the root"
    phases = [Phase("pipeline", p - 2 + chunks, pass_on, says)]
    return Schedule.from_phases("reduce", "chain", p, chunks, phases, root=root)


def reduce_scatter_gather(ranks: int, root: int = 0) -> Schedule:
    """Recursive halving leaves every rank with a finished part of the sum; a tree takes the parts to the root.

    For a power of two 2 log2(p) steps and 2(p-1)/p N through the busiest rank, the longest messages between neighbours
    (Rabenseifner 2004). Otherwise the ranks left over give their vector to a neighbour first.
    """
    name = "reduce.reduce_scatter_gather"
    p, root = check_ranks(name, ranks), check_root(name, root, ranks)
    group = halves(p, pairs=near_first)
    holder = np.argsort(group.first[-1])  # of every finished block

    def rank(place: np.ndarray) -> np.ndarray:
        return (place + root) % p

    def up(k: int) -> Columns:
        edges = edges_of(group.survivors, 1 << k)
        return move(
            rank(group.place[holder[edges.child]]),
            rank(group.place[holder[edges.parent]]),
            edges.child,
            count=edges.size,
        )

    says = "Of every two ranks that still collect, one sends all its finished chunks to the other"
    phases = [fold(group, rank), halve(group, rank), Phase("gather", rounds(group.survivors), up, says)]
    return Schedule.from_phases("reduce", "reduce_scatter_gather", p, group.survivors, phases, root=root)


ALGORITHMS = (flat, binomial, bine, chain, reduce_scatter_gather)
