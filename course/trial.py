"""One trial of a student's function: run it on p real ranks with fresh random numbers, recorded, and find its fault.

The faults are looked for in the order in which one explains the others: it did not end or raised, it used the
built-in, it sent another dtype, the result is wrong, it touched what it should not, it talked to the wrong ranks, it
sent too many bytes, it sent too many messages. The first that is found is said, as a sentence that teaches.
"""

import random
import threading
from collections import Counter
from fractions import Fraction

from course.exercises.exercise import MESSAGES_ONLY, Exercise
from course.heard import heard
from launch.errors import LaunchError, name_ranks
from launch.output import raise_failures
from launch.ranks import Ranks
from launch.replay.recording import Recording

LIMIT = 20
"""Seconds after which a function that has neither ended nor provably hung is stopped."""

PREPARE = """
torch.manual_seed({seed} + rank)  # torch's own seed is the same on every rank, and so would be x
x = {x}
expected = {expected}
before = x.clone()
"""

FACTS = """
def _close(a, b):
    return torch.equal(a, b) if not {rtol} else torch.allclose(a, b, rtol=0, atol={rtol} * float(b.abs().max()))
def _facts(answer):
    if not isinstance(answer, torch.Tensor):
        return {{"is": type(answer).__name__}}
    return {{
        "is": "Tensor", "dtype": str(answer.dtype), "shape": list(answer.shape), "wanted": list(expected.shape),
        "right": answer.shape == expected.shape and _close(answer.double(), expected.double()),
        "untouched": torch.equal(x, before), "nbytes": {whole}.numel() * {whole}.element_size(),
    }}
facts = _facts({answer})
"""

_court: Ranks | None = None


def court() -> Ranks:
    """The ranks that trials run on: not the student's, whose variables are private, and kept between checks."""
    global _court
    if _court is None:
        _court = Ranks()
    return _court


