import torch
import torch.distributed as dist


def running_sum(x):
    """Leave the sum of the x of ranks 0 to r in rank r's x."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if rank > 0:
        so_far = torch.empty_like(x)
        dist.recv(so_far, rank - 1)
        x += so_far
    if rank < world_size - 1:
        dist.send(x, rank + 1)
