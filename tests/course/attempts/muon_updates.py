"""Attempts at muon_updates."""

BODY = """
def muon_updates(x, newton_schulz):
    mine, whole = torch.empty(x[0].numel(), dtype=x.dtype), torch.empty(x.numel(), dtype=x.dtype)
    {first}
    update = {update}
    {last}
    return {returned}
"""
GOOD = {
    "first": "dist.reduce_scatter_single(mine, x.flatten())",
    "update": "newton_schulz(mine.view_as(x[0]))",
    "last": "dist.all_gather_single(whole, update.flatten())",
    "returned": "whole.view_as(x)",
}

RIGHT = {
    "with lists": """
def muon_updates(x, newton_schulz):
    mine = torch.empty_like(x[0])
    dist.reduce_scatter(mine, [matrix.clone() for matrix in x])
    updates = [torch.empty_like(mine) for _ in range(world_size)]
    dist.all_gather(updates, newton_schulz(mine))
    return torch.stack(updates)
""",
    "the average": BODY.format(**GOOD | {"update": "newton_schulz(mine.view(6, 6) / world_size)"}),
    "in rows": """
def muon_updates(x, newton_schulz):
    rows = x.reshape(-1, x.shape[-1]).contiguous()
    mine = rows.new_empty(len(rows) // world_size, x.shape[-1])
    dist.reduce_scatter_single(mine, rows)
    out = torch.empty_like(rows)
    dist.all_gather_single(out, newton_schulz(mine).contiguous())
    return out.view(x.shape)
""",
}

WRONG = {
    "all of them on each rank": (
        """
def muon_updates(x, newton_schulz):
    mine, total = torch.empty_like(x[0]), torch.empty_like(x)
    dist.reduce_scatter_single(mine.view(-1), x.flatten())
    dist.all_gather_single(total.view(-1), mine.flatten())
    return torch.stack([newton_schulz(g) for g in total])
""",
        "newton_schulz was called 4 times: each rank does one matrix",
    ),
    "shards of every matrix": (
        """
def muon_updates(x, newton_schulz):
    shards = x.view(len(x), world_size, -1).transpose(0, 1).contiguous()
    mine = torch.empty_like(shards[0])
    dist.reduce_scatter_single(mine.view(-1), shards.flatten())
    return newton_schulz(mine)
""",
        "newton_schulz takes one whole matrix, here of shape [6, 6]",
    ),
    "its own gradient": (BODY.format(**GOOD | {"first": "mine.copy_(x[rank].flatten())"}), "no  on 4 ranks"),
    "no Newton-Schulz": (BODY.format(**GOOD | {"update": "mine"}), "no  on 4 ranks"),
    "before the sum": (
        BODY.format(
            **GOOD
            | {
                "first": "mine.copy_(newton_schulz(x[rank]).flatten()); "
                "dist.reduce_scatter_single(mine, torch.cat([mine] * world_size))",
                "update": "mine",
            }
        ),
        "no  on 4 ranks",
    ),
    "flat": (BODY.format(**GOOD | {"returned": "whole"}), "has shape [144] and should have [4, 6, 6]"),
    "all_reduce first": (
        BODY.format(**GOOD | {"first": "total = x.clone(); dist.all_reduce(total); mine.copy_(total[rank].flatten())"}),
        "it uses the built-in all_reduce",
    ),
}
