"""Every algorithm of the catalogue with every number of ranks it takes: what tests are parametrised with."""

from collectives import CATALOGUE, build

NAMES = [(collective, algorithm) for collective, known in CATALOGUE.items() for algorithm in known]
ROOTED = ("broadcast", "scatter", "gather", "reduce")


def schedules(collective, algorithm, ranks):
    """All schedules of one algorithm for `ranks` ranks: rooted ones from several roots, levels cut in all ways."""
    if algorithm == "hierarchical":
        locals_ = [local for local in range(2, ranks) if ranks % local == 0]
        return [build(collective, algorithm, ranks, local) for local in locals_]
    if algorithm == "recursive_doubling" and collective == "all_gather" and ranks & (ranks - 1):
        return []
    roots = [{"root": root} for root in sorted({0, 1, ranks // 2, ranks - 1})] if collective in ROOTED else [{}]
    return [build(collective, algorithm, ranks, **root) for root in roots]


def sizes(collective, algorithm, wanted):
    """Those of the wanted numbers of ranks for which there is a schedule, with the first one."""
    return [(ranks, made[0]) for ranks in wanted if (made := schedules(collective, algorithm, ranks))]
