"""Rank r begins with p - r forward passes. From then on each backward pass frees the memory of the next forward pass.

Two mistakes: all m forward passes first, which is GPipe and keeps m micro-batches in memory; and to begin with r + 1 of
them: rank 0 waits longest for its first gradient, so rank 0 begins with most.
Another way: a rule for each turn. Go forward while fewer than p - r micro-batches are in memory and some are left;
else go backward.
"""

import torch.distributed as dist


def one_f_one_b(m):
    """Return this rank's order: i is the forward pass of micro-batch i, -i its backward pass."""
    first = min(m, dist.get_world_size() - dist.get_rank())
    order = list(range(1, first + 1))
    for i in range(1, m - first + 1):
        order += [-i, first + i]
    return order + [-i for i in range(m - first + 1, m + 1)]
