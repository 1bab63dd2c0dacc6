"""Why a result is wrong, as one sentence: the rank and the chunk, what it holds and should hold, why, and what to do.

    rank 1, chunk 2 holds a2 + c2 + c2 and should hold a2 + b2 + c2: rank 2's was added twice (line 9) and rank 1's is
    missing; add every rank's once; in numbers 21 22 where 46 48 should be

The typical mistakes are looked for one after the other (`causes.py`), and each has words of its own. All of them
are read off what the recording has seen: where it could not see, the sentence says so, and has numbers only.

Left out: what is wrong beside the numbers (`verdict.py`).
"""

from bisect import bisect_right
from itertools import accumulate

import numpy as np

from course.exercises.exercise import MESSAGES_ONLY
from course.judge.causes import CAUSES, hurried, raced
from course.judge.holding import Answers, Block, Held
from course.judge.knowledge import knowledge
from course.judge.ways import Case, Wrong
from launch.replay.provenance import Kind
from launch.shared.errors import name_ranks

SHOWN = 2
"""Numbers of a chunk that a sentence quotes."""

OTHER = {
    Kind.EMPTY: "what torch.empty found in memory",
    Kind.ZERO: "zeros",
    Kind.OWN: "numbers that came from no rank's x",
    Kind.COMPUTED: "the result of other operations than copies and sums",
    Kind.OUTSIDE: "something that was changed outside torch",
    Kind.LIBRARY: "what the library left there",
    Kind.UNSEEN: "something that the recording has not seen",
}
"""What a variable holds beside letters, in words."""

KINDS = {"max": "the largest", "min": "the smallest", "product": "the product"}


def first_wrong(trial, is_right) -> Wrong | None:
    """Where a trial that came to its end is wrong first; `is_right(values, expected)` says it for each number."""
    answers = Answers(trial)
    for rank, (seen, expected) in enumerate(zip(trial.answers, trial.expected, strict=True)):
        if expected is None or "values" not in seen or seen["values"].shape != expected.shape:
            continue
        right = is_right(seen["values"], expected)
        if not right.all():
            place, blocks = int(np.argmin(right)), answers.blocks(rank)
            element = place + (blocks[0].lo if blocks and answers.in_place else 0)
            return Wrong(rank, element, seen["values"].ravel(), expected.ravel(), place)
    return None


def explain(trial, wrong: Wrong) -> str:
    """The sentence about a result that is wrong there."""
    answers = Answers(trial)
    block = next((block for block in answers.blocks(wrong.rank) if block.lo <= wrong.element < block.hi), None)
    if block is None:
        return _in_numbers(trial, wrong, answers)
    wants = {(rank, first + wrong.element - block.lo): 1 for rank, first in block.wanted}
    held, letters = answers.held(wrong.rank, wrong.element), answers.letters(wants)
    quoted = f"in numbers {_numbers(wrong.values, wrong.place)} where {_numbers(wrong.expected, wrong.place)} should be"
    if held is None:
        unseen = "the recording has not seen what is in it" if wrong.values.any() else "all of it is zero"
        why = _silent(trial, wrong.rank) or unseen
        return f"{_name(wrong.rank, block)} should hold {letters}: {why}; {quoted}"
    held = _multiplied(trial, wrong, answers, held)
    case = Case(answers, wrong, block, held, answers.at(held, wrong.element), wants)
    why = next(filter(None, (cause(case) for cause in CAUSES)))
    return f"{_subject(case)} {_holds(case)} and should hold {letters}: {why}; {quoted}"


def _multiplied(trial, wrong: Wrong, answers: Answers, held: Held) -> Held:
    """With the letters of a rank's x that was multiplied by a whole number: a recording that has seen it being sent
    takes it for new numbers from then on."""
    if held.other is not Kind.OWN or held.terms or not answers.in_place:
        return held
    first = wrong.element - wrong.place  # the element that stands first in the answer
    lo, hi = max(held.lo, first), min(held.hi, first + len(wrong.values))
    for rank, x in enumerate(trial.given):
        times = _ratio(wrong.values[lo - first : hi - first], x.ravel()[lo:hi])
        if times and times > 1:
            return held._replace(terms={(rank, held.lo): times}, other=None)
    return held


