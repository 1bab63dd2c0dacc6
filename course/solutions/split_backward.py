"""1F1B with the backward pass in two parts; rank r puts each W off for r turns, and fills the bubble with it.

Two mistakes: W right behind its I, which makes the stage before wait; and all W at the end, which keeps every
micro-batch in memory.
Another way: a queue of postponed W, from which one is taken as soon as it holds more than r.
"""


def split_backward(r, p, m):
    """The order of rank r of p for m micro-batches: F forward, I the input's gradient, W the weights' gradient."""
    order = [f"F{i}" for i in range(1, p - r + 1)]
    for i in range(1, m + r + 1):
        if i <= m:
            order.append(f"I{i}")
        if i > r:
            order.append(f"W{i - r}")
        if i + p - r <= m:
            order.append(f"F{i + p - r}")
    return order
