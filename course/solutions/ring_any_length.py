"""tensor_split makes p chunks of any length, and the buffer is as long as the chunk that comes.

Two mistakes: chunk, which may give fewer than p pieces; and one buffer for all chunks, which is too long for some.
Another way: pad x with zeros to a multiple of p. It is simpler, and copies x twice.
"""

import torch
import torch.distributed as dist


def ring_any_length(x, group=None):
    """Leave the sum of everyone's x in everyone's x, whatever its length; with a group, of those ranks."""
    rank, world_size = dist.get_rank(group), dist.get_world_size(group)
    chunks = list(x.tensor_split(world_size))  # views, of lengths that differ by at most one
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    for step in range(world_size - 1):  # reduce-scatter: what arrives is added
        mine = chunks[(rank - 2 - step) % world_size]
        arriving = torch.empty_like(mine)
        sending = dist.isend(chunks[(rank - 1 - step) % world_size], group=group, group_dst=right)
        dist.recv(arriving, group=group, group_src=left)
        sending.wait()
        mine += arriving
    for step in range(world_size - 1):  # all-gather: what arrives is finished
        sending = dist.isend(chunks[(rank - step) % world_size], group=group, group_dst=right)
        dist.recv(chunks[(rank - 1 - step) % world_size], group=group, group_src=left)
        sending.wait()
