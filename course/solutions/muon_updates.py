"""The pieces of the reduce_scatter are whole matrices, so each rank can work on one without asking any other.

Two mistakes: to cut every matrix in p shards, whose rows are then perpendicular only within a shard; and to run
Newton-Schulz before the sum, which is not linear.
Another way: a reduce to the matrix's owner and a broadcast of its result, for each matrix.
"""

import torch
import torch.distributed as dist


def muon_updates(x, newton_schulz):
    """Newton-Schulz of the summed gradients x, p matrices; rank r does matrix r."""
    mine = torch.empty_like(x[0])
    dist.reduce_scatter_single(mine.view(-1), x.flatten())
    update = newton_schulz(mine)
    whole = torch.empty_like(x)
    dist.all_gather_single(whole.view(-1), update.flatten())
    return whole
