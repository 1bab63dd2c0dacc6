"""The exercise of chapter 0: a first collective of two calls."""

from collectives import broadcast
from course.exercises.exercise import VECTOR, Exercise, right_neighbour, the_first

EXERCISES = (
    Exercise(
        name="pass_it_on",
        asks="at the end every rank's x holds rank 0's x; each rank passes it on once, to the next",
        lines=6,
        x=VECTOR,
        expected="x.clone(); dist.broadcast(expected, 0)",
        in_place=True,
        textbook=lambda p: broadcast.chain(p, chunks=1),
        needs=the_first,
        messages=lambda p: p - 1,
        busiest=lambda p: 1,
        peers=right_neighbour,
        talks="its right-hand neighbour",
        hints=(
            "Each rank but the first has to receive before it can send.",
            "dist.recv(x, rank - 1) fills x with what the left-hand neighbour sends.",
            "The first blank is dist.recv(x, rank - 1), the second dist.send(x, rank + 1).",
        ),
    ),
)
