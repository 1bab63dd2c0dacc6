"""What is wrong with a trial, as a sentence that teaches.

The faults are looked for in the order in which one explains the others: it used the built-in, it sent another dtype,
it did not wait, the result is wrong, it touched what it should not, it talked to the wrong ranks, the result came
otherwise than by messages, it sent too many bytes, it sent too many messages. The first that is found is said.
"""

from collections import Counter
from fractions import Fraction

import numpy as np

from course import causes, diagnosis
from course.exercises.exercise import MESSAGES_ONLY
from course.heard import heard
from launch.errors import name_ranks


def fault(trial) -> str:
    """The first fault of a `course.trial.Trial` that came to its end, as a sentence; "" if there is none."""
    judges = (
        _built_in,
        _sent_dtype,
        _unawaited,
        _result,
        _raced,
        _touched,
        _peers,
        _told,
        _bytes,
        _messages,
        _steps,
        _calls,
    )
    return next(filter(None, (judge(trial) for judge in judges)), "")


def praise(trial) -> str:
    """What was right, as one line."""
    counts = trial.recording.counts()
    if not counts.messages:
        return "right on every rank"
    sent = f"{_plural(counts.messages, 'message')} in {_plural(counts.steps, 'step')}"
    if "x" in trial.exercise.call:
        sent += f", the busiest rank sent {_number(Fraction(counts.busiest, _whole(trial)))} N"
    return f"right on every rank; {sent}"


def _built_in(trial) -> str:
    allowed = trial.exercise.allowed
    used = sorted({event.op for event in trial.recording.events} - allowed)
    if not used:
        return ""
    if not allowed:
        return f"it calls {used[0]}, but every rank can know this without a word from the others"
    return f"it uses the built-in {used[0]}; use only {_listed(allowed)}"


def _sent_dtype(trial) -> str:
    others = {event.dtype.removeprefix("torch.") for event in trial.recording.events if event.dtype} - {trial.dtype}
    if not _keeps_dtype(trial) or not others:
        return ""
    return f"it sends {sorted(others)[0]}, but x is {trial.dtype}: make buffers with torch.empty_like"


def _unawaited(trial) -> str:
    """A call that is not waited for may still be under way: the result would be right by luck."""
    for event in trial.recording.events:
        if event.end is None:
            what = f"isend to rank {event.peer}" if event.op == "send" else f"irecv from rank {event.peer}"
            what = what if event.op in MESSAGES_ONLY else f"{event.op} with async_op"
            return f"rank {event.rank} never waits for its {what} (line {event.line}): keep what it returns, and wait()"
    return ""


def _result(trial) -> str:
    judged = [
        (rank, seen, expected)
        for rank, (seen, expected) in enumerate(zip(trial.answers, trial.expected, strict=True))
        if expected is not None
    ]
    for rank, seen, expected in judged:
        wrong = _wrong_kind(trial, seen, expected)
        if wrong:
            return f"rank {rank}: the answer {wrong}"
    wrong = [rank for rank, seen, expected in judged if not _right(trial)(seen["values"], expected).all()]
    if not wrong:
        return ""
    if _in_place(trial) and not _changed(trial):
        return f"{name_ranks(wrong)}: x is as it was; the answer must stand in x itself (x[...] = , x += , copy_)"
    others = f"; {name_ranks(wrong[1:])} {'are' if len(wrong) > 2 else 'is'} wrong too" if wrong[1:] else ""
    return diagnosis.explain(trial, first_wrong(trial)) + others


def _wrong_kind(trial, seen: dict, expected) -> str:
    """What is wrong with an answer before its numbers are looked at."""
    if seen["is"] == "NoneType":
        return "should be a tensor and is None: the function must return it"
    if seen["is"] != "Tensor":
        return f"should be a tensor and is {seen['is']}"
    if seen["device"] != "cpu":
        return f"is on the device {seen['device']} and should be on cpu, as x is"
    if _keeps_dtype(trial) and seen["dtype"] != trial.dtype:
        return f"is {seen['dtype']} and should be {trial.dtype}, as x is"
    if "values" not in seen or seen["values"].dtype.kind not in "iuf":
        return "should be an ordinary tensor of real numbers"
    if seen["values"].shape != expected.shape:
        return f"has shape {list(seen['values'].shape)} and should have {list(expected.shape)}"
    return ""


def _raced(trial) -> str:
    told = causes.raced(trial.recording)
    return f"right result by luck: {told}" if told else ""


def first_wrong(trial) -> diagnosis.Wrong | None:
    """Where a trial that came to its end is wrong first; None if all numbers are right."""
    return diagnosis.first_wrong(trial, _right(trial))


