"""The softmax needs three things that grow block by block: the largest score, the sum of the powers, and y.

Two mistakes: to add a block without rescaling what is there when the largest score changes; and to let the largest
begin at 0: if all scores are far below 0, all powers are 0, and the end is 0 / 0.
Another way: keep each block's softmax @ V and its logsumexp. At the end a softmax of the logsumexps weighs the blocks.
"""

import torch
import torch.distributed as dist


def ring_attention(x):
    """Attention of my queries x[0] to all ranks' keys and values, which travel round the ring, one block at a time."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    q, block = x[0], x[1:]  # the block: keys and values
    largest = q.new_full((len(q), 1), -torch.inf)
    total, y = torch.zeros_like(largest), torch.zeros_like(q)
    for step in range(world_size):
        if step < world_size - 1:  # the next block travels while this one is used
            coming = torch.empty_like(block)
            send = dist.P2POp(dist.isend, block, (rank + 1) % world_size)
            receive = dist.P2POp(dist.irecv, coming, (rank - 1) % world_size)
            handles = dist.batch_isend_irecv([send, receive])  # one call: on NCCL two might hang
        scores = q @ block[0].T / q.shape[1] ** 0.5
        now = torch.maximum(largest, scores.max(dim=1, keepdim=True).values)
        powers, keep = torch.exp(scores - now), torch.exp(largest - now)
        total = keep * total + powers.sum(dim=1, keepdim=True)
        y = keep * y + powers @ block[1]
        largest = now
        if step < world_size - 1:
            for handle in handles:
                handle.wait()
            block = coming
    return y / total
