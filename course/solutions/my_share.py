import torch.distributed as dist


def my_share(x):
    """Return this rank's share of x: in rank order, lengths differ by at most 1, longer shares first."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    base, left_over = divmod(len(x), world_size)
    start = rank * base + min(rank, left_over)  # the ranks before me have one more each, while there is one left over
    return x[start : start + base + (rank < left_over)]
