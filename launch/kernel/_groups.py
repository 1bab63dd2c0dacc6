"""Which process groups can be renewed when some of their members have died, by what every rank knows of its own.

Left out: renewing them (launch/rank/reinit.py).
"""


def groups_in_common(groups: dict[int, dict[str, list[int]]], dead: set[int], worlds: set[str]) -> list[str]:
    """Names of the groups that all their members know and in which all of them live.

    A rank that is forked anew in place of a dead one makes the world's again, one of `worlds`, and no other.
    """
    names = {name: ranks for known in groups.values() for name, ranks in known.items()}
    common = [
        name
        for name, ranks in names.items()
        if (name in worlds or not dead & set(ranks))
        and all(groups[rank].get(name) == ranks for rank in ranks if rank not in dead)
    ]
    return sorted(common, key=lambda name: (len(name), name))
