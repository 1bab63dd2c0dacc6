"""The exercises of chapter 12: a step on shards of the optimizer's state, a weight that is gathered, Muon's step."""

import numpy as np

from course.exercises.exercise import VECTOR, Exercise

FLOATS = ("float32", "float64", "float32")
GATHER, SCATTER = frozenset({"all_gather", "all_gather_single"}), frozenset({"reduce_scatter", "reduce_scatter_single"})
GATHERED = "all_gather plus a local sum sends each rank p times the bytes it needs, and each has to store them all"

TWO_STEPS = """
def _begin(like):
    w = torch.arange(like.numel(), dtype=like.dtype) / 8
    return w, 1 - w / 4
def _sharded(step, x):
    w, momentum = _begin(x)
    piece = momentum.chunk(world_size)[rank].clone()
    for _ in range(2):
        w = step(x, w, piece)
        if not isinstance(w, torch.Tensor) or w.shape != x.shape:
            return w
    return w
def _unsharded(mean):
    w, momentum = _begin(mean)
    for _ in range(2):
        momentum = 0.9 * momentum + mean
        w = w - 0.1 * momentum
    return w
"""

THERE_AND_BACK = """
def _factors(like):
    return 1 + 2**-12 + (torch.arange(like.numel()) + 3 * rank) % 7  # more digits than half precision has
def _there_and_back(gathered, x):
    shard = x.clone().requires_grad_()
    whole = gathered(shard)
    if not isinstance(whole, torch.Tensor):
        return whole
    loss = (whole * _factors(whole)).sum()
    if loss.requires_grad:
        loss.backward()
    grad = torch.zeros_like(shard) if shard.grad is None else shard.grad
    return torch.cat([whole.detach().flatten(), grad])
def _by_the_book(x):
    whole = torch.empty(world_size * x.numel(), dtype=x.dtype)
    dist.all_gather_single(whole, x)
    grad = _factors(whole).to(x.dtype)
    dist.all_reduce(grad)
    return torch.cat([whole, grad.chunk(world_size)[rank]])
"""

ORTHOGONAL = """
def _newton_schulz(g, steps=6):
    if not isinstance(g, torch.Tensor) or g.shape != (6, 6):
        what = list(g.shape) if isinstance(g, torch.Tensor) else type(g).__name__
        raise ValueError(f"newton_schulz takes one whole matrix, here of shape [6, 6], and is given {{what}}")
    x = g / g.norm()
    for step in range(steps):
        x = 1.5 * x - 0.5 * x @ x.T @ x
    return x
def _muon(muon_updates, x):
    called = []
    def newton_schulz(g):
        called.append(1)
        return _newton_schulz(g)
    updates = muon_updates(x, newton_schulz)
    if len(called) > 1:
        raise ValueError(f"newton_schulz was called {{len(called)}} times: each rank does one matrix, and gets the "
            "results of the others")
    return updates
def _muon_by_the_book(x):
    total = x.clone()
    dist.all_reduce(total)
    return torch.stack([_newton_schulz(g) for g in total])
"""
"""A Newton-Schulz that tells a matrix from a piece of one, and how often it was called."""


def its_own_gradient(trial, rank: int) -> np.ndarray:
    """What `gathered` gives if a rank keeps its own gradient of its shard (`_factors`)."""
    whole = trial.expected[rank][: -trial.given[rank].size]
    return np.concatenate([whole, ((1 + 2**-12 + (np.arange(whole.size) + 3 * rank) % 7).reshape(trial.p, -1))[rank]])


def averaged(trial, rank: int) -> np.ndarray:
    """What `gathered` gives if the gradients are averaged."""
    size = trial.given[rank].size
    return np.concatenate([trial.expected[rank][:-size], trial.expected[rank][-size:] / trial.p])


def two_steps(summed: bool = False, forgotten: bool = False, decay: float = 0.9, rate: float = 0.1):
    """A slip: the weights after two steps with the sum instead of the mean, a momentum that is forgotten, or other
    factors."""

    def weights(trial, rank: int) -> np.ndarray:
        mean = np.sum(trial.given, axis=0, dtype=np.float64) / (1 if summed else trial.p)
        w = np.arange(mean.size) / 8
        momentum = begun = 1 - w / 4
        for _ in range(2):
            momentum = decay * (begun if forgotten else momentum) + mean
            w = w - rate * momentum
        return w

    return weights


