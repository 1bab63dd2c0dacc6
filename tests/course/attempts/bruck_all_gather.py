"""Attempts at bruck_all_gather."""

RIGHT = {
    "a list of blocks": """
def bruck_all_gather(x):
    blocks, d = [x], 1
    while d < world_size:
        count = min(d, world_size - d)
        got = torch.empty(count * x.numel(), dtype=x.dtype)
        send = dist.isend(torch.cat(blocks[:count]), (rank - d) % world_size)
        dist.recv(got, (rank + d) % world_size)
        send.wait()
        blocks += list(got.chunk(count))
        d *= 2
    return torch.cat([blocks[(r - rank) % world_size] for r in range(world_size)])
""",
    "to the right": """
def bruck_all_gather(x):
    have, d = {rank: x.clone()}, 1
    while d < world_size:
        count = min(d, world_size - d)
        outgoing = torch.stack([have[(rank - i) % world_size] for i in range(count)])
        incoming = torch.empty_like(outgoing)
        left, right = (rank - d) % world_size, (rank + d) % world_size
        for work in dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, outgoing, right), dist.P2POp(dist.irecv, incoming, left)]
        ):
            work.wait()
        have |= {(left - i) % world_size: incoming[i] for i in range(count)}
        d *= 2
    return torch.cat([have[r] for r in range(world_size)])
""",
    "one buffer and roll": """
def bruck_all_gather(x):
    n = x.numel()
    out = x.repeat(world_size)
    size = 1
    while size < world_size:
        k = min(size, world_size - size) * n
        receive = dist.irecv(out[size * n:size * n + k], (rank + size) % world_size)
        send = dist.isend(out[:k], (rank - size) % world_size)
        send.wait(); receive.wait()
        size *= 2
    return out.roll(rank * n)
""",
}

LOOP = """
def bruck_all_gather(x):
    blocks = x.new_empty(2 * world_size, x.numel())
    blocks[0] = x
    have = 1
    while have < world_size:
        some = {some}
        sending = dist.isend(blocks[:some], (rank - have) % world_size)
        dist.recv(blocks[have : have + some], (rank + have) % world_size)
        sending.wait()
        have += some
    return {result}
"""

WRONG = {
    "too much in the last step": (
        LOOP.format(some="have", result="torch.roll(blocks[:world_size], rank, 0).flatten()"),
        "in the last round send only the chunks that are missing",
    ),
    "own block first": (
        LOOP.format(some="min(have, world_size - have)", result="blocks[:world_size].flatten()"),
        "rank 1, chunk 0 holds b0 and should hold a0: the right pieces are there in the wrong places: "
        "each of them is 1 place too early",
    ),
    "turned the wrong way": (
        LOOP.format(some="min(have, world_size - have)", result="torch.roll(blocks[:world_size], -rank, 0).flatten()"),
        "rank 1, chunk 0 holds",
    ),
    "a table, not a vector": (
        LOOP.format(some="min(have, world_size - have)", result="torch.roll(blocks[:world_size], rank, 0)"),
        "has shape [4, 20] and should have [80]",
    ),
    "a ring": (
        """
def bruck_all_gather(x):
    blocks = x.new_empty(world_size, x.numel())
    blocks[rank] = x
    for step in range(world_size - 1):
        sending = dist.isend(blocks[(rank - step) % world_size], (rank + 1) % world_size)
        dist.recv(blocks[(rank - step - 1) % world_size], (rank - 1) % world_size)
        sending.wait()
    return blocks.flatten()
""",
        "in 12 messages where 8 are enough",
    ),
    "the built-in": (
        """
def bruck_all_gather(x):
    out = torch.empty(world_size * x.numel(), dtype=x.dtype)
    dist.all_gather_single(out, x)
    return out
""",
        "uses the built-in all_gather_single",
    ),
}
