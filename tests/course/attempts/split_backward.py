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
    "not written": ("def split_backward(r, p, m):\n    ...\n", "not written yet"),
    "nothing is split": (
        BODY.format(**GOOD | {"back": "B", "weights": "False"}),
        "the slots of 8 micro-batches on 4 ranks",
    ),
    "W right behind I": (BODY.format(**GOOD | {"late": "0"}), "the slots of 8 micro-batches on 4 ranks"),
    "all W at the end": (BODY.format(**GOOD | {"late": "m"}), "keeps 8 micro-batches, and 4 are allowed"),
    "too few to begin with": (BODY.format(**GOOD | {"first": "max(1, p - r - 1)"}), "the slots of"),
    "as many everywhere": (BODY.format(**GOOD | {"first": "p"}), "and 4 are allowed"),
    "the ranks upside down": (BODY.format(**GOOD | {"first": "(r + 1)", "late": "(p - 1 - r)"}), "waits forever"),
    "no W": (BODY.format(**GOOD | {"weights": "False"}), "W1 is missing"),
    "numbers": (BODY.format(**GOOD | {"returned": "len(order)"}), "should return a list of actions, and returned"),
    "not an action": (BODY.format(**GOOD | {"back": "X"}), "X1 is no action"),
}
