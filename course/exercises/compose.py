"""The exercises of chapter 10: statistics of data that no rank has all of, out of a few numbers each."""

from course.exercises.exercise import A_FEW, Exercise

REDUCE = frozenset({"all_reduce"})
NO_WHOLE_NUMBERS = (
    "((low + (high - 1 - low) * torch.rand(90, dtype=torch.float64)) * scale).to(dtype); "
    "x[7] = (high - 0.63) * scale if rank in owners else x[7]"
)
"""With all the digits that their dtype has, so that no second number can be hidden in one."""

FLOATS = ("float32", "float64", "float32")

EXERCISES = (
    Exercise(
        name="distributed_mean",
        asks="it returns the mean of all numbers of all ranks, which have different amounts of them, with at most two "
        "all_reduce of a few numbers; x stays as it is",
        lines=4,
        x="torch.randint(low, high, (lengths[rank],)).to(dtype) * scale",
        expected="torch.tensor([x.double().sum(), x.numel()], dtype=torch.float64); dist.all_reduce(expected); "
        "expected = expected[0] / expected[1]",
        in_place=False,
        allowed=REDUCE,
        calls=lambda p: 2,
        call_bytes=lambda p: A_FEW,
        rtol=1e-4,
        hints=(
            "A mean is a sum divided by a count. Both add up over the ranks; a mean does not.",
            "torch.stack([x.sum(), ...]) makes one tensor of two numbers; all_reduce adds them up in one call.",
            "How many numbers this rank has is x.numel(), a Python int: x.new_tensor(x.numel()) is a tensor of it.",
        ),
        dtypes=FLOATS,
    ),
    Exercise(
        name="distributed_argmax",
        asks="it returns torch.stack([value, rank]): the largest number of all, and the lowest rank that has it, with "
        "at most two all_reduce or all_gather of a few numbers; x stays as it is",
        lines=6,
        x=NO_WHOLE_NUMBERS,
        expected="x.double().max(); dist.all_reduce(expected, dist.ReduceOp.MAX); "
        "expected = torch.stack([expected, torch.tensor(float(min(owners)), dtype=torch.float64)])",
        in_place=False,
        allowed=frozenset({"all_reduce", "all_gather", "all_gather_single"}),
        calls=lambda p: 2,
        call_bytes=lambda p: A_FEW * p,
        hints=(
            "all_reduce with dist.ReduceOp.MAX gives everyone the value. Who has it is a second question.",
            "Let every rank that has the value bid its own number and all others bid world_size. Who wins?",
            "The lowest bid: all_reduce with dist.ReduceOp.MIN.",
        ),
    ),
    Exercise(
        name="distributed_softmax",
        asks="it returns this rank's part of the softmax over the numbers of all ranks, however large or small they "
        "are, with at most two all_reduce of a few numbers; x stays as it is",
        lines=7,
        x="(3 * torch.randn(100) + shift + slope * rank).to(dtype)",
        expected="torch.empty(100 * world_size, dtype=x.dtype); dist.all_gather_single(expected, x); "
        "expected = expected.softmax(0).chunk(world_size)[rank]",
        in_place=False,
        allowed=REDUCE,
        calls=lambda p: 2,
        call_bytes=lambda p: A_FEW,
        rtol=1e-4,
        hints=(
            "softmax(x) = exp(x - m) / sum of exp(x - m), for any m. Which two numbers must all ranks agree on?",
            "exp(1000) is inf. With m the largest number of all ranks no exponent is above 0.",
            "Two calls: all_reduce with MAX for m, then all_reduce with SUM for the sum of exp(x - m).",
            "all_reduce writes into its tensor: x.max() is a new tensor, so x stays as it is.",
        ),
        dtypes=FLOATS,
    ),
    Exercise(
        name="clip_norm",
        asks="after it, the norm of all ranks' x together is at most limit: all of x is scaled by the same factor, or "
        "left as it is if that norm is small enough; one all_reduce of a few numbers",
        lines=5,
        x="(torch.randn(100) * size / 10).to(dtype)",
        expected="x.double().square().sum(); dist.all_reduce(expected); "
        "expected = x * min(1.0, limit / float(expected.sqrt()))",
        in_place=True,
        call="{name}(x, {limit})",
        allowed=REDUCE,
        calls=lambda p: 1,
        call_bytes=lambda p: A_FEW,
        rtol=1e-4,
        hints=(
            "The norm of it all is the root of the sum of all squares. Squares add up over the ranks; norms do not.",
            "x.square().sum(), all_reduce, sqrt: the norm. Then x *= limit / norm.",
            "If the norm is below the limit already, x must stay as it is.",
        ),
        dtypes=FLOATS,
    ),
    Exercise(
        name="same_bits_sum",
        asks="it returns the sum of everyone's x, number by number, with the same bits in whatever order the ranks add "
        "up: exact, and rounded once at the end; with one all_reduce; x stays as it is",
        lines=4,
        x="(torch.randint(-(2**23), 2**23, (90,)) * 2.0 ** torch.randint(0, 20, (90,))).to(dtype)",
        expected="x.double(); dist.all_reduce(expected); expected = expected.to(dtype)",
        in_place=False,
        allowed=REDUCE,
        calls=lambda p: 1,
        hints=(
            "Adding rounds. Where nothing is rounded, every order gives the same bits.",
            "float32 keeps 24 bits, and float64 keeps 53. How many does the sum of a few float32 numbers need?",
            "x.double() is a new tensor; all_reduce it, and round once: .to(x.dtype).",
        ),
        dtypes=("float32", "float32", "float32"),
    ),
)
