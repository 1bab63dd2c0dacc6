"""Rank r has the momentum of chunk r only, so it needs the summed gradient of chunk r only: a reduce_scatter.

Two mistakes: `m = 0.9 * m + g`, which makes a new tensor, so that the next step begins with the old momentum; and the
sum of the gradients in place of their mean.
Another way: gather m in place of the new weights; then each rank subtracts 0.1 times all of it from w.
"""

import torch
import torch.distributed as dist


def zero1_step(x, w, m):
    """Return the weights after a step of SGD with momentum; m is the momentum of this rank's chunk."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    g = torch.empty_like(m)
    dist.reduce_scatter_single(g, x)
    m.mul_(0.9).add_(g / world_size)
    out = torch.empty_like(w)
    dist.all_gather_single(out, w.chunk(world_size)[rank] - 0.1 * m)
    return out
