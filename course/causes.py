"""The typical mistakes, one function for each: what happened and what to do, or "" if it is not that.

They are asked in the order in which one explains the others (`CAUSES`), and look at what the answer holds in the end
and should hold, in letters. What nobody has seen is not claimed.

Left out: the sentence around it (`course/diagnosis.py`); mistakes that show only at other places or on the way
(`course/ways.py`).
"""

from collections.abc import Callable

import numpy as np

from course.ways import Case, doubling, elsewhere, first_not_finite, has_come, misplaced, overwritten, too_early
from launch.errors import name_ranks

UNSEEN = {
    "computed": "use copies and +=",
    "changed outside torch": "use torch's own copy_ and +=",
    "left by the library": "look at the numbers",
    "not seen": "look at the numbers",
}
"""Of these no letters are known -> what to do."""


def raced(recording) -> str:
    """A send whose data were written to while it was under way: nobody knows what went out."""
    for rank, line in sorted(recording.changed):
        return (
            f"rank {rank} wrote to the tensor of its isend (line {line}) before that was over, so nobody knows what "
            "went out; wait() first, then change it"
        )
    return ""


def _raced(case: Case) -> str:
    return raced(case.answers.recording)


def _never_filled(case: Case) -> str:
    if case.held.other != "never filled":
        return ""
    if case.has:
        return (
            "the sum started in a tensor that was never filled; start with torch.zeros_like, or with a clone of "
            "your own piece"
        )
    return "it was never filled; receive or copy into it"


def _zeros(case: Case) -> str:
    if case.held.other != "zeros":
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
    if case.held.other != "own":
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
        return "it is as it was at the start, nothing was ever added to it; receive, then add with +="
    return "it is as it was at the start; receive into it, or copy_ what you received"


def _untouched_letters(case: Case) -> str:
    """The right pieces and the wrong numbers: x was another before the first message."""
    if case.has != case.wants:
        return ""
    return "the right pieces are in it, but some rank changed its x before its first message; send x as it is"


def _scaled(case: Case) -> str:
    times = set(case.has.values())
    if case.has.keys() != case.wants.keys() or len(times) > 1 or len(case.wants) < 2 and times > {1}:
        return ""
    times = times.pop()
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
        return f"the rank's own piece is missing{case.written}{more}; add what arrives to it with +="
    return f"the rank's own piece is missing{more}; start the sum with a clone of it"


def _missing(case: Case) -> str:
    if not case.missing:
        return ""
    if len(case.wants) > 1:
        stray = f", and {_stray(case)}" if _stray(case) else ""
        came = {has_come(case, rank) for rank in case.missing}
        how, do = {
            (True,): ("came here, but {} not in it", "add each piece before you receive the next one in its place"),
            (False,): ("never came here", "look at which ranks send in the first and in the last round"),
        }.get(tuple(came), ("{} not in it", "look at which rank sends what, and add what arrives"))
        return f"{name_ranks(case.missing)}'s {how.format('is' if len(case.missing) == 1 else 'are')}{stray}; {do}"
    if not case.has:
        return f"{name_ranks(case.missing)}'s never arrived here; receive it into this place"
    wanted, rank = case.missing[0], next(iter(case.has))[0]
    if len(case.has) > 1:
        several = name_ranks({rank for rank, _ in case.has})
        return f"{several}'s were added up where rank {wanted}'s alone should be; copy instead of adding"
    if rank == wanted:
        return f"that is another chunk of rank {rank}'s; look at which chunk is sent, and where it is received"
    return (
        f"rank {rank}'s stands where rank {wanted}'s should; look at which rank you receive from, and into which place"
    )


def _stray(case: Case) -> str:
    """ "a0 does not belong there"."""
    extra = {origin: times for origin, times in case.has.items() if origin not in case.wants}
    if not extra:
        return ""
    several = len(extra) > 1
    return f"{case.answers.letters(extra)} {'do' if several else 'does'} not belong there"


def _rest(case: Case) -> str:
    return f"{_stray(case) or 'something else is in it'}; add every rank's once, and nothing else"


def _whose(ranks: list[int]) -> str:
    """ "rank 1's is", "ranks 1-2's are"."""
    return f"{name_ranks(ranks)}'s {'is' if len(ranks) == 1 else 'are'}"


def _count(times: float) -> str:
    return {2: "twice", 3: "three times"}.get(times, f"{times:g} times")


CAUSES: tuple[Callable[[Case], str], ...] = (
    _raced,
    _never_filled,
    _not_finite,
    _zeros,
    _unseen,
    _foreign,
    _other_reduction,
    elsewhere,
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
