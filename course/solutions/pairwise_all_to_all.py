"""The loop of pairwise_reduce_scatter; what arrives is put in its sender's place and not added.

Two mistakes: putting chunks into the order in which they came; and sending the rank's own chunk to itself, which no
rank can do.
Another way: start all p - 1 sends and receives at once with batch_isend_irecv. That is one step, and more load at a
time.
"""

import torch
import torch.distributed as dist


def pairwise_all_to_all(x):
    """Return chunk r of everyone's x, in the order of the ranks, on rank r."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    outgoing, result = x.chunk(world_size), torch.empty_like(x)
    incoming = result.chunk(world_size)  # views: what arrives in them is in the result
    incoming[rank].copy_(outgoing[rank])
    for k in range(1, world_size):
        to, source = (rank + k) % world_size, (rank - k) % world_size
        sending = dist.isend(outgoing[to], to)
        dist.recv(incoming[source], source)
        sending.wait()
    return result
