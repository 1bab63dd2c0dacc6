"""One trial of a student's function: run it on p real ranks with fresh random numbers, recorded, and keep what is seen.

The numbers that go in and those that should come out are fetched from the ranks before the function runs, and compared
here, in the notebook's kernel: no variable of the student's can collide with them, and what the function does to torch
on its ranks changes nothing in the comparison. What is right and wrong with it all is told by `verdict.py`.
A set of ranks for each world size is kept, and begins every trial with the names it began its first one with. Where a
function has hung, or has left a message under way, a thread, a group, or another torch, its ranks are ended.

A right result must have come in the messages. So the function runs once more on the first draw, with the same numbers,
and all that it sends is changed on the way (`TAMPER`): whoever still has the right result has it from elsewhere, a
file, a store, shared memory, a process group of its own.

Left out: a student who is bent on cheating. A rank is a whole Python process.
"""

import base64
import os
import random
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import cached_property
from pathlib import Path

from course.exercises.draw import Draw, at_random, fixed
from course.exercises.exercise import Exercise
from course.judge import verdict
from course.judge.advice import advice
from course.judge.holding import RETURNED, X
from launch.doctor.snapshot import How
from launch.kernel import output
from launch.kernel.cell import Answer
from launch.kernel.host import check_room
from launch.magics import loaded
from launch.ranks import Ranks
from launch.replay.recording import Captures, Recording
from launch.shared import codec
from launch.shared.errors import (
    DeadlockError,
    LaunchError,
    LostMessageError,
    MismatchError,
    RankError,
    UsageError,
    name_ranks,
)

LIMIT = 20
"""Seconds after which a function that has neither ended nor provably hung is stopped."""

GRACE = 2
"""Seconds after which the ranks of a function that catches even the stop are killed."""

LONGEST = 400
"""Characters of an error's text that are shown."""

PRINTED = 16
"""About how many lines of what a function prints in one trial are shown."""

THREADED = (
    "it calls torch.distributed from threads of its own, and then nobody can tell which calls were waited for; isend "
    "starts a message without a thread: isend, then recv, then wait()"
)

LARGEST_KEPT = 4
"""Ranks of the largest set that lives on after a check: a rank takes 50 MB."""

AROUND = Path(__file__).with_name("around.py").read_text(encoding="utf-8")
SEEN = "application/x-ringside-trial"
"""The mime type as which ranks display what goes in and what comes out."""

START = f"""
def _trial_begun():
    space = {{"__name__": "trial"}}
    exec(compile({AROUND!r}, "<trial>", "exec"), space)
    return space["Around"](globals(), {SEEN!r})
_trial_around = _trial_begun()
"""

EXERCISE = """
{setup}
def _trial_prepared():
    {draw} = {values}
    dtype = torch.{dtype}
    x = {x}
    yield x
    expected = {expected}
    yield expected
def _trial_call(x):
    return {call}
def _trial_answer(x, returned):
    return {answer}
"""
"""What differs from exercise to exercise (`Around._prepared`)."""

_kept: dict[int, Ranks] = {}  # by world size


def grader_ranks(p: int, say: Callable[[str], None] = lambda text: None) -> Ranks:
    """The p ranks that trials run on: not the student's, whose variables are private, and kept between trials."""
    if p not in _kept:
        _kept[p] = Ranks(fork_from=loaded() or next(iter(_kept.values()), None), recovers=False)
    ranks = _kept[p]
    if ranks.size and ranks.lost():
        ranks.stop()
    if not ranks.size:
        say(f"starting {p} ranks")
        try:
            ranks.ensure(p)
        except UsageError:  # for want of room, which the others take
            end_ranks()
            ranks.ensure(p)
        _execute(ranks, START)
    return ranks


def end_ranks(larger_than: int = 0) -> None:
    """Ends the sets of ranks that are larger than that."""
    for ranks in _kept.values():
        if ranks.size > larger_than:
            ranks.stop()


def close_ranks() -> None:
    """Ends all of them for good, and their agents."""
    while _kept:
        _kept.popitem()[1].close()


