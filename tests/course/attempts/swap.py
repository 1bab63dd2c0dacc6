"""Attempts at swap. The stub in the chapter is the first of the wrong ones."""

RIGHT = {
    "odd and even": """
def swap(x):
    partner = rank ^ 1
    if partner == world_size:
        return x.clone()
    theirs = torch.empty_like(x)
    if rank < partner:
        dist.send(x, partner)
        dist.recv(theirs, partner)
    else:
        dist.recv(theirs, partner)
        dist.send(x, partner)
    return theirs
""",
    "batched": """
def swap(x):
    theirs = x.clone()
    partner = rank + 1 if rank % 2 == 0 else rank - 1
    if partner < world_size:
        calls = [dist.P2POp(dist.isend, x, partner), dist.P2POp(dist.irecv, theirs, partner)]
        for work in dist.batch_isend_irecv(calls):
            work.wait()
    return theirs
""",
    "receives ready beforehand": """
def swap(x):
    if world_size % 2 and rank == world_size - 1:
        return x.detach().clone()
    theirs = torch.zeros_like(x)
    work = dist.irecv(theirs, rank ^ 1)
    dist.send(x, rank ^ 1)
    work.wait()
    return theirs
""",
}

WRONG = {
    "as given": (
        """
def swap(x):
    partner = rank ^ 1
    theirs = torch.empty_like(x)
    dist.send(x, partner)
    dist.recv(theirs, partner)
    return theirs
""",
        "rank 0 waits in send to rank 1",
    ),
    "the other way round": (
        """
def swap(x):
    partner = rank ^ 1
    theirs = torch.empty_like(x)
    dist.recv(theirs, partner)
    dist.send(x, partner)
    return theirs
""",
        "rank 0 waits in recv from rank 1",
    ),
    "forgets the rank without a partner": (
        """
def swap(x):
    partner = rank ^ 1
    theirs = torch.empty_like(x)
    sending = dist.isend(x, partner)
    dist.recv(theirs, partner)
    sending.wait()
    return theirs
""",
        "no  on 3 ranks",
    ),
    "the last one gives up": (
        """
def swap(x):
    partner = rank ^ 1
    if partner >= world_size:
        return
    theirs = torch.empty_like(x)
    sending = dist.isend(x, partner)
    dist.recv(theirs, partner)
    sending.wait()
    return theirs
""",
        "rank 2: the answer should be a tensor and is None",
    ),
    "a shift": (
        """
def swap(x):
    theirs = torch.empty_like(x)
    sending = dist.isend(x, (rank + 1) % world_size)
    dist.recv(theirs, (rank - 1) % world_size)
    sending.wait()
    return theirs
""",
        "rank 0: the answer holds d0 and should hold b0: rank 3's is where rank 1's should",
    ),
    "one side only": (
        """
def swap(x):
    partner = rank ^ 1
    if partner >= world_size:
        return x.clone()
    theirs = torch.empty_like(x)
    if rank < partner:
        dist.send(x, partner)
        return x.clone()
    dist.recv(theirs, partner)
    return theirs
""",
        "rank 0: the answer holds a0 and should hold b0",
    ),
    "through everybody": (
        """
def swap(x):
    work = [dist.isend(x, dst) for dst in range(world_size) if dst != rank]
    theirs = {src: torch.empty_like(x) for src in range(world_size) if src != rank}
    for src in theirs:
        dist.recv(theirs[src], src)
    for w in work:
        w.wait()
    return theirs.get(rank ^ 1, x.clone())
""",
        "only its partner",
    ),
    "in two halves": (
        """
def swap(x):
    partner = rank ^ 1
    if partner >= world_size:
        return x.clone()
    theirs = torch.empty_like(x)
    for mine, other in zip(x.chunk(2), theirs.chunk(2)):
        sending = dist.isend(mine, partner)
        dist.recv(other, partner)
        sending.wait()
    return theirs
""",
        "messages where",
    ),
}
