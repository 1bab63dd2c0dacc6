"""The exercises of chapter 3: collectives with a root by hand, out of messages."""

from fractions import Fraction
from math import ceil, log2

from collectives import broadcast, gather
from course.exercises.exercise import VECTOR, WHOLE, Exercise, everyone_for_the_first, the_first


def only_the_root(rank: int, p: int) -> set[int]:
    """Rank 0, for every other rank."""
    return {0} - {rank}


EXERCISES = (
    Exercise(
        name="flat_gather",
        asks="rank 0 returns everyone's x in rank order; what the other ranks return does not matter; each of them "
        "sends its x to rank 0, and x stays as it is",
        lines=7,
        x=VECTOR,
        expected=f"{WHOLE}; dist.all_gather_single(expected, x); expected = expected if rank == 0 else None",
        in_place=False,
        textbook=gather.flat,
        needs=everyone_for_the_first,
        whole="expected",
        messages=lambda p: p - 1,
        busiest=lambda p: Fraction(1, p),
        peers=only_the_root,
        talks="rank 0",
        hints=(
            "What arrives from src is rank src's x. Where in rank order does it belong?",
            "chunks is a list with one tensor for each rank. What arrives from src belongs in chunks[src].",
        ),
    ),
    Exercise(
        name="tree_broadcast",
        asks="after it, every rank's x holds rank 0's x, after log2(p) steps, rounded up, and p - 1 messages; "
        "each rank sends or receives at most one message per step",
        lines=8,
        x=VECTOR,
        expected="x.clone(); dist.broadcast(expected, 0)",
        in_place=True,
        textbook=broadcast.binomial,
        needs=the_first,
        messages=lambda p: p - 1,
        steps=lambda p: ceil(log2(p)),
        one_port=True,
        why_steps="each rank that has x passes it on in every step, so that their number doubles",
        hints=(
            "Every rank that has x sends it on, so their number doubles in each round: 1, 2, 4, 8 ...",
            "In the round at distance d (1, 2, 4, ...) ranks 0 to d - 1 have x, and ranks d to 2d - 1 get it.",
            "In that round rank r < d sends to r + d if there is such a rank, and rank r with d <= r < 2d receives "
            "from r - d. The others do nothing.",
        ),
        more=(7, 8),  # on 5 and 6 a tree that passes on in the wrong order is as quick
    ),
)
