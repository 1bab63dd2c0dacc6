"""Attempts at rail_broadcast."""

BODY = """
def rail_broadcast(x, mesh):
    inside, between = mesh.get_group("gpu"), mesh.get_group("machine")
    pieces = x.chunk(dist.get_world_size(inside))
    piece = torch.empty_like(pieces[0])
    {first}
    {second}
    {third}
"""
GOOD = {
    "first": "if rank < len(pieces): dist.scatter(piece, list(pieces) if rank == 0 else None, src=0, group=inside)",
    "second": "dist.broadcast(piece, group=between, group_src=0)",
    "third": "dist.all_gather_single(x, piece, group=inside)",
}

RIGHT = {
    "global ranks": BODY.format(**GOOD | {"second": "dist.broadcast(piece, rank % len(pieces), group=between)"}),
    "a whole broadcast inside, then a piece across": BODY.format(
        **GOOD
        | {
            "first": "if rank < len(pieces): dist.broadcast(x, 0, group=inside)\n"
            '    piece.copy_(pieces[mesh.get_local_rank("gpu")])',
            "third": "dist.all_gather(list(pieces), piece, group=inside)",
        }
    ),
    "piece by piece": """
def rail_broadcast(x, mesh):
    inside, between = mesh.get_group("gpu"), mesh.get_group("machine")
    gpus = dist.get_world_size(inside)
    pieces = list(x.chunk(gpus))
    if rank < gpus:
        for piece in pieces:
            dist.broadcast(piece, 0, group=inside)
    mine = pieces[dist.get_rank(inside)]
    dist.broadcast(mine, group=between, group_src=0)
    for gpu, piece in enumerate(pieces):
        dist.broadcast(piece, group=inside, group_src=gpu)
""",
}

WRONG = {
    "one broadcast": (
        "def rail_broadcast(x, mesh):\n    dist.broadcast(x, 0)\n",
        "rank 0 gives 1 N to broadcast between the machines (line 2), where 0.5 N are enough",
    ),
    "the first GPU crosses with all of it": (
        """
def rail_broadcast(x, mesh):
    inside, between = mesh.get_group("gpu"), mesh.get_group("machine")
    if mesh.get_local_rank("gpu") == 0:
        dist.broadcast(x, group=between, group_src=0)
    dist.broadcast(x, group=inside, group_src=0)
""",
        "rank 0 gives 1 N to broadcast between the machines (line 4), where 0.5 N are enough",
    ),
    "never across": (BODY.format(**GOOD | {"second": "pass"}), "on 4 ranks"),
    "never together again": (BODY.format(**GOOD | {"third": "pass"}), "x is as it was"),
    "a scatter on every machine, and nothing between": (
        BODY.format(
            **GOOD
            | {
                "first": "dist.scatter(piece, list(pieces) if dist.get_rank(inside) == 0 else None, group=inside, "
                "group_src=0)",
                "second": "pass",
            }
        ),
        "holds c0 and should hold a0",
    ),
    "the two groups the wrong way round": (
        BODY.format(
            **GOOD
            | {
                "second": "dist.broadcast(piece, group=inside, group_src=0)",
                "third": "dist.all_gather_single(x, piece, group=between)",
            }
        ),
        "no  on 4 ranks",
    ),
    "two GPUs a machine": (
        BODY.format(**GOOD).replace("dist.get_world_size(inside)", "2"),
        "no  on 8 ranks",
    ),
}
