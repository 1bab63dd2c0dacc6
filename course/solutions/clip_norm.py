import torch.distributed as dist


def clip_norm(x, limit):
    """Scale x so that all ranks' x together have at most the norm `limit`."""
    squares = x.square().sum()
    dist.all_reduce(squares)
    norm = squares.sqrt()
    if norm > limit:
        x *= limit / norm
