"""Attempts at ring_all_reduce."""

HEAD = """
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    chunks = list(x.chunk(world_size))
"""

RIGHT = {
    "sends from threads": """
from threading import Thread
def ring_all_reduce(x):
    p, chunks = world_size, x.chunk(world_size)
    for step in range(2 * (p - 1)):
        mine, arriving = chunks[(rank - step - 1) % p], torch.empty_like(chunks[0])
        sender = Thread(target=dist.send, args=(chunks[(rank - step) % p].clone(), (rank + 1) % p))
        sender.start()
        dist.recv(arriving, (rank - 1) % p)
        sender.join()
        mine.copy_(mine + arriving if step < p - 1 else arriving)
""",
    "to the left": """
def ring_all_reduce(x):
    chunks = list(x.chunk(world_size))
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    arriving = torch.empty_like(chunks[0])
    for step in range(world_size - 1):
        sending = dist.isend(chunks[(rank + 1 + step) % world_size], left)
        dist.recv(arriving, right)
        sending.wait()
        chunks[(rank + 2 + step) % world_size] += arriving
    for step in range(world_size - 1):
        sending = dist.isend(chunks[(rank + step) % world_size], left)
        dist.recv(chunks[(rank + 1 + step) % world_size], right)
        sending.wait()
""",
    "batched": """
def ring_all_reduce(x):
    parts = x.view(world_size, -1)
    spare = torch.empty_like(parts[0])
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    for step in range(2 * (world_size - 1)):
        adding = step < world_size - 1
        outgoing, incoming = (rank - step - 1) % world_size, (rank - step - 2) % world_size
        target = spare if adding else parts[incoming]
        calls = [dist.P2POp(dist.isend, parts[outgoing], right), dist.P2POp(dist.irecv, target, left)]
        for work in dist.batch_isend_irecv(calls):
            work.wait()
        if adding:
            parts[incoming] += spare
""",
    "odd and even": """
def pass_on(outgoing, incoming):
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    if rank == 0:
        dist.recv(incoming, left)
        dist.send(outgoing, right)
    else:
        dist.send(outgoing, right)
        dist.recv(incoming, left)

def ring_all_reduce(x):
    n = x.numel() // world_size
    def chunk(k):
        k %= world_size
        return x[k * n:(k + 1) * n]
    for step in range(world_size - 1):
        arriving = torch.zeros(n, dtype=x.dtype)
        pass_on(chunk(rank - 1 - step).clone(), arriving)
        chunk(rank - 2 - step).add_(arriving)
    for step in range(world_size - 1):
        arriving = torch.zeros(n, dtype=x.dtype)
        pass_on(chunk(rank - step), arriving)
        chunk(rank - 1 - step).copy_(arriving)
""",
    "generators": """
from itertools import chain

def ring_all_reduce(x):
    size = x.shape[0] // world_size
    window = lambda k: slice((k % world_size) * size, (k % world_size + 1) * size)
    plan = chain(((s, True) for s in range(world_size - 1)), ((s, False) for s in range(world_size - 1)))
    for s, add in plan:
        give = window(rank - 1 - s) if add else window(rank - s)
        take = window(rank - 2 - s) if add else window(rank - 1 - s)
        got = x.new_empty(size)
        receive = dist.irecv(got, src=(rank + world_size - 1) % world_size)
        send = dist.isend(x[give], dst=(rank + 1) % world_size)
        receive.wait(); send.wait()
        x[take] = x[take] + got if add else got
""",
}

WRONG = {
    "whole vectors": (
        f"""
def ring_all_reduce(x):{HEAD}
    passing, arriving = x.clone(), torch.empty_like(x)
    for step in range(world_size - 1):
        sending = dist.isend(passing, right)
        dist.recv(arriving, left)
        sending.wait()
        x += arriving
        passing, arriving = arriving, passing
""",
        "the busiest rank sent 3 N",
    ),
    "off by one chunk": (
        f"""
def ring_all_reduce(x):{HEAD}
    arriving = torch.empty_like(chunks[0])
    for step in range(world_size - 1):
        sending = dist.isend(chunks[(rank - 1 - step) % world_size], right)
        dist.recv(arriving, left)
        sending.wait()
        chunks[(rank - 1 - step) % world_size] += arriving
    for step in range(world_size - 1):
        sending = dist.isend(chunks[(rank - step) % world_size], right)
        dist.recv(chunks[(rank - 1 - step) % world_size], left)
        sending.wait()
""",
        "it is as it was at the start, nothing was ever added to it",
    ),
    "the built-in": ("def ring_all_reduce(x):\n    dist.all_reduce(x)\n", "uses the built-in all_reduce"),
    "a built-in in disguise": (
        """
def ring_all_reduce(x):
    parts = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(parts, x)
    x.copy_(sum(parts))
""",
        "uses the built-in all_gather",
    ),
    "through rank 0": (
        """
def ring_all_reduce(x):
    other = torch.empty_like(x)
    if rank == 0:
        for src in range(1, world_size):
            dist.recv(other, src)
            x += other
        for dst in range(1, world_size):
            dist.send(x, dst)
    else:
        dist.send(x, 0)
        dist.recv(x, 0)
""",
        "only its neighbours",
    ),
    "an exception": (f"def ring_all_reduce(x):{HEAD}\n    chunks[world_size] += 1\n", "IndexError"),
    "a typo": ("def ring_all_reduce(x):\n    y = chuncks(x)\n", "NameError"),
}
HALVES = f"""
def ring_all_reduce(x):{HEAD}
    arriving = torch.empty_like(chunks[0])
    for step in range(world_size - 1):
        sending = dist.isend(chunks[(rank - 1 - step) % world_size], right)
        dist.recv(arriving, left)
        sending.wait()
        chunks[(rank - 2 - step) % world_size] += arriving
    for step in range(world_size - 1):
        sending = dist.isend(chunks[(rank - SEND - step) % world_size], right)
        dist.recv(chunks[(rank - RECV - step) % world_size], left)
        sending.wait()
"""
AFRESH = "; in the all-gather half begin with the chunk that is finished on the sender, and receive it as that"
WRONG |= {
    "second half one chunk behind": (HALVES.replace("SEND", "1").replace("RECV", "2"), AFRESH),
    "second half one chunk ahead": (HALVES.replace("SEND", "-1").replace("RECV", "0"), AFRESH),
}
