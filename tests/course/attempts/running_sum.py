"""Attempts at running_sum."""

RIGHT = {
    "the last one goes first": """
def running_sum(x):
    total = x.clone()
    if rank != 0:
        dist.recv(total, rank - 1)
        total = total + x
    if rank + 1 < world_size:
        dist.isend(total, rank + 1).wait()
    x.copy_(total)
""",
    "receives ready beforehand": """
def running_sum(x):
    before = torch.zeros_like(x)
    if rank:
        dist.irecv(before, src=rank - 1).wait()
    x.add_(before)
    if rank in range(world_size - 1):
        dist.send(x, dst=rank + 1)
""",
    "three kinds of ranks": """
def running_sum(x):
    first, last = rank == 0, rank == world_size - 1
    if first:
        dist.send(x, 1)
    elif last:
        so_far = x.new_empty(x.shape)
        dist.recv(so_far, rank - 1)
        x[:] = so_far + x
    else:
        so_far = x.new_empty(x.shape)
        dist.recv(so_far, rank - 1)
        x[:] = so_far + x
        dist.send(x, rank + 1)
""",
}

WRONG = {
    "the last one sends too": (
        """
def running_sum(x):
    if rank > 0:
        so_far = torch.empty_like(x)
        dist.recv(so_far, rank - 1)
        x += so_far
    dist.send(x, (rank + 1) % world_size)
""",
        "wait",
    ),
    "rounded": (
        """
def running_sum(x):
    if rank > 0:
        so_far = torch.empty_like(x)
        dist.recv(so_far, rank - 1)
        x.copy_((x + so_far).round())
    if rank < world_size - 1:
        dist.send(x, rank + 1)
""",
        "no  on 2 ranks, float64: rank 1: x holds the result of other operations than copies and sums",
    ),
    "without itself": (
        """
def running_sum(x):
    so_far = torch.zeros_like(x)
    if rank > 0:
        dist.recv(so_far, rank - 1)
    if rank < world_size - 1:
        dist.send(so_far + x, rank + 1)
    x.copy_(so_far)
""",
        "rank 0: x holds zeros and should hold a0",
    ),
    "zeroed first": (
        """
def running_sum(x):
    mine = x.clone()
    if rank > 0:
        dist.recv(x, rank - 1)
    else:
        x.zero_()
    if rank < world_size - 1:
        dist.send(x + mine, rank + 1)
""",
        "this rank changed its own x before its first message; it should have stayed as it was",
    ),
    "from the other end": (
        """
def running_sum(x):
    if rank < world_size - 1:
        so_far = torch.empty_like(x)
        dist.recv(so_far, rank + 1)
        x += so_far
    if rank > 0:
        dist.send(x, rank - 1)
""",
        "b0 + c0 + d0 do not belong there; that is this rank's own piece, and should stay as it was",
    ),
    "passes on what came": (
        """
def running_sum(x):
    so_far = x.clone()
    if rank > 0:
        dist.recv(so_far, rank - 1)
    if rank < world_size - 1:
        dist.send(so_far, rank + 1)
    if rank > 0:
        x += so_far
""",
        "rank 1's never came here",
    ),
    "everyone to all that come after": (
        """
def running_sum(x):
    work = [dist.isend(x.clone(), dst) for dst in range(rank + 1, world_size)]
    other = torch.empty_like(x)
    for src in range(rank):
        dist.recv(other, src)
        x += other
    for w in work:
        w.wait()
""",
        "only its right-hand neighbour",
    ),
    "in two halves": (
        """
def running_sum(x):
    for half in x.chunk(2):
        if rank > 0:
            so_far = torch.empty_like(half)
            dist.recv(so_far, rank - 1)
            half += so_far
        if rank < world_size - 1:
            dist.send(half, rank + 1)
""",
        "messages where",
    ),
}
