"""Attempts at tree_broadcast."""

RIGHT = {
    "the farther half first, with isend": """
def tree_broadcast(x):
    size = 1
    while size < world_size:
        size *= 2
    works = []
    while size > 1:
        half = size // 2
        if rank % size == 0 and rank + half < world_size:
            works.append(dist.isend(x, rank + half))
        elif rank % size == half:
            dist.recv(x, rank - half)
        size = half
    for w in works: w.wait()
""",
    "the farther half first": """
def tree_broadcast(x):
    size = 1
    while size < world_size:
        size *= 2
    while size > 1:
        half = size // 2
        if rank % size == 0 and rank + half < world_size:
            dist.send(x, rank + half)
        elif rank % size == half:
            dist.recv(x, rank - half)
        size = half
""",
    "bits": """
def tree_broadcast(x):
    top = rank.bit_length()
    if rank:
        dist.recv(x, rank - (1 << (top - 1)))
    while rank + (1 << top) < world_size:
        dist.send(x, rank + (1 << top))
        top += 1
""",
    "recursive": """
def give(x, low, high):
    if high - low < 2:
        return
    middle = (low + high + 1) // 2
    if rank == low:
        dist.isend(x, middle).wait()
    if rank == middle:
        dist.irecv(x, low).wait()
    give(x, low, middle) if rank < middle else give(x, middle, high)

def tree_broadcast(x):
    give(x, 0, world_size)
""",
}

WRONG = {
    "two at once, then a chain of two": (
        """
def tree_broadcast(x):
    pairs = {0: [1, 2], 2: [3, 4], 3: [5], 4: [6], 5: [7]}
    parents = {child: parent for parent, children in pairs.items() for child in children}
    if rank:
        dist.recv(x, parents[rank])
    for work in [dist.isend(x, child) for child in pairs.get(rank, []) if child < world_size]:
        work.wait()
""",
        "right result, but in ",
    ),
    "all at once": (
        """
def tree_broadcast(x):
    if rank == 0:
        for w in [dist.isend(x, d) for d in range(1, world_size)]:
            w.wait()
    else:
        dist.recv(x, 0)
""",
        "rank 0 sends 3 messages, which pass through its NIC one after the other; in a tree no rank sends more than 2",
    ),
    "a heap, which is as quick on 2 to 6 ranks": (
        """
def tree_broadcast(x):
    if rank:
        dist.recv(x, (rank - 1) // 2)
    for child in (2 * rank + 1, 2 * rank + 2):
        if child < world_size:
            dist.send(x, child)
""",
        "right result, but in 4 steps, one after the other, where 3 are enough: each rank that has x passes it on",
    ),
    "down a chain": (
        """
def tree_broadcast(x):
    if rank > 0:
        dist.recv(x, rank - 1)
    if rank < world_size - 1:
        dist.send(x, rank + 1)
""",
        "steps, one after the other",
    ),
    "only powers of two": (
        """
def tree_broadcast(x):
    d = 1
    while d < world_size:
        if rank < d:
            dist.send(x, rank + d)
        elif rank < 2 * d:
            dist.recv(x, rank - d)
        d *= 2
""",
        "no  on 3 ranks",
    ),
    "everyone swaps": (
        """
def tree_broadcast(x):
    d, got = 1, torch.empty_like(x)
    while d < world_size:
        work = dist.isend(x.clone(), (rank + d) % world_size)
        dist.recv(got, (rank - d) % world_size)
        work.wait()
        if d <= rank < 2 * d:
            x.copy_(got)
        d *= 2
""",
        "messages where",
    ),
    "stops too early": (
        """
def tree_broadcast(x):
    d = 1
    while 2 * d < world_size:
        if rank < d and rank + d < world_size:
            dist.send(x, rank + d)
        elif d <= rank < 2 * d:
            dist.recv(x, rank - d)
        d *= 2
""",
        "rank 2: x should hold a0: rank 2 has neither sent nor received anything",
    ),
    "waits for the wrong one": (
        """
def tree_broadcast(x):
    d = 1
    while d < world_size:
        if rank < d and rank + d < world_size:
            dist.send(x, rank + d)
        elif d <= rank < 2 * d:
            dist.recv(x, (rank - d + 1) % world_size if rank > 1 else 0)
        d *= 2
""",
        "wait",
    ),
    "the built-in": ("def tree_broadcast(x):\n    dist.broadcast(x, 0)\n", "uses the built-in broadcast"),
    "sums zeros": (
        "def tree_broadcast(x):\n    if rank:\n        x.zero_()\n    dist.all_reduce(x)\n",
        "uses the built-in all_reduce",
    ),
}
