"""Attempts at to_heads."""

SOLVED = """
def to_heads(x):
    pieces = torch.stack(x.chunk(world_size, dim=1))
    out = torch.empty_like(pieces)
    dist.all_to_all_single(out, pieces)
    return out.flatten(0, 1)
"""

RIGHT = {
    "by view and transpose": """
def to_heads(x):
    tokens, heads, numbers = x.shape
    pieces = x.view(tokens, world_size, heads // world_size, numbers).transpose(0, 1).contiguous()
    out = torch.empty_like(pieces)
    dist.all_to_all_single(out, pieces)
    return out.view(world_size * tokens, heads // world_size, numbers)
""",
    "heads first": """
def to_heads(x):
    pieces = x.transpose(0, 1).contiguous()
    out = torch.empty_like(pieces)
    dist.all_to_all_single(out, pieces)
    return torch.cat([piece.transpose(0, 1) for piece in out.chunk(world_size)])
""",
    "along the first dimension": """
def to_heads(x):
    pieces = torch.cat(x.chunk(world_size, dim=1))
    out = torch.empty_like(pieces)
    dist.all_to_all_single(out, pieces)
    return out
""",
}

WRONG = {
    "x as it lies": (
        """
def to_heads(x):
    out = torch.empty_like(x)
    dist.all_to_all_single(out.view(-1), x.flatten())  # torch 2.14 refuses rows that are not a multiple of the ranks
    return out.view(world_size * x.shape[0], x.shape[1] // world_size, x.shape[2])
""",
        "x was sent as it lies in memory, where the first 1/p is the first tokens",
    ),
    "every p-th head": (
        """
def to_heads(x):
    pieces = torch.stack([x[:, r::world_size] for r in range(world_size)])
    out = torch.empty_like(pieces)
    dist.all_to_all_single(out, pieces)
    return out.flatten(0, 1)
""",
        "these are every p-th head, beginning with head number rank",
    ),
    "all heads of some tokens": (SOLVED.replace("out.flatten(0, 1)", "x"), " should "),
    "not put together": (SOLVED.replace("out.flatten(0, 1)", "out"), " should "),
    "tokens and pieces mixed": (
        SOLVED.replace("out.flatten(0, 1)", "out.transpose(0, 1).flatten(0, 1)"),
        "the right numbers, with token 0 of every rank before token 1 of any",
    ),
    "the last rank's tokens first": (
        SOLVED.replace("out.flatten", "out.flip(0).flatten"),
        "the right heads of the right tokens in another order",
    ),
    "the pieces in reversed order": (
        SOLVED.replace("dim=1))", "dim=1)[::-1])"),
        "these are the heads of another rank",
    ),
    "the heads side by side": (
        SOLVED.replace("out.flatten(0, 1)", "torch.cat(list(out), dim=1)"),
        " should ",
    ),
    "its own heads of its own tokens": (
        "def to_heads(x):\n    return torch.cat([x.chunk(world_size, dim=1)[rank]] * world_size)\n",
        " should ",
    ),
}
