"""One trial of a student's function: run it on p real ranks with fresh random numbers, recorded, and keep what is seen.

The numbers that go in and those that should come out are fetched from the ranks before the function runs, and compared
here, in the notebook's kernel: no variable of the student's can collide with them, and what the function does to torch
on its ranks changes nothing in the comparison. What is right and wrong with it all is told by `course/verdict.py`.
After a fault the ranks are ended: messages may still be under way there, or torch itself may have been changed.

Left out: a student who is bent on cheating. A rank is a whole Python process, and who sends the right messages with
nothing in them and smuggles the numbers past them in a file has worked harder than for the exercise.
"""

import random
import threading
from functools import cached_property

from course import verdict
from course.exercises.exercise import Exercise
from course.holding import RETURNED, X
from launch.errors import LaunchError
from launch.output import raise_failures
from launch.ranks import Ranks
from launch.replay.recording import Recording

LIMIT = 20
"""Seconds after which a function that has neither ended nor provably hung is stopped."""

GRACE = 2
"""Seconds after which the ranks of a function that catches even the stop are killed."""

LONGEST = 400
"""Characters of an error's text that are shown."""

PREPARE = """
def _trial_prepared():
    torch.manual_seed({seed} + rank)  # torch's own seed is the same on every rank, and so would be x
    x = {x}
    expected = {expected}
    return x, [None if tensor is None else tensor.numpy() for tensor in (x, expected)]
def _trial_call(x):
    return {call}
def _trial_answer(x, returned):
    return {answer}
def _trial_seen(tensor):
    if not isinstance(tensor, torch.Tensor):
        return {{"is": type(tensor).__name__}}
    seen = {{"is": "Tensor", "dtype": str(tensor.dtype).removeprefix("torch."), "device": tensor.device.type}}
    plain = tensor.layout == torch.strided and tensor.device.type != "meta" and not tensor.is_quantized
    if not plain or tensor.dtype == torch.bfloat16:
        return seen
    return seen | {{"values": tensor.detach().cpu().resolve_conj().numpy()}}
{x_is}, _trial_secret = _trial_prepared()
"""

SEE = f"""
_trial_evidence = [_trial_seen({X}), _trial_seen(_trial_answer({X}, {RETURNED})) | {{"is x": {RETURNED} is {X}}}]
"""

_court: Ranks | None = None


def court() -> Ranks:
    """The ranks that trials run on: not the student's, whose variables are private, and kept between checks."""
    global _court
    if _court is None:
        _court = Ranks()
    return _court


class Trial:
    """The function in `source` on `p` ranks with numbers of `dtype`; running it is making it.

    failure     why it did not come to its end, "" if it did
    tapes       what the taps of its ranks kept; [] if it never began
    recording   what it sent; None if there are no tapes

    If it came to its end there are also:
    given       x of every rank, as numpy arrays
    expected    what the answer of every rank should hold; None where it does not matter
    after       what stands in x of every rank now: {"is", "dtype", "device", "values"}, or less of that
    answers     the same of the answers, and {"is x"}: whether x itself was returned
    """

    def __init__(self, exercise: Exercise, source: str, p: int, dtype: str):
        self.exercise, self.p, self.dtype = exercise, p, dtype
        self.failure = ""
        self.tapes: list[dict] = []
        try:
            self._run(source)
        except LaunchError as error:
            self.failure = _one_line(str(error))

    def _run(self, source: str) -> None:
        ranks, exercise = court(), self.exercise
        ranks.ensure(self.p)
        x = exercise.x.format(pieces=self.p + 1, dtype=f"torch.{self.dtype}")
        call = exercise.call.format(name=exercise.name)
        texts = {"x": x, "expected": exercise.expected, "call": call, "answer": exercise.answer}
        _execute(ranks, PREPARE.format(seed=random.randrange(2**32), x_is=X, **texts))
        self.given, self.expected = zip(*ranks.pull("_trial_secret"), strict=True)
        ranks.push(_trial_secret=None)
        _execute(ranks, source)
        ranks.call("record")
        try:
            _execute(ranks, f"{RETURNED} = _trial_call({X})")
        finally:
            self.tapes = [tape for tape in ranks.call("tape") if tape is not None]
        _execute(ranks, SEE)
        self.after, self.answers = zip(*ranks.pull("_trial_evidence"), strict=True)

    @cached_property
    def recording(self) -> Recording | None:
        return Recording(self.tapes) if self.tapes else None

    def fault(self) -> str:
        """The first fault as a sentence; "" if there is none."""
        found = self.failure or verdict.fault(self)
        if found:
            court().stop()
        return found


def _execute(ranks: Ranks, code: str) -> None:
    """Run a cell; what the ranks print is nobody's business, what they raise is a LaunchError."""
    late = threading.Event()

    def stop() -> None:
        late.set()
        ranks.interrupt()

    watchdogs = [threading.Timer(LIMIT, stop), threading.Timer(LIMIT + GRACE, ranks.interrupt)]
    for watchdog in watchdogs:
        watchdog.start()
    try:
        answers = ranks.execute(code)
    finally:
        for watchdog in watchdogs:
            watchdog.cancel()
    if late.is_set():
        raise LaunchError(f"it had not ended after {LIMIT} s and was stopped: is there a loop without an end?")
    if any(answer.was_doing for answer in answers):
        raise LaunchError("it was stopped before it had ended")
    raise_failures(answers)


def _one_line(text: str) -> str:
    """An error's text as part of a sentence: no line breaks, and not without end."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
