"""What runs in place of a solution in a copy of the course that withholds them (course/teach/withhold.py).

Later cells build on exercises. Where a student has not solved one and ours is withheld, the cell runs what is here:
the same result by torch's own collectives or DTensor, not by the algorithm that the exercise asks for. So every cell
runs, and nothing here is a solution.

Left out: exercises that no later cell builds on.
"""

import math

import torch
import torch.distributed as dist


def all_reduced(x, group=None):
    """Leave the sum of everyone's x in x: torch's own all_reduce."""
    dist.all_reduce(x, group=group)


ring_all_reduce = ring_any_length = two_shot_all_reduce = all_reduced
recursive_doubling_all_reduce = halving_doubling_all_reduce = all_reduced


def hierarchical_all_reduce(x, mesh):
    dist.all_reduce(x)


def pass_it_on(x):
    dist.broadcast(x, 0)


tree_broadcast = pass_it_on


def rail_broadcast(x, mesh):
    dist.broadcast(x, 0)


def tree_reduce(x):
    dist.reduce(x if dist.get_rank() == 0 else x.clone(), 0)  # gloo leaves sums of some ranks on the others


def all_reduce_many(tensors):
    for tensor in tensors:
        dist.all_reduce(tensor)


def bucketed_average(grads, cap, group=None, all_reduce=dist.all_reduce):
    """One call for each gradient: there are no buckets."""
    for grad in grads:
        all_reduce(grad.view(-1), group=group)
        grad /= dist.get_world_size(group)


def overlapped_average(model, cap):
    """The function that averages the gradients, after the backward pass: nothing overlaps."""
    return lambda: bucketed_average([p.grad for p in model.parameters()], cap)


def everyones(x):
    """The x of each rank, as a list; they may differ in length."""
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, x.detach())
    return found


def ring_all_gather(x):
    whole = x.new_empty(x.numel() * dist.get_world_size())
    dist.all_gather_single(whole, x)
    return whole


bruck_all_gather = ring_all_gather


def flat_gather(x):
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())] if dist.get_rank() == 0 else None
    dist.gather(x, parts, 0)
    return torch.cat(parts) if parts else None


def shift(x):
    return everyones(x)[dist.get_rank() - 1]


def swap(x):
    return (everyones(x) + [x.clone()])[min(dist.get_rank() ^ 1, dist.get_world_size())]


def running_sum(x):
    x.copy_(sum(everyones(x)[: dist.get_rank() + 1]))


def dissemination_barrier():
    dist.barrier()


def pairwise_all_to_all(x):
    out = torch.empty_like(x)
    dist.all_to_all_single(out, x)
    return out


def uneven_all_to_all(x, counts):
    found: list = [None] * dist.get_world_size()
    dist.all_gather_object(found, x.split(counts))
    return torch.cat([parts[dist.get_rank()] for parts in found])


def my_share(x):
    return x.tensor_split(dist.get_world_size())[dist.get_rank()]


def distributed_mean(x):
    return torch.cat(everyones(x)).mean()


def distributed_argmax(x):
    largest = torch.stack([part.max() for part in everyones(x)])
    return torch.stack([largest.max(), largest.argmax().to(x.dtype)])


def distributed_softmax(x):
    parts = everyones(x)
    whole = torch.cat(parts).softmax(0)
    return whole.split([len(part) for part in parts])[dist.get_rank()].clone()


def same_bits_sum(x):
    """By Python's exact sum of floats, number by number."""
    numbers = torch.stack(everyones(x)).view(-1, x.numel()).T.tolist()
    return x.new_tensor([math.fsum(each) for each in numbers]).view(x.shape)


def clip_norm(x, limit):
    x *= min(1.0, limit / float(torch.cat(everyones(x)).norm()))


def grad_norm(cut, copies, group):
    """By torch's own norm of gradients, to which the pieces are DTensors."""
    from torch.distributed.tensor import DTensor, Replicate, Shard

    mesh = _mesh(group)
    grads = [DTensor.from_local(grad, mesh, [Shard(0)]) for grad in cut]
    grads += [DTensor.from_local(grad, mesh, [Replicate()]) for grad in copies]
    return torch.nn.utils.get_total_norm(grads).full_tensor()


def gathered(x):
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

    whole = DTensor.from_local(x, _mesh(), [Shard(0)]).redistribute(placements=[Replicate()])
    return whole.to_local(grad_placements=[Partial()])


