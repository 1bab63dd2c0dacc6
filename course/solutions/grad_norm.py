"""Squares add up over the shards. The copies are the same on all ranks of the group, so they count once, after the sum.

Two mistakes: to put the copies into the sum, too, which counts them once for each rank; and an all_reduce without
group=group, which adds other replicas' shards.
Another way: each rank puts its shards' squares and 1 / p of the copies' into the same all_reduce.
"""

import torch
import torch.distributed as dist


def grad_norm(cut, copies, group):
    """The norm of the whole model's gradient: pieces of all ranks of the group, and each copy once."""
    squares = torch.stack([grad.square().sum() for grad in cut]).sum()
    dist.all_reduce(squares, group=group)
    return (squares + sum(grad.square().sum() for grad in copies)).sqrt()
