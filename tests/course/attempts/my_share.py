"""Attempts at my_share."""

RIGHT = {
    "one after the other": """
def my_share(x):
    start = 0
    for r in range(rank):
        start += len(x) // world_size + (1 if r < len(x) % world_size else 0)
    mine = len(x) // world_size + (1 if rank < len(x) % world_size else 0)
    return x[start:start + mine]
""",
    "the library's own": """
def my_share(x):
    return torch.tensor_split(x, world_size)[rank]
""",
    "dealt out like cards": """
def my_share(x):
    sizes = [0] * world_size
    for card in range(len(x)):
        sizes[card % world_size] += 1
    return x.split(sizes)[rank].clone()
""",
}

WRONG = {
    "without those before that got one more": (
        """
def my_share(x):
    base, left_over = divmod(len(x), world_size)
    return x[rank * base : rank * base + base + (rank < left_over)]
""",
        "; it is x[2:5] and should be x[3:6], of 10 numbers; ranks 2-3 are wrong too",
    ),
    "a built-in that fails": (
        """
def my_share(x):
    share = torch.empty(len(x) // world_size, dtype=x.dtype)
    dist.scatter(share, list(x.chunk(world_size)) if rank == 0 else None)
    return share
""",
        "it calls scatter, but every rank can know this without a word from the others",
    ),
    "what is left over to rank 0": (
        """
def my_share(x):
    n, more = divmod(len(x), world_size)
    return x[:n + more] if rank == 0 else x[more + rank * n:more + (rank + 1) * n]
""",
        "rank 0: the answer has shape [4] and should have [3]",
    ),
    "the rest is lost": (
        "def my_share(x):\n    n = len(x) // world_size\n    return x[rank * n:(rank + 1) * n]\n",
        "has shape",
    ),
    "the last one gets the rest": (
        """
def my_share(x):
    n = len(x) // world_size
    return x[rank * n:] if rank == world_size - 1 else x[rank * n:(rank + 1) * n]
""",
        "has shape",
    ),
    "every p-th": ("def my_share(x):\n    return x[rank::world_size]\n", "rank 0: the answer (from element 1 on) is"),
    "right lengths, wrong places": (
        """
def my_share(x):
    n, more = divmod(len(x), world_size)
    return x[rank * n:rank * n + n + (rank < more)]
""",
        "rank 1: the answer is",
    ),
    "asks the others": (
        """
def my_share(x):
    everyone = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(everyone, x)
    return everyone[rank].tensor_split(world_size)[rank]
""",
        "without a word from the others",
    ),
    "indices instead of numbers": (
        """
def my_share(x):
    return torch.arange(len(x), dtype=x.dtype).tensor_split(world_size)[rank]
""",
        "rank 0: the answer is 0 1 ... and should be",
    ),
    "spoils x": (
        "def my_share(x):\n    mine = x.tensor_split(world_size)[rank].clone()\n    x.zero_()\n    return mine\n",
        "x was changed",
    ),
}
