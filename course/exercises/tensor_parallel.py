"""The exercises of chapter 13: Megatron's f and g, and a row-parallel linear layer, each judged in both directions."""

import numpy as np

from course.exercises.exercise import Exercise

WIDTH = 8

BOTH_WAYS = """
def _trial_both_ways(function, x, *others, upstream):
    leaves = [tensor.detach().requires_grad_() for tensor in (x, *others) if isinstance(tensor, torch.Tensor)]
    out = function(*leaves, *[other for other in others if not isinstance(other, torch.Tensor)])
    if not isinstance(out, torch.Tensor) or out.shape != upstream.shape:
        return out
    if out.requires_grad:
        (out * upstream).sum().backward()  # out.backward(upstream) imports sympy in every rank, for a second
    grads = [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves]
    return torch.cat([out.detach().flatten(), *(grad.flatten() for grad in grads)])
def _trial_alike(seed, *shape):  # the same on every rank
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(torch.{dtype})
_trial_upstream = _trial_alike(1, 8)
"""
"""What comes out, and behind it the gradient of everything that went in, for a gradient that comes from above."""

SHARED = """
_trial_a, _trial_b = _trial_alike(2, 8, 2 * {p}), _trial_alike(3, 2 * {p}, 8)
def _trial_part(x, r):
    mine = slice(2 * r, 2 * r + 2)
    return torch.tanh(torch.tanh(x @ _trial_a[:, mine]) @ _trial_b[mine])
def _trial_by_the_book(x):
    whole = _trial_both_ways(lambda x: sum(_trial_part(x, r) for r in range(world_size)), x, upstream=_trial_upstream)
    mine = _trial_both_ways(lambda x: _trial_part(x, rank), x, upstream=_trial_upstream)
    return torch.cat([whole, mine[8:]])
def _trial_shared(f_and_g, x):
    bias = torch.zeros_like(x).requires_grad_()
    before, made = bias * 1, []  # so that its gradient is that of x, in the same memory, and is needed after F
    def piece(x):
        out = _trial_part(x + before, rank)
        if out.requires_grad:
            made.append((out, out.detach().clone()))
        return out
    out = _trial_both_ways(f_and_g, x, piece, upstream=_trial_upstream)
    if not all(torch.equal(now.detach(), then) for now, then in made):
        raise ValueError("what piece(x) returned was overwritten, and its own backward pass needs it: "
            "clone() it, and all_reduce the clone")
    if not isinstance(out, torch.Tensor) or out.shape != (16,):
        return out
    return torch.cat([out, torch.zeros_like(x) if bias.grad is None else bias.grad])
"""
"""A piece whose last op needs its own output backward, and whose gradient of x is that of a weight before it, too: what
is written in place there, others miss."""

BIAS = "the gradient of what piece(x) adds to x"


def all_reduced_for_all(trial, rank: int) -> np.ndarray:
    """The right answer, but that the gradient of piece's own weight is summed up, too."""
    right = trial.expected[rank]
    return np.concatenate([right[: 2 * WIDTH], right[WIDTH : 2 * WIDTH]])


FLOATS = ("float32", "float64", "float32")

EXERCISES = (
    Exercise(
        name="f_and_g",
        asks="it returns the sum of all ranks' piece(x), and the gradient of x is the whole one; x, the same on all "
        "ranks, stays as it is; one all_reduce forward and one backward",
        lines=3,
        x="torch.randn(8).to(dtype); dist.broadcast(x, 0)",
        setup=BOTH_WAYS + SHARED,
        expected="_trial_by_the_book(x)",
        call="_trial_shared({name}, x)",
        parts=lambda p: {"the output": WIDTH, "the gradient of x": WIDTH, BIAS: WIDTH},
        slips={
            all_reduced_for_all: "F has added up the very tensor that piece(x) passes to a weight of its own, too; "
            "clone() the gradient first, and return the clone"
        },
        in_place=False,
        allowed=frozenset({"all_reduce"}),
        calls=lambda p: 2,
        rtol=1e-4,
        hints=(
            "Forward: every rank has x already, so F has nothing to send. Each rank's piece(x) is one part of a sum, "
            "so G has to all_reduce.",
            "Backward: the gradient of a sum goes to every part of it as it is, so G has nothing to send. Each "
            "rank's gradient of x is one part of a sum, so F has to all_reduce.",
            "all_reduce writes into its tensor: clone() first, then return the clone.",
        ),
        dtypes=FLOATS,
    ),
    Exercise(
        name="row_parallel_linear",
        asks="it returns x @ weight.T + bias of the whole layer, where x and weight are this rank's part and bias is "
        "the whole one, the same on all ranks; the gradients of all three are right; one all_reduce",
        lines=3,
        x="torch.randn(3).to(dtype)",
        setup=BOTH_WAYS + "_trial_weight, _trial_bias = _trial_alike(2 + rank, 8, 3), _trial_alike(4, 8)\n",
        expected="_trial_weight @ x; dist.all_reduce(expected); u = _trial_upstream; "
        "expected = torch.cat([expected + _trial_bias, u @ _trial_weight, torch.outer(u, x).flatten(), u])",
        call="_trial_both_ways({name}, x, _trial_weight, _trial_bias, upstream=_trial_upstream)",
        parts=lambda p: {
            "the output": WIDTH,
            "the gradient of x": 3,
            "the gradient of weight": 3 * WIDTH,
            "the gradient of bias": WIDTH,
        },
        in_place=False,
        allowed=frozenset({"all_reduce"}),
        calls=lambda p: 1,
        rtol=1e-4,
        hints=(
            "x @ weight.T of one rank is a part of a sum: it has the shape of the whole output already.",
            "G adds the parts up, and lets the gradient through as it is.",
            "Every rank has the whole bias. Added before G, it would come p times.",
        ),
        dtypes=FLOATS,
    ),
)
