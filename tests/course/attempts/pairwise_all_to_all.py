"""Attempts at pairwise_all_to_all."""

RIGHT = {
    "all at once": """
def pairwise_all_to_all(x):
    rows, result = x.view(world_size, -1), torch.empty_like(x).view(world_size, -1)
    result[rank] = rows[rank]
    calls = []
    for peer in range(world_size):
        if peer != rank:
            calls += [dist.P2POp(dist.isend, rows[peer], peer), dist.P2POp(dist.irecv, result[peer], peer)]
    for work in dist.batch_isend_irecv(calls):
        work.wait()
    return result.flatten()
""",
    "a list of what came": """
def pairwise_all_to_all(x):
    mine = x.chunk(world_size)
    came = [mine[rank]] * world_size
    for hop in range(1, world_size):
        to, src = (rank + hop) % world_size, (rank - hop) % world_size
        came[src] = torch.empty_like(mine[src])
        work = dist.irecv(came[src], src)
        dist.isend(mine[to], to).wait()
        work.wait()
    return torch.cat(came)
""",
    "to the left": """
def pairwise_all_to_all(x):
    n = len(x) // world_size
    out = x.clone()
    for hop in range(1, world_size):
        to, src = (rank - hop) % world_size, (rank + hop) % world_size
        sending = dist.isend(x[to * n:to * n + n], to)
        dist.recv(out[src * n:src * n + n], src)
        sending.wait()
    return out
""",
}

HEAD = """
    result = torch.zeros_like(x)
    outgoing, incoming = x.chunk(world_size), result.chunk(world_size)
"""
GOOD = """
    for hop in range(1, world_size):
        sending = dist.isend(outgoing[(rank + hop) % world_size], (rank + hop) % world_size)
        dist.recv(incoming[(rank - hop) % world_size], (rank - hop) % world_size)
        sending.wait()
"""
OWN = "    incoming[rank].copy_(outgoing[rank])\n"

WRONG = {
    "forgets its own": (
        f"def pairwise_all_to_all(x):{HEAD}{GOOD}    return result\n",
        "rank 0, chunk 0 holds zeros and should hold a0",
    ),
    "into the receiver's place": (
        f"def pairwise_all_to_all(x):{HEAD}{OWN}{GOOD.replace('incoming[(rank - hop)', 'incoming[(rank + hop)')}"
        "    return result\n",
        "chunk 1 and chunk 3 are swapped",
    ),
    "the same piece for all": (
        f"def pairwise_all_to_all(x):{HEAD}{OWN}{GOOD.replace('outgoing[(rank + hop) % world_size]', 'outgoing[rank]')}"
        "    return result\n",
        "holds b1 and should hold b0: that is another chunk of rank 1's",
    ),
    "in place": (
        """
def pairwise_all_to_all(x):
    pieces = x.chunk(world_size)
    for hop in range(1, world_size):
        sending = dist.isend(pieces[(rank + hop) % world_size].clone(), (rank + hop) % world_size)
        arriving = torch.empty_like(pieces[0])
        dist.recv(arriving, (rank - hop) % world_size)
        sending.wait()
        pieces[(rank - hop) % world_size].copy_(arriving)
    return x
""",
        "rank 1's own piece was overwritten by what it had received",
    ),
    "whole vectors": (
        f"""
def pairwise_all_to_all(x):{HEAD}{OWN}
    other = torch.empty_like(x)
    for hop in range(1, world_size):
        src = (rank - hop) % world_size
        sending = dist.isend(x, (rank + hop) % world_size)
        dist.recv(other, src)
        sending.wait()
        incoming[src].copy_(other.chunk(world_size)[rank])
    return result
""",
        "that is the whole vector sent p - 1 times",
    ),
    "to itself": (
        f"""
def pairwise_all_to_all(x):{HEAD}{GOOD.replace("range(1, world_size)", "range(world_size)")}
    return result
""",
        "rank",
    ),
}
