"""scatter: the root has a vector of N bytes in p chunks; rank r gets chunk r.

The root always has to send (p-1)/p N: in p-1 messages if it sends to each rank, in log2(p) down a tree, where one
message has the chunks of up to half of the ranks.
"""

from collectives.columns import Columns, move
from collectives.errors import check_ranks, check_root
from collectives.phases import tree_scatter
from collectives.schedule import Phase, Schedule


def flat(ranks: int, root: int = 0) -> Schedule:
    """The root sends every rank its chunk, one after the other: p-1 messages of N/p."""
    p, root = check_ranks("scatter.flat", ranks), check_root("scatter.flat", root, ranks)

    def to_the_next(k: int) -> Columns:
        rank = (root + 1 + k) % p
        return move(root, rank, rank)

    phases = [Phase("scatter", p - 1, to_the_next, f"Rank {root} sends another rank its chunk")]
    return Schedule.from_phases("scatter", "flat", p, p, phases, root=root)


def binomial(ranks: int, root: int = 0) -> Schedule:
    """Each rank with chunks of others passes on those of the farther half: log2(p) steps, rounded up; p-1 messages.

    A chunk travels every edge between the root and its rank: N/2 log2(p) bytes in total for a power of two.
    """
    p, root = check_ranks("scatter.binomial", ranks), check_root("scatter.binomial", root, ranks)
    return Schedule.from_phases("scatter", "binomial", p, p, [tree_scatter(p, root)], root=root)


ALGORITHMS = (flat, binomial)