def _right(trial):
    """What says for each number whether it is right: the very same, or off by at most `rtol` of the largest."""
    rtol = trial.exercise.rtol

    def right(values, expected) -> np.ndarray:
        values, expected = values.astype(np.float64).ravel(), expected.astype(np.float64).ravel()
        return np.abs(values - expected) <= rtol * float(np.abs(expected).max(initial=0))

    return right


def _touched(trial) -> str:
    changed = _changed(trial)
    return "" if _in_place(trial) or not changed else f"{name_ranks(changed)}: x was changed; it must stay as it was"


def _peers(trial) -> str:
    peers = trial.exercise.peers
    for event in trial.recording.events if peers else ():
        if event.op == "send" and event.peer not in peers(event.rank, trial.p):
            return f"rank {event.rank} sent to rank {event.peer}; it may talk to only {trial.exercise.talks}"
    return ""


def _told(trial) -> str:
    """Ranks share no memory: what a rank knows of another's x, a message has told it, if by way of others."""
    for rank, known in enumerate(heard(trial.recording)):
        missing = min(trial.exercise.needs(rank, trial.p) - known, default=None)
        if missing is None:
            continue
        if trial.exercise.synchronises:
            return (
                f"rank {rank} may leave before rank {missing} has come: no message tells it that, not even by way of "
                "others"
            )
        return (
            f"right result, but no message has told rank {rank} what rank {missing} had, not even by way of others: "
            "it must come in messages, not by files, stores or other back doors"
        )
    return ""


def _bytes(trial) -> str:
    if trial.exercise.busiest is None:
        return ""
    sent, bound = Fraction(trial.recording.counts().busiest, _whole(trial)), trial.exercise.busiest(trial.p)
    if sent <= bound:
        return ""
    why = next((f": {why}" for times, why in trial.exercise.why_bytes.items() if sent == times(trial.p)), "")
    return f"right result, but the busiest rank sent {_number(sent)} N where {_number(bound)} N are enough{why}"


def _messages(trial) -> str:
    return _too_many("messages", trial.recording.counts().messages, trial.exercise.messages, trial.p)


def _steps(trial) -> str:
    many = _too_many("steps, one after the other,", trial.recording.counts().steps, trial.exercise.steps, trial.p)
    return f"{many}: {trial.exercise.why_steps}" if many and trial.exercise.why_steps else many


def _calls(trial) -> str:
    """Built-ins: what they send inside is not recorded, so what is judged is how often and with how much."""
    built_in = [event for event in trial.recording.events if event.op not in MESSAGES_ONLY]
    most, bound = max([0, *Counter(event.rank for event in built_in).values()]), trial.exercise.calls
    if bound is not None and most > bound(trial.p):
        return f"right result, but with {most} calls of built-ins where {_number(Fraction(bound(trial.p)))} will do"
    most, bound = max([0, *(event.bytes for event in built_in)]), trial.exercise.call_bytes
    if bound is not None and most > bound(trial.p):
        return f"right result, but one call moves {most} bytes: a few numbers per rank are enough, not the data"
    return ""


def _too_many(what: str, number: int, bound, p: int) -> str:
    if bound is None or number <= bound(p):
        return ""
    return f"right result, but in {number} {what} where {bound(p)} {'is' if bound(p) == 1 else 'are'} enough"


def _in_place(trial) -> bool:
    return trial.exercise.answer.startswith("x")


def _changed(trial) -> list[int]:
    """The ranks whose x holds something else than before."""
    return [
        rank
        for rank, (seen, given) in enumerate(zip(trial.after, trial.given, strict=True))
        if not ("values" in seen and np.array_equal(seen["values"], given))
    ]


def _keeps_dtype(trial) -> bool:
    """Whether all is done in the dtype of x: in exercises without built-ins, where there is an x."""
    return trial.exercise.allowed <= MESSAGES_ONLY and "x" in trial.exercise.call


def _whole(trial) -> int:
    """The bytes of N."""
    return {"x": trial.given, "expected": trial.expected}[trial.exercise.whole][0].nbytes


def _listed(allowed: frozenset[str]) -> str:
    """What may be used, as a student types it."""
    names = {"send": "send, isend", "recv": "recv, irecv"}
    return ", ".join(names.get(op, op) for op in sorted(allowed, key=lambda op: (op not in names, op != "send", op)))


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _number(value: Fraction) -> str:
    """1.5, 3, 0.667: at most three decimals."""
    return f"{float(value):.3f}".rstrip("0").rstrip(".")
