"""Each rank waits for its left-hand neighbour, then serves its right-hand one.

Two mistakes: sending before receiving, which passes on the rank's own x; and letting the last rank send, to a rank
that does not exist.
Another way: rank 0 sends to every other rank itself. That is as many messages, and all of them leave rank 0.
"""

import torch.distributed as dist


def pass_it_on(x):
    """Bring rank 0's x to every rank, from neighbour to neighbour."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if rank > 0:
        dist.recv(x, rank - 1)
    if rank < world_size - 1:
        dist.send(x, rank + 1)
