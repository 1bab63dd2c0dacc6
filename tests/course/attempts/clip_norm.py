"""Attempts at clip_norm."""

RIGHT = {
    "clamped factor": """
def clip_norm(x, limit):
    total = torch.dot(x, x)
    dist.all_reduce(total)
    x.mul_((limit / (total.sqrt() + 1e-6)).clamp(max=1.0))
""",
    "from the norm": """
def clip_norm(x, limit):
    norm = x.norm() ** 2
    dist.all_reduce(norm)
    norm = norm.sqrt().item()
    if norm > limit:
        x[...] = x / norm * limit
""",
    "in double": """
def clip_norm(x, limit):
    squares = (x.double() ** 2).sum().view(1)
    dist.all_reduce(squares, op=dist.ReduceOp.SUM)
    factor = min(1.0, limit / float(squares) ** 0.5)
    x *= factor
""",
}

BODY = """
def clip_norm(x, limit):
    number = {number}
    {reduce}
    norm = {norm}
    if {condition}:
        {scale}
"""
GOOD = {
    "number": "x.square().sum()",
    "reduce": "dist.all_reduce(number)",
    "norm": "number.sqrt()",
    "condition": "norm > limit",
    "scale": "x *= limit / norm",
}

WRONG = {
    "its own norm beside an idle call": (
        """
def clip_norm(x, limit):
    n = x.square().sum(); dist.all_reduce(n.clone())
    x *= min(1.0, float(limit / n.sqrt()))
""",
        "scaled by this rank's norm alone",
    ),
    "the square against the limit": (
        BODY.format(**GOOD | {"condition": "number > limit"}),
        "scaled, though the norm is below the limit",
    ),
    "a limit of its own": (
        BODY.format(**GOOD | {"condition": "norm > 50", "scale": "x *= 50 / norm"}),
        "no  on 4 ranks",
    ),
    "clips whenever its own is too long": (
        BODY.format(**GOOD | {"condition": "x.norm() > limit"}),
        "where the norm of all ranks' x together is above the limit, as it is here: if norm > limit",
    ),
    "its own norm": (
        BODY.format(**GOOD | {"reduce": "pass"}),
        "no rank has sent anything, so ranks 1-3's numbers are not in it",
    ),
    "the sum of the norms": (
        BODY.format(**GOOD | {"number": "x.norm()", "norm": "number"}),
        "scaled by the sum of the ranks' norms",
    ),
    "the largest norm": (
        """
def clip_norm(x, limit):
    norm = x.norm()
    dist.all_reduce(norm, op=dist.ReduceOp.MAX)
    if norm > limit:
        x *= limit / norm
""",
        "scaled by the largest of the ranks' norms",
    ),
    "the sum of the absolute values": (
        BODY.format(**GOOD | {"number": "x.abs().sum()", "norm": "number"}),
        "scaled by the sum of the absolute values; the norm is the root of the sum of the squares",
    ),
    "the other way round": (
        BODY.format(**GOOD | {"condition": "norm < limit"}),
        "x is as it was; the answer must be in x itself, scaled on every rank where the norm of all ranks' x together",
    ),
    "no root": (BODY.format(**GOOD | {"norm": "number"}), "divided by the sum of the squares; the norm is its root"),
    "upside down": (
        BODY.format(**GOOD | {"scale": "x *= norm / limit"}),
        "multiplied by norm / limit, which makes a long x longer",
    ),
    "also makes short ones longer": (BODY.format(**GOOD | {"condition": "True"}), "no  on 2 ranks"),
    "not in place": (
        BODY.format(**GOOD | {"scale": "x = x * limit / norm"}),
        "x is as it was; the answer must be in x itself, scaled on every rank where the norm",
    ),
    "each number for itself": ("def clip_norm(x, limit):\n    x.clamp_(-limit, limit)\n", "no  on 4 ranks"),
    "every square": (
        """
def clip_norm(x, limit):
    squares = x.square()
    dist.all_reduce(squares)
    norm = squares.sum().sqrt()
    if norm > limit:
        x *= limit / norm
""",
        "a few numbers per rank are enough, not the data",
    ),
}
