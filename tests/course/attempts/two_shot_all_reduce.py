"""Attempts at two_shot_all_reduce."""

RIGHT = {
    "batched": """
def round_of_messages(outgoing, incoming):
    calls = [dist.P2POp(dist.isend, t, peer) for peer, t in outgoing.items()]
    calls += [dist.P2POp(dist.irecv, t, peer) for peer, t in incoming.items()]
    for work in dist.batch_isend_irecv(calls):
        work.wait()

def two_shot_all_reduce(x):
    parts = x.view(world_size, -1)
    others = set(range(world_size)) - {rank}
    got = {peer: torch.empty_like(parts[0]) for peer in others}
    round_of_messages({peer: parts[peer] for peer in others}, got)
    parts[rank] += sum(got.values())
    round_of_messages({peer: parts[rank] for peer in others}, {peer: parts[peer] for peer in others})
""",
    "pair by pair": """
def two_shot_all_reduce(x):
    chunks = x.chunk(world_size)
    spare = torch.empty_like(chunks[0])
    total = chunks[rank].clone()
    for k in range(1, world_size):
        to, source = (rank + k) % world_size, (rank - k) % world_size
        sending = dist.isend(chunks[to], to)
        dist.recv(spare, source)
        sending.wait()
        total += spare
    chunks[rank].copy_(total)
    for k in range(1, world_size):
        to, source = (rank + k) % world_size, (rank - k) % world_size
        sending = dist.isend(total, to)
        dist.recv(chunks[source], source)
        sending.wait()
""",
    "a ring, which has the same bytes": """
def two_shot_all_reduce(x):
    chunks = list(x.chunk(world_size))
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    arriving = torch.empty_like(chunks[0])
    for step in range(world_size - 1):
        sending = dist.isend(chunks[(rank - 1 - step) % world_size], right)
        dist.recv(arriving, left)
        sending.wait()
        chunks[(rank - 2 - step) % world_size] += arriving
    for step in range(world_size - 1):
        sending = dist.isend(chunks[(rank - step) % world_size], right)
        dist.recv(chunks[(rank - 1 - step) % world_size], left)
        sending.wait()
""",
}

HEAD = """
    chunks = list(x.chunk(world_size))
    others = [peer for peer in range(world_size) if peer != rank]
    inbox = {peer: torch.empty_like(chunks[rank]) for peer in others}
"""

WRONG = {
    "one shot": (
        """
def two_shot_all_reduce(x):
    others = [peer for peer in range(world_size) if peer != rank]
    inbox = {peer: torch.empty_like(x) for peer in others}
    work = [dist.isend(x.clone(), peer) for peer in others] + [dist.irecv(inbox[peer], peer) for peer in others]
    for w in work:
        w.wait()
    for peer in others:
        x += inbox[peer]
""",
        "still the whole vector to every rank",
    ),
    "only the first round": (
        f"""
def two_shot_all_reduce(x):{HEAD}
    work = [dist.isend(chunks[peer], peer) for peer in others] + [dist.irecv(inbox[peer], peer) for peer in others]
    for w in work:
        w.wait()
    for peer in others:
        chunks[rank] += inbox[peer]
""",
        "that sum is finished on rank 1, but not here; pass it on to every rank",
    ),
    "sends its own chunk in the first round": (
        f"""
def two_shot_all_reduce(x):{HEAD}
    work = [dist.isend(chunks[rank], peer) for peer in others] + [dist.irecv(inbox[peer], peer) for peer in others]
    for w in work:
        w.wait()
    for peer in others:
        chunks[rank] += inbox[peer]
    work = [dist.isend(chunks[rank], peer) for peer in others] + [dist.irecv(chunks[peer], peer) for peer in others]
    for w in work:
        w.wait()
""",
        "ranks 1-3 contributed another chunk",
    ),
    "one inbox for all": (
        """
def two_shot_all_reduce(x):
    chunks = list(x.chunk(world_size))
    spare = torch.zeros_like(chunks[rank])
    others = [peer for peer in range(world_size) if peer != rank]
    work = [dist.isend(chunks[peer], peer) for peer in others]
    for peer in others:
        dist.recv(spare, peer)
    for w in work:
        w.wait()
    chunks[rank] += spare
    work = [dist.isend(chunks[rank], peer) for peer in others] + [dist.irecv(chunks[peer], peer) for peer in others]
    for w in work:
        w.wait()
""",
        "ranks 1-2's came here, but are not in it",
    ),
    "the built-ins of the halves": (
        """
def two_shot_all_reduce(x):
    piece = torch.empty_like(x.chunk(world_size)[0])
    dist.reduce_scatter_single(piece, x)
    dist.all_gather_single(x, piece)
""",
        "uses the built-in",
    ),
    "whole vectors back": (
        f"""
def two_shot_all_reduce(x):{HEAD}
    work = [dist.isend(chunks[peer], peer) for peer in others] + [dist.irecv(inbox[peer], peer) for peer in others]
    for w in work:
        w.wait()
    for peer in others:
        chunks[rank] += inbox[peer]
    back = {{peer: torch.empty_like(x) for peer in others}}
    work = [dist.isend(x.clone(), peer) for peer in others] + [dist.irecv(back[peer], peer) for peer in others]
    for w in work:
        w.wait()
    for peer in others:
        chunks[peer].copy_(back[peer].chunk(world_size)[peer])
""",
        "the busiest rank sent 3.75 N where 1.5 N are enough",
    ),
}
