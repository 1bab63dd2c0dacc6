"""In each round half of the ranks still at work pass on their sum and are done.

Two mistakes: receiving from a rank that does not exist when p is no power of two; and going on after having sent.
Another way: the distance from the largest to 1. Other ranks meet first, with as many steps and messages.
"""

import torch
import torch.distributed as dist


def tree_reduce(x):
    """Leave the sum of everyone's x in rank 0's x; the other ranks are left with parts of it."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    arriving = torch.empty_like(x)
    distance = 1
    while distance < world_size:
        if rank % (2 * distance) == distance:  # odd multiples of the distance send and are done
            dist.send(x, rank - distance)
            return
        if rank + distance < world_size:
            dist.recv(arriving, rank + distance)
            x += arriving
        distance *= 2
