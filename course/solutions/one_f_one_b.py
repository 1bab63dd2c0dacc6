import torch.distributed as dist


def one_f_one_b(m):
    """Return this rank's order: i is the forward pass of micro-batch i, -i its backward pass."""
    first = min(m, dist.get_world_size() - dist.get_rank())
    order = list(range(1, first + 1))
    for i in range(1, m - first + 1):
        order += [-i, first + i]
    return order + [-i for i in range(m - first + 1, m + 1)]
