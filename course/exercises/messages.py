"""The exercises of chapter 2: messages that pass something on, cross each other, or carry nothing but the news."""

from math import ceil, log2

from collectives import barrier, send_recv
from course.exercises.exercise import AT_ONCE, VECTOR, Exercise, holding, right_neighbour

EVERYONES = "[torch.empty_like(x) for _ in range(world_size)]; dist.all_gather(expected, x); expected = "
"""The x of every rank as a list, to be followed by what to take of it."""


def partner(rank: int, p: int) -> set[int]:
    """The partner in the pairs 0-1, 2-3, 4-5 ...; none for the last rank of an odd number."""
    return {rank ^ 1} if rank ^ 1 < p else set()


EXERCISES = (
    Exercise(
        name="running_sum",
        asks="at the end rank r's x holds the sum of the x of ranks 0 to r; each rank sends once, to the next",
        lines=6,
        x=VECTOR,
        expected=EVERYONES + "sum(expected[:rank + 1])",
        in_place=True,
        textbook=holding(lambda rank, p: range(rank + 1)),
        needs=lambda rank, p: set(range(rank + 1)),
        messages=lambda p: p - 1,
        busiest=lambda p: 1,
        peers=right_neighbour,
        talks="its right-hand neighbour",
        hints=(
            "What arrives from the left is the sum of the x of ranks 0 to r - 1. What is still missing?",
            "Rank r's own x: the sum that rank r passes on is so_far plus x.",
            "x += so_far changes x itself. x = x + so_far would make a new tensor, and the caller's x would stay.",
        ),
    ),
    Exercise(
        name="shift",
        asks="it returns the x of the left-hand neighbour (rank 0: that of the last rank), all send at once, and x "
        "stays as it is",
        lines=6,
        x=VECTOR,
        expected=EVERYONES + "expected[rank - 1]",
        in_place=False,
        textbook=send_recv.shift,
        needs=lambda rank, p: {(rank - 1) % p},
        messages=lambda p: p,
        busiest=lambda p: 1,
        steps=lambda p: 1,
        why_steps=AT_ONCE,
        peers=right_neighbour,
        talks="its right-hand neighbour",
        hints=(
            "(rank - 1) % world_size is right for rank 0 too.",
            "isend starts the message and returns, so that you can receive before you wait for it.",
            "isend to the right, recv from the left into torch.empty_like(x), wait, return.",
        ),
    ),
    Exercise(
        name="swap",
        asks="it returns the partner's x, with one message each way; ranks 0 and 1 are partners, 2 and 3, ...; a rank "
        "without a partner returns its own x; x stays as it is",
        lines=8,
        x=VECTOR,
        expected=EVERYONES + "expected[rank ^ 1 if rank ^ 1 < world_size else rank]",
        in_place=False,
        textbook=holding(lambda rank, p: partner(rank, p) or {rank}),
        needs=partner,
        messages=lambda p: p // 2 * 2,
        busiest=lambda p: 1,
        peers=partner,
        talks="its partner",
        hints=(
            "A blocking send waits for its recv. Both partners send, so which of them receives?",
            "One of the two must begin with recv (odd and even ranks), or none of them may block (isend).",
            "On 3 ranks rank 2's partner would be rank 3. There is none: return x.clone() before any message.",
        ),
    ),
    Exercise(
        name="dissemination_barrier",
        asks="no rank returns from it before every rank has called it; it takes log2(p) rounds, rounded up, and in "
        "each of them each rank sends one message",
        lines=9,
        x="torch.zeros(1)",
        expected="x.clone()",
        in_place=True,
        textbook=barrier.dissemination,
        call="{name}()",
        messages=lambda p: p * ceil(log2(p)),
        steps=lambda p: ceil(log2(p)),
        why_steps="every rank sends and receives in every round (isend, then recv, then wait()), so that what it knows "
        "doubles",
        synchronises=True,
        hints=(
            "What is in a message does not matter: when it arrives, its sender has entered. Send one number.",
            "After round 1 each rank knows of two ranks. In round 2, send 2 places to the right: that message carries "
            "news of two ranks. How far in round 3?",
            "Rounds at distance 1, 2, 4, ... while that is less than world_size: isend to rank + distance, recv from "
            "rank - distance, all modulo p.",
        ),
        world_sizes=(4, 2, 5),
        more=(3, 6, 7, 8),
    ),
)
