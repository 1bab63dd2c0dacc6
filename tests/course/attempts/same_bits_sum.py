"""Attempts at same_bits_sum."""

RIGHT = {
    "with to": """
def same_bits_sum(x):
    wide = x.to(torch.float64)
    dist.all_reduce(wide, op=dist.ReduceOp.SUM)
    return wide.float()
""",
    "in whole numbers": """
def same_bits_sum(x):
    whole = (x.double() * 2**20).to(torch.int64)
    dist.all_reduce(whole)
    return (whole.double() / 2**20).to(x.dtype)
""",
    "async": """
def same_bits_sum(x):
    total = torch.empty(x.shape, dtype=torch.float64).copy_(x)
    dist.all_reduce(total, async_op=True).wait()
    return total.to(torch.float32)
""",
}

BODY = """
def same_bits_sum(x):
    total = {wide}
    dist.all_reduce(total{op})
    return {answer}
"""
GOOD = {"wide": "x.double()", "op": "", "answer": "total.to(x.dtype)"}

WRONG = {
    "as torch adds": (BODY.format(**GOOD | {"wide": "x.clone()"}), "no  on 4 ranks"),
    "in x itself": (BODY.format(**GOOD | {"wide": "x"}), "no  on 4 ranks"),
    "not rounded back": (BODY.format(**GOOD | {"answer": "total"}), "no  on 4 ranks"),
    "wide too late": (BODY.format(**GOOD | {"wide": "x.clone()", "answer": "total.double().to(x.dtype)"}), "no  on 4"),
    "its own numbers": ("def same_bits_sum(x):\n    return x.double().to(x.dtype)\n", "no rank has sent anything"),
    "the mean": (BODY.format(**GOOD | {"answer": "(total / world_size).to(x.dtype)"}), "no  on 4 ranks"),
    "the largest": (BODY.format(**GOOD | {"op": ", dist.ReduceOp.MAX"}), "no  on 4 ranks"),
    "as whole numbers": (BODY.format(**GOOD | {"wide": "x.long()"}), "no  on 4 ranks"),
    "half as wide": (BODY.format(**GOOD | {"wide": "x.bfloat16()"}), "no  on 4 ranks"),
    "everybody's in rank order": (
        """
def same_bits_sum(x):
    rows = torch.empty(world_size * x.numel(), dtype=x.dtype)
    dist.all_gather_single(rows, x)
    return rows.view(world_size, -1).sum(0)
""",
        "uses the built-in all_gather_single",
    ),
}
