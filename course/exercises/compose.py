"""The exercises of chapter 10: statistics of data that no rank has all of, out of a few numbers each."""

import numpy as np

from course.exercises.exercise import A_FEW, Exercise

REDUCE = frozenset({"all_reduce"})
NO_WHOLE_NUMBERS = (
    "((low + (high - 1 - low) * torch.rand(90, dtype=torch.float64)) * scale).to(dtype); "
    "x[7] = (high - 0.6321205588285577) * scale if rank in owners else x[7]"
)
"""With all the digits that their dtype has, so that no second number can be hidden in one."""

FLOATS = ("float32", "float64", "float32")


def a_few(p: int) -> int:
    """Bytes of one call: plenty for sums, or for two numbers of every rank, each in a place of its own."""
    return max(A_FEW, 16 * p)


OR_A_NUMBER = """
def _trial_number(mean):
    return torch.tensor(mean, dtype=torch.float64) if isinstance(mean, float) else mean
"""


def its_own_maximum(trial, rank: int) -> np.ndarray:
    """The softmax if each rank subtracts its own maximum, and all add up these powers."""
    powers = [np.exp(x.astype(np.float64) - x.max()) for x in trial.given]
    return powers[rank] / sum(each.sum() for each in powers)


def its_own_sum(trial, rank: int) -> np.ndarray:
    """The softmax if each rank divides by the sum of its own powers."""
    powers = np.exp(trial.given[rank].astype(np.float64) - max(x.max() for x in trial.given))
    return powers / powers.sum() if powers.any() else powers


def last_owner(trial, rank: int) -> np.ndarray:
    """The largest number of all, and the highest rank that has it."""
    return np.array([trial.expected[rank][0], max(trial.draw.owners)])


BID_WITHOUT = (
    "that is no rank; if the ranks without the largest number contribute it, take MIN, and let them contribute "
    "world_size, which is above every rank"
)


def bid_without(bid):
    """The largest number of all, and what the ranks that do not have it bid, if that bid has won."""
    return lambda trial, rank: np.array([trial.expected[rank][0], bid(trial.p)])


def scaled_by(norms):
    """x scaled by what `norms` makes of the norms of all ranks' x, as if that were their norm together."""

    def scaled(trial, rank: int) -> np.ndarray:
        norm = norms([float(np.linalg.norm(x.astype(np.float64))) for x in trial.given], rank)
        return trial.given[rank] * min(1, trial.draw.limit / norm)

    return scaled


def as_it_was(trial, rank: int) -> np.ndarray:
    """x, where it should have been scaled."""
    return trial.given[rank]


def norm_of_all(trial) -> float:
    """The norm of all ranks' x together."""
    return float(np.linalg.norm(np.concatenate([x.astype(np.float64) for x in trial.given])))


