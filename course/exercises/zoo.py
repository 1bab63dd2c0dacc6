"""The exercises of chapter 3: collectives by hand, out of messages."""

from fractions import Fraction
from math import ceil, log2

from collectives import all_gather, all_to_all, broadcast, gather, reduce_scatter
from course.exercises.exercise import AT_ONCE, VECTOR, Exercise, everyone_for_the_first, neighbours, the_first

WHOLE = "torch.empty(x.numel() * world_size, dtype=x.dtype)"


def only_the_root(rank: int, p: int) -> set[int]:
    """Rank 0, for everybody but rank 0."""
    return {0} - {rank}


EXERCISES = (
    Exercise(
        name="flat_gather",
        asks="on rank 0 it returns everyone's x, one after the other in rank order, elsewhere nothing in particular; "
        "each other rank sends its x to rank 0, and x stays as it is",
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
            "On rank 0, who has sent the piece that arrives from src, and where in rank order does it belong?",
            "pieces is a list with one tensor for each rank. What comes from src belongs into pieces[src].",
        ),
    ),
    Exercise(
        name="tree_broadcast",
        asks="after it, every rank's x holds rank 0's x, after log2(p) steps, rounded up, and p - 1 messages",
        lines=8,
        x=VECTOR,
        expected="x.clone(); dist.broadcast(expected, 0)",
        in_place=True,
        textbook=broadcast.binomial,
        needs=the_first,
        messages=lambda p: p - 1,
        steps=lambda p: ceil(log2(p)),
        why_steps="each rank that has x passes it on in every step, so that their number doubles",
        hints=(
            "Who has x, sends it on, so the number of ranks that have it doubles in each round: 1, 2, 4, 8 ...",
            "In the round at distance d (1, 2, 4, ...) ranks 0 to d - 1 have x, and ranks d to 2d - 1 get it.",
            "In that round rank r < d sends to r + d if there is such a rank, and rank r with d <= r < 2d receives "
            "from r - d. The others do nothing.",
        ),
        more=(7, 8),  # on 5 and 6 a tree that passes on in the wrong order is as quick
    ),
    Exercise(
        name="ring_all_gather",
        asks="it returns everyone's x, one after the other in rank order, on every rank; p - 1 steps, in each of which "
        "all ranks send one piece at once, to a neighbour; x stays as it is",
        lines=11,
        x=VECTOR,
        expected=f"{WHOLE}; dist.all_gather_single(expected, x)",
        in_place=False,
        textbook=all_gather.ring,
        whole="expected",
        messages=lambda p: p * (p - 1),
        busiest=lambda p: Fraction(p - 1, p),
        steps=lambda p: p - 1,
        why_steps=AT_ONCE,
        why_bytes={
            lambda p: 1: "that is p pieces, one step too many",
            lambda p: p - 1: "that is all p pieces, p - 1 times; send only the one that has just come",
        },
        peers=neighbours,
        talks="its neighbours",
        hints=(
            "Make room for world_size pieces and put your own into place `rank`. Then p - 1 shifts to the right.",
            "In the first step you send your own piece. In every later step you send the piece that has just come.",
            "In step s you send piece rank - s and receive piece rank - 1 - s, modulo p.",
        ),
    ),
    Exercise(
        name="pairwise_reduce_scatter",
        asks="on rank r it returns the sum of everyone's r-th piece of x (x is world_size pieces); p - 1 steps, in "
        "each of which all ranks send one piece at once; x stays as it is",
        lines=10,
        x=VECTOR,
        expected="torch.empty(x.numel() // world_size, dtype=x.dtype); dist.reduce_scatter_single(expected, x.clone())",
        in_place=False,
        textbook=reduce_scatter.pairwise,
        messages=lambda p: p * (p - 1),
        busiest=lambda p: Fraction(p - 1, p),
        steps=lambda p: p - 1,
        why_steps=AT_ONCE,
        why_bytes={lambda p: p - 1: "that is the whole vector sent p - 1 times; send everyone its piece only"},
        hints=(
            "x.chunk(world_size) gives the pieces. Piece d is of interest to rank d and to nobody else.",
            "Start from a clone of your own piece of x, since x must stay as it is, and add what arrives.",
            "For hop 1 to p - 1: isend piece rank + hop to rank + hop, recv from rank - hop, add, wait. Modulo p.",
        ),
    ),
    Exercise(
        name="pairwise_all_to_all",
        asks="on rank r it returns everyone's r-th piece of x, one after the other in rank order; p - 1 steps, in each "
        "of which all ranks send one piece at once; x stays as it is",
        lines=10,
        x=VECTOR,
        expected="torch.empty_like(x); dist.all_to_all_single(expected, x)",
        in_place=False,
        textbook=all_to_all.pairwise,
        messages=lambda p: p * (p - 1),
        busiest=lambda p: Fraction(p - 1, p),
        steps=lambda p: p - 1,
        why_steps=AT_ONCE,
        why_bytes={
            lambda p: p - 1: "that is the whole vector sent p - 1 times; send everyone its piece only",
            lambda p: 1: "that is your own piece too: it need not travel, and no rank can send to itself",
        },
        hints=(
            "Two lists of pieces: what goes out, x.chunk(world_size), and what comes in, the chunks of empty_like(x).",
            "Your own piece does not travel: copy it over. Then p - 1 exchanges with partners ever further away.",
            "For hop 1 to p - 1: isend piece rank + hop to rank + hop, recv from rank - hop into piece rank - hop.",
        ),
    ),
)
