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
