"""broadcast: one rank, the root, has a vector of N bytes; at the end every rank has it.

Every rank but the root must receive N bytes, so nothing is faster than N * beta. A long vector gets near that in
pieces (chain, scatter + all-gather); for a short one the number of steps counts (binomial).
"""

import numpy as np

from collectives.columns import Columns, move, where
from collectives.errors import check_power_of_two, check_ranks, check_root, whole
from collectives.groups import one_ring
from collectives.phases import bine_broadcast, flat_broadcast, ring_all_gather, tree_broadcast, tree_scatter
from collectives.schedule import Phase, Schedule


def flat(ranks: int, root: int = 0) -> Schedule:
    """The root sends to one rank after the other: p-1 steps, and the root sends (p-1)N."""
    p, root = check_ranks("broadcast.flat", ranks), check_root("broadcast.flat", root, ranks)
    return Schedule.from_phases("broadcast", "flat", p, 1, [flat_broadcast(p, root)], root=root)


def chain(ranks: int, root: int = 0, chunks: int = 8) -> Schedule:
    """A pipeline: every rank passes on one chunk while it receives the next.

    p - 2 + chunks steps of N / chunks bytes: with many chunks little more than N * beta, however many ranks there are.
    """
    p, root = check_ranks("broadcast.chain", ranks), check_root("broadcast.chain", root, ranks)
    chunks = whole("broadcast.chain", chunks, "chunks", 1)
    place = np.arange(p - 1)

    def pass_on(k: int) -> Columns:
        chunk = k - place
        return where((0 <= chunk) & (chunk < chunks), move((place + root) % p, (place + 1 + root) % p, chunk))

    says = "Every rank passes on to the right the next chunk that it has"
    phases = [Phase("pipeline", p - 2 + chunks, pass_on, says)]
    return Schedule.from_phases("broadcast", "chain", p, chunks, phases, root=root)


def binomial(ranks: int, root: int = 0, near_first: bool = False) -> Schedule:
    """Every rank that has the vector sends it on, so each step doubles their number: log2(p) steps of N bytes.

    p-1 messages; the root sends in every step. The farther half is served first, as MPICH does it; with `near_first`
    the nearer.
    """
    p, root = check_ranks("broadcast.binomial", ranks), check_root("broadcast.binomial", root, ranks)
    phases = [tree_broadcast(p, root, near_first=near_first)]
    return Schedule.from_phases("broadcast", "binomial", p, 1, phases, root=root)


def bine(ranks: int, root: int = 0) -> Schedule:
    """A binomial tree in base -2: log2(p) steps of N bytes, p a power of two, over edges that are a third shorter.

    A rank that has it sends to the right and to the left in turn. Up to a third fewer messages cross between groups of
    ranks that begin and end anywhere; where groups are machines of 2, 4, 8 ranks a binomial tree crosses least. De
    Sensi et al., "Bine Trees" (SC 2025).
    """
    p, root = check_ranks("broadcast.bine", ranks), check_root("broadcast.bine", root, ranks)
    check_power_of_two("broadcast.bine", p, "broadcast.binomial")
    return Schedule.from_phases("broadcast", "bine", p, 1, [bine_broadcast(p, root)], root=root)


def scatter_all_gather(ranks: int, root: int = 0) -> Schedule:
    """The root deals out p chunks down a tree, then a ring collects them everywhere (van de Geijn).

    log2(p), rounded up, + p-1 steps, but the root sends 2(p-1)/p N instead of binomial's N log2(p). The ring does not
    care that ranks high in the tree have had other chunks than their own already.
    """
    name = "broadcast.scatter_all_gather"
    p, root = check_ranks(name, ranks), check_root(name, root, ranks)
    phases = [tree_scatter(p, root), ring_all_gather(one_ring(p))]
    return Schedule.from_phases("broadcast", "scatter_all_gather", p, p, phases, root=root)


ALGORITHMS = (flat, chain, binomial, bine, scatter_all_gather)