def _name(rank: int, block: Block) -> str:
    """ "rank 1, chunk 2", "rank 1: x"."""
    return f"rank {rank}{':' if block.alone else ','} {block.name}"


def _subject(case: Case) -> str:
    """ "rank 1, chunk 2", and which elements if not all of it is wrong in this way."""
    block, lo, hi = case.block, max(case.held.lo, case.block.lo), min(case.held.hi, case.block.hi)
    where = _name(case.wrong.rank, block)
    if (lo, hi) == (block.lo, block.hi):
        return where
    lo, hi = lo - block.lo, hi - block.lo - 1
    return f"{where} (element {lo})" if lo == hi else f"{where} (elements {lo}-{hi})"


def _holds(case: Case) -> str:
    held, letters = case.held, case.answers.letters(case.has)
    if held.how != "sum" and len(case.has) > 1:
        letters = f"{KINDS.get(held.how, held.how)} of {letters.replace(' + ', ', ')}"
    other = "" if held.other is None else OTHER[held.other]
    return "holds " + (" + ".join(filter(None, (letters, other))) or "nothing")


def _numbers(values: np.ndarray, place: int) -> str:
    """ "21 22 ...": the numbers from one place on."""
    shown = [_number(value) for value in values[place : place + SHOWN].tolist()]
    return " ".join(shown + ["..."] * (len(values) > place + SHOWN))


def _number(value) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e9 else f"{value:.6g}"


def _only_rounded(wrong: Wrong) -> bool:
    """Whether the number is nearly right: six digits of it would not show what is wrong."""
    value, expected = float(wrong.values[wrong.place]), float(wrong.expected[wrong.place])
    return wrong.expected.dtype.kind == "f" and abs(value - expected) <= 1e-6 * abs(expected)


def _in_numbers(trial, wrong: Wrong, answers: Answers) -> str:
    """The sentence where no letters are known: who has not been heard, and whether only the scale is wrong."""
    where = "x" if answers.in_place else "the answer"
    if trial.exercise.parts:
        where, wrong = _part(trial.exercise.parts(trial.p), wrong)
    at = f" (from element {wrong.place} on)" if wrong.place else ""
    values, expected = (_numbers(each, wrong.place) for each in (wrong.values, wrong.expected))
    if rounded := _only_rounded(wrong):
        values, expected = (f"{each[wrong.place]:.17g}" for each in (wrong.values, wrong.expected))
    text = f"rank {wrong.rank}: {where}{at} is {values} and should be {expected}"
    if silent := _silent(trial, wrong.rank):
        return f"{text}: {silent}"
    if luck := raced(trial.calls) or hurried(trial.calls):
        return f"{text}: {luck}"
    if slip := slip_of(trial, wrong.rank):
        return f"{text}: {slip}"
    bad = np.flatnonzero(~np.isfinite(wrong.values.astype(np.float64)))
    if len(bad):
        return f"{text}: look for a division by zero, or for a number that is too large for exp"
    if answers.in_place and np.array_equal(wrong.expected, trial.given[wrong.rank].ravel()):
        return f"{text}: here it should have stayed as it was"
    if rounded:
        return f"{text}: close, but not the same bits. What was rounded, and how often?"
    if len(wrong.values) > 1 and (times := _scale(wrong)) is not None:
        return f"{text}: all of it is {_times(times)}"
    return text + place_in_x(trial, wrong.rank)


