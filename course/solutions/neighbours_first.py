import torch
import torch.distributed as dist


def neighbours_first(x):
    """All ranks, those of a machine side by side; x holds the number of this rank's machine."""
    machines = torch.empty(dist.get_world_size(), dtype=x.dtype)
    dist.all_gather_single(machines, x)
    return machines.argsort(stable=True)
