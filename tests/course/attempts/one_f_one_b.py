"""Attempts at one_f_one_b."""

RIGHT = {
    "in pairs": """
def one_f_one_b(m):
    ahead = min(m, world_size - 1 - rank)
    order = [i + 1 for i in range(ahead)]
    for i in range(m - ahead):
        order += [ahead + i + 1, -(i + 1)]
    return order + [-(i + 1) for i in range(m - ahead, m)]
""",
    "by what is kept": """
def one_f_one_b(m):
    order, forward, backward = [], 0, 0
    while backward < m:
        if forward < m and forward - backward < world_size - rank:
            forward += 1
            order.append(forward)
        else:
            backward += 1
            order.append(-backward)
    return order
""",
    "in numpy": """
import numpy as np
def one_f_one_b(m):
    ahead, all_of = min(m, world_size - 1 - rank), np.arange(1, m + 1)
    pairs = np.stack([all_of[ahead:], -all_of[: m - ahead]], axis=1)
    return [*all_of[:ahead], *pairs.ravel(), *-all_of[m - ahead :]]
""",
    "a tuple": """
def one_f_one_b(m):
    n = min(world_size - rank, m)
    order = [*range(1, n + 1)]
    for i in range(n + 1, m + 1):
        order.append(n - i)
        order.append(i)
    order.extend(range(n - m - 1, -m - 1, -1))
    return tuple(order)
""",
}

WRONG = {
    "GPipe": (
        "def one_f_one_b(m):\n    return [*range(1, m + 1), *range(-1, -m - 1, -1)]\n",
        "(from element 4 on) is 5 6 ... and should be -1 5 ...: that is GPipe",
    ),
    "as on the last rank": (
        "def one_f_one_b(m):\n    return [sign * i for i in range(1, m + 1) for sign in (1, -1)]\n",
        "and should be 2 3 ...: each rank begins with one forward pass, and only the last one should",
    ),
    "one too few first": (
        """
def one_f_one_b(m):
    first = max(1, min(m, world_size - rank - 1))
    order = list(range(1, first + 1))
    for i in range(1, m - first + 1):
        order += [-i, first + i]
    return order + [-i for i in range(m - first + 1, m + 1)]
""",
        "and should be 4 -1 ...: rank r begins with world_size - r - 1 forward passes, one too few",
    ),
    "the wrong end": (
        """
def one_f_one_b(m):
    first = min(m, rank + 1)
    order = list(range(1, first + 1))
    for i in range(1, m - first + 1):
        order += [-i, first + i]
    return order + [-i for i in range(m - first + 1, m + 1)]
""",
        "and should be 2 3 ...: rank r begins with r + 1 forward passes; it should be the other way round",
    ),
    "as many on every rank": (
        """
def one_f_one_b(m):
    first = min(m, world_size)
    order = list(range(1, first + 1))
    for i in range(1, m - first + 1):
        order += [-i, first + i]
    return order + [-i for i in range(m - first + 1, m + 1)]
""",
        "each rank begins with world_size forward passes",
    ),
    "nothing at the end": (
        """
def one_f_one_b(m):
    first = min(m, world_size - rank)
    order = list(range(1, first + 1))
    for i in range(1, m - first + 1):
        order += [-i, first + i]
    return order
""",
        "one_f_one_b(6) has 8 numbers, and 6 forward and 6 backward passes are 12",
    ),
    "few micro-batches forgotten": (
        """
def one_f_one_b(m):
    first = world_size - rank
    order = list(range(1, first + 1))
    for i in range(1, m - first + 1):
        order += [-i, first + i]
    return order + [-i for i in range(max(1, m - first + 1), m + 1)]
""",
        "one_f_one_b(2) has 6 numbers, and 2 forward and 2 backward passes are 4",
    ),
    "one at a time": (
        "def one_f_one_b(m):\n    for i in range(1, m + 1):\n        yield i\n        yield -i\n",
        "one_f_one_b(6) should return a list of whole numbers, and returned a generator",
    ),
}
