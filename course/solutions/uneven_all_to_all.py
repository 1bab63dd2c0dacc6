"""A first exchange, of one number for each rank, says how much will come in the second.

Two mistakes: passing the two lists of lengths the wrong way round; and an output as long as x, though more or
less may come.
Another way: all_gather everyone's counts and read your column. It works, and sends p times as many counts.
"""

import torch
import torch.distributed as dist


def uneven_all_to_all(x, counts):
    """Return what everyone has for this rank, in the order of the ranks; counts[d] numbers of x are for rank d."""
    outgoing = torch.tensor(counts)
    incoming = torch.empty_like(outgoing)
    dist.all_to_all_single(incoming, outgoing)
    result = torch.empty(int(incoming.sum()), dtype=x.dtype)
    dist.all_to_all_single(result, x, incoming.tolist(), counts)
    return result
