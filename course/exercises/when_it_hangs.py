"""The exercises of chapter 17: a loop that all ranks leave together, and the bad rank in the logs of 64."""

from collections.abc import Callable

import numpy as np

from course.exercises.draw import Draw
from course.exercises.exercise import Exercise, nobody

MOST = 40
"""Epochs after which a loop that goes on is ended."""

EPOCHS = """
def _trial_trained(train_until):
    ran = 0
    def epoch():
        nonlocal ran
        ran += 1
        if ran > MOST:
            raise RuntimeError("epoch() was called MOST times, and the loop went on")
        dist.all_reduce(torch.ones(8))
        return {limit} * (rank + 2) / ({pace} * ran)
    said = train_until(epoch, {limit})
    import numbers
    if not isinstance(said, numbers.Integral):
        raise TypeError("train_until returns how many epochs it took, an int; here it returned " + type(said).__name__)
    return torch.tensor([said, ran]).to(torch.{dtype})
""".replace("MOST", str(MOST))
"""Losses fall as 1, 1/2, 1/3 ..., and grow with the rank; how fast they fall is another each time."""

NIGHTS = 9, 3
"""How many nights are alike in every trial, and how many are new."""

ACCUSED = f"""
import importlib, numbers
import course.night
Night = importlib.reload(course.night).Night  # as we wrote it, whatever an earlier answer has put into the class
why_not = Night.why_not
def _accused(bad_rank):
    for seed in [*range({NIGHTS[0]}), *[None] * {NIGHTS[1]}]:
        night = Night(seed)
        said = bad_rank(night.logs)
        if isinstance(said, bool) or not isinstance(said, numbers.Integral):
            what = "nothing" if said is None else f"a {{{{type(said).__name__}}}}"
            raise TypeError(f"bad_rank should return one rank, an int, and returned {{{{what}}}}")
        if why := why_not(night, said):
            raise ValueError(why)
    return torch.tensor({sum(NIGHTS)})
"""


def epochs(draw: Draw) -> int:
    """After how many epochs the mean of the losses is below the goal."""
    return int((draw.p + 3) / (2 * draw.pace)) + 1


def decided_by(compared: Callable[[int], int]):
    """A slip: the epochs until limit / pace * compared(p) / epochs is below the goal, instead of the mean."""

    def epochs_until(trial, rank: int) -> np.ndarray:
        return np.full(2, int(compared(trial.p) / trial.draw.pace) + 1)

    return epochs_until


def off_by(*by: int):
    """A slip: that many more epochs are returned, and were run."""
    return lambda trial, rank: trial.expected[rank] + by


EXERCISES = (
    Exercise(
        name="train_until",
        asks="calls epoch() until the mean of all ranks' losses is below goal, and returns how many epochs that took, "
        "the "
        "same on every rank; between two epochs at most one all_reduce of one number",
        lines=8,
        x="torch.zeros(1).to(dtype)",
        expected="torch.tensor(2 * [int((p + 3) / (2 * pace)) + 1]).to(dtype)",
        in_place=False,
        needs=nobody,
        setup=f"exec(compile({EPOCHS!r}, '<check>', 'exec'))",  # so that lines are those of train_until
        call="_trial_trained({name})",
        allowed=frozenset({"all_reduce"}),
        given=lambda draw: [8, 1] * epochs(draw),
        slips={
            decided_by(lambda p: sum(range(2, p + 2))): "it went on until the sum of the losses was below goal; divide "
            "the sum by world_size",
            decided_by(lambda p: p + 1): "it went on until the largest loss was below goal; the task asks for the mean",
            decided_by(lambda p: 2): "it stopped when the smallest loss was below goal; the task asks for the mean",
            off_by(-1, 0): "it ran the right number of epochs and returns one fewer: count the last one, too",
            off_by(1, 0): "it ran the right number of epochs and returns one more: count from 0",
            off_by(-1, -1): "it stopped one epoch too early: the mean was not below goal yet, but equal to it or above",
            off_by(1, 1): "it ran one epoch too many: after the one before it the mean was below goal already",
        },
        parts=lambda p: {"the number that it returns": 1, "the number of epochs that it ran": 1},
        hints=(
            "All ranks have to come to the same decision after the same epoch. So each of them needs the same number "
            "to decide by.",
            "loss = torch.tensor(epoch()); dist.all_reduce(loss) leaves the sum of all losses on every rank.",
            "epochs = 0; while True: one epoch, the mean, epochs += 1, and if the mean is below goal: return epochs.",
        ),
    ),
    Exercise(
        name="bad_rank",
        asks=f"returns the rank to blame, for the logs of {sum(NIGHTS)} nights. On each night exactly one rank left "
        "the loop, "
        "passed another shape or skipped a call. The function sends nothing",
        lines=8,
        x="torch.zeros(1)",
        setup=ACCUSED,
        expected=f"torch.tensor({sum(NIGHTS)})",
        call="_accused({name})",
        in_place=False,
        needs=nobody,
        allowed=frozenset(),
        hints=(
            "logs[rank][-1] is the call that a rank was in last. First look for a rank whose last call is over.",
            "If there is none, the bad rank waits, too. Take a rank's last call. Look at the last calls of the other "
            "members of that group: which of them are in the same call (same group, same number)?",
            "If there are such calls and each has another shape than the rank's own, that is the bad rank.",
        ),
        world_sizes=(2,),
        dtypes=("float32",),
        more=(3,),
    ),
)
