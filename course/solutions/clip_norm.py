"""Squares add up, norms do not. So sum the squares, then take one root.

Two mistakes: adding up the ranks' norms; and clipping by each rank's own norm, after which ranks scale differently.
Another way: torch.nn.utils.clip_grad_norm_ on DTensors does the same.
"""

import torch.distributed as dist


def clip_norm(x, limit):
    """Scale x so that all ranks' x together have at most the norm `limit`."""
    squares = x.square().sum()
    dist.all_reduce(squares)
    norm = squares.sqrt()
    if norm > limit:
        x *= limit / norm
