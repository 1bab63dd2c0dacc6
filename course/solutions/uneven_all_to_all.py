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
