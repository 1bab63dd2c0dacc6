"""Attempts at ring_sum."""

SOLVED = """
from jax import lax

def ring_sum(mine):
    ring = [(rank, (rank + 1) % 4) for rank in range(4)]
    total = moving = mine
    for _ in range(3):
        moving = lax.ppermute(moving, "rank", ring)
        total = total + moving
    return total
"""

RIGHT = {
    "two names": SOLVED,
    "to the left": SOLVED.replace("(rank + 1) % 4", "(rank - 1) % 4"),
    "a list, added up at the end": SOLVED.replace("total = moving = mine", "moving, parts = mine, [mine]")
    .replace("total = total + moving", "parts.append(moving)")
    .replace("return total", "return sum(parts)"),
}

WRONG = {
    "psum": (
        'from jax import lax\n\ndef ring_sum(mine):\n    return lax.psum(mine, "rank")\n',
        "the compiled program has an all-reduce: send with lax.ppermute alone",
    ),
    "all_gather": (
        'from jax import lax\n\ndef ring_sum(mine):\n    return lax.all_gather(mine, "rank").sum(axis=0)\n',
        "the compiled program has an all-gather",
    ),
    "nothing returned": (SOLVED.replace("return total", "total"), "should be a tensor and is None"),
    "the sum travels": (SOLVED.replace("total = total + moving", "total = moving = total + moving"), " should "),
    "two rounds": (SOLVED.replace("range(3)", "range(2)"), " should "),
    "not sent on": (SOLVED.replace("lax.ppermute(moving", "lax.ppermute(mine"), " should "),
}
