import torch.distributed as dist


def redistribute(x, before, after):
    """What this rank holds of x once it is placed as `after` says: "partial", "shard" or "replicate"."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if before == "replicate" and after == "shard":
        return x.chunk(world_size)[rank]  # everybody has it already
    if before == "partial":
        mine = x.new_empty(len(x) // world_size, *x.shape[1:])
        dist.reduce_scatter_single(mine, x)
        return mine if after == "shard" else redistribute(mine, "shard", "replicate")
    if before == "shard" and after == "replicate":
        whole = x.new_empty(len(x) * world_size, *x.shape[1:])
        dist.all_gather_single(whole, x)
        return whole
    return x
