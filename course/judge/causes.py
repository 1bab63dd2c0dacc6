"""The typical mistakes, one function for each: what happened and what to do, or "" if it is not that.

They are asked in the order in which one explains the others (`CAUSES`), and look at what the answer holds in the end
and should hold, in letters. What nobody has seen is not claimed.

Left out: the sentence around it (`diagnosis.py`); mistakes that show only at other places or on the way
(`ways.py`).
"""

from collections.abc import Callable

import numpy as np

from course.exercises.exercise import MESSAGES_ONLY
from course.judge.ways import (
    Case,
    brought,
    doubling,
    elsewhere,
    first_not_finite,
    has_come,
    misplaced,
    overwritten,
    repeated,
    too_early,
    undone,
    was_here,
)
from launch.replay.provenance import Kind
from launch.shared.errors import name_ranks

UNSEEN = {
    Kind.COMPUTED: "use copies and +=",
    Kind.OUTSIDE: "use torch's own copy_ and +=",
    Kind.LIBRARY: "look at the numbers",
    Kind.UNSEEN: "look at the numbers",
}
"""Of these no letters are known -> what to do."""


def raced(calls) -> str:
    """A send whose data were written to while it was under way: nobody knows what went out."""
    for rank, line in sorted(calls.changed):
        return (
            f"rank {rank} wrote to the tensor of its send (line {line}) before that was over, so nobody knows what "
            "went out; receive into another tensor, and change this one only after wait()"
        )
    return ""


def hurried(calls, built_in: bool = False) -> str:
    """A tensor that was used before the call that brings it was over; with `built_in` only those of built-ins."""
    for rank, op, line, wait, wrote in sorted(calls.used_before_wait):
        if op in MESSAGES_ONLY and built_in:
            continue
        does, what = "writes to" if wrote else "reads", "irecv" if op in MESSAGES_ONLY else op
        return (
            f"rank {rank} {does} the tensor of its {what} (line {line}) before it waits for that (line {wait}), so "
            "nobody knows what it holds then; wait() first"
        )
    return ""


def _raced(case: Case) -> str:
    return raced(case.answers.trial.calls)


def _hurried(case: Case) -> str:
    return hurried(case.answers.trial.calls)


def _never_filled(case: Case) -> str:
    if case.held.other is not Kind.EMPTY:
        return ""
    if case.has and len(case.wants) == 1:
        return "what arrived was added to a tensor that was never filled; receive into it, or copy_ it there"
    if any(rank == case.wrong.rank for rank, _ in case.has) and not case.answers.in_place:
        return "a tensor was added before anything had come into it; receive first, then add"
    if case.has:
        return (
            "a tensor that was never filled is in the sum; start it with torch.zeros_like, or with a clone of your own "
            "piece"
        )
    own = {rank for rank, _ in case.wants} == {case.wrong.rank}
    if not own and (sender := brought(case)) is not None:
        return f"rank {sender} sent it like that, it had never filled it; fill what you send first"
    return "it was never filled; receive or copy into it"


def _zeros(case: Case) -> str:
    if case.held.other is not Kind.ZERO:
        return ""
    how = f"set to zeros{case.written}" if case.answers.in_place else "left at zeros"
    return f"it was {how}; receive, copy or add into it"


def _not_finite(case: Case) -> str:
    value = float(case.wrong.values[case.wrong.place])
    if np.isfinite(value):
        return ""
    do = "look there for a division by zero, or for a number that is too large"
    if found := first_not_finite(case.answers.recording):
        return f"rank {found[0]} was the first to have {found[1]}, {found[2]}; {do}"
    return f"{value:g} came up on rank {case.wrong.rank} after its last message; {do}"


def _unseen(case: Case) -> str:
    if case.held.other not in UNSEEN:
        return ""
    return f"the recording cannot say what is in that{case.written}; {UNSEEN[case.held.other]}"


def _foreign(case: Case) -> str:
    if case.held.other is not Kind.OWN:
        return ""
    return "a rank had or made them itself; only what came from an x belongs there"


