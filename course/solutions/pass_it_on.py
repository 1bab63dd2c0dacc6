import torch.distributed as dist


def pass_it_on(x):
    """Bring rank 0's x to every rank, from neighbour to neighbour."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    if rank > 0:
        dist.recv(x, rank - 1)
    if rank < world_size - 1:
        dist.send(x, rank + 1)
