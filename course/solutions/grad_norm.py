import torch
import torch.distributed as dist


def grad_norm(cut, copies, group):
    """The norm of the whole model's gradient: pieces of all ranks of the group, and each copy once."""
    squares = torch.stack([grad.square().sum() for grad in cut]).sum()
    dist.all_reduce(squares, group=group)
    return (squares + sum(grad.square().sum() for grad in copies)).sqrt()
