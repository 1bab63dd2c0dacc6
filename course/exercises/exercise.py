"""What an exercise is: what it asks for, on which ranks it is tried, and what it may cost.

`course/judge` has it run and judged, `course/solutions/NAME.py` solves it, its chapter holds the stub. Code that
runs on the ranks is kept as text, because that is how it gets there. An exercise is judged on what the ranks really
sent, so its bounds are functions of p, the number of ranks; bytes are given in N.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from collectives.schedule import Cell, Schedule
from course.exercises.draw import Draw

VECTOR = "torch.randint(low, high, (pieces * p,)).to(dtype) * scale"
"""Fresh random whole numbers: sums of them are exact in any order, and no two chunks are alike."""

WHOLE = "torch.empty(x.numel() * world_size, dtype=x.dtype)"
"""Room for everyone's x, as what is expected."""

A_FEW = 64
"""Bytes per rank that are plenty for sums, counts and maxima, and too few for a rank's data."""

AT_ONCE = "a blocking call makes the next one wait until it is over; use isend, then recv, then wait()"
"""Why the ranks of a round did not send at the same time."""

MESSAGES_ONLY = frozenset({"send", "recv"})
"""What a hand-written collective may use, blocking or not (isend and irecv are the same two operations)."""


def everyone(rank: int, p: int) -> set[int]:
    """All ranks."""
    return set(range(p))


def the_first(rank: int, p: int) -> set[int]:
    """Rank 0."""
    return {0}


def nobody(rank: int, p: int) -> set[int]:
    """No rank."""
    return set()


def everyone_for_the_first(rank: int, p: int) -> set[int]:
    """All ranks for rank 0, none for the others."""
    return set() if rank else set(range(p))


def holding(summed: Callable[[int, int], Iterable[int]], chunked: bool = False) -> Callable[[int], Schedule]:
    """A textbook without messages: rank r should hold the sum of the x of the ranks in summed(r, p).

    With `chunked` x is told in p chunks, as the algorithm cuts it.
    """

    def textbook(p: int) -> Schedule:
        chunks = p if chunked else 1
        goal = np.empty((p, chunks), dtype=object)
        for rank, chunk in np.ndindex(p, chunks):
            goal[rank, chunk] = Cell([(source, chunk) for source in sorted(summed(rank, p))])
        return Schedule("recorded", "by the book", p, chunks, (), goal={"data": goal})

    return textbook


