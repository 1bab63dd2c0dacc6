"""A call has a fixed cost, so many small tensors are copied into one, summed in one call, and copied back.

Two mistakes: to forget the last bucket, which is seldom full and leaves after the loop; and `grad = piece`, which
renames a tensor and leaves the gradient as it was. `grad.copy_(piece)` writes into it.
Another way: torch.nn.utils has parameters_to_vector and vector_to_parameters, which do the cat and the split.
"""

import torch
import torch.distributed as dist


def bucketed_average(grads, cap, group=None, all_reduce=dist.all_reduce):
    """Overwrite each gradient with its mean over all ranks: one all_reduce for each bucket, the last first."""

    def average(held):
        bucket = torch.cat([grad.flatten() for grad in held])
        all_reduce(bucket, group=group)
        bucket /= dist.get_world_size(group)
        for grad, piece in zip(held, bucket.split([grad.numel() for grad in held]), strict=True):
            grad.copy_(piece.view_as(grad))

    held = []
    for grad in reversed(grads):
        held.append(grad)
        if sum(grad.numel() for grad in held) >= cap:
            average(held)
            held = []
    if held:  # the last one is seldom full
        average(held)
