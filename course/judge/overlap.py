"""Whether a trial's calls of built-ins are in flight while their rank does something else, as a sentence if not.

Two exercises ask for it. One knows that a rank computes between two calls; the other sees it in the calls of another
group, which the backward pass makes.

Left out: how long the overlap is.
"""

from itertools import pairwise

from course.exercises.exercise import A_FEW, MESSAGES_ONLY
from launch.shared.errors import name_ranks


def waits(trial) -> str:
    """A call that is waited for before the next one is started hides behind nothing."""
    if trial.exercise.waits is None:
        return ""
    for rank in range(trial.p):
        calls = built_ins_of(trial, rank)
        early = [call for call, following in pairwise(calls) if (call.end or following.start) < following.start]
        if len(early) > trial.exercise.waits(trial.p):
            return (
                f"right result, but rank {rank} waits for its {early[0].op} (line {early[0].line}) before it goes on "
                "computing: call it with async_op=True, keep what it returns, and wait() when the pass is over"
            )
    return ""


def hides(trial) -> str:
    """Calls of one group that have to be in flight while the calls of another show that the rank still computes."""
    for rank in range(trial.p if trial.exercise.hides else 0):
        calls = built_ins_of(trial, rank)
        for group in sorted({call.group for call in calls if len(call.group) > 1}):
            asked = trial.exercise.hides(tuple(sorted(group)), trial.p)
            mine = [call for call in calls if call.group == group]
            others = [call for call in calls if call.group != group and len(call.group) > 1 and call.bytes > A_FEW]
            hidden = sum(any(call.start < other.start < call.end for call in mine) for other in others)
            if others and hidden < asked:
                return (
                    f"right result, but rank {rank} has no {mine[0].op} with {name_ranks(group)} in flight while its "
                    "backward pass runs: start each one in a hook (register_post_accumulate_grad_hook) with "
                    "async_op=True, and wait() after backward()"
                )
    return ""


def built_ins_of(trial, rank: int) -> list:
    """The calls of built-ins of that rank, in the order of their begin."""
    mine = [event for event in trial.calls.events if event.rank == rank and event.op not in MESSAGES_ONLY]
    return sorted(mine, key=lambda event: event.start)