def slip_of(trial, rank: int) -> str:
    """Which typical mistake of the exercise would have led to just this answer, and to those of the other ranks that
    are wrong; "" if none."""
    close = max(trial.exercise.rtol, 1e-6)

    def holds(rank: int, made) -> bool:
        values, made = (np.asarray(each, np.float64).ravel() for each in (trial.answers[rank]["values"], made))
        return made.shape == values.shape and np.abs(values - made).max() <= close * np.abs(made).max()

    others = [r for r in range(trial.p) if r != rank and trial.expected[r] is not None]
    with np.errstate(all="ignore"):  # a slip may well divide by zero
        others = [r for r in others if not holds(r, trial.expected[r])]
        for slip, why in trial.exercise.slips.items():
            if all(holds(r, slip(trial, r)) for r in (rank, *others)):
                return why
    return ""


def _part(parts: dict[str, int], wrong: Wrong) -> tuple[str, Wrong]:
    """Which part of an answer that consists of several is wrong, and that part alone."""
    ends = list(accumulate(parts.values()))
    which = bisect_right(ends, wrong.place)
    name, start, end = list(parts)[which], [0, *ends][which], ends[which]
    values, expected = wrong.values[start:end], wrong.expected[start:end]
    return name, wrong._replace(values=values, expected=expected, place=wrong.place - start)


def place_in_x(trial, rank: int) -> str:
    """ "; it is x[2:4] and should be x[3:5], of 10 numbers": where nothing is sent, an answer is a part of x."""
    if trial.exercise.allowed:
        return ""
    is_at = _slice(trial.given[rank], trial.answers[rank].get("values"))
    should = _slice(trial.given[rank], trial.expected[rank])
    where = " and ".join(filter(None, (is_at and f"is {is_at}", should and f"should be {should}")))
    return f"; it {where}, of {trial.given[rank].size} numbers" if should else ""


def _slice(x: np.ndarray, part: np.ndarray | None) -> str:
    """ "x[3:5]": where in x these numbers stand; "" if that is nowhere, or not plain."""
    if part is None or part.ndim != 1 or not part.size:
        return ""
    starts = [at for at in range(x.size - part.size + 1) if np.array_equal(x[at : at + part.size], part)]
    return f"x[{starts[0]}:{starts[0] + part.size}]" if len(starts) == 1 else ""


def _silent(trial, rank: int) -> str:
    """Whose numbers cannot be in an answer, because nothing that came in can have brought them; "" if all can."""
    unheard = trial.exercise.needs(rank, trial.p) - knowledge(trial.calls)[rank]
    if not unheard:
        return ""
    do = "send them, or use a collective" if trial.exercise.allowed - MESSAGES_ONLY else "send them"
    if not trial.calls.events:
        return f"no rank has sent anything, so {name_ranks(unheard)}'s numbers are not in it; {do}"
    if not any(event.rank == rank for event in trial.calls.events):
        return f"rank {rank} has neither sent nor received anything; look at which ranks take part"
    return f"{name_ranks(unheard)}'s numbers are not in it, no message has brought them; {do}"


def _scale(wrong: Wrong) -> float | None:
    """By what all of the answer is too large, if that is a whole number, or one divided by a whole number."""
    return _ratio(wrong.values, wrong.expected)


def _ratio(values: np.ndarray, expected: np.ndarray) -> float | None:
    """values / expected, if that is the same everywhere and a whole number, or one divided by a whole number."""
    values, expected = values.astype(np.float64), expected.astype(np.float64)
    used = expected != 0
    if not used.any() or (values[~used] != 0).any():
        return None
    ratios = values[used] / expected[used]
    first = float(ratios[0])
    larger = max(abs(first), 1 / abs(first)) if first and np.isfinite(first) else 0
    whole = larger > 1.5 and abs(larger - round(larger)) < 1e-3 * larger
    return first if whole and np.allclose(ratios, first, rtol=1e-3) else None


def _times(times: float) -> str:
    return f"{round(times)} times too large" if abs(times) > 1 else f"{round(1 / times)} times too small"