def _mesh(group=None):
    from torch.distributed.device_mesh import DeviceMesh

    return DeviceMesh.from_group(group or dist.group.WORLD, "cpu")


class F:
    """A copy of x for each rank: what DTensor calls Replicate, with a gradient that is Partial."""

    @staticmethod
    def apply(x, group=None):
        from torch.distributed.tensor import DTensor, Partial, Replicate

        copies = DTensor.from_local(x, _mesh(group), [Replicate()], run_check=False)
        return copies.to_local(grad_placements=[Partial()])


class G:
    """The sum of what the ranks have: DTensor's way from Partial to Replicate."""

    @staticmethod
    def apply(x, group=None):
        from torch.distributed.tensor import DTensor, Partial, Replicate

        return (
            DTensor.from_local(x, _mesh(group), [Partial()], run_check=False)
            .redistribute(placements=[Replicate()])
            .to_local()
        )


def moe(x, choice, expert):
    """Each expert is sent as many rows as there are tokens, with zeros for those that go elsewhere."""
    choices, size = everyones(choice), dist.get_world_size()
    lengths, mine = [len(each) for each in choices], [len(x)] * size
    sent = torch.cat([x * (choice == to)[:, None] for to in range(size)])
    came = x.new_empty(sum(lengths), x.shape[1])
    dist.all_to_all_single(came, sent, lengths, mine)
    here = torch.cat(choices) == dist.get_rank()
    made, back = torch.zeros_like(came), torch.empty_like(sent)
    made[here] = expert(came[here])
    dist.all_to_all_single(back, made, mine, lengths)
    return torch.stack(back.split(mine))[choice, torch.arange(len(x))]


def exchange(x, goes, comes):
    from torch.distributed._functional_collectives import all_to_all_single_autograd

    return all_to_all_single_autograd(x, comes, goes, dist.group.WORLD)


def to_heads(x):
    return torch.cat(everyones(x)).chunk(dist.get_world_size(), dim=1)[dist.get_rank()].contiguous()


def ring_attention(x):
    """Every rank is given all keys and values at once."""
    _, keys, values = torch.cat(everyones(x), dim=1)
    return torch.nn.functional.scaled_dot_product_attention(x[0], keys, values)


def one_f_one_b(m):
    from collectives import pipeline

    order = pipeline.one_f_one_b(dist.get_world_size(), m).orders[dist.get_rank()]
    return [action.micro if action.kind == "F" else -action.micro for action in order]


def split_backward(r, p, m):
    from collectives import pipeline

    return [f"{action.kind}{action.micro}" for action in pipeline.zero_bubble_h1(p, m).orders[r]]


def ring_sum(mine):
    from jax import lax

    return lax.psum(mine, "rank")


def train_step(x, w, loss_of, mesh):
    """For a pipeline of one stage; each gradient is averaged after the backward pass, so nothing overlaps."""
    from course.gpt import is_cut

    data, tensor = mesh.get_group("data"), mesh.get_group("tensor")
    mine = x.chunk(dist.get_world_size(data))[mesh.get_local_rank("data")]
    loss = loss_of(w, mine, lambda y: F.apply(y, tensor), lambda y: G.apply(y, tensor))
    loss.backward()
    for part in [loss := loss.detach(), *(p.grad for p in w.values())]:
        dist.all_reduce(part, group=data)
        part /= dist.get_world_size(data)
    cut, kept = ([p.grad for key, p in w.items() if is_cut(key) is wanted] for wanted in (True, False))
    scale = min(1.0, 1.0 / float(grad_norm(cut, kept, tensor)))
    with torch.no_grad():
        for p in w.values():
            p -= 0.5 * scale * p.grad
            p.grad = None
    return loss


def bytes_per_step(layers, tokens, width, vocabulary, context, parts):
    return _reference("bytes_per_step")["_trial_counted"](
        torch.tensor([layers, tokens, width, vocabulary, context, parts])
    )


def size_a_run(model, tokens, gpus, tensor, chip):
    return _reference("size_a_run")["_trial_sized"](model, tokens, gpus, tensor, chip)


def _reference(exercise):
    """What the check compares with, where nothing of torch gives it."""
    from course.exercises import EXERCISES

    names = {"torch": torch}
    exec(EXERCISES[exercise].setup.format(), names)
    return names
