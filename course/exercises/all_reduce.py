"""The exercises of chapter 5: the two halves of the ring, and vectors that do not divide into equal chunks."""

from fractions import Fraction

from collectives import all_reduce, reduce_scatter
from course.exercises.exercise import VECTOR, Exercise, everyone, holding, neighbours

EXERCISES = (
    Exercise(
        name="ring_reduce_scatter",
        asks="after it, chunk r of rank r's x holds the sum of everyone's chunk r; each rank sends p - 1 chunks, to a "
        "neighbour",
        lines=10,
        x=VECTOR,
        expected="torch.empty(x.numel() // world_size, dtype=x.dtype); dist.reduce_scatter_single(expected, x.clone())",
        in_place=True,
        part="x.chunk(world_size)[rank]",
        textbook=reduce_scatter.ring,
        messages=lambda p: p * (p - 1),
        busiest=lambda p: Fraction(p - 1, p),
        peers=neighbours,
        talks="its neighbours",
        why_bytes={lambda p: 1: "that is p chunks, one step too many"},
        hints=(
            "Follow the message that arrives: it is the chunk that your left-hand neighbour has just sent.",
            "Your left-hand neighbour is rank - 1. Put rank - 1 where the sender's formula has rank.",
            "The sender sends chunk (rank - 1 - step) % world_size, so you receive (rank - 2 - step) % world_size.",
        ),
    ),
    Exercise(
        name="ring_all_reduce",
        asks="after it, every rank's x holds the sum of everyone's x; each rank sends 2(p - 1) chunks, to a neighbour",
        lines=12,
        x=VECTOR,
        expected="x.clone(); dist.all_reduce(expected)",
        in_place=True,
        textbook=all_reduce.ring,
        messages=lambda p: 2 * p * (p - 1),
        busiest=lambda p: Fraction(2 * (p - 1), p),
        peers=neighbours,
        talks="its neighbours",
        why_bytes={
            lambda p: p - 1: "that is the whole vector sent p - 1 times; send one chunk of it at a time",
            lambda p: 2 * (p - 1): "that is the whole vector sent 2(p - 1) times; send one chunk of it at a time",
            lambda p: 2: "that is 2p chunks, one step too many in each half",
            lambda p: Fraction(2 * p - 1, p): "that is 2p - 1 chunks, one step too many in one half",
        },
        hints=(
            "Two halves: after ring_reduce_scatter(x) your finished chunk is x.chunk(world_size)[rank]. "
            "ring_all_gather(chunk) returns everyone's chunk, end to end.",
            "The sum has to be in x itself. x.copy_(...) writes into it; x = ... would only make the name x point to a "
            "new tensor.",
            "In one line: x.copy_(ring_all_gather(x.chunk(world_size)[rank])).",
            "By hand: in step s of the second half send chunk rank - s and receive chunk rank - 1 - s, modulo p. Use "
            "isend, then recv, then wait: blocking sends in a ring wait for each other forever.",
        ),
    ),
    Exercise(
        name="ring_any_length",
        asks="after it, every rank's x, of any length n from world_size up, holds the sum of everyone's x; each rank "
        "sends 2(p - 1) chunks of at most n/p numbers, rounded up, to a neighbour",
        lines=15,
        x="torch.randint(low, high, ((1 + pieces % 2) * p + uneven,)).to(dtype) * scale",  # short: chunk gives too few
        expected="x.clone(); dist.all_reduce(expected)",
        in_place=True,
        textbook=holding(everyone),
        messages=lambda p: 2 * p * (p - 1),
        busiest=lambda p: Fraction(4 * (p - 1), p + 1),  # of p + 1 numbers, chunks of two
        numbers=lambda draw: 2 + draw.pieces % 2,
        peers=neighbours,
        talks="its neighbours",
        why_bytes={lambda p: p - 1: "that is the whole vector sent p - 1 times; send one chunk of it at a time"},
        hints=(
            "x.chunk(4) of 10 numbers gives 3, 3, 3 and 1, and of 5 numbers only three chunks: 2, 2 and 1. Print the "
            "lengths that x.tensor_split(world_size) gives.",
            "tensor_split gives views too, always world_size of them, and their lengths differ by at most one.",
            "What arrives has the length of the chunk that you add it to: make the buffer in the loop, like that "
            "chunk.",
            "Another way: copy x into a longer vector of zeros whose length divides, run your ring on that, and copy "
            "the front back.",
        ),
    ),
)
