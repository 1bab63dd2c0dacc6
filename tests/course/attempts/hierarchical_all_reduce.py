"""Attempts at hierarchical_all_reduce."""

RIGHT = {
    "with lists": """
def hierarchical_all_reduce(x, mesh):
    inside = mesh["gpu"].get_group()
    chunks = list(x.chunk(dist.get_world_size(inside)))
    mine = chunks[dist.get_rank(inside)].clone()
    dist.reduce_scatter(mine, [chunk.clone() for chunk in chunks], group=inside)
    dist.all_reduce(mine, group=mesh["machine"].get_group())
    dist.all_gather(chunks, mine, group=inside)
""",
    "in place, by the mesh's shape": """
def hierarchical_all_reduce(x, mesh):
    machines, gpus = mesh.shape
    piece = x.view(gpus, -1)[mesh.get_local_rank("gpu")].clone()
    dist.reduce_scatter_single(piece, x.clone(), group=mesh.get_group(1))
    dist.all_reduce(piece, group=mesh.get_group(0))
    whole = torch.empty_like(x)
    dist.all_gather_single(whole, piece, group=mesh.get_group(1))
    x.copy_(whole)
""",
    "halves across, in two calls": """
def hierarchical_all_reduce(x, mesh):
    inside, between = mesh.get_group("gpu"), mesh.get_group("machine")
    piece = x.new_empty(x.numel() // inside.size())
    dist.reduce_scatter_single(piece, x, group=inside)
    works = [dist.all_reduce(part, group=between, async_op=True) for part in piece.tensor_split(2)]
    for work in works:
        work.wait()
    dist.all_gather_single(x, piece, group=inside)
""",
}

BODY = """
def hierarchical_all_reduce(x, mesh):
    inside, between = mesh.get_group("{inside}"), mesh.get_group("{between}")
    piece = torch.empty(x.numel() // dist.get_world_size(inside), dtype=x.dtype)
    {first}
    {second}
    {third}
"""
GOOD = {
    "inside": "gpu",
    "between": "machine",
    "first": "dist.reduce_scatter_single(piece, x, group=inside)",
    "second": "dist.all_reduce(piece, group=between)",
    "third": "dist.all_gather_single(x, piece, group=inside)",
}

WRONG = {
    "never across": (BODY.format(**GOOD | {"second": "pass"}), "ranks 2-3's never came here"),
    "never together again": (BODY.format(**GOOD | {"third": "pass"}), "x is as it was"),
    "the groups the wrong way round": (
        BODY.format(**GOOD | {"inside": "machine", "between": "gpu"}),
        "rank 0 gives 1 N to reduce_scatter_single between the machines (line 4), where 0.5 N are enough",
    ),
    "one big ring": (
        "def hierarchical_all_reduce(x, mesh):\n    dist.all_reduce(x)\n",
        "rank 0 gives 1 N to all_reduce between the machines (line 2), where 0.5 N are enough",
    ),
    "the first GPU speaks for its machine, in pieces": (
        """
def hierarchical_all_reduce(x, mesh):
    inside, between = mesh.get_group("gpu"), mesh.get_group("machine")
    dist.reduce(x, group=inside, group_dst=0)
    if dist.get_rank(inside) == 0:
        for piece in x.chunk(mesh.size(1)):
            dist.all_reduce(piece, group=between)
    dist.broadcast(x, group=inside, group_src=0)
""",
        "rank 0 gives 1 N to its collectives between the machines (line 6), where 0.5 N are enough",
    ),
    "the whole world in the middle": (
        BODY.format(**GOOD | {"second": "dist.all_reduce(piece)"}),
        "no  on 4 ranks",
    ),
    "two GPUs a machine": (
        BODY.format(**GOOD).replace("dist.get_world_size(inside)", "2"),
        "no  on 8 ranks",
    ),
}
