"""Attempts at pairwise_reduce_scatter."""

RIGHT = {
    "all at once": """
def pairwise_reduce_scatter(x):
    rows = x.view(world_size, -1)
    inbox = torch.empty_like(rows)
    calls = []
    for peer in range(world_size):
        if peer != rank:
            calls += [dist.P2POp(dist.isend, rows[peer], peer), dist.P2POp(dist.irecv, inbox[peer], peer)]
    for work in dist.batch_isend_irecv(calls):
        work.wait()
    inbox[rank] = rows[rank]
    return inbox.sum(0)
""",
    "to the left": """
def pairwise_reduce_scatter(x):
    n = x.numel() // world_size
    result = x[rank * n:(rank + 1) * n].clone()
    for hop in range(1, world_size):
        to, come = (rank - hop) % world_size, (rank + hop) % world_size
        got = x.new_empty(n)
        work = dist.irecv(got, come)
        dist.send(x[to * n:(to + 1) * n], to)
        work.wait()
        result = result + got
    return result
""",
    "round the ring": """
def pairwise_reduce_scatter(x):
    chunks = [chunk.clone() for chunk in x.chunk(world_size)]
    for step in range(world_size - 1):
        arriving = torch.empty_like(chunks[0])
        sending = dist.isend(chunks[(rank - 1 - step) % world_size], (rank + 1) % world_size)
        dist.recv(arriving, (rank - 1) % world_size)
        sending.wait()
        chunks[(rank - 2 - step) % world_size] += arriving
    return chunks[rank]
""",
}

EXCHANGE = """
    for hop in range(1, world_size):
        sending = dist.isend(pieces[{what}].clone(), (rank + hop) % world_size)
        dist.recv(arriving, (rank - hop) % world_size)
        sending.wait()
        total += arriving
"""
HEAD = """
    pieces = x.chunk(world_size)
    total, arriving = pieces[rank].clone(), torch.empty_like(pieces[rank])
"""
GOOD = EXCHANGE.format(what="(rank + hop) % world_size")

WRONG = {
    "sends its own piece": (
        f"def pairwise_reduce_scatter(x):{HEAD}{EXCHANGE.format(what='rank')}    return total\n",
        "rank 0: the answer holds a0 + b1 + c2 + d3 and should hold a0 + b0 + c0 + d0: ranks 1-3 contributed another "
        "chunk",
    ),
    "forgets its own": (
        f"def pairwise_reduce_scatter(x):{HEAD}    total.zero_()\n{GOOD}    return total\n",
        "the rank's own piece is missing; start the sum with a clone of it",
    ),
    "adds into x": (
        f"def pairwise_reduce_scatter(x):{HEAD.replace('.clone()', '')}{GOOD}    return total\n",
        "x was changed",
    ),
    "whole vectors": (
        """
def pairwise_reduce_scatter(x):
    total, arriving = x.clone(), torch.empty_like(x)
    for hop in range(1, world_size):
        sending = dist.isend(x, (rank + hop) % world_size)
        dist.recv(arriving, (rank - hop) % world_size)
        sending.wait()
        total += arriving
    return total.chunk(world_size)[rank]
""",
        "that is the whole vector sent p - 1 times",
    ),
    "one place off": (
        """
def pairwise_reduce_scatter(x):
    chunks = [chunk.clone() for chunk in x.chunk(world_size)]
    for step in range(world_size - 1):
        arriving = torch.empty_like(chunks[0])
        sending = dist.isend(chunks[(rank - step) % world_size], (rank + 1) % world_size)
        dist.recv(arriving, (rank - 1) % world_size)
        sending.wait()
        chunks[(rank - 1 - step) % world_size] += arriving
    return chunks[(rank + 1) % world_size]
""",
        "that is the whole sum of chunk 1, in the wrong place",
    ),
    "all-reduce, then cut": (
        """
def pairwise_reduce_scatter(x):
    y = x.clone()
    dist.all_reduce(y)
    return y.chunk(world_size)[rank]
""",
        "uses the built-in all_reduce",
    ),
    "through rank 0": (
        """
def pairwise_reduce_scatter(x):
    n = x.numel() // world_size
    piece, other = x.new_empty(n), torch.empty_like(x)
    if rank == 0:
        total = x.clone()
        for src in range(1, world_size):
            dist.recv(other, src)
            total += other
        for dst in range(1, world_size):
            dist.send(total[dst * n:(dst + 1) * n], dst)
        return total[:n].clone()
    dist.send(x, 0)
    dist.recv(piece, 0)
    return piece
""",
        "the busiest rank sent 1 N where 0.75 N",
    ),
}