EXERCISES = (
    Exercise(
        name="zero1_step",
        asks="it returns all weights after one step. x is this rank's gradient, w the weights, m the momentum of this "
        "rank's chunk: update m in place. A reduce_scatter and an all_gather. We take two steps",
        lines=9,
        x=VECTOR,
        expected="x.clone(); dist.all_reduce(expected); expected = _unsharded(expected / world_size)",
        in_place=False,
        setup=TWO_STEPS,
        call="_sharded({name}, x)",
        allowed=GATHER | SCATTER,
        uses={SCATTER: (2, GATHERED)},
        calls=lambda p: 4,
        rtol=1e-5,
        slips={
            two_steps(summed=True): "the gradients were added up and not averaged; divide the sum by world_size",
            two_steps(decay=0): "no step has any of the momentum before it; m is 0.9 * m + g",
            two_steps(decay=1): "the old momentum was added whole; multiply m by 0.9 first",
            two_steps(rate=-0.1): "the step was added to w; subtract it: w - 0.1 * m",
            two_steps(forgotten=True): "the caller's m is as it was, so the second step began without the first one's "
            "momentum; change m in place: m *= 0.9, then m += g",
        },
        hints=(
            "Rank r needs the summed gradient of piece r only: that is dist.reduce_scatter_single(g, x), and g is as "
            "long as m. Divide it by world_size: the average.",
            "m *= 0.9 and m += g change m in place. m = 0.9 * m + g makes a new tensor, and the caller's m stays old.",
            "w.chunk(world_size)[rank] - 0.1 * m is the new piece. Every rank needs all p of them.",
            "dist.all_gather_single(out, piece) brings them together, in rank order; out is as long as w.",
        ),
        dtypes=FLOATS,
        more=(5, 6),
    ),
    Exercise(
        name="gathered",
        asks="it returns all ranks' shards x as one vector. The backward pass gives each rank the sum of all ranks' "
        "gradients of its shard. One all_gather forward, one reduce_scatter backward",
        lines=14,
        x=VECTOR,
        expected="_by_the_book(x)",
        in_place=False,
        setup=THERE_AND_BACK,
        call="_there_and_back({name}, x)",
        allowed=GATHER | SCATTER,
        uses={SCATTER: (1, GATHERED)},
        calls=lambda p: 2,
        slips={
            its_own_gradient: "that is this rank's own gradient of its shard; all ranks' gradients of it have to be "
            "added up: reduce_scatter",
            averaged: "the gradients of the shard were averaged; the task asks for their sum",
        },
        hints=(
            "First blank: dist.all_gather_single(whole, shard).",
            "Second blank: grad is the gradient of the whole, from this rank's data. All ranks' gradients of a shard "
            "have to be added up, and the sum belongs to the rank that has the shard.",
            "That is dist.reduce_scatter_single(piece, grad.contiguous()).",
        ),
        dtypes=FLOATS,
        more=(5, 6),
    ),
    Exercise(
        name="muon_updates",
        asks="x has p matrices, this rank's gradients. For each matrix, sum the gradients of all ranks and take "
        "newton_schulz of the sum; return the results stacked as in x. Each rank calls newton_schulz once, on a whole "
        "matrix. One reduce_scatter and one all_gather; x stays as it is",
        lines=8,
        x="torch.randn(p, 6, 6).to(dtype)",
        expected="_muon_by_the_book(x)",
        in_place=False,
        setup=ORTHOGONAL,
        call="_muon({name}, x)",
        allowed=GATHER | SCATTER,
        uses={SCATTER: (1, GATHERED)},
        calls=lambda p: 2,
        rtol=1e-3,
        hints=(
            "Matrix r of the stack is piece r of x.flatten(): one reduce_scatter leaves on rank r the sum of matrix r, "
            "whole.",
            "newton_schulz takes that piece as a matrix, mine.view_as(x[0]). The sum will do: it divides by the norm "
            "first.",
            "dist.all_gather_single(out, update.flatten()) brings the p results together; out.view_as(x) is the stack.",
        ),
        dtypes=FLOATS,
        more=(5, 6),
    ),
)
