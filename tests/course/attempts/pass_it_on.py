"""Attempts at pass_it_on."""

RIGHT = {
    "early return": """
def pass_it_on(x):
    if rank != 0:
        dist.recv(x, rank - 1)
    if rank == world_size - 1:
        return
    dist.send(x, rank + 1)
""",
    "not blocking": """
def pass_it_on(x):
    if rank > 0:
        dist.irecv(x, src=rank - 1).wait()
    if rank + 1 < world_size:
        dist.isend(x, dst=rank + 1).wait()
""",
    "through a buffer": """
def pass_it_on(x):
    inbox = torch.empty_like(x)
    if rank > 0:
        dist.recv(inbox, rank - 1)
        x.copy_(inbox)
    if rank < world_size - 1:
        dist.send(x.clone(), rank + 1)
""",
}

WRONG = {
    "sends before it has received": (
        """
def pass_it_on(x):
    if rank < world_size - 1:
        dist.send(x, rank + 1)
    if rank > 0:
        dist.recv(x, rank - 1)
""",
        "rank 2: x holds b0 and should hold a0: rank 1 sent its own before it had rank 0's",
    ),
    "the built-in": ("def pass_it_on(x):\n    dist.broadcast(x, 0)\n", "uses the built-in broadcast"),
    "straight from rank 0": (
        """
def pass_it_on(x):
    if rank == 0:
        for dst in range(1, world_size):
            dist.send(x, dst)
    else:
        dist.recv(x, 0)
""",
        "only its right-hand neighbour",
    ),
    "once too often": (
        """
def pass_it_on(x):
    if rank > 0:
        dist.recv(x, rank - 1)
    dist.send(x, (rank + 1) % world_size)
    if rank == 0:
        dist.recv(x, world_size - 1)
""",
        "messages where",
    ),
    "the last rank is forgotten": (
        """
def pass_it_on(x):
    if 0 < rank < world_size - 1:
        dist.recv(x, rank - 1)
    if rank < world_size - 2:
        dist.send(x, rank + 1)
""",
        "rank 3: x should hold a0: rank 3 has neither sent nor received anything",
    ),
    "the last rank sends too": (
        """
def pass_it_on(x):
    if rank > 0:
        dist.recv(x, rank - 1)
    dist.send(x, rank + 1)
""",
        "rank 3",
    ),
    "nobody begins": (
        """
def pass_it_on(x):
    dist.recv(x, (rank - 1) % world_size)
    dist.send(x, (rank + 1) % world_size)
""",
        "wait",
    ),
}
