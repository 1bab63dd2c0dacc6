"""Attempts at ring_all_gather."""

RIGHT = {
    "to the left": """
def ring_all_gather(x):
    pieces = [torch.empty_like(x) for _ in range(world_size)]
    pieces[rank].copy_(x)
    for step in range(world_size - 1):
        sending = dist.isend(pieces[(rank + step) % world_size], (rank - 1) % world_size)
        dist.recv(pieces[(rank + 1 + step) % world_size], (rank + 1) % world_size)
        sending.wait()
    return torch.cat(pieces)
""",
    "rows": """
def ring_all_gather(x):
    whole = x.new_empty(world_size, x.numel())
    whole[rank] = x
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    have = rank
    for _ in range(world_size - 1):
        coming = (have - 1) % world_size
        calls = [dist.P2POp(dist.isend, whole[have], right), dist.P2POp(dist.irecv, whole[coming], left)]
        for work in dist.batch_isend_irecv(calls):
            work.wait()
        have = coming
    return whole.reshape(-1)
""",
    "two hands": """
def ring_all_gather(x):
    pieces = {rank: x}
    parcel = x
    for step in range(1, world_size):
        incoming = torch.zeros_like(x)
        sending = dist.isend(parcel, (rank + 1) % world_size)
        dist.irecv(incoming, (rank - 1) % world_size).wait()
        sending.wait()
        pieces[(rank - step) % world_size] = parcel = incoming
    return torch.cat([pieces[r] for r in range(world_size)])
""",
    "both in flight": """
def ring_all_gather(x):
    n = len(x)
    whole = torch.empty(n * world_size, dtype=x.dtype)
    whole[rank * n:(rank + 1) * n] = x
    part = lambda k: whole[k % world_size * n:(k % world_size + 1) * n]
    for s in range(world_size - 1):
        receiving = dist.irecv(part(rank - s - 1), (rank - 1) % world_size)
        dist.send(part(rank - s), (rank + 1) % world_size)
        receiving.wait()
    return whole
""",
}

HEAD = """
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    pieces = [torch.zeros_like(x) for _ in range(world_size)]
    pieces[rank].copy_(x)
"""

WRONG = {
    "odd and even": (
        """
def ring_all_gather(x):
    n = len(x)
    whole = torch.empty(n * world_size, dtype=x.dtype)
    whole[rank * n:(rank + 1) * n] = x
    part = lambda k: whole[k % world_size * n:(k % world_size + 1) * n]
    for s in range(world_size - 1):
        def send(): dist.send(part(rank - s), (rank + 1) % world_size)
        def recv(): dist.recv(part(rank - s - 1), (rank - 1) % world_size)
        if rank % 2:
            recv(); send()
        else:
            send(); recv()
    return whole
""",
        "right result, but in 6 steps, one after the other, where 3 are enough: a blocking call makes the next one "
        "wait until it is over",
    ),
    "always its own": (
        f"""
def ring_all_gather(x):{HEAD}
    for step in range(world_size - 1):
        sending = dist.isend(pieces[rank], right)
        dist.recv(pieces[(rank - 1 - step) % world_size], left)
        sending.wait()
    return torch.cat(pieces)
""",
        "rank 0, chunk 1 holds d3 and should hold b1: rank 3's is where rank 1's should",
    ),
    "one step too few": (
        f"""
def ring_all_gather(x):{HEAD}
    for step in range(world_size - 2):
        sending = dist.isend(pieces[(rank - step) % world_size], right)
        dist.recv(pieces[(rank - 1 - step) % world_size], left)
        sending.wait()
    return torch.cat(pieces)
""",
        "rank 0, chunk 1 holds zeros",
    ),
    "in the order of arrival": (
        """
def ring_all_gather(x):
    pieces = [x]
    for step in range(world_size - 1):
        arriving = torch.empty_like(x)
        sending = dist.isend(pieces[-1], (rank + 1) % world_size)
        dist.recv(arriving, (rank - 1) % world_size)
        sending.wait()
        pieces.append(arriving)
    return torch.cat(pieces)
""",
        "chunk 1 and chunk 3 are swapped",
    ),
    "to everybody": (
        f"""
def ring_all_gather(x):{HEAD}
    work = [dist.isend(x, dst) for dst in range(world_size) if dst != rank]
    for src in range(world_size):
        if src != rank:
            dist.recv(pieces[src], src)
    for w in work:
        w.wait()
    return torch.cat(pieces)
""",
        "only its neighbours",
    ),
    "everything every time": (
        """
def ring_all_gather(x):
    whole = torch.zeros(world_size * len(x), dtype=x.dtype)
    whole.view(world_size, -1)[rank] = x
    for step in range(world_size - 1):
        arriving = torch.empty_like(whole)
        sending = dist.isend(whole, (rank + 1) % world_size)
        dist.recv(arriving, (rank - 1) % world_size)
        sending.wait()
        owner = (rank - 1 - step) % world_size
        whole.view(world_size, -1)[owner] = arriving.view(world_size, -1)[owner]
    return whole
""",
        "the busiest rank sent 3 N where 0.75 N",
    ),
}
