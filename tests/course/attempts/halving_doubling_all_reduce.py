"""Attempts at halving_doubling_all_reduce."""

LOOP = """
def halving_doubling_all_reduce(x):
    rounds, low, high, d = [], 0, x.numel(), {first}
    while {more}:
        other, middle = rank ^ d, (low + high) // 2
        keep, give = (slice(low, middle), slice(middle, high))
        if {upper}:
            keep, give = give, keep
        got = torch.empty_like(x[keep])
        work = dist.isend(x[give], other)
        dist.recv(got, other)
        work.wait()
        x[keep] += got
        rounds.append((other, keep, give))
        low, high = keep.start, keep.stop
        d = {then}
    for other, kept, given in {back}:
        work = dist.isend(x[kept], other)
        dist.recv(x[given], other)
        work.wait()
"""
NEAR = dict(first="1", more="d < world_size", upper="rank & d", then="2 * d", back="rounds[::-1]")
FAR = NEAR | dict(first="world_size // 2", more="d", then="d // 2")

RIGHT = {
    "with slices": LOOP.format(**NEAR),
    "the upper half for the lower rank": LOOP.format(**NEAR | dict(upper="rank < other")),
    "recursive": """
def halving_doubling_all_reduce(x, d=1):
    if d == world_size:
        return
    halves = x.chunk(2)
    mine, theirs = halves[(rank // d) % 2], halves[1 - (rank // d) % 2]
    got = torch.empty_like(mine)
    calls = [dist.isend(theirs, rank ^ d), dist.irecv(got, rank ^ d)]
    [call.wait() for call in calls]
    mine += got
    halving_doubling_all_reduce(mine, 2 * d)
    calls = [dist.isend(mine, rank ^ d), dist.irecv(theirs, rank ^ d)]
    [call.wait() for call in calls]
""",
}

WRONG = {
    "the farthest first": (
        LOOP.format(**FAR),
        "right result, but 1 N went farther than to the neighbour rank ^ 1, where 0.5 N are enough",
    ),
    "forwards again": (LOOP.format(**NEAR | dict(back="rounds")), "should hold"),
    "only the halving": (LOOP.format(**NEAR | dict(back="[]")), "and should hold a"),
    "everybody keeps the first half": (LOOP.format(**NEAR | dict(upper="False")), "should hold"),
    "whole vectors": (
        """
def halving_doubling_all_reduce(x):
    got, d = torch.empty_like(x), 1
    while d < world_size:
        work = dist.isend(x, rank ^ d)
        dist.recv(got, rank ^ d)
        work.wait()
        x += got
        d *= 2
""",
        "that is the whole vector in every round",
    ),
    "a ring": (
        """
def halving_doubling_all_reduce(x):
    c, got = x.chunk(world_size), torch.empty_like(x.chunk(world_size)[0])
    for s in range(2 * world_size - 2):
        work = dist.isend(c[(rank - 1 - s) % world_size if s < world_size - 1 else (rank - 1 - s) % world_size],
                          (rank + 1) % world_size)
        dist.recv(got, (rank - 1) % world_size)
        work.wait()
        if s < world_size - 1:
            c[(rank - 2 - s) % world_size].add_(got)
        else:
            c[(rank - 2 - s) % world_size].copy_(got)
""",
        "went farther than to the neighbour",
    ),
}
