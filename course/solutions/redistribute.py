"""Each conversion is one collective or none; partial to replicate goes by way of shard, as a ring all_reduce does.

Two mistakes: to gather all summands and add them up on each rank, which sends p times as much as a reduce_scatter; and
to cut partial into chunks as if it were replicate: a chunk of one summand is not yet a sum.
Another way: DTensor.from_local(x, mesh, [Partial()]).redistribute(placements=[Shard(0)]), and so on for the others.
"""

import torch.distributed as dist


def redistribute(x, before, after):
    """What this rank holds of x once it is placed as `after` says: "partial", "shard" or "replicate"."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if before == "replicate" and after == "shard":
        return x.chunk(world_size)[rank]  # each rank already has all of it
    if before == "partial":
        mine = x.new_empty(len(x) // world_size, *x.shape[1:])
        dist.reduce_scatter_single(mine, x)
        return mine if after == "shard" else redistribute(mine, "shard", "replicate")
    if before == "shard" and after == "replicate":
        whole = x.new_empty(len(x) * world_size, *x.shape[1:])
        dist.all_gather_single(whole, x)
        return whole
    return x
