"""gather: rank r has chunk r of p; at the end the root has all of them, N bytes in total. Scatter backwards."""

from collectives.columns import Columns, move
from collectives.errors import check_ranks, check_root
from collectives.phases import tree_gather
from collectives.schedule import Phase, Schedule


def flat(ranks: int, root: int = 0) -> Schedule:
    """Every rank sends its chunk to the root, one after the other: p-1 messages of N/p."""
    p, root = check_ranks("gather.flat", ranks), check_root("gather.flat", root, ranks)

    def from_the_next(k: int) -> Columns:
        rank = (root + 1 + k) % p
        return move(rank, root, rank)

    phases = [Phase("gather", p - 1, from_the_next, f"Another rank sends its chunk to rank {root}")]
    return Schedule.from_phases("gather", "flat", p, p, phases, root=root)


def binomial(ranks: int, root: int = 0) -> Schedule:
    """Neighbours first, then ever larger groups, each sends all it has collected: log2(p) steps, rounded up.

    p-1 messages; the root receives (p-1)/p N, and what the ranks between pass on comes on top.
    """
    p, root = check_ranks("gather.binomial", ranks), check_root("gather.binomial", root, ranks)
    return Schedule.from_phases("gather", "binomial", p, p, [tree_gather(p, root)], root=root)


ALGORITHMS = (flat, binomial)
