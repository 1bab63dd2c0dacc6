"""Attempts at halving_reduce_scatter."""

RIGHT = {
    "by first and last": """
def halving_reduce_scatter(x):
    chunk = x.numel() // world_size
    low, high = 0, world_size
    while high - low > 1:
        middle = (low + high) // 2
        half = middle - low
        if rank < middle:
            partner, keep, give = rank + half, slice(low * chunk, middle * chunk), slice(middle * chunk, high * chunk)
            high = middle
        else:
            partner, give, keep = rank - half, slice(low * chunk, middle * chunk), slice(middle * chunk, high * chunk)
            low = middle
        got = torch.empty_like(x[keep])
        sending = dist.isend(x[give], partner)
        dist.recv(got, partner)
        sending.wait()
        x[keep] += got
""",
    "batched": """
def halving_reduce_scatter(x):
    rows = x.view(world_size, -1)
    d = world_size >> 1
    while d > 0:
        other = rank ^ d
        mine, theirs = rank & ~(d - 1), other & ~(d - 1)
        got = rows.new_empty(d, rows.shape[1])
        calls = [dist.P2POp(dist.isend, rows[theirs:theirs + d], other), dist.P2POp(dist.irecv, got, other)]
        for work in dist.batch_isend_irecv(calls):
            work.wait()
        rows[mine:mine + d].add_(got)
        d >>= 1
""",
    "recursive": """
def halve(part, me, first, p):
    if p == 1:
        return
    low, high = part.chunk(2)
    upper = me >= p // 2
    mine, theirs = (high, low) if upper else (low, high)
    partner = first + (me ^ (p // 2))
    got = torch.empty_like(mine)
    receive = dist.irecv(got, partner)
    send = dist.isend(theirs, partner)
    receive.wait(); send.wait()
    mine += got
    halve(mine, me % (p // 2), first + (p // 2 if upper else 0), p // 2)

def halving_reduce_scatter(x):
    halve(x, rank, 0, world_size)
""",
}

LOOP = """
def halving_reduce_scatter(x):
    chunks = x.view(world_size, -1)
    distance = world_size // 2
    while distance{until}:
        partner = rank ^ distance
        mine, theirs = {runs}
        arriving = torch.empty_like(chunks[:distance])
        sending = dist.isend(chunks[theirs : theirs + distance], partner)
        dist.recv(arriving, partner)
        sending.wait()
        chunks[mine : mine + distance] += arriving
        distance //= 2
"""

WRONG = {
    "keeps the wrong half": (
        LOOP.format(until="", runs="partner // distance * distance, rank // distance * distance"),
        "rank 0, chunk 0 holds a0 and should hold a0 + b0 + c0 + d0",
    ),
    "the nearest first, with the halves of the farthest": (
        """
def halving_reduce_scatter(x):
    lo, hi, distance = 0, len(x), 1
    while distance < world_size:
        half = (lo + hi) // 2
        low, high = x[lo:half], x[half:hi]
        keep, give = (high, low) if rank & distance else (low, high)
        arriving = torch.empty_like(keep)
        sending = dist.isend(give, rank ^ distance)
        dist.recv(arriving, rank ^ distance)
        sending.wait()
        keep += arriving
        lo, hi = (half, hi) if rank & distance else (lo, half)
        distance *= 2
""",
        "that sum is finished on rank 2, but not here; look at which part each rank keeps in which round",
    ),
    "a round too few": (
        LOOP.format(until=" > 1", runs="rank // distance * distance, partner // distance * distance"),
        "rank 0, chunk 0 holds a0 + c0 and should hold",
    ),
    "always the same halves": (LOOP.format(until="", runs="0, distance"), "ranks 1-3 contributed another chunk"),
    "whole vectors": (
        """
def halving_reduce_scatter(x):
    arriving = torch.empty_like(x)
    distance = world_size // 2
    while distance:
        sending = dist.isend(x, rank ^ distance)
        dist.recv(arriving, rank ^ distance)
        sending.wait()
        x += arriving
        distance //= 2
""",
        "that is the whole vector in every round",
    ),
    "chunk by chunk to everybody": (
        """
def halving_reduce_scatter(x):
    chunks = x.chunk(world_size)
    arriving = torch.empty_like(chunks[0])
    for k in range(1, world_size):
        sending = dist.isend(chunks[rank ^ k], rank ^ k)
        dist.recv(arriving, rank ^ k)
        sending.wait()
        chunks[rank].add_(arriving)
""",
        "in 12 messages where 8 are enough",
    ),
}
