"""The exercises of chapter 13: Megatron's f and g, and a loss over a vocabulary that is cut; both ways are judged."""

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


TOKENS, COLUMNS = 6, 5
VOCABULARY = f"""
_trial_target = 7 * torch.arange({TOKENS}) % ({COLUMNS} * {{p}})
def _trial_loss_by_the_book(x):
    parts = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(parts, x)
    whole = torch.cat(parts, dim=1).requires_grad_()
    loss = torch.nn.functional.cross_entropy(whole, _trial_target)
    (grad,) = torch.autograd.grad(loss, whole)
    return torch.cat([loss.detach().view(1), grad.chunk(world_size, dim=1)[rank].flatten()])
"""
"""Rows of logits, and how many columns of them each rank has."""


def _loss(trial, rank: int, alike: bool = True, summed: bool = True, first: int = COLUMNS, ends: int = 1) -> np.ndarray:
    """What comes out if each rank takes its own maximum (`alike=False`) or its own logits (`summed=False`), if its
    columns begin at `first` * rank, or if the maximum is not added at the end (`ends=0`)."""
    xs, target = [x.astype(np.float64) for x in trial.given], 7 * np.arange(TOKENS) % (COLUMNS * trial.p)
    highest = [x.max(axis=1) for x in xs]
    used = [np.max(highest, axis=0) if alike else high for high in highest]
    total = sum(np.exp(x - high[:, None]).sum(axis=1) for x, high in zip(xs, used, strict=True))
    here = [np.arange(COLUMNS) + first * r == target[:, None] for r in range(trial.p)]
    logits = [(x * mine).sum(axis=1) for x, mine in zip(xs, here, strict=True)]
    right = sum(logits) if summed else logits[rank]
    grad = (np.exp(xs[rank] - used[rank][:, None]) / total[:, None] - here[rank]) / TOKENS
    return np.concatenate([[(ends * used[rank] + np.log(total) - right).mean()], grad.ravel()])


def own_maximum(trial, rank: int) -> np.ndarray:
    return _loss(trial, rank, alike=False)


def own_logit(trial, rank: int) -> np.ndarray:
    return _loss(trial, rank, summed=False)


def own_numbering(trial, rank: int) -> np.ndarray:
    return _loss(trial, rank, first=0)


def lost_maximum(trial, rank: int) -> np.ndarray:
    return _loss(trial, rank, ends=0)


FLOATS = ("float32", "float64", "float32")

EXERCISES = (
    Exercise(
        name="f_and_g",
        asks="it returns the sum of piece(x) over all ranks, and backward gives every rank the full gradient of x. x "
        "is the same on all ranks, and stays as it is. One all_reduce forward and one backward",
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
        name="vocab_parallel_loss",
        asks="x has this rank's columns of the logits (rank 0 has the first), target each row's right token. It "
        "returns the mean cross-entropy over the whole vocabulary, and the gradient of x is right, however large the "
        "logits are. Only all_reduces of a few numbers for each row",
        lines=10,
        x=f"(200 * (-1) ** torch.arange({TOKENS})[:, None] + 2 * torch.randn({TOKENS}, {COLUMNS})).to(dtype)",
        setup=BOTH_WAYS + VOCABULARY,
        expected="_trial_loss_by_the_book(x)",
        call="_trial_both_ways(lambda x: {name}(x, _trial_target.clone()), x, upstream=x.new_ones(()))",
        parts=lambda p: {"the loss": 1, "the gradient of x": TOKENS * COLUMNS},
        slips={
            lambda trial, rank: trial.expected[rank] * TOKENS: "that is the sum over the rows; take the mean",
            own_maximum: "each rank subtracted the largest logit of its own columns, so the sums of exp do not fit "
            "together: all_reduce it with dist.ReduceOp.MAX first",
            own_logit: "where the right token is in another rank's columns, its logit is missing: G.apply adds it up "
            "over the ranks, of which all but one give 0",
            own_numbering: "target was taken for a column of this rank's x; it is one of the whole vocabulary, and "
            "this rank's columns begin at rank * x.shape[1]",
            lost_maximum: "the largest logit was subtracted before exp, and is not added again to the logarithm",
        },
        in_place=False,
        allowed=frozenset({"all_reduce"}),
        calls=lambda p: 3,
        call_bytes=lambda p: 2 * 8 * TOKENS,
        rtol=1e-4,
        hints=(
            "First blank: each rank has the largest logit of its own columns. dist.all_reduce with "
            "dist.ReduceOp.MAX, in place, makes it the largest of all.",
            "Second blank: G.apply adds up over the ranks and lets the gradient through. "
            "G.apply(torch.exp(x - largest[:, None]).sum(dim=1)).",
            "Third blank: one rank has the right token's logit, the others give 0, and the sum is that logit. "
            "G.apply(torch.where(here, logit, 0)).",
        ),
        dtypes=FLOATS,
    ),
)