class Trial:
    """The function in `source` on `p` ranks with numbers of `dtype`; running it is making it."""

    def __init__(self, exercise: Exercise, source: str, p: int, dtype: str):
        self.exercise, self.p, self.dtype = exercise, p, dtype
        self.failure = ""
        try:
            self._run(source)
        except LaunchError as error:
            self.failure = str(error)

    def _run(self, source: str) -> None:
        ranks, exercise = court(), self.exercise
        ranks.ensure(self.p)
        _execute(ranks, source)
        x = exercise.x.format(pieces=self.p + 1, dtype=f"torch.{self.dtype}")
        _execute(ranks, PREPARE.format(seed=random.randrange(2**32), x=x, expected=exercise.expected))
        ranks.call("record")
        try:
            _execute(ranks, "returned = " + exercise.call.format(name=exercise.name))
        finally:
            tapes = ranks.call("tape")
        self.recording = Recording(tapes)
        _execute(ranks, FACTS.format(answer=exercise.answer, whole=exercise.whole, rtol=exercise.rtol))
        self.facts = ranks.pull("facts")

    def fault(self) -> str:
        """The first fault as a sentence; "" if there is none."""
        if self.failure:
            return self.failure
        judges = (
            self._built_in,
            self._dtype,
            self._result,
            self._touched,
            self._synchronises,
            self._peers,
            self._bytes,
            self._messages,
            self._steps,
            self._calls,
        )
        return next(filter(None, (judge() for judge in judges)), "")

    def praise(self) -> str:
        """What was right, as one line."""
        counts = self.recording.counts()
        if not counts.messages:
            return "right on every rank"
        sent = f"{_plural(counts.messages, 'message')} in {_plural(counts.steps, 'step')}"
        if "x" in self.exercise.call:
            sent += f", the busiest rank sent {self._in_n(counts.busiest)}"
        return f"right on every rank; {sent}"

    def _built_in(self) -> str:
        used = sorted({event.op for event in self.recording.events} - self.exercise.allowed)
        if not used:
            return ""
        if not self.exercise.allowed:
            return f"it calls {used[0]}, but every rank can know this without a word from the others"
        return f"it uses the built-in {used[0]}; use only {_listed(self.exercise.allowed)}"

    def _dtype(self) -> str:
        others = {event.dtype.removeprefix("torch.") for event in self.recording.events if event.dtype} - {self.dtype}
        free = self.exercise.allowed != MESSAGES_ONLY or "x" not in self.exercise.call
        if free or not others:
            return ""
        return f"it sends {sorted(others)[0]}, but x is {self.dtype}: make buffers with torch.empty_like"

    def _result(self) -> str:
        for rank, facts in enumerate(self.facts):
            if facts["is"] != "Tensor":
                return f"rank {rank}: the answer should be a tensor and is {facts['is']}"
            if facts["shape"] != facts["wanted"]:
                return f"rank {rank}: the answer has shape {facts['shape']} and should have {facts['wanted']}"
        wrong = [rank for rank, facts in enumerate(self.facts) if not facts["right"]]
        if not wrong:
            return ""
        if self._in_place() and all(facts["untouched"] for facts in self.facts):
            return "wrong result: x is as it was; the answer must stand in x itself (x[...] = , x += , copy_)"
        return f"wrong result on {name_ranks(wrong)}"

    def _touched(self) -> str:
        changed = [rank for rank, facts in enumerate(self.facts) if not facts["untouched"]]
        return (
            "" if self._in_place() or not changed else f"{name_ranks(changed)}: x was changed; it must stay as it was"
        )

    def _synchronises(self) -> str:
        for rank, known in enumerate(heard(self.recording)) if self.exercise.synchronises else ():
            missing = set(range(self.p)) - known
            if missing:
                return (
                    f"rank {rank} may leave before rank {min(missing)} has come: no message tells it that, not even "
                    "by way of others"
                )
        return ""

    def _peers(self) -> str:
        for event in self.recording.events if self.exercise.peers else ():
            if event.op == "send" and event.peer not in self.exercise.peers(event.rank, self.p):
                return f"rank {event.rank} sent to rank {event.peer}; it may talk to only {self.exercise.talks}"
        return ""

    def _bytes(self) -> str:
        if self.exercise.busiest is None:
            return ""
        sent, bound = Fraction(self.recording.counts().busiest, self._nbytes()), self.exercise.busiest(self.p)
        if sent <= bound:
            return ""
        why = next((f": {why}" for times, why in self.exercise.why_bytes.items() if sent == times(self.p)), "")
        return f"right result, but the busiest rank sent {_number(sent)} N where {_number(bound)} N are enough{why}"

    def _messages(self) -> str:
        return self._too_many("messages", self.recording.counts().messages, self.exercise.messages)

    def _steps(self) -> str:
        return self._too_many("steps, one after the other,", self.recording.counts().steps, self.exercise.steps)

    def _calls(self) -> str:
        """Built-ins: what they send inside is not recorded, so what is judged is how often and with how much."""
        built_in = [event for event in self.recording.events if event.op not in MESSAGES_ONLY]
        most, bound = max([0, *Counter(event.rank for event in built_in).values()]), self.exercise.calls
        if bound is not None and most > bound(self.p):
            return f"right result, but with {most} calls of built-ins where {_number(Fraction(bound(self.p)))} will do"
        most, bound = max([0, *(event.bytes for event in built_in)]), self.exercise.call_bytes
        if bound is not None and most > bound(self.p):
            return f"right result, but one call moves {most} bytes: a few numbers per rank are enough, not the data"
        return ""

    def _too_many(self, what: str, number: int, bound) -> str:
        if bound is None or number <= bound(self.p):
            return ""
        return f"right result, but in {number} {what} where {bound(self.p)} are enough"

    def _in_place(self) -> bool:
        return self.exercise.answer.startswith("x")

    def _nbytes(self) -> int:
        return self.facts[0]["nbytes"]

    def _in_n(self, nbytes: int) -> str:
        return f"{_number(Fraction(nbytes, self._nbytes()))} N"


def _execute(ranks: Ranks, code: str) -> None:
    """Run a cell; what the ranks print is nobody's business, what they raise is a LaunchError."""
    watchdog = threading.Timer(LIMIT, ranks.interrupt)
    watchdog.start()
    try:
        answers = ranks.execute(code)
    finally:
        watchdog.cancel()
    if any(answer.was_doing for answer in answers):
        raise LaunchError(f"it had not ended after {LIMIT} s and was stopped")
    raise_failures(answers)


def _listed(allowed: frozenset[str]) -> str:
    """What may be used, as a student types it."""
    names = {"send": "send, isend", "recv": "recv, irecv"}
    return ", ".join(names.get(op, op) for op in sorted(allowed, key=lambda op: (op not in names, op != "send", op)))


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _number(value: Fraction) -> str:
    """1.5, 3, 0.667: at most three decimals."""
    return f"{float(value):.3f}".rstrip("0").rstrip(".")
