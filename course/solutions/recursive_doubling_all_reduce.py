"""Both partners send what they have added so far, so afterwards each has the sum of twice as many ranks.

Two mistakes: adding into x while x is still being sent; and send before recv on both sides, which waits forever.
On GPUs: both calls in one batch_isend_irecv.
Another way: halving-doubling: twice the steps, and far fewer bytes for long vectors.
"""

import torch
import torch.distributed as dist


def recursive_doubling_all_reduce(x):
    """Leave the sum of everyone's x in everyone's x; the number of ranks is a power of two."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    arriving = torch.empty_like(x)
    distance = 1
    while distance < world_size:
        partner = rank ^ distance
        receiving = dist.irecv(arriving, partner)  # first, so that both directions run at once
        dist.send(x, partner)
        receiving.wait()
        x += arriving
        distance *= 2
