"""Attempts at neighbours_first."""

GATHERED = """
def neighbours_first(x):
    machines = torch.empty(world_size, dtype=x.dtype)
    dist.all_gather_single(machines, x)
    return {order}
"""

RIGHT = {
    "a list, sorted by a key": """
def neighbours_first(x):
    machines = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(machines, x)
    return torch.tensor(sorted(range(world_size), key=lambda r: machines[r].item()))
""",
    "machine by machine": GATHERED.format(
        order="torch.cat([(machines == machine).nonzero().flatten() for machine in machines.unique()])"
    ),
    "pairs": GATHERED.format(
        order="torch.tensor([r for _, r in sorted((float(m), r) for r, m in enumerate(machines))])"
    ),
}

WRONG = {
    "the machines, sorted": (
        GATHERED.format(order="machines.sort().values"),
        "these are the machines' numbers, sorted",
    ),
    "the other way round": (
        GATHERED.format(order="machines.argsort(stable=True, descending=True)"),
        "rank 0: the answer",
    ),
    "the place of each rank, not the rank of each place": (
        GATHERED.format(order="machines.argsort(stable=True).argsort()"),
        "that is the place of each rank in the order",
    ),
    "the ranks of its own machine": (
        GATHERED.format(order="(machines == x).nonzero().flatten()"),
        "and should have [4]",
    ),
    "nobody was asked": ("def neighbours_first(x):\n    return torch.arange(world_size)\n", "rank 0: the answer"),
    "rank 0 alone knows": (
        """
def neighbours_first(x):
    machines = [torch.empty_like(x) for _ in range(world_size)] if rank == 0 else None
    dist.gather(x, machines)
    order = torch.cat(machines).argsort(stable=True) if rank == 0 else torch.empty(world_size, dtype=torch.int64)
    dist.broadcast(order, 0)
    return order
""",
        "uses the built-in",
    ),
}
