"""Variants 2 and 3 of the exercises of chapters 10 to 19 and of the interview; see variants.py.

Left out: `bad_rank-3` and `split_backward-3`. The first has one question to ask of its logs and a second, which is its
variant 2; the second one's order is nearly fixed by its two bounds.
"""

from typing import Any

import numpy as np

from collectives.pipeline import one_f_one_b
from course.exercises.cluster import EVERY, STEPS
from course.exercises.data_parallel import READY, SIZES, filled
from course.exercises.pipeline import MANY, MICRO_BATCHES


def not_above(sizes: tuple[int, ...], cap: int) -> list[int]:
    """How many numbers are in each bucket, if one is closed before it would hold more than `cap`."""
    buckets: list[int] = []
    for size in sizes:
        if buckets and buckets[-1] + size <= cap:
            buckets[-1] += size
        else:
            buckets.append(size)
    return buckets


def long_warm_up(rank: int, p: int) -> list[int]:
    """Each rank begins with 2 (p - rank) - 1 forward passes."""
    order: list[int] = []
    for m in MANY:
        begun = ended = 0
        while ended < m:
            if begun < m and begun - ended < 2 * (p - rank) - 1:
                begun += 1
                order.append(begun)
            else:
                ended += 1
                order.append(-ended)
    return order


def turned(rank: int, p: int) -> list[int]:
    """1F1B where rank 0 has the last stage."""
    orders = [one_f_one_b(p, m).orders[p - 1 - rank] for m in MANY]
    return [each.micro if each.kind == "F" else -each.micro for order in orders for each in order]


def on(value: str, by: str) -> str:
    """What is expected of a statistic over the numbers of all ranks, as one tensor: `by` of `value`."""
    return (
        "[None] * world_size; dist.all_gather_object(expected, x); "
        f"everything = torch.cat(expected).double(); expected = {by.format(value)}"
    )


SCALED = "expected = x * min(1.0, limit / float(expected))"
ROOTED_AT_0 = "_whole(x.clone()); expected = expected if rank == 0 else None"
FEW = "At most two all_reduce of a few numbers; x stays as it is"
SIZED = "returns six numbers for one GPU and one step, as in the chapter, but {}; the function itself sends nothing"

# Of the first query each rank's keys have a share, of the others those of the even or of the odd ranks.
EVEN_KEYS = "torch.randn(3, 3, 4); x[0, 0] -= x[0, 0].mean(); x[1] += 150 - 300 * (rank % 2); x = x.to(dtype)"

