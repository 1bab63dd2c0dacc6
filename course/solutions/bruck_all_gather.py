"""Row i holds the chunk of rank + i. Each round fetches the next rows, as many as there are already.

Two mistakes: fetching `have` rows in the last round, too, where fewer are missing; and forgetting to roll the rows
into rank order.
Another way: the ring: p - 1 steps, and every chunk is in its place at once.
"""

import torch
import torch.distributed as dist


def bruck_all_gather(x):
    """Return everyone's x one after the other, in the order of the ranks."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    chunks = x.new_empty(world_size, x.numel())  # row i is the chunk of rank + i
    chunks[0] = x
    have = 1
    while have < world_size:
        some = min(have, world_size - have)
        sending = dist.isend(chunks[:some], (rank - have) % world_size)
        dist.recv(chunks[have : have + some], (rank + have) % world_size)
        sending.wait()
        have += some
    return torch.roll(chunks, rank, 0).flatten()