def _other_reduction(case: Case) -> str:
    if case.held.how == "sum" or len(case.has) < 2:
        return ""
    return f"that is no sum{case.written}; add with +="


def _as_it_was(case: Case) -> str:
    """Nothing has come: a rank's own piece where it stood at the start."""
    own = {(case.wrong.rank, case.wrong.element): 1}
    if not case.answers.in_place or case.has != own or case.held.lines or own == case.wants:
        return ""
    if own.keys() <= case.wants.keys():
        nothing = "it is as it was at the start, nothing was ever added to it"
        if case.changed(case.wrong.rank):
            return f"{nothing}, but other parts of x have changed; look at which chunk arrives, and add it to that one"
        return f"{nothing}; receive, then add with +="
    return "it is as it was at the start; receive into it, or copy_ what you received"


def _untouched_letters(case: Case) -> str:
    """The right pieces and the wrong numbers: x was another before the first message."""
    if case.has != case.wants:
        return ""
    if case.wants.keys() == {(case.wrong.rank, case.wrong.element)}:
        return "this rank changed its own x before its first message; it should have stayed as it was"
    return "the right pieces are in it, but some rank changed its x before its first message; send x as it is"


def _scaled(case: Case) -> str:
    often = set(case.has.values())
    if case.has.keys() != case.wants.keys() or len(often) > 1 or len(case.wants) < 2 and often > {1}:
        return ""
    times = often.pop()
    if len(case.wants) < 2 and times > 1 and float(times).is_integer():
        return ""
    if times < 0:
        return f"all of it has the wrong sign{case.written}; add with +="
    if times < 1:
        return f"all of it was divided by {1 / times:g}{case.written}; a sum is not divided"
    return f"all of it is in there {_count(times)}{case.written}; add every rank's once"


def _twice(case: Case) -> str:
    often = {origin: times for origin, times in case.has.items() if origin in case.wants and times > 1}
    if not often:
        return ""
    ranks, count = sorted({rank for rank, _ in often}), _count(max(often.values()))
    count = count if len({*often.values()}) == 1 else "more than once"
    missing = f", and {_whose(case.missing)} missing" if case.missing else ""
    verb = "were" if len(ranks) > 1 else "was"
    return f"{name_ranks(ranks)}'s {verb} added {count}{doubling(case, ranks[0])}{missing}; add every rank's once"


def _subtracted(case: Case) -> str:
    ranks = sorted({rank for (rank, _), times in case.has.items() if times < 0})
    if not ranks:
        return ""
    return f"{name_ranks(ranks)}'s {'was' if len(ranks) == 1 else 'were'} subtracted; add with +="


def _other_chunks(case: Case) -> str:
    """Every rank is in it, some of them with another chunk."""
    there = {rank: origin for origin in case.has for rank in (origin[0],)}
    strays = [rank for rank in case.missing if rank in there and (rank, there[rank][1]) not in case.wants]
    if len(case.wants) < 2 or not strays or strays != case.missing:
        return ""
    return f"{name_ranks(strays)} contributed another chunk; look at which chunk is sent, and to which one it is added"


def _own_missing(case: Case) -> str:
    rank = case.wrong.rank
    if rank not in case.missing or len(case.wants) < 2:
        return ""
    others = [other for other in case.missing if other != rank]
    more = f", and so {'are' if len(others) > 1 else 'is'} {name_ranks(others)}'s" if others else ""
    if case.answers.in_place:
        finished = ", and pass it on when it is finished" if len(case.answers.blocks(rank)) > 1 else ""
        return f"the rank's own piece is missing{case.written}{more}; add what arrives to it with +={finished}"
    if case.missing and len(case.has) == 1 and {*case.has} <= {*case.wants} and len(case.wants) > 2:
        last = name_ranks({rank for rank, _ in case.has})
        return f"only {last}'s is in it, and nothing else; add what arrives with +=, and start with a clone of your own"
    return f"the rank's own piece is missing{more}; start the sum with a clone of it"


