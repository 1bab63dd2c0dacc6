"""A network with something wrong, for a student to find: four ranks on one switch, and one slow link.

Left out: which link that is, in the name of the network; a cell's log says that two speeds are there, and not where.
"""

from collections.abc import Iterator

import numpy as np

from collectives import Topology
from collectives.network import Hop

RANKS = 4
ALPHA, BETA = 2e-3, 1 / 50e6
SLOW = ("in", 2)
TIMES = 10


def straggler() -> Topology:
    """Each rank has a link to the switch and one from it, 50 MB/s; one of the eight carries a tenth of that."""
    sides = [(side, rank) for side in ("out", "in") for rank in range(RANKS)]
    links = [(f"rank {rank} {side}", BETA * (TIMES if (side, rank) == SLOW else 1)) for side, rank in sides]

    def hops(src: np.ndarray, dst: np.ndarray) -> Iterator[Hop]:
        message = np.arange(len(src))
        yield Hop(message, src, src)
        yield Hop(message, RANKS + dst, dst)

    return Topology("4 ranks on one switch", RANKS, links, hops, lambda src, dst: np.full(len(src), ALPHA))
