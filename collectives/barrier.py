"""barrier: no rank leaves before all have come. Nothing is sent but the news of that, so messages have no bytes.

What spreads is knowledge: at the end every rank must know of every rank that it has come. Hearing the same twice does
no harm, which is why dissemination works for any p.
"""

import numpy as np

from collectives.captions import places
from collectives.columns import REDUCE, Columns, move
from collectives.errors import check_ranks
from collectives.groups import rounds
from collectives.phases import flat_broadcast, flat_reduce, tree_broadcast, tree_reduce
from collectives.schedule import Phase, Schedule


def central(ranks: int) -> Schedule:
    """Every rank reports to rank 0, which then releases them one after the other: 2(p-1) steps and messages."""
    p = check_ranks("barrier.central", ranks)
    report = flat_reduce(p, 0)._replace(name="report", says="Another rank reports to rank 0 that it has come")
    release = flat_broadcast(p, 0)._replace(name="release", says="Rank 0 tells another rank that all have come")
    return Schedule.from_phases("barrier", "central", p, 1, [report, release])


def tree(ranks: int) -> Schedule:
    """Reports climb a binomial tree, the release comes down it: 2 log2(p) steps, rounded up, 2(p-1) messages."""
    p = check_ranks("barrier.tree", ranks)
    report = tree_reduce(p, 0)._replace(name="report", says="Ranks report for all from whom they have heard")
    release = tree_broadcast(p, 0)._replace(name="release", says="Ranks that know that all have come tell others")
    return Schedule.from_phases("barrier", "tree", p, 1, [report, release])


def dissemination(ranks: int) -> Schedule:
    """Every rank tells all it knows to the rank 1, 2, 4, ... places on: log2(p) steps, rounded up, of p messages."""
    p = check_ranks("barrier.dissemination", ranks)
    rank = np.arange(p)

    def tell(k: int) -> Columns:
        return move(rank, (rank + (1 << k)) % p, op=REDUCE)

    def says(k: int) -> str:
        return f"Every rank tells the rank {places(1 << k)} to the right who has come, as far as it knows"

    phases = [Phase("dissemination", rounds(p), tell, says)]
    return Schedule.from_phases("barrier", "dissemination", p, 1, phases)


ALGORITHMS = (central, tree, dissemination)
