"""Twice round the ring: p - 1 steps in which chunks collect, p - 1 in which finished chunks are copied.

Two mistakes: adding in the second half, too; and starting it with the wrong chunk: the right one is the chunk that
this rank has just finished.
Another way: your ring_reduce_scatter, then x.copy_(ring_all_gather(chunk rank of x)).
"""

import torch
import torch.distributed as dist


def ring_all_reduce(x):
    """Leave the sum of everyone's x in everyone's x."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    chunks = list(x.chunk(world_size))  # views: to change a chunk is to change x
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    arriving = torch.empty_like(chunks[0])
    for step in range(world_size - 1):  # reduce-scatter: what arrives is added
        sending = dist.isend(chunks[(rank - 1 - step) % world_size], right)
        dist.recv(arriving, left)
        sending.wait()
        chunks[(rank - 2 - step) % world_size] += arriving
    for step in range(world_size - 1):  # all-gather: what arrives is finished
        sending = dist.isend(chunks[(rank - step) % world_size], right)
        dist.recv(chunks[(rank - 1 - step) % world_size], left)
        sending.wait()
