"""Attempts at split_backward."""

BODY = """
def split_backward(r, p, m):
    order = [f"F{{i}}" for i in range(1, {first} + 1)]
    for i in range(1, m + {late} + 1):
        if i <= m:
            order.append(f"{back}{{i}}")
        if i > {late} and {weights}:
            order.append(f"W{{i - {late}}}")
        if i + {first} <= m:
            order.append(f"F{{i + {first}}}")
    return {returned}
"""
GOOD = {"first": "(p - r)", "late": "r", "back": "I", "weights": "True", "returned": "order"}

RIGHT = {
    "as text": BODY.format(**GOOD | {"returned": "' '.join(order)"}),
    "a queue": """
def split_backward(r, p, m):
    forward, backward = list(range(1, m + 1)), list(range(1, m + 1))
    order, late = [], []
    for _ in range(p - r):
        order.append(f"F{forward.pop(0)}")
    while backward or late:
        if backward:
            late.append(backward.pop(0))
            order.append(f"I{late[-1]}")
        if len(late) > r or not backward:
            order.append(f"W{late.pop(0)}")
        if forward:
            order.append(f"F{forward.pop(0)}")
    return order
""",
    "in three parts": """
def split_backward(r, p, m):
    head = [f"F{i}" for i in range(1, p - r + 1)]
    body = []
    for i in range(1, m + 1):
        body += [f"I{i}"] + [f"W{i - r}"] * (i > r) + [f"F{p - r + i}"] * (p - r + i <= m)
    return head + body + [f"W{i}" for i in range(m - r + 1, m + 1)]
""",
}

WRONG = {
    "nothing is split": (
        BODY.format(**GOOD | {"back": "B", "weights": "False"}),
        "27 are enough: rank 0 waits for both slots of each B of rank 1, and needs only the first",
    ),
    "W right behind I": (
        BODY.format(**GOOD | {"late": "0"}),
        "27 are enough: rank 2 waits 1 slot for I8 of rank 3, and has no W left to do meanwhile",
    ),
    "all W at the end": (
        BODY.format(**GOOD | {"late": "m"}),
        "with 8 micro-batches on 4 ranks, rank 0 holds 5 micro-batches at F5, and 4 are allowed",
    ),
    "too few to begin with": (
        BODY.format(**GOOD | {"first": "max(1, p - r - 1)"}),
        "rank 3 waits 3 slots for F4 of rank 2, and could do W1 meanwhile",
    ),
    "W before I": (
        BODY.format(**GOOD).replace("return order", "return order[:-1][::-1] + order[-1:]"),
        "with 8 micro-batches on 4 ranks, rank 0 waits forever: its",
    ),
    "as many everywhere": (BODY.format(**GOOD | {"first": "p"}), "rank 1 holds 5 micro-batches at F5, and 4 are"),
    "the ranks upside down": (
        BODY.format(**GOOD | {"first": "(r + 1)", "late": "(p - 1 - r)"}),
        "rank 0 waits forever: its I1 needs I1 of rank 1",
    ),
    "no W": (BODY.format(**GOOD | {"weights": "False"}), "on 4 ranks, rank 0: W1 is missing"),
    "one micro-batch too few": (
        BODY.format(**GOOD).replace("p, m):", "p, n):\n    m = n - 1"),
        "with 8 micro-batches on 4 ranks, there are 7 micro-batches in the lists",
    ),
    "two stages on a rank": (
        """
def split_backward(r, p, m):
    halves = r, 2 * p - 1 - r
    order = [f"{s}F{i}" for i in range(1, m + 1) for s in halves]
    return order + [f"{s}{kind}{i}" for i in range(1, m + 1) for s in halves[::-1] for kind in "IW"]
""",
        "rank 0 has an action of stage 7; its own stage is 0",
    ),
    "not an action": (BODY.format(**GOOD | {"back": "X"}), "on 4 ranks, rank 0: X1 is no action"),
}
