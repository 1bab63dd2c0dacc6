"""The exercises of chapter 13: Megatron's f and g, and a row-parallel linear layer, each judged in both directions."""

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

FLOATS = ("float32", "float64", "float32")

EXERCISES = (
    Exercise(
        name="f_and_g",
        asks="it returns the sum of all ranks' piece(x), and the gradient of x is the whole one; x, the same on all "
        "ranks, stays as it is; one all_reduce forward and one backward",
        lines=3,
        x="torch.randn(8).to(dtype); dist.broadcast(x, 0)",
        setup=BOTH_WAYS + "_trial_a, _trial_b = _trial_alike(2, 8, 2 * {p}), _trial_alike(3, 2 * {p}, 8)\n"
        "def _trial_whole(x):\n    return torch.tanh(x @ _trial_a) @ _trial_b\n"
        "def _trial_piece(x):\n    mine = slice(2 * rank, 2 * rank + 2)\n"
        "    return torch.tanh(x @ _trial_a[:, mine]) @ _trial_b[mine]\n",
        expected="_trial_both_ways(_trial_whole, x, upstream=_trial_upstream)",
        call="_trial_both_ways({name}, x, _trial_piece, upstream=_trial_upstream)",
        parts=lambda p: {"the output": WIDTH, "the gradient of x": WIDTH},
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
