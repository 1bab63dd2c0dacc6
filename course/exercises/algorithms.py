"""The exercises of chapter 7: a tree, doubling, halving, both in the right order, and doubling for any p."""

from fractions import Fraction

from collectives import all_gather, all_reduce, reduce, reduce_scatter
from course.exercises.exercise import AT_ONCE, VECTOR, Exercise, everyone_for_the_first


def doublings(p: int) -> int:
    """log2(p), rounded up: how often 1 must double to reach p."""
    return (p - 1).bit_length()


EXERCISES = (
    Exercise(
        name="tree_reduce",
        asks="after it, rank 0's x holds the sum of everyone's x, after log2(p) steps, rounded up, and p - 1 messages; "
        "in a step each rank sends or receives one message at most",
        lines=12,
        x=VECTOR,
        expected="x.clone(); dist.all_reduce(expected); expected = expected if rank == 0 else None",
        in_place=True,
        textbook=reduce.binomial,
        needs=everyone_for_the_first,
        messages=lambda p: p - 1,
        busiest=lambda p: Fraction(1),
        steps=doublings,
        one_port=True,
        hints=(
            "In the round with distance d, the ranks that are still there are the multiples of d.",
            "Of those, the even multiples receive from rank + d, the odd ones send to rank - d and are done.",
            "With p = 5 some partners do not exist: receive only if rank + distance < world_size.",
        ),
        world_sizes=(4, 2, 5),
        more=(7, 8),  # on 3 and 6 a tree that adds in the wrong order is as quick
    ),
    Exercise(
        name="recursive_doubling_all_reduce",
        asks="after it, every rank's x holds the sum of everyone's x (p is a power of two), after log2(p) steps, in "
        "each of which all ranks send at once",
        lines=9,
        x=VECTOR,
        expected="x.clone(); dist.all_reduce(expected)",
        in_place=True,
        textbook=all_reduce.recursive_doubling,
        messages=lambda p: p * doublings(p),
        busiest=lambda p: Fraction(doublings(p)),
        steps=doublings,
        why_steps=AT_ONCE,
        hints=(
            "Distances 1, 2, 4, ...: in each round both partners send what they have and add what they get.",
            "The partner at distance d is rank ^ d. It flips one bit, so your partner's partner is you.",
            "irecv first, then send, then wait for what you receive, then add: both directions run at once, and x has "
            "left before you change it.",
        ),
        world_sizes=(4, 2, 8),
        more=(16,),
    ),
    Exercise(
        name="halving_reduce_scatter",
        asks="after it, chunk r of rank r's x holds the sum of everyone's chunk r (p is a power of two), after log2(p) "
        "steps, in each of which all ranks send at once; each rank sends p - 1 chunks in all",
        lines=14,
        x=VECTOR,
        expected="torch.empty(x.numel() // world_size, dtype=x.dtype); dist.reduce_scatter_single(expected, x.clone())",
        in_place=True,
        part="x.chunk(world_size)[rank]",
        textbook=reduce_scatter.recursive_halving,
        messages=lambda p: p * doublings(p),
        busiest=lambda p: Fraction(p - 1, p),
        steps=doublings,
        why_steps=AT_ONCE,
        why_bytes={lambda p: doublings(p): "that is the whole vector in every round; send only the partner's half"},
        hints=(
            "Begin with the farthest partner, rank ^ (world_size // 2): send it the half in which its chunk lies, and "
            "get from it your half.",
            "What you are still responsible for is a run of chunks: it halves in every round, down to your own chunk.",
            "After the round with distance d that run begins at chunk rank // d * d and is d chunks long.",
            "The partner's run begins at chunk partner // d * d. Send that, receive yours, add.",
        ),
        world_sizes=(4, 2, 8),
        more=(16,),
    ),
    Exercise(
        name="halving_doubling_all_reduce",
        asks="after it, every rank's x holds the sum of everyone's x (p is a power of two), after 2 log2(p) steps, in "
        "each of which all ranks send at once; each rank sends 2(p - 1)/p N in all, N of that to its neighbour rank ^ "
        "1",
        lines=20,
        x=VECTOR,
        expected="x.clone(); dist.all_reduce(expected)",
        in_place=True,
        textbook=all_reduce.halving_doubling,
        messages=lambda p: 2 * p * doublings(p),
        busiest=lambda p: Fraction(2 * (p - 1), p),
        steps=lambda p: 2 * doublings(p),
        far=lambda p: Fraction(2 * (p - 1), p) - 1,
        why_steps=AT_ONCE,
        why_bytes={
            lambda p: doublings(p): "that is the whole vector in every round; send only the half that you give up",
            lambda p: 2 * doublings(p): "that is the whole vector in every step; send only what the partner lacks",
        },
        hints=(
            "First blank: the first message is the longest. Which partner should get it?",
            "The nearest: 1, 2, 4, ... as long as they are below world_size. As a list: [2**i for i in "
            "range(world_size.bit_length() - 1)].",
            "Second blank: the partner gives you its numbers for x[keep], and you give it yours for x[give].",
            "Begin dist.irecv into a new buffer as long as x[keep], then dist.send(x[give], partner), wait for what "
            "you receive, and add it to x[keep].",
        ),
        world_sizes=(4, 2, 8),
        more=(16,),
    ),
    Exercise(
        name="bruck_all_gather",
        asks="it returns everyone's x, one after the other in rank order, after log2(p) steps, rounded up, in each of "
        "which all ranks send at once; each rank sends p - 1 chunks in all; x stays as it is",
        lines=12,
        x=VECTOR,
        expected="torch.empty(world_size * x.numel(), dtype=x.dtype); dist.all_gather_single(expected, x)",
        in_place=False,
        textbook=all_gather.bruck,
        whole="expected",
        messages=lambda p: p * doublings(p),
        busiest=lambda p: Fraction(p - 1, p),
        steps=doublings,
        why_steps=AT_ONCE,
        why_bytes={
            lambda p: Fraction(2 ** doublings(p) - 1, p): "in the last round send only the chunks that are missing",
        },
        hints=(
            "Keep your own chunk first, and behind it the chunks of rank + 1, rank + 2, ...: row i is the chunk of "
            "rank + i.",
            "With d chunks in hand: send the first of them to rank - d, get the next ones from rank + d.",
            "In the last round only p - d chunks are missing: send min(d, p - d).",
            "At the end chunk 0 is yours, chunk 1 that of rank + 1: torch.roll(chunks, rank, 0) puts rank 0 first.",
        ),
        world_sizes=(4, 3, 5),
        more=(2, 6, 7, 8),
    ),
)
