"""Attempts at grad_norm."""

RIGHT = {
    "norms squared": """
def grad_norm(cut, copies, group):
    mine = sum(grad.norm() ** 2 for grad in cut)
    dist.all_reduce(mine, group=group)
    for grad in copies:
        mine = mine + grad.norm() ** 2
    return mine ** 0.5
""",
    "each rank brings its share of the copies": """
def grad_norm(cut, copies, group):
    total = sum((g * g).sum() for g in cut) + sum((g * g).sum() for g in copies) / dist.get_world_size(group)
    dist.all_reduce(total, group=group)
    return torch.sqrt(total)
""",
    "only the first brings the copies": """
def grad_norm(cut, copies, group):
    held = cut + copies if dist.get_rank(group) == 0 else cut
    total = torch.cat([g.flatten() for g in held]).double().square().sum().view(1)
    dist.all_reduce(total, op=dist.ReduceOp.SUM, group=group)
    return total.sqrt()
""",
}

BODY = """
def grad_norm(cut, copies, group):
    number = {number}
    {reduce}
    return {norm}
"""
CUT = "sum(grad.square().sum() for grad in cut)"
COPIES = "sum(grad.square().sum() for grad in copies)"
GOOD = {"number": CUT, "reduce": "dist.all_reduce(number, group=group)", "norm": f"(number + {COPIES}).sqrt()"}

WRONG = {
    "counts the copies of every rank": (
        BODY.format(**GOOD | {"number": f"{CUT} + {COPIES}", "norm": "number.sqrt()"}),
        "the copies went into the sum over the group, once from each rank",
    ),
    "only its own pieces": (BODY.format(**GOOD | {"reduce": "pass"}), "so rank 1's numbers are not in it"),
    "all ranks instead of the group": (
        BODY.format(**GOOD | {"reduce": "dist.all_reduce(number)"}),
        "the sum went over all ranks, and so over other replicas",
    ),
    "the sum of the norms": (
        BODY.format(
            **GOOD | {"number": "sum(g.norm() for g in cut)", "norm": "number + sum(g.norm() for g in copies)"}
        ),
        "norms were added up, and norms do not add up: add up squares, all_reduce them",
    ),
    "no root": (BODY.format(**GOOD | {"norm": f"number + {COPIES}"}), "that is the sum of the squares"),
    "forgets the copies": (BODY.format(**GOOD | {"norm": "number.sqrt()"}), "the copies are missing"),
    "one call for each weight": (
        """
def grad_norm(cut, copies, group):
    total = 0
    for grad in cut:
        squares = grad.square().sum()
        dist.all_reduce(squares, group=group)
        total = total + squares
    return (total + sum(grad.square().sum() for grad in copies)).sqrt()
""",
        "2 calls",
    ),
    "all the pieces": (
        """
def grad_norm(cut, copies, group):
    squares = torch.cat([grad.flatten() for grad in cut]) ** 2
    dist.all_reduce(squares, group=group)
    return (squares.sum() + sum(grad.square().sum() for grad in copies)).sqrt()
""",
        "a few numbers per rank are enough, not the data",
    ),
}
