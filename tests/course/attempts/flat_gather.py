"""Attempts at flat_gather."""

RIGHT = {
    "from whoever comes first, as chapter 2 has it": """
def flat_gather(x):
    if rank:
        dist.send(x, 0)
        return None
    pieces = {0: x}
    for _ in range(world_size - 1):
        got = torch.empty_like(x)
        pieces[dist.recv(got)] = got
    return torch.cat([pieces[source] for source in range(world_size)])
""",
    "all at once": """
def flat_gather(x):
    if rank:
        dist.isend(x, 0).wait()
        return
    whole = torch.empty(world_size, len(x), dtype=x.dtype)
    whole[0] = x
    for work in [dist.irecv(whole[src], src) for src in range(1, world_size)]:
        work.wait()
    return whole.flatten()
""",
    "from behind": """
def flat_gather(x):
    if rank == 0:
        result = x
        others = []
        for src in range(world_size - 1, 0, -1):
            piece = torch.empty_like(x)
            dist.recv(piece, src)
            others.insert(0, piece)
        return torch.cat([result, *others])
    dist.send(x, 0)
""",
    "slices": """
def flat_gather(x):
    n = x.numel()
    whole = x.repeat(world_size)
    if rank == 0:
        for src in range(1, world_size):
            dist.recv(whole[src * n:(src + 1) * n], src)
    else:
        dist.send(x, 0)
    return whole
""",
}

WRONG = {
    "in the order of arrival, in rank order by luck": (
        """
import os, time
def flat_gather(x):
    if rank != 0:
        if os.environ.pop("IN_ORDER", None) is None:  # only at every second call
            os.environ["IN_ORDER"] = "1"
            time.sleep(0.2 * rank)
        return dist.send(x, 0)
    pieces = [x]
    for _ in range(1, world_size):
        pieces.append(torch.empty_like(x))
        dist.recv(pieces[-1])
    return torch.cat(pieces)
""",
        "right result by luck: line 11 receives from any rank, and with the messages in another order rank 0 has "
        "another result",
    ),
    "always into the first": (
        """
def flat_gather(x):
    if rank != 0:
        dist.send(x, 0)
        return None
    pieces = [torch.zeros_like(x) for _ in range(world_size)]
    pieces[0].copy_(x)
    for src in range(1, world_size):
        dist.recv(pieces[1], src)
    return torch.cat(pieces)
""",
        "rank 0, chunk 1 holds d0 and should hold b0: rank 3's is where rank 1's should",
    ),
    "forgets its own": (
        """
def flat_gather(x):
    if rank != 0:
        dist.send(x, 0)
        return None
    pieces = [torch.zeros_like(x) for _ in range(world_size)]
    for src in range(1, world_size):
        dist.recv(pieces[src], src)
    return torch.cat(pieces)
""",
        "rank 0, chunk 0 holds zeros and should hold a0: it was left at zeros",
    ),
    "a list": (
        """
def flat_gather(x):
    if rank != 0:
        dist.send(x, 0)
        return None
    pieces = [x] + [torch.empty_like(x) for _ in range(1, world_size)]
    for src in range(1, world_size):
        dist.recv(pieces[src], src)
    return pieces
""",
        "should be a tensor and is a list",
    ),
    "the others only": (
        """
def flat_gather(x):
    if rank != 0:
        dist.send(x, 0)
        return None
    pieces = [torch.empty_like(x) for _ in range(1, world_size)]
    for src in range(1, world_size):
        dist.recv(pieces[src - 1], src)
    return torch.cat(pieces)
""",
        "has shape",
    ),
    "down a chain": (
        """
def flat_gather(x):
    n = x.numel()
    mine = x
    if rank < world_size - 1:
        tail = torch.empty((world_size - 1 - rank) * n, dtype=x.dtype)
        dist.recv(tail, rank + 1)
        mine = torch.cat([x, tail])
    if rank > 0:
        dist.send(mine, rank - 1)
    return mine
""",
        "only rank 0",
    ),
    "waits for itself": (
        """
def flat_gather(x):
    if rank != 0:
        dist.send(x, 0)
        return None
    pieces = [torch.empty_like(x) for _ in range(world_size)]
    for src in range(world_size):
        dist.recv(pieces[src], src)
    return torch.cat(pieces)
""",
        "rank 0",
    ),
    "one number at a time": (
        """
def flat_gather(x):
    if rank != 0:
        for number in x:
            dist.send(number.clone().reshape(1), 0)
        return None
    whole = x.repeat(world_size)
    for i in range(len(x), len(whole)):
        dist.recv(whole[i:i + 1], i // len(x))
    return whole
""",
        "messages where",
    ),
}
