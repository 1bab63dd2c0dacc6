import torch
import torch.distributed as dist


def distributed_softmax(x):
    """Return this rank's part of the softmax over the numbers of all ranks."""
    largest = x.max()
    dist.all_reduce(largest, dist.ReduceOp.MAX)
    powers = torch.exp(x - largest)
    total = powers.sum()
    dist.all_reduce(total)
    return powers / total
