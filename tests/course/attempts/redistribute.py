"""Attempts at redistribute."""

BOOK = """
def redistribute(x, before, after):
    if before == "partial" and after == "shard":
        {partial_shard}
    if before == "shard" and after == "replicate":
        {shard_replicate}
    if before == "replicate" and after == "shard":
        {replicate_shard}
    if before == "partial" and after == "replicate":
        {partial_replicate}
"""
PARTS = {
    "partial_shard": "mine = x.new_empty(len(x) // world_size, 2); dist.reduce_scatter_single(mine, x); return mine",
    "shard_replicate": "whole = x.new_empty(len(x) * world_size, 2); dist.all_gather_single(whole, x); return whole",
    "replicate_shard": "return x.chunk(world_size)[rank]",
    "partial_replicate": 'return redistribute(redistribute(x, "partial", "shard"), "shard", "replicate")',
}


def filled(**other):
    return BOOK.format(**(PARTS | other))


RIGHT = {
    "case by case": filled(),
    "with lists": filled(
        partial_shard="mine = torch.empty_like(x.chunk(world_size)[0]); "
        "dist.reduce_scatter(mine, list(x.chunk(world_size))); return mine",
        shard_replicate="every = [torch.empty_like(x) for _ in range(world_size)]; "
        "dist.all_gather(every, x); return torch.cat(every)",
    ),
    "by index": filled(replicate_shard="n = len(x) // world_size; return x[rank * n : (rank + 1) * n].clone()"),
}

WRONG = {
    "all_gather and a sum for the last": (
        """
def redistribute(x, before, after):
    if before == after: return x
    if before == "replicate": return x.chunk(world_size)[rank]
    if before == "partial" and after == "shard":
        out = x.new_empty(len(x) // world_size, 2)
        dist.reduce_scatter_single(out, x)
        return out
    rows = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(rows, x)
    return torch.cat(rows) if before == "shard" else sum(rows)
""",
        "calls reduce_scatter or reduce_scatter_single 1 time, where 2 are asked: both",
    ),
    "all_gather and a sum": (
        """
def redistribute(x, before, after):
    if before == after: return x
    if before == "replicate": return x.chunk(world_size)[rank]
    rows = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(rows, x)
    if before == "shard": return torch.cat(rows)
    total = sum(rows)
    return total if after == "replicate" else total.chunk(world_size)[rank]
""",
        "never calls reduce_scatter or reduce_scatter_single: both conversions from partial",
    ),
    "its part of its own summand": (filled(partial_shard=PARTS["replicate_shard"]), "that is this rank's own summand"),
    "the part of the rank beside it": (
        filled(replicate_shard="return x.chunk(world_size)[rank - 1]"),
        "that is another rank's part",
    ),
    "shards in the wrong order": (
        filled(shard_replicate=PARTS["shard_replicate"].replace("return whole", "return whole.flip(0)")),
        "the right rows in another order; rank 0's come first",
    ),
    "scattered although everybody has it": (
        filled(replicate_shard=PARTS["partial_shard"].replace("return mine", "return mine // world_size")),
        "5 ",
    ),
}
