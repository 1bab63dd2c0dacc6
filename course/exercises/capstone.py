"""The exercises of chapter 19: the norm of a gradient in pieces and copies, a step's bytes, and the step itself."""

import math
from collections.abc import Callable
from dataclasses import asdict
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from course.exercises.exercise import A_FEW, MESSAGES_ONLY, Exercise, nobody

MESH = """
from torch.distributed.device_mesh import init_device_mesh
_trial_mesh = init_device_mesh("cpu", (2, 2) if {p} == 4 else (1, {p}), mesh_dim_names=("data", "tensor"))
_trial_group = _trial_mesh.get_group("tensor")
"""
PAIRS = """
_trial_copies = (3 * torch.sin(torch.arange(12.0) * (2 + rank // 2 * ({p} == 4)) + 1)).to(torch.{dtype})
def _trial_norm(x):
    squares = x.double().square().sum()
    dist.all_reduce(squares, group=_trial_group)
    return (squares + _trial_copies.double().square().sum()).sqrt().view(1)
def _trial_one(norm):
    return norm.reshape(1) if isinstance(norm, torch.Tensor) and norm.numel() == 1 else norm
"""

SHAPES = """
from course.gpt import new_weights, pieces
def _trial_counted(x):
    layers, tokens, width, vocabulary, context, parts = x.tolist()
    mine = pieces(new_weights(layers, width, vocabulary, context), 0, parts)
    numbers = sum(weight.numel() for weight in mine.values())
    return torch.tensor([4 * (4 * layers * tokens * width + 1), 4 * (numbers + 1)])
"""

SIDES = {2: (2, 1, 1), 3: (1, 1, 3), 4: (2, 1, 2), 8: (2, 2, 2)}
"""The mesh for p ranks: replicas of the model, stages of a replica (one layer each), pieces of a stage."""

HEAD, SEQUENCES, CONTEXT, STEPS = 8, 4, 6, 10
"""Numbers of a head, of which each piece has one; sequences of a batch, tokens of a sequence; steps that are taken."""

