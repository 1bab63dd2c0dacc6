"""Attempts at distributed_mean."""

RIGHT = {
    "a Python number": """
def distributed_mean(x):
    s = torch.tensor([x.double().sum(), x.numel()], dtype=torch.float64)
    dist.all_reduce(s)
    return (s[0] / s[1]).item()
""",
    "two calls": """
def distributed_mean(x):
    total, count = x.sum(), torch.tensor(x.numel())
    dist.all_reduce(total)
    dist.all_reduce(count)
    return total / count
""",
    "in double": """
def distributed_mean(x):
    both = torch.tensor([x.double().sum().item(), len(x)], dtype=torch.float64)
    dist.all_reduce(both, op=dist.ReduceOp.SUM)
    total, count = both
    return total / count
""",
    "averages of sums and counts": """
def distributed_mean(x):
    both = torch.cat([x.sum().view(1), torch.ones_like(x).sum().view(1)])
    dist.all_reduce(both, dist.ReduceOp.AVG)
    return both[0] / both[1]
""",
}

WRONG = {
    "the mean of the means, by AVG": (
        """
def distributed_mean(x):
    m = x.mean()
    dist.all_reduce(m, dist.ReduceOp.AVG)
    return m
""",
        "that is the mean of the ranks' means, which counts a rank with few numbers as much as one with many",
    ),
    "an empty rank counts as one number": (
        """
def distributed_mean(x):
    total = torch.stack([x.sum(), x.new_tensor(max(1, x.numel()))])
    dist.all_reduce(total)
    return total[0] / total[1]
""",
        "a rank without numbers was counted as one number; its count is 0",
    ),
    "the mean of an empty rank": (
        """
def distributed_mean(x):
    total = torch.stack([x.mean() * x.numel(), x.new_tensor(x.numel())])
    dist.all_reduce(total)
    return total[0] / total[1]
""",
        "the answer is nan and should be",
    ),
    "counts the ranks": (
        """
def distributed_mean(x):
    total = torch.stack([x.sum(), x.new_tensor(world_size)])
    dist.all_reduce(total)
    return total[0] / total[1]
""",
        "that is the sum of all divided by world_size from every rank",
    ),
    "its own count": (
        """
def distributed_mean(x):
    total = x.sum()
    dist.all_reduce(total)
    return total / (x.numel() * world_size)
""",
        "the counts differ, so add them up, too",
    ),
    "three calls": (
        """
def distributed_mean(x):
    total, count = x.sum(), x.new_tensor(x.numel())
    dist.all_reduce(total)
    dist.all_reduce(count)
    mean = total / count
    dist.all_reduce(mean, dist.ReduceOp.MAX)
    return mean
""",
        "3 calls of built-ins where 2 will do",
    ),
    "everybody's sums": (
        """
def distributed_mean(x):
    sums = [torch.empty(2, dtype=x.dtype) for _ in range(world_size)]
    dist.all_gather(sums, torch.stack([x.sum(), x.new_tensor(x.numel())]))
    return sum(sums)[0] / sum(sums)[1]
""",
        "uses the built-in all_gather",
    ),
    "all numbers in a row of zeros": (
        """
def distributed_mean(x):
    longest = torch.tensor(x.numel())
    dist.all_reduce(longest)
    row = x.new_zeros(int(longest))
    start = sum(5 + 20 * r for r in range(rank))
    row[start:start + x.numel()] = x
    dist.all_reduce(row)
    return row.mean()
""",
        "a few numbers per rank are enough, not the data",
    ),
}