@dataclass(frozen=True)
class Exercise:
    """One function that the student writes.

    name        of the function; `call` is how it is called, with names of a `Draw` in braces
    asks        what must be true afterwards, and what it may cost: all that is judged beside `allowed`
    lines       about how long a solution is
    x           Python text: the argument, in the names of a `Draw`
    expected    Python text: what stands right of "expected =", usually torch's own collective after a semicolon; None
                on a rank whose answer does not matter
    setup       Python text: run on the ranks first; makes what `call` hands over beside x
    groups      Python text: run before that, once on each set of ranks: makes groups, which would be left over else
    in_place    whether the student's answer is found in `x`; else it is what the function returns, and `x` must come
                back untouched
    part        Python text: the part of `x` that an answer in place is in
    needs       needs(rank, p): the ranks whose x the answer of `rank` depends on, so that messages must have told it
    whole       the name of the tensor whose bytes are N: "x", or "expected" where that is the larger one
    allowed     operations that may be used
    messages, busiest, steps   upper bounds for p ranks, or None; busiest in units of N
    numbers     numbers(draw): how many numbers one message may hold, or None
    far         far(p), in units of N: the most that a rank may send to others than its neighbour rank ^ 1, or None
    across      across(p), in units of N: the most that one rank may give to all built-ins whose ranks are on both
                machines, if the first half of the ranks is one machine and the second half the other; or None
    one_port    whether a rank sends or takes one message at a time: `steps` are counted so, and bound its messages
    budget      budget(group, p): the most bytes that one rank may give to all built-ins of that group (a tuple of
                ranks) together, or None
    hides       hides(group, p): how many calls of other groups, of more than A_FEW bytes, have to begin on each rank
                while one of this group is in flight; or None
    uses        {operations: (times, why)}: these have to be called as often, because another way to the same numbers
                costs more
    calls, call_bytes          upper bounds for built-ins, or None: calls of one rank, and bytes in one call
    given       given(draw): how many numbers each call of a built-in is given, in order, or None
    waits       waits(p): how often a rank may wait for a call before it starts its next one, or None
    rtol        how far numbers may be off, as a share of the largest: for results that were rounded on the way
    slips       {slip(trial, rank): why}: what a rank's answer is after a typical mistake, for results without letters
    parts       parts(p): what an answer consists of, one behind the other, and how many numbers each has, or None
    textbook    textbook(p): the Schedule by the book. Its goal says in letters what each rank should hold, and it plays
                beside the student's own run. `holding` makes one that only says what should be held. None: no letters
    peers       peers(rank, p): the ranks that `rank` may send to, or None; `talks` says it in words
    why_steps   what makes for more steps than `steps`, and what to do about it; "" if there are many reasons
    why_bytes   a sum of bytes (in N, of p) that has a known cause -> the sentence that explains it
    world_sizes, dtypes   on how many ranks it is tried, and with which numbers
    more        and on one of these, chosen at random
    variant     which of an exercise's variants it is; the chapter's own is 1 (variants.py)
    synchronises  whether what `needs` names is not numbers but that they have come: nobody may leave before
    """

    name: str
    asks: str
    lines: int
    x: str
    expected: str
    in_place: bool
    part: str = "x"
    needs: Callable[[int, int], set[int]] = everyone
    call: str = "{name}(x)"
    setup: str = ""
    groups: str = ""
    whole: str = "x"
    allowed: frozenset[str] = MESSAGES_ONLY
    messages: Callable[[int], int] | None = None
    busiest: Callable[[int], Fraction | int] | None = None
    steps: Callable[[int], int] | None = None
    numbers: Callable[[Draw], int] | None = None
    far: Callable[[int], Fraction | int] | None = None
    across: Callable[[int], Fraction | int] | None = None
    budget: Callable[[tuple[int, ...], int], int] | None = None
    hides: Callable[[tuple[int, ...], int], int] | None = None
    calls: Callable[[int], int] | None = None
    call_bytes: Callable[[int], int] | None = None
    one_port: bool = False
    uses: dict[frozenset[str], tuple[int, str]] = field(default_factory=dict)
    given: Callable[[Draw], list[int]] | None = None
    waits: Callable[[int], int] | None = None
    rtol: float = 0.0
    slips: dict[Callable[[Any, int], np.ndarray], str] = field(default_factory=dict)
    parts: Callable[[int], dict[str, int]] | None = None
    textbook: Callable[[int], Schedule] | None = None
    peers: Callable[[int, int], set[int]] | None = None
    talks: str = ""
    why_steps: str = ""
    why_bytes: dict[Callable[[int], Fraction | int], str] = field(default_factory=dict)
    synchronises: bool = False
    hints: tuple[str, ...] = ()
    world_sizes: tuple[int, ...] = (4, 2, 3)
    dtypes: tuple[str, ...] = ("float32", "float64", "int64")  # one for each world size: fixed buffers are found out
    more: tuple[int, ...] = (5, 6, 7, 8)
    variant: int = 1

    @property
    def key(self) -> str:
        """What it is checked and kept as: "shift", or "shift-2" if it is a variant."""
        return self.name if self.variant == 1 else f"{self.name}-{self.variant}"


def right_neighbour(rank: int, p: int) -> set[int]:
    """The rank one to the right on a ring of p."""
    return {(rank + 1) % p}


def neighbours(rank: int, p: int) -> set[int]:
    """The ranks beside it on a ring of p: a ring may turn either way."""
    return {(rank + 1) % p, (rank - 1) % p}
