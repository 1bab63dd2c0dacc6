"""The hooks fill a bucket in the order in which gradients are ready; a full one leaves while the rest is computed.

Two mistakes: to forget the last bucket, which is seldom full and leaves in finish(); and to wait in the hook, which
hides nothing.
Another way: one bucket per layer, sent by a hook on the last parameter of the layer.
"""

import torch
import torch.distributed as dist


def overlapped_average(model, cap):
    """Have buckets of gradients summed as soon as they hold cap numbers; the function returned waits, and divides."""
    held, in_flight = [], []

    def leave():
        bucket = torch.cat([p.grad.flatten() for p in held])
        in_flight.append((list(held), bucket, dist.all_reduce(bucket, async_op=True)))
        held.clear()

    def ready(p):
        held.append(p)
        if sum(p.numel() for p in held) >= cap:
            leave()

    def finish():
        if held:  # the last one is seldom full
            leave()
        for params, bucket, work in in_flight:
            work.wait()
            bucket /= dist.get_world_size()
            for p, piece in zip(params, bucket.split([p.numel() for p in params]), strict=True):
                p.grad.copy_(piece.view_as(p))
        in_flight.clear()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(ready)
    return finish
