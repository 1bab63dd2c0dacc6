"""The step of every trainer: gradients leave while backward() runs, and the norm counts each weight once.

Two mistakes: hooks that are not removed, so that the next step sends each gradient twice; and the norm of one stage,
with which the stages clip differently.
Another way: fill buckets in the hook, as in `overlapped_average`.
"""

import torch
import torch.distributed as dist

from course.gpt import is_cut
from course.solutions.f_and_g import F, G
from course.solutions.grad_norm import grad_norm


def train_step(x, w, loss_of, mesh):
    """One step of a model that is cut on the mesh; returns the loss of the whole batch."""
    data, pipe, tensor = (mesh.get_group(name) for name in ("data", "pipe", "tensor"))
    replicas, in_flight = dist.get_world_size(data), []

    def average(tensor):
        in_flight.append(dist.all_reduce(tensor, group=data, async_op=True))

    hooks = [p.register_post_accumulate_grad_hook(lambda p: average(p.grad)) for p in w.values()]
    mine = x.chunk(replicas)[mesh.get_local_rank("data")]
    loss = loss_of(w, mine, lambda y: F.apply(y, tensor), lambda y: G.apply(y, tensor))
    loss.backward()
    loss = loss.detach()
    average(loss)
    for work in in_flight:
        work.wait()
    for hook in hooks:
        hook.remove()

    for p in w.values():
        p.grad /= replicas
    cut = [p.grad for key, p in w.items() if is_cut(key)]
    copies = [p.grad for key, p in w.items() if not is_cut(key)]
    both = torch.tensor([float(grad_norm(cut, copies, tensor)) ** 2, float(loss) / replicas])
    dist.all_reduce(both, group=pipe)  # over the stages; all but the last have the loss 0
    squares, loss = both
    scale = min(1.0, 1.0 / float(squares.sqrt()))
    with torch.no_grad():
        for p in w.values():
            p -= 0.5 * scale * p.grad
            p.grad = None
    return loss