def _missing(case: Case) -> str:
    if not case.missing:
        return ""
    if len(case.wants) > 1:
        stray = f", and {_stray(case)}" if _stray(case) else ""
        came = {has_come(case, rank) for rank in case.missing}
        ways: dict[tuple[bool | None, ...], tuple[str, str]] = {
            (True,): ("came here, but {} not in it", "add each piece before you receive the next one in its place"),
            (False,): (
                "never came here",
                f"look at what {_senders(case.missing)}, and at which rank passes it on",
            ),
        }
        how, do = ways.get(tuple(came), ("{} not in it", "look at which rank sends what, and add what arrives"))
        if came == {True} and {rank for rank, _ in case.has} == {case.wrong.rank}:
            do = "add the tensor that you received into"
        if stray and {rank for rank, _ in case.has} <= {rank for rank, _ in case.wants}:
            do = "look at which chunk arrives, and add it to that one"
        return f"{name_ranks(case.missing)}'s {how.format('is' if len(case.missing) == 1 else 'are')}{stray}; {do}"
    if not case.has:
        return f"{name_ranks(case.missing)}'s never arrived here; receive it into this place"
    wanted, rank = case.missing[0], next(iter(case.has))[0]
    if len(case.has) > 1:
        several = name_ranks({rank for rank, _ in case.has})
        return f"{several}'s were added up where rank {wanted}'s alone should be; copy instead of adding"
    if rank == wanted:
        return f"that is another chunk of rank {rank}'s; look at which chunk is sent, and where it is received"
    if (again := repeated(case)) and (wanted == case.wrong.rank or was_here(case)):
        return (
            f"rank {wanted}'s was here too, but {again} all hold what came last; give each piece a tensor of its own, "
            "or put a clone() of it there"
        )
    if again and has_come(case, wanted) is False:
        return f"{again} all hold the same, and rank {wanted}'s never came here; pass on what has just come"
    return (
        f"rank {rank}'s is where rank {wanted}'s should be; look at which rank you receive from, and into which place"
    )


def _stray(case: Case) -> str:
    """ "a0 does not belong there"."""
    extra = {origin: times for origin, times in case.has.items() if origin not in case.wants}
    if not extra:
        return ""
    several = len(extra) > 1
    return f"{case.answers.letters(extra)} {'do' if several else 'does'} not belong there"


def _rest(case: Case) -> str:
    if len(case.wants) == 1 and len(case.has) > 1:
        if case.answers.in_place and (case.wrong.rank, case.wrong.element) in case.wants:
            return f"{_stray(case)}; that is this rank's own piece, and should stay as it was"
        return f"{_stray(case)}; receive into that place, or copy_ there, instead of adding"
    return f"{_stray(case) or 'something else is in it'}; put in what belongs there, and nothing else"


def _senders(ranks: list[int]) -> str:
    """ "rank 1 sends", "ranks 1-2 send"."""
    return f"{name_ranks(ranks)} send{'s' if len(ranks) == 1 else ''}"


def _whose(ranks: list[int]) -> str:
    """ "rank 1's is", "ranks 1-2's are"."""
    return f"{name_ranks(ranks)}'s {'is' if len(ranks) == 1 else 'are'}"


def _count(times: float) -> str:
    return {2.0: "twice", 3.0: "three times"}.get(times, f"{times:g} times")


CAUSES: tuple[Callable[[Case], str], ...] = (
    _raced,
    _hurried,  # before what the tensor held: that depends on whether the message was already there
    _never_filled,
    _not_finite,
    _zeros,
    _unseen,
    _foreign,
    _other_reduction,
    elsewhere,
    undone,
    _as_it_was,
    _untouched_letters,
    _scaled,
    _subtracted,
    misplaced,
    _twice,
    _other_chunks,
    _own_missing,
    overwritten,
    too_early,
    _missing,
    _rest,
)
