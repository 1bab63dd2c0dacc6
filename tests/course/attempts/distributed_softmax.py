"""Attempts at distributed_softmax."""

RIGHT = {
    "one call, two numbers of every rank": """
def distributed_softmax(x):
    m = x.max()
    e = (x - m).exp()
    rows = torch.full((world_size, 2), 0.0, dtype=x.dtype)
    rows[rank] = torch.stack([m, e.sum()])
    dist.all_reduce(rows)
    top = rows[:, 0].max()
    total = (rows[:, 1] * (rows[:, 0] - top).exp()).sum()
    return e * (m - top).exp() / total
""",
    "by logarithms": """
def distributed_softmax(x):
    m = x.max().clone()
    dist.all_reduce(m, op=dist.ReduceOp.MAX)
    s = (x - m).exp().sum()
    dist.all_reduce(s, op=dist.ReduceOp.SUM)
    return (x - m - s.log()).exp()
""",
    "minus the least of minus": """
def distributed_softmax(x):
    least = (-x).min().view(1)
    dist.all_reduce(least, dist.ReduceOp.MIN)
    y = torch.exp(x + least)
    total = y.sum(0, keepdim=True)
    dist.all_reduce(total)
    return y.div_(total)
""",
    "in double": """
def distributed_softmax(x):
    z = x.double()
    pair = z.max()
    dist.all_reduce(pair, dist.ReduceOp.MAX)
    z = (z - pair).exp()
    norm = z.sum()
    dist.all_reduce(norm)
    return (z / norm).to(x.dtype)
""",
}

BODY = """
def distributed_softmax(x):
    largest = x.max()
    {first}
    powers = torch.exp(x - largest)
    total = powers.sum()
    {second}
    return powers / total
"""
MAX, SUM = "dist.all_reduce(largest, dist.ReduceOp.MAX)", "dist.all_reduce(total)"

WRONG = {
    "clamped": (
        """
def distributed_softmax(x):
    e = x.clamp(-80, 80).exp()
    s = e.sum(); dist.all_reduce(s)
    return e / s
""",
        "the answer is ",
    ),
    "the mean of all": (
        """
def distributed_softmax(x):
    m = x.mean()
    dist.all_reduce(m)
    m /= world_size
    e = torch.exp(x - m)
    s = e.sum()
    dist.all_reduce(s)
    return e / s
""",
        "look for a division by zero, or for a number that is too large for exp",
    ),
    "a constant for the maximum": (BODY.format(first="largest = 1000", second=SUM), "no  on 2 ranks"),
    "no maximum, and whatever is infinite is one": (
        BODY.format(first="largest = 0", second="total = total.clamp(max=1e30); " + SUM),
        "the answer is",
    ),
    "its own softmax": (
        "def distributed_softmax(x):\n    return x.softmax(0)\n",
        "no rank has sent anything, so ranks 1-3's numbers are not in it",
    ),
    "no maximum": (
        """
def distributed_softmax(x):
    powers = torch.exp(x)
    total = powers.sum()
    dist.all_reduce(total)
    return powers / total
""",
        "the answer is nan nan ...",
    ),
    "its own maximum": (BODY.format(first="pass", second=SUM), "each rank subtracted its own maximum"),
    "its own sum": (BODY.format(first=MAX, second="pass"), "each rank divided by the sum of its own exponentials"),
    "overwrites x": (
        """
def distributed_softmax(x):
    largest = x.max()
    dist.all_reduce(largest, dist.ReduceOp.MAX)
    x -= largest
    x.exp_()
    total = x.sum()
    dist.all_reduce(total)
    return x / total
""",
        "x was changed; it must stay as it was",
    ),
    "all the data, in disguise": (
        """
def distributed_softmax(x):
    whole = torch.zeros(world_size, x.numel(), dtype=x.dtype)
    whole[rank] = x
    dist.all_reduce(whole)
    return whole.flatten().softmax(0).chunk(world_size)[rank]
""",
        "a few numbers per rank are enough, not the data",
    ),
}
