"""The machines' numbers come by an all_gather; a stable sort of the ranks by them keeps rank order inside a machine.

Two mistakes: sort in place of argsort, which returns the machines' numbers and not the ranks; and argsort without
stable=True, which may shuffle the ranks of one machine.
Another way: torch.tensor(sorted(range(world_size), key=machines.tolist().__getitem__)). Python's sort is stable.
"""

import torch
import torch.distributed as dist


def neighbours_first(x):
    """All ranks, those of a machine side by side; x holds the number of this rank's machine."""
    machines = torch.empty(dist.get_world_size(), dtype=x.dtype)
    dist.all_gather_single(machines, x)
    return machines.argsort(stable=True)
