"""Share the vector out inside the first machine, so that each of its NICs has a chunk to send.

Two mistakes: a scatter on every machine, which sends numbers that are not rank 0's, and a broadcast of the whole
x between the machines, which goes through one NIC.
Another way: a broadcast of x inside machine 0 in place of the scatter; the NICs carry the same, the wires inside more.
"""

import torch
import torch.distributed as dist


def rail_broadcast(x, mesh):
    """Leave rank 0's x in every rank's x; 1 / (GPUs of a machine) of it goes through each NIC."""
    inside, between = mesh.get_group("gpu"), mesh.get_group("machine")
    chunks = x.chunk(dist.get_world_size(inside))
    chunk = torch.empty_like(chunks[0])
    if mesh.get_local_rank("machine") == 0:
        dist.scatter(chunk, list(chunks) if mesh.get_local_rank("gpu") == 0 else None, group=inside, group_src=0)
    dist.broadcast(chunk, group=between, group_src=0)
    dist.all_gather_single(x, chunk, group=inside)
