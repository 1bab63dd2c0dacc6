"""Attempts at distributed_argmax."""

RIGHT = {
    "gather the maxima": """
def distributed_argmax(x):
    maxima = torch.empty(world_size, dtype=x.dtype)
    dist.all_gather_single(maxima, x.max().view(1))
    value = maxima.max()
    owner = min(r for r in range(world_size) if maxima[r] == value)
    return torch.stack([value, x.new_tensor(owner)])
""",
    "a list": """
def distributed_argmax(x):
    maxima = [x.new_empty(()) for _ in range(world_size)]
    dist.all_gather(maxima, x.max())
    best = max(range(world_size), key=lambda r: (maxima[r].item(), -r))
    return torch.stack([maxima[best], torch.tensor(best, dtype=x.dtype)])
""",
    "bids upside down": """
def distributed_argmax(x):
    value = x.max().clone()
    dist.all_reduce(value, op=dist.ReduceOp.MAX)
    bid = x.new_tensor(world_size - rank if x.max() == value else 0)
    dist.all_reduce(bid, op=dist.ReduceOp.MAX)
    return torch.stack([value, world_size - bid])
""",
}

WRONG = {
    "the highest bid wins": (
        """
def distributed_argmax(x):
    value = x.max()
    dist.all_reduce(value, dist.ReduceOp.MAX)
    owner = torch.tensor(rank if (x == value).any() else world_size)
    dist.all_reduce(owner, dist.ReduceOp.MAX)
    return torch.stack([value, owner.to(x.dtype)])
""",
        "that is no rank; if the ranks without the largest number contribute it, take MIN",
    ),
    "a bid below every rank": (
        """
def distributed_argmax(x):
    value = x.max()
    dist.all_reduce(value, dist.ReduceOp.MAX)
    owner = torch.tensor(rank if (x == value).any() else -1)
    dist.all_reduce(owner, dist.ReduceOp.MIN)
    return torch.stack([value, owner.to(x.dtype)])
""",
        "the rank that has it is -1 and should be",
    ),
    "nothing is below zero": (
        """
def distributed_argmax(x):
    value = x.max().clamp(min=0)
    dist.all_reduce(value, dist.ReduceOp.MAX)
    owner = torch.tensor(rank if (x == value).any() else world_size)
    dist.all_reduce(owner, dist.ReduceOp.MIN)
    return torch.stack([value, owner.to(x.dtype)])
""",
        "no  on 2 ranks",
    ),
    "both in one number, the rank behind the point": (
        """
def distributed_argmax(x):
    both = x.max().double() - rank / 1e6
    dist.all_reduce(both, dist.ReduceOp.MAX)
    value = both.round(decimals=3)
    return torch.stack([value, ((value - both) * 1e6).round()])
""",
        "rank 0: the largest number is",
    ),
    "both in one number, the rank in the last digits": (
        """
def distributed_argmax(x):
    both = x.max().double() * 1e6 - rank
    dist.all_reduce(both, dist.ReduceOp.MAX)
    owner = (-both % 1e6).floor() % world_size
    return torch.stack([(both + owner) / 1e6, owner])
""",
        "no  on 4 ranks, float32: rank 0: the largest number is",
    ),
    "the position in its own part": (
        """
def distributed_argmax(x):
    value = x.max()
    dist.all_reduce(value, dist.ReduceOp.MAX)
    return torch.stack([value, x.argmax().to(x.dtype)])
""",
        "rank 0: the rank that has it is",
    ),
    "the last of equals": (
        """
def distributed_argmax(x):
    value = x.max()
    dist.all_reduce(value, dist.ReduceOp.MAX)
    owner = x.new_tensor(rank if x.max() == value else -1)
    dist.all_reduce(owner, dist.ReduceOp.MAX)
    return torch.stack([value, owner])
""",
        "rank that has it is 3 and should be 1: several ranks have that number, and this is the highest of them",
    ),
    "the sum of equals": (
        """
def distributed_argmax(x):
    value = x.max()
    dist.all_reduce(value, dist.ReduceOp.MAX)
    owner = x.new_tensor(rank if x.max() == value else 0)
    dist.all_reduce(owner)
    return torch.stack([value, owner])
""",
        "rank 0: the rank that has it is 4 and should be 1",
    ),
    "all the data": (
        """
def distributed_argmax(x):
    whole = torch.empty(world_size * x.numel(), dtype=x.dtype)
    dist.all_gather_single(whole, x)
    owner = int(whole.argmax()) // x.numel()
    return torch.stack([whole.max(), x.new_tensor(owner)])
""",
        "a few numbers per rank are enough, not the data",
    ),
    "another built-in": (
        """
def distributed_argmax(x):
    maxima = [torch.empty_like(x.max()) for _ in range(world_size)] if rank == 0 else None
    dist.gather(x.max(), maxima)
    best = torch.stack([max(maxima), x.new_tensor(maxima.index(max(maxima)))]) if rank == 0 else x.new_empty(2)
    dist.broadcast(best, 0)
    return best
""",
        "uses the built-in broadcast; use only",
    ),
    "through its own maximum": (
        """
def distributed_argmax(x):
    mine = x.max()
    dist.all_reduce(x, dist.ReduceOp.MAX)
    owner = x.new_tensor(rank if mine == x.max() else world_size)
    dist.all_reduce(owner, dist.ReduceOp.MIN)
    return torch.stack([x.max(), owner])
""",
        "x was changed; it must stay as it was",
    ),
}