EXERCISES = (
    Exercise(
        name="distributed_mean",
        asks="it returns the mean of all numbers of all ranks. Ranks may hold different amounts, even none. At most "
        "two all_reduce of a few numbers; x stays as it is",
        lines=4,
        x="torch.randint(low, high, (lengths[rank] if rank != 1 or p % 2 == 0 else 0,)).to(dtype) * scale",
        setup=OR_A_NUMBER,
        call="_trial_number({name}(x))",
        slips={
            lambda trial, rank: np.mean([x.sum() / x.size for x in trial.given]): "that is the mean of the ranks' "
            "means, which counts a rank with few numbers as much as one with many; add up sums and counts",
            lambda trial, rank: trial.given[rank].sum() / trial.given[rank].size: "that is the mean of this rank's "
            "numbers alone",
            lambda trial, rank: sum(x.sum() for x in trial.given) / trial.given[rank].size: "that is the sum of all "
            "divided by this rank's count; the counts have to be added up, too",
            lambda trial, rank: sum(x.sum() for x in trial.given) / (trial.p * trial.given[rank].size): "that is the "
            "sum of all divided by world_size times this rank's count; the counts differ, so add them up, too",
            lambda trial, rank: sum(x.sum() for x in trial.given) / sum(max(1, x.size) for x in trial.given): "a rank "
            "without numbers was counted as one number; its count is 0",
            lambda trial, rank: sum(x.sum() for x in trial.given) / trial.p: "that is the sum of all divided by the "
            "number of ranks; divide by how many numbers all ranks have",
            lambda trial, rank: sum(x.sum() for x in trial.given) / trial.p**2: "that is the sum of all divided by "
            "world_size from every rank; the second number is how many numbers this rank has",
        },
        expected="torch.tensor([x.double().sum(), x.numel()], dtype=torch.float64); dist.all_reduce(expected); "
        "expected = expected[0] / expected[1]",
        in_place=False,
        allowed=REDUCE,
        calls=lambda p: 2,
        call_bytes=a_few,
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
        parts=lambda p: {"the largest number": 1, "the rank that has it": 1},
        slips={
            last_owner: "several ranks have that number, and this is the highest of them; the lowest is asked",
            bid_without(lambda p: p): BID_WITHOUT,
            bid_without(lambda p: -1): BID_WITHOUT,
        },
        hints=(
            "all_reduce with dist.ReduceOp.MAX gives everyone the value. Which rank has it is a second question.",
            "Every rank that has the value contributes its own number, all others world_size. Which number is wanted?",
            "The lowest: all_reduce with dist.ReduceOp.MIN.",
        ),
    ),
    Exercise(
        name="distributed_softmax",
        asks="it returns this rank's part of the softmax over the numbers of all ranks, even if these are very large "
        "or small. At most two all_reduce of a few numbers; x stays as it is",
        lines=7,
        x="(3 * torch.randn(100) + shift + slope * rank + gap * (torch.arange(100) % 2)).to(dtype)",
        expected="torch.empty(100 * world_size, dtype=x.dtype); dist.all_gather_single(expected, x); "
        "expected = expected.softmax(0).chunk(world_size)[rank]",
        in_place=False,
        allowed=REDUCE,
        calls=lambda p: 2,
        call_bytes=a_few,
        rtol=1e-4,
        slips={
            its_own_maximum: "each rank subtracted its own maximum, so the exponentials have different scales and "
            "cannot be added; subtract the largest number of all ranks",
            its_own_sum: "each rank divided by the sum of its own exponentials; add these up over the ranks first",
        },
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
        asks="after it the norm of all ranks' x together is at most limit. All of x is scaled by the same factor, or "
        "left as it is if that norm is small enough. One all_reduce of a few numbers",
        lines=5,
        x="(torch.randn(100) * size / 10).to(dtype)",
        expected="x.double().square().sum(); dist.all_reduce(expected); "
        "expected = x * min(1.0, limit / float(expected.sqrt()))",
        in_place=True,
        call="{name}(x, {limit})",
        allowed=REDUCE,
        calls=lambda p: 1,
        call_bytes=a_few,
        rtol=1e-4,
        slips={
            as_it_was: "the answer must be in x itself, scaled on every rank where the norm of all ranks' x together "
            "is above the limit, as it is here: if norm > limit: x *= limit / norm",
            scaled_by(lambda norms, rank: norms[rank]): "scaled by this rank's norm alone; the norm of all ranks' x "
            "together needs the squares of all ranks",
            scaled_by(lambda norms, rank: max(norms)): "scaled by the largest of the ranks' norms; the norm of all "
            "ranks' x together needs the squares of all ranks",
            scaled_by(lambda norms, rank: sum(norms)): "scaled by the sum of the ranks' norms, and norms do not add "
            "up; add up their squares",
            lambda trial, rank: (
                trial.given[rank] * trial.draw.limit / sum(np.abs(x).sum() for x in trial.given)
            ): "scaled by the sum of the absolute values; the norm is the root of the sum of the squares",
            lambda trial, rank: trial.given[rank] * trial.draw.limit / norm_of_all(trial): "scaled, though the norm "
            "is below the limit: then x must stay as it is",
            lambda trial, rank: trial.given[rank] * trial.draw.limit / norm_of_all(trial) ** 2: "divided by the sum of "
            "the squares; the norm is its root",
            lambda trial, rank: trial.given[rank] * norm_of_all(trial) / trial.draw.limit: "multiplied by norm / "
            "limit, which makes a long x longer; multiply by limit / norm",
        },
        hints=(
            "The norm of a vector is the root of the sum of its squares. Squares add up over the ranks; norms do not.",
            "x.square().sum(), all_reduce, sqrt: the norm. Then x *= limit / norm.",
            "If the norm is below the limit already, x must stay as it is.",
        ),
        dtypes=FLOATS,
    ),
    Exercise(
        name="same_bits_sum",
        asks="it returns the sum of everyone's x, number by number. The bits must not depend on the order of the "
        "additions: add exactly, round once at the end. One all_reduce; x stays as it is",
        lines=4,
        x="(torch.randint(-(2**23), 2**23, (90,)) * 2.0 ** torch.randint(-10, 10, (90,))).to(dtype)",
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
