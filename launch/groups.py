"""Which process groups can be made anew after a rank was freed or replaced.

A group is renewed by all its members together, under the objects that the student holds; one that some member does not
know, or whose member has died and forgotten it, cannot be. Left out: the renewing itself, which each rank does
(rank/rescue.py).
"""


def groups_in_common(groups: dict[int, dict[str, list[int]]], dead: set[int], worlds: set[str]) -> list[str]:
    """Names of the groups that all their members know and in which all of them live.

    The world's, one of `worlds`, is always one: a rank that is forked anew makes it again, and no other.
    """
    names = {name: ranks for known in groups.values() for name, ranks in known.items()}
    common = [
        name
        for name, ranks in names.items()
        if name in worlds or (not dead & set(ranks) and all(groups[rank].get(name) == ranks for rank in ranks))
    ]
    return sorted(common, key=lambda name: (len(name), name))
