import torch
import torch.distributed as dist

from course.gpt import is_cut
from course.solutions.f_and_g import F, G
from course.solutions.grad_norm import grad_norm


def train_step(x, w, loss_of, mesh):
    """One step of a model that is cut on the mesh; returns the loss of the whole batch."""
    data, tensor = mesh.get_group("data"), mesh.get_group("tensor")
    copies = dist.get_world_size(data)
    mine = x.chunk(copies)[mesh.get_local_rank("data")]
    loss = loss_of(w, mine, lambda y: F.apply(y, tensor), lambda y: G.apply(y, tensor))
    loss.backward()

    grads = [p.grad for p in w.values()]
    bucket = torch.cat([*(grad.flatten() for grad in grads), loss.detach().view(1)])
    dist.all_reduce(bucket, group=data)  # one bucket: gradients, and the loss behind them
    *means, loss = (bucket / copies).split([*map(torch.numel, grads), 1])
    for grad, mean in zip(grads, means, strict=True):
        grad.copy_(mean.view_as(grad))

    cut = [p.grad for key, p in w.items() if is_cut(key)]
    kept = [p.grad for key, p in w.items() if not is_cut(key)]
    scale = min(1.0, 1.0 / float(grad_norm(cut, kept, tensor)))
    with torch.no_grad():
        for p in w.values():
            p -= 0.5 * scale * p.grad
            p.grad = None
    return loss
