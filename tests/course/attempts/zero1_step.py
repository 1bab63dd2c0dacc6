"""Attempts at zero1_step."""

RIGHT = {
    "with lists": """
def zero1_step(x, w, m):
    mine = torch.empty_like(m)
    dist.reduce_scatter(mine, list(x.chunk(world_size)))
    m.copy_(0.9 * m + mine / world_size)
    pieces = [torch.empty_like(m) for _ in range(world_size)]
    dist.all_gather(pieces, w.chunk(world_size)[rank] - 0.1 * m)
    return torch.cat(pieces)
""",
    "into w": """
def zero1_step(x, w, m):
    g = x.new_empty(x.numel() // world_size)
    dist.reduce_scatter_single(g, x / world_size)
    m *= 0.9
    m += g
    piece = w.view(world_size, -1)[rank].clone()
    piece -= 0.1 * m
    dist.all_gather_single(w, piece)
    return w
""",
    "the change is gathered": """
def zero1_step(x, w, m):
    g = torch.zeros_like(m)
    work = dist.reduce_scatter_single(g, x, async_op=True)
    work.wait()
    m[:] = 0.9 * m + g / world_size
    change = torch.empty_like(w)
    dist.all_gather_single(change, m)
    return w - 0.1 * change
""",
}

BODY = """
def zero1_step(x, w, m):
    g = torch.empty_like(m)
    {first}
    {average}
    {momentum}
    piece = {piece}
    out = torch.empty_like(w)
    {last}
    return {returned}
"""
GOOD = {
    "first": "dist.reduce_scatter_single(g, x)",
    "average": "g /= world_size",
    "momentum": "m.mul_(0.9).add_(g)",
    "piece": "w.chunk(world_size)[rank] - 0.1 * m",
    "last": "dist.all_gather_single(out, piece)",
    "returned": "out",
}

WRONG = {
    "the sum instead of the average": (BODY.format(**GOOD | {"average": "pass"}), "not averaged; divide"),
    "its own gradient": (
        BODY.format(**GOOD | {"first": "g.copy_(x.chunk(world_size)[rank] * world_size)"}),
        "rank 0: the answer is ",
    ),
    "only its piece is new": (
        BODY.format(**GOOD | {"last": "out.copy_(w); out.chunk(world_size)[rank].copy_(piece)"}),
        "rank 0: the answer (from element ",
    ),
    "the momentum is forgotten": (
        BODY.format(**GOOD | {"momentum": "m = 0.9 * m + g"}),
        "the caller's m is as it was",
    ),
    "no momentum": (BODY.format(**GOOD | {"momentum": "m.copy_(g)"}), "no step has any of the momentum before it"),
    "all of the old momentum": (BODY.format(**GOOD | {"momentum": "m.add_(g)"}), "the old momentum was added whole"),
    "the step is added": (
        BODY.format(**GOOD | {"piece": "w.chunk(world_size)[rank] + 0.1 * m"}),
        "the step was added to w; subtract it",
    ),
    "all-reduces": (
        BODY.format(**GOOD | {"first": "total = x.clone(); dist.all_reduce(total); g = total.chunk(world_size)[rank]"}),
        "it uses the built-in all_reduce; use only ",
    ),
    "the momentum travels, too": (
        BODY.format(**GOOD | {"returned": "out if dist.all_gather_single(torch.empty_like(w), m) is None else out"}),
        "right result, but with 6 calls of built-ins where 4 will do",
    ),
    "spoils the gradient": (
        BODY.format(**GOOD | {"first": "x /= world_size; dist.reduce_scatter_single(g, x)", "average": "pass"}),
        "rank 0: the answer is ",
    ),
    "the output as long as the input": (
        BODY.format(**GOOD | {"first": "g = torch.empty_like(x); dist.reduce_scatter_single(g, x)"}),
        "no  on 4 ranks",
    ),
    "gathers all gradients": (
        BODY.format(
            **GOOD
            | {
                "first": "every = [torch.empty_like(x) for _ in range(world_size)]; dist.all_gather(every, x); "
                "g = sum(every).chunk(world_size)[rank]"
            }
        ),
        "right result, but rank 0 never calls reduce_scatter or reduce_scatter_single: all_gather plus a local sum",
    ),
}
