"""The ranks before me have `base` numbers each, and the first `left_over` of them have an extra one.

Two mistakes: adding left_over where min(rank, left_over) is needed, which leaves a gap; and giving the whole rest to
the last rank, which then works longest.
Another way: x.tensor_split(world_size)[rank].
"""

import torch.distributed as dist


def my_share(x):
    """Return this rank's share of x: in rank order, lengths differ by at most 1, longer shares first."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    base, left_over = divmod(len(x), world_size)
    start = rank * base + min(rank, left_over)  # of the ranks before me, the first left_over have an extra number
    return x[start : start + base + (rank < left_over)]
