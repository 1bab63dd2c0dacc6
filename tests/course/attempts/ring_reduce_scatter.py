"""Attempts at ring_reduce_scatter."""

LOOP = """
def ring_reduce_scatter(x):
    chunks = list(x.chunk(world_size))
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    arriving = torch.empty_like(chunks[0])
    for step in range({steps}):
        sending = dist.isend(chunks[({sends}) % world_size], right)
        dist.recv(arriving, left)
        sending.wait()
        chunks[({takes}) % world_size] {puts} arriving
"""
GOOD = {"steps": "world_size - 1", "sends": "rank - 1 - step", "takes": "rank - 2 - step", "puts": "+="}


def variant(**changes):
    """The solution with one thing changed."""
    return LOOP.format(**GOOD | changes)


RIGHT = {
    "to the left": """
def ring_reduce_scatter(x):
    chunks = list(x.chunk(world_size))
    arriving = torch.empty_like(chunks[0])
    for step in range(world_size - 1):
        sending = dist.isend(chunks[(rank + 1 + step) % world_size], (rank - 1) % world_size)
        dist.recv(arriving, (rank + 1) % world_size)
        sending.wait()
        chunks[(rank + 2 + step) % world_size] += arriving
""",
    "counted down": """
def ring_reduce_scatter(x):
    pieces = x.view(world_size, -1)
    spare = torch.zeros_like(pieces[0])
    for hops in range(world_size - 1, 0, -1):
        send = dist.isend(pieces[(rank + hops) % world_size], (rank + 1) % world_size)
        dist.irecv(spare, (rank - 1) % world_size).wait()
        send.wait()
        pieces[(rank + hops - 1) % world_size] += spare
""",
    "batched": """
def ring_reduce_scatter(x):
    n = x.numel() // world_size
    left, right = (rank + world_size - 1) % world_size, (rank + 1) % world_size
    for step in range(world_size - 1):
        out, into = (left - step) % world_size, (left - step - 1) % world_size
        got = x.new_empty(n)
        calls = [dist.P2POp(dist.isend, x[out * n:(out + 1) * n], right), dist.P2POp(dist.irecv, got, left)]
        for work in dist.batch_isend_irecv(calls):
            work.wait()
        x[into * n:(into + 1) * n].add_(got)
""",
    "somebody receives first": """
def ring_reduce_scatter(x):
    parts = x.chunk(world_size)
    for step in range(world_size - 1):
        got = torch.empty_like(parts[0])
        if rank:
            dist.send(parts[(rank - 1 - step) % world_size], (rank + 1) % world_size)
            dist.recv(got, rank - 1)
        else:
            dist.recv(got, world_size - 1)
            dist.send(parts[(-1 - step) % world_size], 1 % world_size)
        parts[(rank - 2 - step) % world_size].add_(got)
""",
}

WRONG = {
    "adds to the chunk that it has sent": (
        variant(takes="rank - 1 - step"),
        "it is as it was at the start, nothing was ever added to it",
    ),
    "keeps what arrives": (
        variant(puts="[:] ="),
        "the rank's own piece is missing (it wrote there last on line 9), and so are ranks 2-3's",
    ),
    "one step short": (variant(steps="world_size - 2"), "nothing was ever added to it"),
    "one step too many": (variant(steps="world_size"), "the busiest rank sent 1 N where 0.75 N are enough"),
    "rank r ends with chunk r + 1": (
        variant(sends="rank - step", takes="rank - 1 - step"),
        "that sum is finished on rank 3, but not here",
    ),
    "always the same chunk": (variant(sends="0", takes="0"), "ranks 2-3's were added three times on rank 3"),
    "the built-in": (
        "def ring_reduce_scatter(x):\n    dist.reduce_scatter_single(x.chunk(world_size)[rank], x.clone())\n",
        "uses the built-in reduce_scatter_single",
    ),
    "straight to the owner": (
        """
def ring_reduce_scatter(x):
    chunks = list(x.chunk(world_size))
    others = [peer for peer in range(world_size) if peer != rank]
    works = [dist.isend(chunks[peer].clone(), peer) for peer in others]
    for peer in others:
        got = torch.empty_like(chunks[0])
        dist.recv(got, peer)
        chunks[rank] += got
    for work in works:
        work.wait()
""",
        "only its neighbours",
    ),
    "everybody sends first": (
        """
def ring_reduce_scatter(x):
    chunks, got = list(x.chunk(world_size)), torch.empty_like(x.chunk(world_size)[0])
    for step in range(world_size - 1):
        dist.send(chunks[(rank - 1 - step) % world_size], (rank + 1) % world_size)
        dist.recv(got, (rank - 1) % world_size)
        chunks[(rank - 2 - step) % world_size] += got
""",
        "wait in send to the next rank",
    ),
}