TRAINED = f"""
from torch.distributed.device_mesh import init_device_mesh
_trial_mesh = init_device_mesh("cpu", dict({list(SIDES.items())})[{{p}}], mesh_dim_names=("data", "pipe", "tensor"))
"""
GPT = f"""
from torch.nn.functional import cross_entropy, gelu, layer_norm, scaled_dot_product_attention
from course.gpt import new_weights, pieces
_, _trial_stages, _trial_parts = dict({list(SIDES.items())})[{{p}}]
_trial_stage = _trial_mesh.get_local_rank("pipe")
_trial_weights = new_weights(_trial_stages, {HEAD} * _trial_parts, 32, {CONTEXT})
class _TrialOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dst):
        ctx.x, ctx.dst = x, dst
        dist.send(x.contiguous(), dst)
        return x.new_zeros(())
    @staticmethod
    def backward(ctx, gradient):
        gradient = torch.empty_like(ctx.x)
        dist.recv(gradient, ctx.dst)
        return gradient, None
class _TrialFrom(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, src):
        ctx.src = src
        dist.recv(x, src)
        return x.clone()
    @staticmethod
    def backward(ctx, gradient):
        dist.send(gradient.contiguous(), ctx.src)
        return gradient, None
def _trial_layer(w, i, x, f, g):
    y = f(_trial_norm_of(x) * w["norm1", i])
    q, k, v = [(y @ w[name, i]).unflatten(-1, (-1, {HEAD})).transpose(1, 2) for name in "qkv"]
    x = x + g(scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2) @ w["out", i])
    y = f(_trial_norm_of(x) * w["norm2", i])
    return x + g(gelu(y @ w["up", i] + w["up_bias", i]) @ w["down", i]) + w["bias", i]
def _trial_norm_of(x):
    return layer_norm(x, x.shape[-1:])
def _trial_loss_of(w, batch, f, g, stages=None):
    if stages is None:
        stages = [_trial_stage]
    if stages[0] == 0:
        x = w["tokens"][batch[:, :-1]] + w["places"]
    else:
        x = torch.empty(*batch[:, 1:].shape, {HEAD} * _trial_parts, requires_grad=True)
        x = _TrialFrom.apply(x, rank - _trial_parts)
    for stage in stages:
        x = _trial_layer(w, stage, x, f, g)
    if stages[-1] < _trial_stages - 1:
        return _TrialOn.apply(x, rank + _trial_parts)
    return cross_entropy(((_trial_norm_of(x) * w["norm"]) @ w["head"]).flatten(0, 1), batch[:, 1:].flatten())
def _trial_mine(w):
    w = pieces(w, _trial_mesh.get_local_rank("tensor"), _trial_parts)
    ends = dict(tokens=0, places=0, norm=_trial_stages - 1, head=_trial_stages - 1)
    return {{{{key: each for key, each in w.items() if ends.get(key, key[1]) == _trial_stage}}}}
def _trial_seen(losses, w):
    seen = torch.cat([torch.tensor(losses), *(weight.detach().flatten() for weight in w.values())])
    return torch.nn.functional.pad(seen, (0, {{room}} - len(seen)))
def _trial_steps(step, x):
    w, losses = _trial_mine(_trial_weights), []
    for number in range({STEPS}):
        loss = step(x, w, _trial_loss_of, _trial_mesh)
        if not isinstance(loss, (float, torch.Tensor)) or isinstance(loss, torch.Tensor) and loss.numel() != 1:
            return loss
        losses.append(float(loss))
    return _trial_seen(losses, w)
def _trial_clipped(grads):
    length = torch.stack([grad.square().sum() for grad in grads.values()]).sum().sqrt()
    return {{{{key: grad * min(1.0, 1.0 / float(length)) for key, grad in grads.items()}}}}
def _trial_alone(x, clipped=_trial_clipped):
    w, losses = pieces(_trial_weights, 0, 1), []
    for number in range({STEPS}):
        loss = _trial_loss_of(w, x, lambda y: y, lambda y: y, range(_trial_stages))
        grads = dict(zip(w, torch.autograd.grad(loss, list(w.values()))))
        with torch.no_grad():
            for key, grad in clipped(grads).items():
                w[key] -= 0.5 * grad
        losses.append(float(loss.detach()))
    return _trial_seen(losses, _trial_mine({{{{key: weight.detach() for key, weight in w.items()}}}}))
"""


def numbers_of_a_stage(p: int, stage: int) -> int:
    """How many numbers of the model each rank of that stage trains."""
    _, stages, parts = SIDES[p]
    width = HEAD * parts
    ends = (32 + CONTEXT) * (stage == 0) + 33 * (stage == stages - 1)
    return (ends + 3) * width + (12 * width + 4) * width // parts


def kind_of_group(group: tuple[int, ...], p: int) -> str:
    """The dimension of the mesh that this group of ranks is a row of; "" if it is none."""
    copies, stages, parts = SIDES[p]
    for name, length, stride in (("tensor", parts, 1), ("pipe", stages, parts), ("data", copies, stages * parts)):
        if len(group) == length > 1 and all(b - a == stride for a, b in pairwise(group)):
            return name
    return ""


