"""Every algorithm of the catalogue with every number of ranks it takes: what tests are parametrised with.

What an algorithm takes is read off the algorithm: its arguments, and that its docstring says "p a power of two". One
that says nothing must take any number.
"""

import inspect

from collectives import CATALOGUE, build

NAMES = [(collective, algorithm) for collective, known in CATALOGUE.items() for algorithm in known]


def schedules(collective, algorithm, ranks):
    """All schedules of one algorithm for `ranks` ranks: rooted ones from several roots, levels cut in all ways."""
    function = CATALOGUE[collective][algorithm]
    arguments = inspect.signature(function).parameters
    if "nodes" in arguments:
        return [build(collective, algorithm, ranks, local) for local in range(2, ranks) if ranks % local == 0]
    if "p a power of two" in function.__doc__ and ranks & (ranks - 1):
        return []
    roots = [{"root": root} for root in sorted({0, 1, ranks // 2, ranks - 1})] if "root" in arguments else [{}]
    return [build(collective, algorithm, ranks, **root) for root in roots]


def sizes(collective, algorithm, wanted):
    """Those of the wanted numbers of ranks for which there is a schedule, with the first one."""
    return [(ranks, made[0]) for ranks in wanted if (made := schedules(collective, algorithm, ranks))]
