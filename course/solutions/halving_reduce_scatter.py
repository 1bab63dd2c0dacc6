"""In each round a rank gives away the half of its chunks in which the partner's number lies.

Two mistakes: the nearest partner first, after which chunks end at the wrong ranks; and keeping the partner's half.
Another way: pairwise_reduce_scatter: p - 1 steps, for any p.
"""

import torch
import torch.distributed as dist


def halving_reduce_scatter(x):
    """Leave the sum of everyone's chunk r in rank r's chunk r of x; the number of ranks is a power of two."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    chunks = x.view(world_size, -1)
    distance = world_size // 2
    while distance:
        partner = rank ^ distance
        mine, theirs = rank // distance * distance, partner // distance * distance
        arriving = torch.empty_like(chunks[:distance])
        sending = dist.isend(chunks[theirs : theirs + distance], partner)
        dist.recv(arriving, partner)
        sending.wait()
        chunks[mine : mine + distance] += arriving
        distance //= 2