def draws(exercise: Exercise) -> list[Draw]:
    """What the exercise is tried on: fixed draws, and one at random, on as many ranks as there is memory for."""
    found = [fixed(i, p, d) for i, (p, d) in enumerate(zip(exercise.world_sizes, exercise.dtypes, strict=True))]
    fitting = list(filter(_fits, exercise.more)) or [found[0].p]
    return [*found, at_random(random.choice(fitting), random.choice(exercise.dtypes))]


def _fits(p: int) -> bool:
    try:
        check_room(p, sum(ranks.size for ranks in _kept.values()))
    except UsageError:
        return False
    return True


def trials(exercise: Exercise, source: str, say: Callable[[str], None] = lambda text: None) -> Iterator["Trial"]:
    """One trial after the other; `say` is told what is going on."""
    try:
        for draw in draws(exercise):
            yield Trial(exercise, source, draw, say)
    finally:
        end_ranks(LARGEST_KEPT)


class Trial:
    """The function in `source` on the ranks and the kind of numbers of a Draw; running it is making it.

    failure     why it did not come to its end, "" if it did, and the `error` that says so
    hints       lines that help with its fault (launch/hints, advice.py), once `fault` has been asked
    notes       what is odd in the function as it stands (launch/hints/leftovers.py)
    verdict     "no" if there is a fault; "stopped" if the student stopped it, "not tried" if there were no ranks for it
    last        the ranks' Answers to the last of its cells that was over
    printed     (ranks, text) of what they wrote to standard output and error
    captures    what the taps of its ranks kept; [] if it never began
    calls       what it sent, when and how much; None if there are no captures
    recording   the same with what was in the messages, which takes several times as long to work out; None likewise

    If it came to its end there are also:
    given       x of every rank, as numpy arrays
    expected    what the answer of every rank should hold; None where it does not matter
    after       what stands in x of every rank now: {"is", "dtype", "device", "values"}, or less of that
    answers     the same of the answers, and {"is x"}: whether x itself was returned
    """

    def __init__(self, exercise: Exercise, source: str, draw: Draw, say: Callable[[str], None] = lambda text: None):
        self.exercise, self.draw, self.say = exercise, draw, say
        self.source = source.lstrip("\n")  # as IPython does: its lines are those of the recording
        self.p, self.dtype = draw.p, draw.dtype
        self.failure, self.verdict, self.hints = "", "no", []
        self.error: LaunchError | None = None
        self.notes: list[str] = []
        self.printed: list[tuple[list[int], str]] = []
        self.captures: list[dict] = []
        self.last: list[Answer] = []
        self.threaded = False  # whether the function has started threads of its own
        self._clean = False  # whether its ranks are as they were before
        self._seed = random.randrange(2**32)
        try:
            self._run()
        except Stopped as error:
            self.failure, self.verdict = str(error), "stopped"
        except LaunchError as error:
            self.error, self.failure = error, _one_line(str(error))
            wrongly = f"{exercise.name}() "  # begins what Python says of a call that does not fit the function
            if any(answer.ename == "TypeError" and answer.evalue.startswith(wrongly) for answer in self.last):
                names = {name: name for name in asdict(draw)}
                self.failure += f"; check calls {exercise.call.format(name=exercise.name, **names)}"
            self.failure += "" if isinstance(error, MismatchError) else self._raised_at()
            self.verdict = "no" if _kept[self.p].size else "not tried"
            exited = any(answer.ename == "SystemExit" for answer in self.last)  # what is said of it is about cells
            self.hints = [] if exited else error.hints
            self.threaded = isinstance(error, (DeadlockError, LostMessageError)) and self._is_threaded()
            self._clean = type(error) is RankError and self._is_over()
        self._leave()

    @property
    def where(self) -> str:
        """ "on 4 ranks, float32"."""
        return f"on {self.p} ranks, {self.dtype}"

    def _run(self) -> None:
        ranks, how = self._prepared()
        secret = _shown(_execute(ranks, f"{X} = _trial_around.begin({how})"))
        self.given, self.expected = zip(*secret, strict=True)
        try:  # the call stands below the student's lines, which keep their numbers
            call = f"{RETURNED} = _trial_around.call({self.exercise.name!r}, {X})"
            _execute(ranks, f"{self.source}\n{call}", self._hear, record=True)
        finally:
            self.captures = ranks.captures or []
        self.after, self.answers = self._evidence(ranks)

    def _is_over(self) -> bool:
        """Whether a function that has raised an error has left its ranks as one that has not."""
        if not self.captures or any(answer.how is How.DIED or answer.lost for answer in self.last):
            return False
        try:
            clean = _shown(_execute(_kept[self.p], "_trial_around.show(_trial_around.clean())"))
        except LaunchError:  # one has died
            return False
        return all(clean) and not self._unfinished()

    def _unfinished(self) -> bool:
        """Whether a call that the function has begun is still under way."""
        return any(_kept[self.p].supervisor.unfinished(rank) for rank in range(self.p))

    def _raised_at(self) -> str:
        """ " (line 9)": where ranks raised an error, and which line is whose where that is not plain."""
        errors = [answer.rank for answer in self.last if answer.how is How.RAISED]
        if not errors:
            return ""
        try:
            lines = _kept[self.p].pull("_trial_line")
        except LaunchError:  # one has died
            return ""
        whose: dict[int, list[int]] = {}
        for rank in errors:
            whose.setdefault(lines[rank], []).append(rank)
        whose.pop(0, None)
        plain = True
        if isinstance(self.error, DeadlockError):  # it ends with those that were waited for in vain
            plain = {other for _, other, *_ in self.error.edges} - {*self.error.ranks} == {*errors}
        if len(whose) == 1 and plain:
            said = f"line {next(iter(whose))}"
            return "" if re.search(rf"\b{said}\b", self.failure) else f" ({said})"
        if whose and not plain and " raised " not in self.failure:  # it names none of those that failed first
            line, ranks = next(iter(whose.items()))
            answer = next(answer for answer in self.last if answer.rank == ranks[0])
            return f"; {name_ranks(ranks)} raised {_one_line(f'{answer.ename}: {answer.evalue}')} (line {line})"
        where = ", ".join(f"line {line} on {name_ranks(ranks)}" for line, ranks in whose.items())
        return f" (raised in {where})" if where else ""

    def _prepared(self) -> tuple[Ranks, str]:
        """The ranks, and how x is made on them: what `Around.begin` is called with."""
        ranks, exercise, draw = grader_ranks(self.p, self.say), self.exercise, asdict(self.draw)
        self.say(self.where)
        texts = EXERCISE.format(
            setup=exercise.setup.format(**draw),
            draw=", ".join(draw),
            values=tuple(draw.values()),
            dtype=self.dtype,
            x=exercise.x,
            expected=exercise.expected,
            call=exercise.call.format(name=exercise.name, **draw),
            answer=exercise.part if exercise.in_place else "returned",
        )
        return ranks, f"{exercise.groups.format(**draw)!r}, {texts!r}, {self._seed}"

    def _hear(self, answers: list[Answer]) -> None:
        for stream in (lambda answer: str(answer.out), lambda answer: str(answer.err)):
            self.printed += [(ranks, str(text)) for ranks, text in output.alike(answers, stream)]
        self.last = answers
        self.notes = list(dict.fromkeys([*self.notes, *(note for answer in answers for note in answer.notes)]))

    def _evidence(self, ranks: Ranks):
        shown = _shown(_execute(ranks, f"_trial_around.see({X}, {RETURNED})"))
        after, answers, clean, threaded = zip(*shown, strict=True)
        self.threaded = any(threaded)
        self._clean = all(clean) and not self._unfinished()
        return after, answers

    def once_more(self, way: str) -> list[dict] | None:
        """The answers for the same x, "tampered" or "reversed" (see `Around`); None if the function fails then."""
        try:
            ranks, how = self._prepared()
            call = f"{RETURNED} = _trial_around.{way}({self.exercise.name!r}, {X})"
            _execute(ranks, f"{X} = _trial_around.again({how})\n{self.source}\n{call}")  # nobody asks for its lines
            return list(self._evidence(ranks))[1]
        except Stopped:
            raise
        except LaunchError:
            self._clean = False
            return None
        finally:
            self._leave()

    def _leave(self) -> None:
        """Ends the ranks if they are not as they were."""
        if not self._clean and self.p in _kept:
            _kept[self.p].stop()

    @cached_property
    def calls(self) -> Captures | None:
        return Captures(self.captures, stuck=getattr(self.error, "edges", ())) if self.captures else None

    @cached_property
    def recording(self) -> Recording | None:
        return Recording(self.calls) if self.calls else None

    def fault(self) -> str:
        """The first fault as a sentence; "" if there is none."""
        if not self.failure:
            found = verdict.fault(self)
            self.hints = advice(self) if found else []
        elif found := verdict.built_in(self):
            self.hints = []  # they are about the failure
        elif found := verdict.dropped(self):
            self.hints = list(self.notes)
        else:
            self.hints = [*self.hints, *advice(self)]
        found = found or self.failure
        hung = isinstance(self.error, DeadlockError) and found == self.failure  # whoever waits for what
        lost = isinstance(self.error, LostMessageError) or verdict.unawaited(self)
        if found and self.threaded and lost and not hung:
            self.verdict, self.hints = "not judged", []
            return THREADED
        if not found and self.draw.index == 0:  # where other numbers always lead to another result
            try:
                found = verdict.in_order_of_arrival(self) or verdict.smuggled(self)
            except Stopped as error:
                found, self.verdict = str(error), "stopped"
            if found:  # what has brought the numbers may still hold them
                self._clean = False
                self._leave()
        return found

    def _is_threaded(self) -> bool:
        """Whether the function has started threads on any rank, of those that still answer."""
        return any(_shown(_kept[self.p].execute("_trial_around.show(_trial_around.threaded)")))

    def prints(self) -> list[str]:
        """What they printed, as lines that say who: the first ones of each, and how many more there are."""
        shown, room = [], max(PRINTED // max(len(self.printed), 1), 2)
        for ranks, text in self.printed:
            lines = [line[:LONGEST] for line in output.prefixed(ranks, text).splitlines()]
            cut = [f"[{name_ranks(ranks)}] ... and {len(lines) - room:,} more lines"] if len(lines) > room + 1 else []
            shown += lines[: room if cut else None] + cut
        return shown


class Stopped(LaunchError):
    """The stop button has ended the trial."""


def _execute(
    ranks: Ranks, code: str, hear: Callable[[list[Answer]], None] = lambda answers: None, record: bool = False
) -> list[Answer]:
    """Run a cell; `hear` gets the answers, too, and what the ranks raise is a LaunchError then."""
    late = threading.Event()

    def stop() -> None:
        late.set()
        ranks.interrupt()

    watchdogs = [threading.Timer(LIMIT, stop), threading.Timer(LIMIT + GRACE, ranks.interrupt)]
    for watchdog in watchdogs:
        watchdog.start()
    try:
        answers = ranks.execute(code, record=record)
    finally:
        for watchdog in watchdogs:
            watchdog.cancel()
    hear(answers)
    if late.is_set():
        raise LaunchError(
            f"it had not ended after {LIMIT} s and was stopped: is there a loop without an end?{_busy(ranks)}"
        )
    if any(answer.was_doing for answer in answers):
        raise Stopped("it was stopped before it had ended")
    output.raise_failures(answers)
    return answers


def _busy(ranks: Ranks) -> str:
    """What to say of a function that was stopped where other programs take its time: a right one may be slow, too."""
    others, processors = os.getloadavg()[0] - ranks.size, os.cpu_count() or 1
    if others <= processors:
        return ""
    return (
        f" Or is it the machine? About {others:.0f} other tasks want its {processors} processors, so a right answer "
        "may be as slow: check again when they are done"
    )


def _shown(answers: list[Answer]) -> list:
    """What `Around.show` has shown in a cell, on every rank."""
    found = [shown["data"][SEEN] for answer in answers for shown in answer.displays if SEEN in shown["data"]]
    return [codec.decode(form, [base64.b64decode(text) for text in texts]) for form, texts in found]


def _one_line(text: str) -> str:
    """An error's text as part of a sentence: no line breaks, and not without end."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
