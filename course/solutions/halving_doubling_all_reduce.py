"""Partners share the work: each keeps one half and gives the other.

Two mistakes: the farthest partner first, which sends the long messages far, and forgetting on the way back which half
was given.
Another way: a recursive function on x[keep].
"""

import torch
import torch.distributed as dist


def halving_doubling_all_reduce(x):
    """Leave the sum of everyone's x in x, nearest partner first; the number of ranks is a power of two."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    rounds = []
    mine, distance = x, 1
    while distance < world_size:
        partner = rank ^ distance
        first, second = mine.chunk(2)
        keep, give = (second, first) if rank & distance else (first, second)
        arriving = torch.empty_like(keep)
        receiving = dist.irecv(arriving, partner)  # first, so that both directions run at once
        dist.send(give, partner)
        receiving.wait()
        keep += arriving
        rounds.append((partner, keep, give))
        mine = keep
        distance *= 2
    for partner, kept, given in reversed(rounds):
        receiving = dist.irecv(given, partner)
        dist.send(kept, partner)
        receiving.wait()
