"""The exercises of chapter 11: gradients averaged in buckets, and while the backward pass still computes."""

from collections.abc import Iterable

import numpy as np

from course.exercises.exercise import Exercise

SIZES = (2, 6, 1, 3, 4, 2, 5, 1)
"""Numbers of each of the tensors that are averaged; those of an even number are matrices of two rows."""

IN_PARTS = f"""
def _trial_in_parts(average, x, cap):
    pieces = x.split({list(SIZES)})
    tensors = [t.clone().view(2, -1) if t.numel() % 2 == 0 else t.clone() for t in pieces]
    returned = average(list(tensors), cap)
    for piece, tensor in zip(pieces, tensors):
        piece.copy_(tensor.flatten())
    return returned
"""
"""The list that the function is given; what counts is what its tensors hold then, wherever they keep it."""

READY = (1, 4, 4, 12, 3, 15)
"""Numbers of each parameter of the model in `course/deep.py`, in the order in which a backward pass finishes them."""

FLOATS = ("float32", "float64", "float32")


def filled(sizes: Iterable[int], cap: int) -> list[int]:
    """How many numbers are in each bucket, if one is closed as soon as it holds `cap`."""
    buckets, held = [], 0
    for size in sizes:
        held += size
        if held >= cap:
            buckets.append(held)
            held = 0
    return buckets + [held] * (held > 0)


def not_flushed(trial, rank: int) -> np.ndarray:
    """What the tensors hold if only full buckets were averaged."""
    sizes, answer = SIZES[::-1], trial.expected[rank].copy()
    left = filled(sizes, trial.p + 4)[-1]
    if left < trial.p + 4:
        answer[:left] = trial.given[rank][:left]
    return answer


EXERCISES = (
    Exercise(
        name="bucketed_average",
        asks="after it every tensor of the list holds the mean of all ranks'. Fill the buckets from the end of the "
        "list. Close a bucket once it holds cap numbers or more, and all-reduce each bucket once",
        lines=16,
        x=f"(torch.randint(low, high, ({sum(SIZES)},)) * scale).to(dtype)",
        expected="x.clone(); dist.all_reduce(expected); expected /= p",
        in_place=True,
        setup=IN_PARTS,
        call="_trial_in_parts({name}, x, {p} + 4)",
        allowed=frozenset({"all_reduce"}),
        given=lambda draw: filled(reversed(SIZES), draw.p + 4),
        slips={
            not_flushed: "the first tensors of the list, which make up the last bucket, are as they were: it was never "
            "full, so it never left; after the loop average what is still in it",
            lambda trial, rank: trial.expected[rank] * trial.p: "that is the sum; divide it by world_size",
        },
        rtol=1e-5,
        hints=(
            "Go through reversed(grads), put each into a list, and add up numel(). Where the list holds cap numbers or "
            "more, average it and begin an empty one.",
            "To average a list: torch.cat of the flattened tensors, one all_reduce, divide, and copy the pieces back.",
            "The last bucket may be less than full: it has to leave, too, after the loop.",
            "bucket.split([t.numel() for t in held]) cuts at the same places; t.copy_(piece.view_as(t)) writes back.",
        ),
        dtypes=FLOATS,
    ),
    Exercise(
        name="overlapped_average",
        asks="it registers a hook on every parameter of the model. The hooks put gradients into a bucket as they get "
        "ready. Once it holds cap numbers or more, its all_reduce starts. It returns finish. After a backward pass and "
        "a call to finish() every gradient is the mean over all ranks",
        lines=28,
        x="torch.randn(5).to(dtype)",
        expected="gradients_of(x); dist.all_reduce(expected); expected /= p",
        in_place=False,
        setup="from course.deep import gradients_of\n",
        call="gradients_of(x, lambda model: {name}(model, 9 if {p} % 2 else 20))",
        allowed=frozenset({"all_reduce"}),
        given=lambda draw: 2 * filled(READY, 9 if draw.p % 2 else 20),
        waits=lambda p: 1,
        rtol=1e-4,
        hints=(
            "First blank: dist.all_reduce(bucket, async_op=True) starts the call and returns a handle at once.",
            "Second blank: count the numbers of all parameters in held. sum(p.numel() for p in held) >= cap.",
            "Third blank: handle.wait(). Until then the bucket does not hold the sum.",
        ),
        dtypes=FLOATS,
    ),
)
