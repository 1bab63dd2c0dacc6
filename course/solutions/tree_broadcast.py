"""The number of ranks that have x doubles in each round.

Two mistakes: a partner that does not exist when p is no power of two, and a rank that receives twice.
Another way: the longest distance first, as in chapter 7.
"""

import torch.distributed as dist


def tree_broadcast(x):
    """Leave rank 0's x in every rank's x."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    distance = 1
    while distance < world_size:  # ranks below `distance` have it
        if rank < distance and rank + distance < world_size:
            dist.send(x, rank + distance)
        elif distance <= rank < 2 * distance:
            dist.recv(x, rank - distance)
        distance *= 2
