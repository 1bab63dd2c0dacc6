"""The exercises of chapter 6: fewer messages for short vectors, fewer bytes for long ones."""

from fractions import Fraction

from course.exercises.exercise import VECTOR, Exercise, everyone, holding

IN_PARTS = """
def _trial_in_parts(many, x, sizes):
    tensors = [t.view(1, -1) for t in x.split(sizes)]
    returned = many(list(tensors))
    for t, piece in zip(tensors, x.split(sizes)):
        if t.data_ptr() != piece.data_ptr():
            piece.copy_(t.flatten())
    return returned
"""
"""What counts is what the tensors of the list hold then, wherever they keep it: `t.data = ...` is right, too."""

EXERCISES = (
    Exercise(
        name="all_reduce_many",
        asks="after it, every tensor of the list, however many there are and of any shape, holds "
        "the sum of everyone's, with one all_reduce",
        lines=5,
        x=VECTOR,
        expected="x.clone(); dist.all_reduce(expected)",
        in_place=True,
        textbook=holding(everyone),
        setup=IN_PARTS,
        call="_trial_in_parts({name}, x, {sizes})",
        allowed=frozenset({"all_reduce"}),
        calls=lambda p: 1,
        hints=(
            "One all_reduce takes one tensor: put all the numbers into one, and back afterwards.",
            "torch.cat makes one tensor of a list; split([t.numel() for t in tensors]) cuts it at the same places.",
            "Write back into the tensors of the list with copy_: cat has made a copy, so they have no sums yet.",
        ),
    ),
    Exercise(
        name="two_shot_all_reduce",
        asks="after it, every rank's x holds the sum of everyone's x; each rank sends 2(p - 1) chunks, as few bytes as "
        "a ring",
        lines=16,
        x=VECTOR,
        expected="x.clone(); dist.all_reduce(expected)",
        in_place=True,
        textbook=holding(everyone, chunked=True),
        messages=lambda p: 2 * p * (p - 1),
        busiest=lambda p: Fraction(2 * (p - 1), p),
        why_bytes={
            lambda p: p - 1: "that is still the whole vector to every rank; rank d needs only chunk d to add it up",
        },
        hints=(
            "Two rounds of exchange. In the first, rank d gets chunk d of every rank and adds them up.",
            "In the second round rank d sends its finished chunk to all others.",
            "A receive of the second round can write into x itself: chunks[peer] is a view of x.",
            "Append dist.irecv(chunks[peer], peer) and dist.isend(chunks[rank], peer) to work.",
        ),
    ),
)
