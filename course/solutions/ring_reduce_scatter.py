"""A chunk starts at the rank after its owner and collects a term at every stop, its owner's last.

Two mistakes: sending your own chunk first, after which the finished chunk ends one place off; and adding to the chunk
that was sent instead of the one that came.
Another way: pairwise_reduce_scatter, with the same bytes between partners that are further apart.
"""

import torch
import torch.distributed as dist


def ring_reduce_scatter(x):
    """Leave the sum of everyone's chunk r in rank r's chunk r of x."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    chunks = list(x.chunk(world_size))  # views: to change a chunk is to change x
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    arriving = torch.empty_like(chunks[0])
    for step in range(world_size - 1):
        sending = dist.isend(chunks[(rank - 1 - step) % world_size], right)
        dist.recv(arriving, left)
        sending.wait()
        chunks[(rank - 2 - step) % world_size] += arriving