CHANGED: dict[str, dict[str, Any]] = {
    "distributed_mean-2": {
        "asks": (("the mean of all", "the mean of the squares of all"),),
        "expected": on("everything.square()", "{}.mean()"),
    },
    "distributed_mean-3": {
        "asks": (("the mean of all", "the mean of the absolute values of all"),),
        "expected": on("everything.abs()", "{}.mean()"),
    },
    "distributed_argmax-2": {
        "asks": (("lowest", "highest"),),
        "expected": on("float(max(owners))", "torch.stack([everything.max(), torch.tensor({}).double()])"),
        "slips": {
            lambda trial, rank: np.array(
                [trial.expected[rank][0], min(trial.draw.owners)]
            ): "that is the lowest rank that has it; this variant asks for the highest"
        },
    },
    "distributed_argmax-3": {
        "asks": (("largest", "smallest"),),
        "x": (("(high - 0.6321205588285577)", "(low - 0.3678794411714423)"),),
        "expected": on("float(min(owners))", "torch.stack([everything.min(), torch.tensor({}).double()])"),
        "parts": lambda p: {"the smallest number": 1, "the rank that has it": 1},
    },
    "distributed_softmax-2": {
        "asks": "it returns this rank's part of the logarithm of the softmax over the numbers of all ranks, even if "
        f"these are very large or small. {FEW}",
        "expected": on("everything.log_softmax(0)", "{}.chunk(world_size)[rank]"),
    },
    "distributed_softmax-3": {
        "asks": "it returns this rank's part of the softmax of -x over the numbers of all ranks (the smallest gets the "
        f"most), even if these are very large or small. {FEW}",
        "expected": on("(-everything).softmax(0)", "{}.chunk(world_size)[rank]"),
    },
    "clip_norm-2": {
        "asks": "after it the largest absolute value of all ranks' x is at most limit. All of x is scaled by the same "
        "factor, or left as it is if that value is small enough. One all_reduce of a few numbers",
        "x": "(torch.randn(100) * size / 3).to(dtype)",
        "expected": on("everything.abs().max()", "{}") + f"; {SCALED}",
    },
    "clip_norm-3": {
        "asks": "after it the sum of the absolute values of all ranks' x is at most limit. All of x is scaled by the "
        "same factor, or left as it is if that sum is small enough. One all_reduce of a few numbers",
        "x": "(torch.randn(100) * size / 100).to(dtype)",
        "expected": on("everything.abs().sum()", "{}") + f"; {SCALED}",
    },
    "same_bits_sum-2": {
        "asks": (("sum", "mean"), ("round", "divide, and round to x's dtype")),
        "expected": "x.double(); dist.all_reduce(expected); expected = (expected / world_size).to(dtype)",
    },
    "same_bits_sum-3": {
        "asks": (("everyone's x,", "the even ranks' x minus the sum of the odd ranks',"),),
        "expected": "x.double() * (1 - 2 * (rank % 2)); dist.all_reduce(expected); expected = expected.to(dtype)",
    },
    "bucketed_average-2": {
        "asks": (("end", "front"),),
        "given": lambda draw: filled(SIZES, draw.p + 4),
    },
    "bucketed_average-3": {
        "asks": (("once it holds cap numbers or more,", "before it would hold more than cap numbers,"),),
        "given": lambda draw: not_above(SIZES[::-1], draw.p + 4),
    },
    "overlapped_average-2": {
        "asks": (("is the mean over", "is the sum over"),),
        "expected": "gradients_of(x); dist.all_reduce(expected)",
    },
    "overlapped_average-3": {
        "asks": (("Once it holds cap numbers or more", "Before one more would make it hold more than cap numbers"),),
        "given": lambda draw: 2 * not_above(READY, 9 if draw.p % 2 else 20),
    },
    "zero1_step-2": {
        "asks": (
            (
                "step.",
                "step with Nesterov's momentum: m is 0.9 * m + g, and w moves by -0.1 * (g + 0.9 * m), with the new m "
                "and the mean gradient g.",
            ),
        ),
        "setup": (("w - 0.1 * momentum", "w - 0.1 * (mean + 0.9 * momentum)"),),
    },
    "zero1_step-3": {
        "asks": (
            (
                "step.",
                "step with weight decay: the mean gradient g gets 0.1 * w added, then m is 0.9 * m + g, and w moves by "
                "-0.1 * m.",
            ),
        ),
        "setup": (("0.9 * momentum + mean", "0.9 * momentum + mean + 0.1 * w"),),
    },
    "gathered-2": {
        "asks": (("sum", "mean"),),
        "setup": (("dist.all_reduce(grad)", "dist.all_reduce(grad); grad /= world_size"),),
        "rtol": 1e-5,
    },
    "gathered-3": {
        "asks": (("vector.", "vector, the last rank's first."),),
        "setup": (
            (
                "    grad = _factors(whole)",
                "    whole = whole.view(world_size, -1).flip(0).flatten()\n    grad = _factors(whole)",
            ),
            ("chunk(world_size)[rank]", "chunk(world_size)[world_size - 1 - rank]"),
        ),
    },
    "muon_updates-2": {
        "asks": (("as in x.", "in the opposite order: that of the last matrix first."),),
        "setup": (("for g in total])", "for g in total.flip(0)])"),),
    },
    "muon_updates-3": {
        "asks": (("the results", "the transposed results"),),
        "setup": (("[_newton_schulz(g) for", "[_newton_schulz(g).T for"),),
    },
    "f_and_g-2": {
        "asks": (("sum", "mean"),),
        "setup": (
            ("for r in range(world_size)), x", "for r in range(world_size)) / world_size, x"),
            ("_trial_part(x, rank), x", "_trial_part(x, rank) / world_size, x"),
        ),
    },
    "f_and_g-3": {
        "asks": (("over all", "over the even ranks minus that over the odd"),),
        "setup": (
            ("sum(_trial_part(x, r)", "sum((1 - 2 * (r % 2)) * _trial_part(x, r)"),
            ("_trial_part(x, rank), x", "(1 - 2 * (rank % 2)) * _trial_part(x, rank), x"),
        ),
    },
    "vocab_parallel_loss-2": {
        "asks": (("mean", "sum over the rows of the"),),
        "setup": (("(whole, _trial_target)", "(whole, _trial_target, reduction='sum')"),),
    },
    "vocab_parallel_loss-3": {
        "asks": (("(rank 0 has the first),", "(the last rank has the first ones, rank 0 the last),"),),
        "setup": (
            ("torch.cat(parts, dim=1)", "torch.cat(parts[::-1], dim=1)"),
            ("dim=1)[rank]", "dim=1)[world_size - 1 - rank]"),
        ),
    },
    "pipeline_forward-2": {
        "asks": (
            ("rank returns", "rank has the first stage and rank 0 the last: rank 0 returns"),
            ("rank 0's", "the last rank's"),
        ),
        "setup": (
            ("dist.broadcast(x, 0)", "dist.broadcast(x, world_size - 1)"),
            ("in range(world_size)", "in reversed(range(world_size))"),
        ),
        "expected": ROOTED_AT_0,
        "needs": lambda rank, p: {p - 1} if rank == 0 else set(),
        "peers": lambda rank, p: {rank - 1} if rank else set(),
    },
    "pipeline_forward-3": {
        "asks": (
            ("the last rank", "rank 0"),
            (
                "rank 0's x after all stages;",
                "its x after all stages: the last stage sends them back to it, row by row;",
            ),
        ),
        "expected": ROOTED_AT_0,
        "needs": lambda rank, p: {p - 1} if rank == 0 else set(),
        "messages": lambda p: MICRO_BATCHES * p,
        "steps": lambda p: MICRO_BATCHES + p - 1,
        "peers": lambda rank, p: {(rank + 1) % p},
        "talks": "the rank that has the next stage, and the last one to rank 0",
    },
    "one_f_one_b-2": {
        "asks": (("pass.", "pass. Rank 0 has the last stage, the last rank the first."),),
        "setup": (("def _as_asked", "from course.exercises.variants_later import turned\ndef _as_asked"),),
        "expected": "torch.tensor(turned(rank, world_size))",
    },
    "one_f_one_b-3": {
        "asks": (
            (
                "pass.",
                "pass. Rank r begins with 2 (p - r) - 1 forward passes, or all, and then backward and forward take "
                "turns.",
            ),
        ),
        "setup": (("def _as_asked", "from course.exercises.variants_later import long_warm_up\ndef _as_asked"),),
        "expected": "torch.tensor(long_warm_up(rank, world_size))",
    },
    "split_backward-2": {
        "asks": (("p.", "p; rank 0 has the last stage, rank p - 1 the first."),),
        "setup": (("split_backward(r, p, m) for r", "split_backward(p - 1 - r, p, m) for r"),),
    },
    "moe-2": {
        "asks": (("rank e,", "rank world_size - 1 - e,"),),
        "setup": (
            ("_trial_chosen(r) == rank", "_trial_chosen(r) == {p} - 1 - rank"),
            ("_trial_experts[rank]", "_trial_experts[{p} - 1 - rank]"),
        ),
    },
    "moe-3": {
        "asks": (("is what", "is row i of x plus what"), ("row i of x.", "it, with its sign turned: x - expert(x).")),
        "expected": "x - _trial_moe(x)",
    },
    "exchange-2": {
        "asks": (("s.", "s, the last rank's first."),),
        "setup": (
            (
                "    dist.all_to_all_single(grad, _trial_up(out), _trial_goes, _trial_comes)",
                "    out = torch.cat(out.split(_trial_comes)[::-1])\n"
                "    up = torch.cat(_trial_up(out).split(_trial_comes[::-1])[::-1])\n"
                "    dist.all_to_all_single(grad, up, _trial_goes, _trial_comes)",
            ),
        ),
    },
    "exchange-3": {
        "asks": (
            (
                "d and",
                "d, from the end of x: the last goes[0] rows to rank 0, the goes[1] rows before them to rank 1. It",
            ),
        ),
        "setup": (
            (
                "    dist.all_to_all_single(out, x, _trial_comes, _trial_goes)",
                "    x = torch.cat(x.split(_trial_goes[::-1])[::-1])\n"
                "    dist.all_to_all_single(out, x, _trial_comes, _trial_goes)",
            ),
            (
                "    return torch.cat([out.flatten(), grad.flatten()])",
                "    grad = torch.cat(grad.split(_trial_goes)[::-1])\n"
                "    return torch.cat([out.flatten(), grad.flatten()])",
            ),
        ),
    },
    "to_heads-2": {
        "asks": "the way back: x is all tokens with this rank's heads only (world_size * tokens, heads // world_size, "
        "d). It returns this rank's tokens with all heads, in order: (tokens, heads, d). One all_to_all_single; x "
        "stays as it is",
        "x": "torch.randint(low, high, (3 * p, 2, 2)).to(dtype) * scale",
        "setup": (("torch.cat(everyone).chunk(world_size, dim=1)", "torch.cat(everyone, dim=1).chunk(world_size)"),),
    },
    "to_heads-3": {
        "asks": (
            ("this rank's heads only:", "every p-th head only, for rank r those with the numbers r, r + p, ...:"),
        ),
        "setup": ((".chunk(world_size, dim=1)[rank]", "[:, rank::world_size]"),),
    },
    "ring_attention-2": {
        "asks": (("all ranks.", "ranks 0 to this one, and of no later rank."),),
        "x": EVEN_KEYS,
        "setup": (("torch.cat(everyone, dim=1)", "torch.cat(everyone[:rank + 1], dim=1)"),),
        "needs": lambda rank, p: {*range(rank + 1)},
    },
    "ring_attention-3": {
        "asks": (("all ranks.", "ranks from this one to the last, and of no earlier rank."),),
        "x": EVEN_KEYS,
        "setup": (("torch.cat(everyone, dim=1)", "torch.cat(everyone[rank:], dim=1)"),),
        "needs": lambda rank, p: {*range(rank, p)},
    },
    "ring_sum-2": {
        "asks": (("returns the sum", "returns, number by number, the largest"),),
        "expected": "torch.cat([x.view(4, -1).amax(dim=0).repeat(4), torch.tensor([3], dtype=torch.int32)])",
    },
    "ring_sum-3": {
        "asks": (
            (
                "the sum of all devices' vectors `mine` on each of them,",
                "on each device the sum of the other three devices' vectors `mine`,",
            ),
        ),
        "expected": "torch.cat([(x.view(4, -1).sum(dim=0) - x.view(4, -1)).flatten(), "
        "torch.tensor([3], dtype=torch.int32)])",
    },
    "redistribute-2": {
        "asks": (("first", "second"),),
        "x": "torch.randint(low, high, (2, 2 * p)).to(dtype) * scale",
        "setup": (
            ("torch.empty(len(x) * world_size, 2, dtype", "torch.empty(2 * world_size, x.shape[1], dtype"),
            (
                "total.chunk(world_size)[rank], _trial_alike(x).chunk(world_size)[rank]",
                "total.chunk(world_size, dim=1)[rank], _trial_alike(x).chunk(world_size, dim=1)[rank]",
            ),
            ("(mine, whole, alike, total)", "(mine, torch.cat(whole.chunk(world_size), dim=1), alike, total)"),
        ),
    },
    "redistribute-3": {
        "asks": (
            (
                "world_size).",
                "world_size), where the parts of a partial x are joined by their largest, number by number.",
            ),
        ),
        "setup": (("dist.all_reduce(total)", "dist.all_reduce(total, dist.ReduceOp.MAX)"),),
    },
    "train_until-2": {
        "asks": (("mean", "largest"),),
        "expected": "torch.tensor(2 * [int((p + 1) / pace) + 1]).to(dtype)",
        "given": lambda draw: [8, 1] * (int((draw.p + 1) / draw.pace) + 1),
    },
    "train_until-3": {
        "asks": (("mean of all ranks' losses", "loss of at least one rank"),),
        "expected": "torch.tensor(2 * [int(2 / pace) + 1]).to(dtype)",
        "given": lambda draw: [8, 1] * (int(2 / draw.pace) + 1),
    },
    "bad_rank-2": {
        "asks": 'returns what went wrong, for the logs of 12 nights: "left" if a rank left the loop, "shape" if it '
        'passed another shape, "skipped" if it skipped a call. The function sends nothing',
        "setup": (
            ("isinstance(said, bool) or not isinstance(said, numbers.Integral)", "not isinstance(said, str)"),
            ("one rank, an int, and", "a text, and"),
            ("if why := why_not(night, said):", "if said != night.fault:"),
            ("raise ValueError(why)", 'raise ValueError(f"it says {{said!r}} of a night of {{night.fault!r}}")'),
        ),
    },
    "neighbours_first-2": {
        "asks": (("(x);", "(x), the highest machine first;"),),
        "expected": "torch.empty(world_size, dtype=dtype); dist.all_gather_single(expected, x); "
        "expected = torch.tensor(sorted(range(p), key=lambda r: -expected[r])).to(dtype)",
    },
    "neighbours_first-3": {
        "asks": (("stay in rank order;", "in the opposite order, the highest rank first;"),),
        "x": "torch.tensor([7 + rank // 2 % 2]).to(dtype)",
        "expected": "torch.empty(world_size, dtype=dtype); dist.all_gather_single(expected, x); "
        "expected = torch.tensor(sorted(range(p), key=lambda r: (int(expected[r]), -r))).to(dtype)",
    },
    "survive-2": {
        "asks": f"it calls step(number, w, m) for number 0 to {STEPS - 1}. The last rank saves w, m and the next step "
        f"in the file path after every {EVERY} steps. Called again with new w and m, it continues from there. The "
        "judge kills it twice: all ranks during a step, then the last rank during a save. Only step communicates",
        "setup": (
            ("        if rank:\n", "        if rank < world_size - 1:\n"),
            ("as rank 0: one rank", "as the last rank: one rank"),
            ('"rank 0 was killed while', '"the last rank was killed while'),
            ("attempt == 2 and rank == 0", "attempt == 2 and rank == world_size - 1"),
        ),
    },
    "survive-3": {
        "asks": f"it calls step(number, w, m) for number {STEPS - 1} down to 0. Rank 0 saves w, m and the next step in "
        f"the file path after every {EVERY} steps. Called again with new w and m, it continues from there. The judge "
        "kills it twice: all ranks during a step, then rank 0 during a save. Only step communicates",
        "setup": (
            ("number == kill_at", f"number == {STEPS - 1} - kill_at"),
            (f"for number in range({STEPS}):", f"for number in reversed(range({STEPS})):"),
        ),
    },
    "grad_norm-2": {
        "asks": (("the norm of", "the largest absolute value in"),),
        "setup": (
            ("squares = x.double().square().sum()", "squares = x.double().abs().max()"),
            ("dist.all_reduce(squares, group", "dist.all_reduce(squares, dist.ReduceOp.MAX, group"),
            (
                "(squares + _trial_copies.double().square().sum()).sqrt()",
                "torch.maximum(squares, _trial_copies.double().abs().max())",
            ),
        ),
    },
    "grad_norm-3": {
        "asks": (("the norm of", "the sum of the absolute values of"),),
        "setup": (
            ("squares = x.double().square()", "squares = x.double().abs()"),
            (".double().square().sum()).sqrt()", ".double().abs().sum())"),
        ),
    },
    "bytes_per_step-2": {
        "asks": "returns torch.tensor([a, b]): the bytes that one rank passes to the collectives of its tensor group "
        "(f "
        "and g, in bfloat16, and the norm, in float32) in the forward pass and the norm alone, without the backward "
        "pass; and to its data group in one step (gradients in bfloat16, the loss in float32); it sends nothing",
        "setup": (
            (
                "4 * (4 * layers * tokens * width + 1), 4 * (numbers + 1)",
                "4 * layers * tokens * width + 4, 2 * numbers + 4",
            ),
        ),
    },
    "bytes_per_step-3": {
        "asks": (
            (
                "and of its data group (gradients, the loss) in one step;",
                "in one step; and the bytes that it keeps for its weights, their gradients and Adam's two averages;",
            ),
        ),
        "setup": (("4 * (numbers + 1)", "16 * numbers"),),
        "parts": lambda p: {"bytes in the tensor group": 1, "bytes that it keeps": 1},
    },
    "train_step-2": {
        "asks": (("0.5 * gradient", "0.5 * (gradient + 0.1 * w)"),),
        "setup": (("w[key] -= 0.5 * grad", "w[key] -= 0.5 * (grad + 0.1 * w[key])"),),
    },
    "train_step-3": {
        "asks": (("gradient, in place.", "gradient, in place, but leave the weights that are not cut as they are."),),
        "setup": (
            ("import new_weights", "import is_cut, new_weights"),
            ("w[key] -= 0.5 * grad", "w[key] -= 0.5 * grad * is_cut(key)"),
        ),
    },
    "size_a_run-2": {
        "asks": SIZED.format(
            "nothing is computed again in the backward pass (6 operations for each weight and token, "
            "4 all_reduces for each layer), and a layer keeps 34 * hidden bytes for each token"
        ),
        "setup": (
            ("2 * layers * hidden * tokens", "34 * layers * hidden * tokens"),
            ("6 * layers * 2", "4 * layers * 2"),
            ("8 * psi", "6 * psi"),
        ),
    },
    "size_a_run-3": {
        "asks": SIZED.format(
            "FSDP does not overlap with computing: the seconds of a step are computing, tensor group "
            "and FSDP, one after the other"
        ),
        "setup": (("max(compute + summed / nvlink, fsdp)", "compute + summed / nvlink + fsdp"),),
    },
}