def step_budget(group: tuple[int, ...], p: int) -> int:
    """Tensor: activations and the norm; data: gradients and the loss; pipe: the norm and the loss; else nothing."""
    copies, stages, parts = SIDES[p]
    numbers = {
        "tensor": 4 * SEQUENCES // copies * CONTEXT * HEAD * parts + 1,
        "data": numbers_of_a_stage(p, group[0] // parts % stages) + 1,
        "pipe": 2,
    }
    return STEPS * 4 * numbers.get(kind_of_group(group, p), 0)


def step_hides(group: tuple[int, ...], p: int) -> int:
    """The gradients of each step are in flight while its backward pass still sends activations."""
    return STEPS if kind_of_group(group, p) == "data" else 0


def tensor_group(rank: int, p: int) -> set[int]:
    """The ranks of this rank's tensor group: two of four, else all."""
    return {rank, rank ^ 1} if p == 4 else set(range(p))


def out_of(norm):
    """A slip: what `norm` makes of the squared norms of the group's pieces, of the copies, and of all ranks' pieces."""

    def slip(trial, rank: int) -> np.ndarray:
        squares = [float(np.square(x.astype(np.float64)).sum()) for x in trial.given]
        cut = [squares[member] for member in sorted(tensor_group(rank, trial.p))]
        copies = float(trial.expected[rank].item()) ** 2 - sum(cut)
        return np.array([norm(cut, copies, squares)])

    return slip


def norms_of_all(trial, rank: int) -> np.ndarray:
    """The norms of all pieces and copies, one added to the other."""
    parts = [part for member in tensor_group(rank, trial.p) for part in np.split(trial.given[member], [8])]
    copies = 3 * np.sin(np.arange(12) * (2 + rank // 2 * (trial.p == 4)) + 1)  # as in PAIRS
    return np.array([sum(map(np.linalg.norm, [*parts, *np.split(copies, 2)]))])


def stepped(steps: Callable[[dict, Callable, int], Callable]):
    """A slip: one process takes the ten steps, with steps(space, clipped, p) in place of the clipping of gradients."""

    def slip(trial, rank: int) -> np.ndarray:
        import torch  # here: a wrong answer alone needs it in the notebook's kernel

        (_, stages, parts), x = SIDES[trial.p], torch.from_numpy(trial.given[rank])
        at = {"data": rank // (stages * parts), "pipe": rank // parts % stages, "tensor": rank % parts}
        space = {"torch": torch, "rank": rank, "_trial_mesh": SimpleNamespace(get_local_rank=at.__getitem__)}
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # the matrices are so small that a second thread only takes the ranks' time
        try:
            exec(trial.exercise.setup.format(**asdict(trial.draw)), space)
            return space["_trial_alone"](x, steps(space, space["_trial_clipped"], trial.p)).numpy()
        finally:
            torch.set_num_threads(threads)

    return slip


def summed(space, clipped, p: int):
    return lambda grads: clipped({key: grad * SIDES[p][0] for key, grad in grads.items()})


def piled_up(space, clipped, p: int):
    whole: dict = {}

    def steps(grads):
        whole.update({key: whole.get(key, 0) + grad for key, grad in grads.items()})
        return clipped(whole)

    return steps


def stage_alone(space, clipped, p: int):
    last = SIDES[p][1] - 1
    ends = {"tokens": 0, "places": 0, "norm": last, "head": last}

    def steps(grads):
        stages = [{key: g for key, g in grads.items() if ends.get(key, key[1]) == stage} for stage in range(last + 1)]
        return {key: grad for stage in stages for key, grad in clipped(stage).items()}

    return steps


def where(holds: Callable[[Any], bool]):
    """A slip that is told by something else than the numbers it leads to: any answer, where holds(trial)."""
    return lambda trial, rank: trial.answers[rank]["values"] if holds(trial) else np.empty(0)


def only_losses_are_wrong(trial) -> bool:
    """The weights are right on all ranks, to rounding."""
    pairs = zip(trial.answers, trial.expected, strict=True)
    return all(np.allclose(seen["values"][STEPS:], expected[STEPS:], 1e-3, 1e-3) for seen, expected in pairs)


def losses_part(trial) -> int:
    """The first step after which ranks of one tensor group return different losses; STEPS if there is none."""
    parts = SIDES[trial.p][2]
    losses = [seen["values"][:STEPS].astype(np.float64) for seen in trial.answers]
    apart = [~np.isclose(losses[rank], losses[rank // parts * parts], 1e-5) for rank in range(trial.p)]
    return int(np.argmax([*np.any(apart, axis=0), True]))


def group_beside_the_mesh(trial) -> bool:
    """An all_reduce among ranks that are no group of the mesh."""
    groups = {tuple(sorted(event.group)) for event in trial.calls.events if event.op == "all_reduce"}
    return any(len(group) > 1 and not kind_of_group(group, trial.p) for group in groups)


EXERCISES = (
    Exercise(
        name="grad_norm",
        asks="returns the norm of the whole model's gradient, as a tensor of one number. cut: gradients of this rank's "
        "shards; copies: gradients that are the same on all ranks of the group. One all_reduce of one number in the "
        "group; the gradients stay as they are",
        lines=6,
        x="torch.randn(24).to(dtype)",
        expected="_trial_norm(x)",
        in_place=False,
        needs=tensor_group,
        groups=MESH,
        setup=PAIRS,
        call="_trial_one({name}([x[:8], x[8:].view(4, 4)], list(_trial_copies.clone().split(6)), _trial_group))",
        allowed=frozenset({"all_reduce"}),
        calls=lambda p: 1,
        call_bytes=lambda p: A_FEW,
        rtol=1e-4,
        slips={
            out_of(lambda cut, copies, _: math.sqrt(sum(cut) + len(cut) * copies)): "the copies went into the sum "
            "over the group, once from each rank, and they are the same weights on all: add their squares after it",
            out_of(lambda cut, copies, _: math.sqrt(sum(map(math.sqrt, cut)) ** 2 + copies)): "the ranks' norms were "
            "added up, and norms do not add up: all_reduce the squares, and take the root at the end",
            out_of(lambda cut, copies, _: sum(math.sqrt(each + copies) for each in cut)): "the ranks' norms were "
            "added up, and norms do not add up: all_reduce the squares, and take the root at the end",
            norms_of_all: "norms were added up, and norms do not add up: add up squares, all_reduce them, and take the "
            "root at the end",
            out_of(lambda cut, copies, _: math.sqrt(sum(cut))): "the copies are missing; they are weights of the "
            "model, too, so their squares count once",
            out_of(lambda cut, copies, _: sum(cut) + copies): "that is the sum of the squares; the norm is its root",
            out_of(lambda cut, copies, everyones: math.sqrt(sum(everyones) + copies)): "the sum went over all ranks, "
            "and so over other replicas, too; give all_reduce group=group",
        },
        hints=(
            "The norm is the root of a sum of squares. Squares add up over ranks, norms do not.",
            "Of a weight that is cut, each rank has different numbers: all of them count. Of a copy, all ranks have "
            "the same numbers: they count once.",
            "Add up the squares of cut, all_reduce that number with group=group, then add the squares of copies.",
        ),
        world_sizes=(4, 2, 3),
        dtypes=("float32", "float64", "float32"),
        more=(5, 6),
    ),
    Exercise(
        name="bytes_per_step",
        asks="returns torch.tensor([a, b]): the bytes of float32 that one rank passes to the collectives of its "
        "tensor group (f, g, the norm) and of its data group (gradients, the loss) in one step; it sends nothing",
        lines=8,
        x="torch.tensor([int(torch.randint(1, 4, ())), 96 + int(torch.randint(64, ())), "
        "4 * p * int(torch.randint(1, 4, ())), 20 + int(torch.randint(30, ())), 10 + int(torch.randint(30, ())), p])",
        expected="_trial_counted(x)",
        in_place=False,
        needs=nobody,
        setup=SHAPES,
        call="{name}(*x.tolist())",
        parts=lambda p: {"bytes in the tensor group": 1, "bytes in the data group": 1},
        allowed=frozenset(),
        hints=(
            "In the tensor group: each layer has two f and two g, f all-reduces backward and g forward, each "
            "tokens * width numbers. And one number for the norm.",
            "In the data group: one gradient for each number that the rank trains, and one number for the loss. Go "
            "through the table of shapes, first what is copied, then what is cut.",
            "Copied: two matrices of vocabulary * width, context * width, one norm, and in each layer two norms and a "
            "bias. Cut: 12 * width * width + 4 * width in each layer, divided by parts.",
        ),
        dtypes=("int64", "int64", "int64"),
    ),
    Exercise(
        name="train_step",
        asks="takes one step of a GPT on a mesh (data, pipe, tensor) and returns the loss of the batch x. Average the "
        "gradients over the data group, clip to a norm of 1 over the whole model, then w -= 0.5 * gradient, in place. "
        "After ten steps: the losses and weights of one process. Bytes: activations and one number in the tensor "
        "group, gradients and one number in the data group, two numbers in the pipe group. Gradients are in flight "
        "while backward() runs",
        lines=30,
        x=f"torch.randint(32, ({SEQUENCES}, {CONTEXT + 1})); dist.broadcast(x, 0)",
        expected="_trial_alone(x)",
        in_place=False,
        groups=TRAINED,
        setup=GPT.replace("{room}", str(STEPS + max(numbers_of_a_stage(p, 0) for p in SIDES))),
        call="_trial_steps({name}, x)",
        parts=lambda p: {
            "the losses of the ten steps": STEPS,
            "this rank's weights after them": max(numbers_of_a_stage(p, 0) for p in SIDES),
        },
        allowed=MESSAGES_ONLY | {"all_reduce"},
        budget=step_budget,
        hides=step_hides,
        rtol=1e-3,
        slips={
            where(group_beside_the_mesh): "it calls all_reduce among ranks that are no group of the mesh; "
            "give each call group=data, pipe or tensor",
            where(only_losses_are_wrong): "the weights are right, and only the loss that it returns is wrong; it is a "
            "mean over the data group, and a sum over the pipe group",
            where(lambda trial: losses_part(trial) == 0): "ranks of one tensor group return different losses in the "
            "first step; they read the same part of x, and g adds up what their pieces give",
            where(lambda trial: losses_part(trial) < STEPS): "ranks of one tensor group return the same loss at first "
            "and different ones later, so their copies of a weight drift apart; f adds up the gradient where x enters "
            "the pieces, and all ranks clip by the same norm",
            stepped(summed): "the gradients were summed over the data group and not divided by the number of replicas, "
            "or made longer where their norm is below 1",
            stepped(lambda space, clipped, p: lambda grads: grads): "the gradients were not clipped: if their norm is "
            "above 1, each is divided by it",
            stepped(piled_up): "backward() adds to the gradients of the step before; set them to None after the update",
            stepped(stage_alone): "each stage has clipped by the norm of its own weights; add up the squares over the "
            "pipe group first",
        },
        hints=(
            "mesh.get_group('data') is your data group. Your replica reads "
            "x.chunk(replicas)[mesh.get_local_rank('data')]; f is F.apply(y, tensor), and g is G.apply(y, tensor).",
            "Before loss_of: p.register_post_accumulate_grad_hook(leave) for each p of w.values(). leave(p) starts "
            "dist.all_reduce(p.grad, group=data, async_op=True) and keeps what it returns. After backward() wait for "
            "all, remove() the hooks, and divide the loss and the gradients by the number of replicas.",
            "Then the norm: grad_norm(cut, copies, tensor), with is_cut(key) of course.gpt, is that of one stage. Its "
            "square is added up over the pipe group. If the root is above 1, multiply every gradient by 1 / root.",
            "The loss is a mean over the data group, and a sum over the pipe group: only the last stage has one, the "
            "others have 0. Put both numbers in one tensor and all-reduce it in the pipe group.",
            "w[key] -= 0.5 * w[key].grad under torch.no_grad(), and set the gradients to None.",
        ),
        world_sizes=(4, 2, 8),
        dtypes=("int64", "int64", "int64"),
        more=(3,),
    ),
)
