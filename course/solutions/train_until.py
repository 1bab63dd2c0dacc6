"""All ranks decide by the same number, the mean of the losses, so all leave the loop after the same epoch.

Two mistakes: to decide by the rank's own loss, so that one leaves and the others wait in their next all_reduce forever;
and to compare the sum, not the mean, with the goal, which takes more epochs.
Another way: all_reduce epoch() / world_size, a share of the mean from each rank.
"""

import torch
import torch.distributed as dist


def train_until(epoch, goal):
    """Calls epoch() until the mean of everyone's loss is below goal; how often that was, the same on every rank."""
    epochs = 0
    while True:
        loss = torch.tensor(epoch())
        epochs += 1
        dist.all_reduce(loss)
        if loss / dist.get_world_size() < goal:
            return epochs
