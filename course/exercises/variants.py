"""Variants 2 and 3 of the exercises of chapters 0 to 9: neighbours get a task of the same kind with another answer.

What differs is what is asked for: the root, the way round the ring, the op, the partners, the order of what is
returned. So the function of one variant is wrong for the others. A variant is what differs from the chapter's Exercise,
and the same judge judges it. Where a field has pairs, it is the chapter's text with these pieces exchanged. The
solutions are the lecturer's (course/teach/solved.py).

Left out: hints, and most typical mistakes. A verdict says what is asked first, and what is wrong in numbers.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from course.exercises.exercise import WHOLE, Exercise, holding
from course.exercises.messages import EVERYONES

ALL = "x.clone(); dist.all_reduce(expected)"
LARGEST = "x.clone(); dist.all_reduce(expected, dist.ReduceOp.MAX)"
OTHERS = ALL + "; expected -= x"
GATHERED = f"{WHOLE}; dist.all_gather_single(expected, x); expected = expected"
BY_NUMBER = GATHERED + ".view(world_size, -1).T.flatten()"
OWN_FIRST = GATHERED + ".view(world_size, -1).roll(-rank, 0).flatten()"


def root(which: str) -> str:
    return f"x.clone(); dist.broadcast(expected, {which})"


def to_the_left(rank: int, p: int) -> set[int]:
    return {(rank - 1) % p}


def to_the_right(rank: int, p: int) -> set[int]:
    return {(rank + 1) % p}


def the_last(rank: int, p: int) -> set[int]:
    return {p - 1}


def rank_1(rank: int, p: int) -> set[int]:
    return {1}


def everyone_for(root: Callable[[int], int]) -> Callable[[int, int], set[int]]:
    return lambda rank, p: set(range(p)) if rank == root(p) else set()


def mirrored(rank: int, p: int) -> set[int]:
    return {p - 1 - rank} - {rank}


def half_way(rank: int, p: int) -> set[int]:
    """The partner in the pairs r and r + p // 2; none for the last rank of an odd number."""
    half = p // 2
    return {rank + half} if rank < half else {rank - half} if rank < 2 * half else set()


def of_my_parity(rank: int, p: int) -> set[int]:
    return {*range(rank % 2, p, 2)}


def star(rank: int, p: int) -> set[int]:
    return {*range(1, p)} if rank == 0 else {0}


def the_sum(trial, rank: int) -> np.ndarray:
    """Everyone's x added up; of a reduce_scatter this rank's chunk."""
    total = np.sum(trial.given, axis=0)
    return total if total.shape == trial.expected[rank].shape else np.split(total, trial.p)[rank]


def in_rank_order(trial, rank: int) -> np.ndarray:
    return np.concatenate(trial.given)


NO_SUM = {the_sum: "that is the sum, and this variant asks for the largest"}
NOT_MINE = {the_sum: "that is the sum of all ranks; this variant leaves this rank's own x out"}
ORDERED = {in_rank_order: "that is everyone's x in rank order, and this variant asks for another order"}
LEFT = {"peers": to_the_left, "talks": "its left-hand neighbour"}
MAX = {"expected": LARGEST, "textbook": None, "why_bytes": {}, "slips": NO_SUM}
HOLDS_MAX = MAX | {"asks": (("holds the sum", "holds, number by number, the largest"),)}
RING_TO_THE_LEFT = LEFT | {
    "asks": (("x;", "x; the ring runs to the left:"), ("to a neighbour", "all of them to rank - 1")),
}
CHUNK = "torch.empty(x.numel() // world_size, dtype=x.dtype); dist.reduce_scatter_single(expected, x.clone()"
SUMMED = ALL + "; expected = expected.chunk(world_size)"

CHANGED: dict[str, dict[str, Any]] = {
    "pass_it_on-2": LEFT
    | {
        "asks": (("rank 0's", "the last rank's"), ("next", "one before it")),
        "expected": root("world_size - 1"),
        "needs": the_last,
        "textbook": holding(the_last),
    },
    "pass_it_on-3": {
        "asks": (("0's", "1's"), ("once, to the next", "at most once, to the next; after the last rank comes rank 0")),
        "expected": root("1"),
        "needs": rank_1,
        "textbook": holding(rank_1),
    },
    "my_share-2": {
        "asks": (("longer", "shorter"),),
        "expected": "x.flip(0).tensor_split(world_size)[world_size - 1 - rank].flip(0)",
    },
    "my_share-3": {
        "asks": (("rank order, lengths that", "reverse rank order, rank 0's is the end of x; lengths"),),
        "expected": "torch.tensor_split(x, world_size)[world_size - 1 - rank].clone()",
    },
    "running_sum-2": LEFT
    | {
        "asks": (("0 to r;", "r to the last;"), ("next", "one before it")),
        "expected": EVERYONES + "sum(expected[rank:])",
        "needs": lambda rank, p: {*range(rank, p)},
        "textbook": holding(lambda rank, p: range(rank, p)),
    },
    "running_sum-3": {
        "asks": (("ranks 0 to r;", "the ranks before it, and rank 0's holds zeros;"),),
        "expected": EVERYONES + "sum(expected[:rank], torch.zeros_like(x))",
        "needs": lambda rank, p: {*range(rank)},
        "textbook": None,
    },
    "shift-2": LEFT
    | {
        "asks": "it returns the x of the right-hand neighbour (the last rank: that of rank 0), all send at once, and x "
        "stays as it is",
        "expected": EVERYONES + "expected[(rank + 1) % world_size]",
        "needs": to_the_right,
        "textbook": holding(to_the_right),
    },
    "shift-3": {
        "asks": "it returns the sum of both neighbours' x (on a ring, on 2 ranks twice the other's); each rank sends "
        "its x to both at once, and x stays as it is",
        "expected": EVERYONES + "expected[rank - 1] + expected[(rank + 1) % world_size]",
        "needs": lambda rank, p: {(rank - 1) % p, (rank + 1) % p},
        "messages": lambda p: 2 * p,
        "busiest": lambda p: 2,
        "steps": lambda p: 2,
        "peers": lambda rank, p: {(rank - 1) % p, (rank + 1) % p},
        "talks": "its neighbours",
        "textbook": None,
    },
    "swap-2": {
        "asks": (
            (
                "ranks 0 and 1 are partners, 2 and 3,",
                "the first and the last rank are partners, the second and the last but one,",
            ),
        ),
        "expected": EVERYONES + "expected[world_size - 1 - rank]",
        "needs": mirrored,
        "peers": mirrored,
        "textbook": holding(lambda rank, p: {p - 1 - rank}),
    },
    "swap-3": {
        "asks": (
            (
                "ranks 0 and 1 are partners, 2 and 3, ...;",
                "with h = world_size // 2 the ranks r and r + h are partners for r below h;",
            ),
        ),
        "expected": EVERYONES + "(expected[h:2 * h] + expected[:h] + expected[2 * h:])[rank]",
        "setup": "h = {p} // 2\n",
        "needs": half_way,
        "peers": half_way,
        "textbook": holding(lambda rank, p: half_way(rank, p) or {rank}),
    },
    "dissemination_barrier-2": {
        "asks": (("message", "message, to the left: to rank - 1, rank - 2, rank - 4, ..."),),
        "peers": lambda rank, p: {(rank - 2**k) % p for k in range(p.bit_length())},
        "talks": "ranks 1, 2, 4, ... places to its left",
        "textbook": None,
    },
    "dissemination_barrier-3": {
        "asks": "no rank returns from it before every rank has called it; all report to rank 0, which then releases "
        "them: 2(p - 1) messages",
        "messages": lambda p: 2 * (p - 1),
        "steps": None,
        "peers": star,
        "talks": "rank 0, and rank 0 to all",
        "textbook": None,
    },
    "flat_gather-2": {
        "asks": (("rank 0 returns", "the last rank returns"), ("rank 0,", "the last rank,")),
        "expected": GATHERED + " if rank == world_size - 1 else None",
        "needs": everyone_for(lambda p: p - 1),
        "whole": "x",
        "busiest": lambda p: 1,
        "peers": lambda rank, p: {p - 1} - {rank},
        "talks": "the last rank",
        "textbook": None,
    },
    "flat_gather-3": {
        "asks": (("x in rank order;", "x, the last rank's first and its own at the end;"),),
        "expected": GATHERED + ".view(world_size, -1).flip(0).flatten() if rank == 0 else None",
        "slips": ORDERED,
        "textbook": None,
    },
    "tree_broadcast-2": {
        "asks": (("rank 0's", "the last rank's"),),
        "expected": root("world_size - 1"),
        "needs": the_last,
        "textbook": holding(the_last),
    },
    "tree_broadcast-3": {
        "asks": (("0's", "1's"),),
        "expected": root("1"),
        "needs": rank_1,
        "textbook": holding(rank_1),
    },
    "ring_all_gather-2": {
        "asks": (
            (
                "everyone's x, one after the other in rank order,",
                "number 0 of everyone's x in rank order, then number 1 of everyone's, and so on,",
            ),
        ),
        "expected": BY_NUMBER,
        "slips": ORDERED,
        "textbook": None,
    },
    "ring_all_gather-3": {
        "asks": (
            (
                "other in rank order, on every rank;",
                "other, its own first, then that of rank + 1, and so on round the ring;",
            ),
        ),
        "expected": OWN_FIRST,
        "slips": ORDERED,
        "textbook": None,
    },
    "pairwise_reduce_scatter-2": {
        "asks": (("r-th chunk", "chunk p - 1 - r"),),
        "expected": SUMMED + "[world_size - 1 - rank]",
        "textbook": None,
    },
    "pairwise_reduce_scatter-3": {
        "asks": (("returns the sum", "returns, number by number, the largest"),),
        "expected": CHUNK + ", dist.ReduceOp.MAX)",
        "slips": NO_SUM,
        "textbook": None,
    },
    "pairwise_all_to_all-2": {
        "asks": (("r-th chunk", "chunk p - 1 - r"),),
        "expected": "torch.empty_like(x); dist.all_to_all_single(expected, x.view(world_size, -1).flip(0).flatten())",
        "textbook": None,
    },
    "pairwise_all_to_all-3": {
        "asks": (("other in rank order;", "other, the last rank's first;"),),
        "expected": "torch.empty_like(x); dist.all_to_all_single(expected, x); "
        "expected = expected.view(world_size, -1).flip(0).flatten()",
        "textbook": None,
    },
    "uneven_all_to_all-2": {
        "asks": (("end in the order of the ranks;", "end, the last rank's first;"),),
        "expected": "[None] * p; dist.all_gather_object(expected, x.split(counts[rank])); "
        "expected = torch.cat([pieces[rank] for pieces in expected[::-1]])",
    },
    "uneven_all_to_all-3": {
        "asks": (("first", "last"), ("next counts[1]", "counts[1] before them")),
        "expected": "[None] * p; dist.all_gather_object(expected, x.split(counts[rank][::-1])[::-1]); "
        "expected = torch.cat([pieces[rank] for pieces in expected])",
    },
    "ring_reduce_scatter-2": {
        "asks": (("r of", "r + 1 (modulo p) of"), ("r;", "r + 1;")),
        "part": "x.chunk(world_size)[(rank + 1) % world_size]",
        "expected": SUMMED + "[(rank + 1) % world_size]",
        "textbook": None,
    },
    "ring_reduce_scatter-3": {
        "asks": (("holds the sum", "holds, number by number, the largest"),),
        "expected": CHUNK + ", dist.ReduceOp.MAX)",
        "slips": NO_SUM,
        "textbook": None,
    },
    "ring_all_reduce-2": HOLDS_MAX,
    "ring_all_reduce-3": RING_TO_THE_LEFT,
    "ring_any_length-2": HOLDS_MAX,
    "ring_any_length-3": RING_TO_THE_LEFT,
    "all_reduce_many-2": HOLDS_MAX,
    "all_reduce_many-3": {
        "asks": (("everyone's,", "all other ranks' (not this rank's),"),),
        "expected": OTHERS,
        "slips": NOT_MINE,
        "textbook": None,
    },
    "two_shot_all_reduce-2": HOLDS_MAX,
    "two_shot_all_reduce-3": {
        "asks": (("everyone's x;", "all other ranks' x (not its own);"),),
        "expected": OTHERS,
        "slips": NOT_MINE,
        "textbook": None,
    },
    "tree_reduce-2": {
        "asks": (("rank 0's", "the last rank's"),),
        "expected": ALL + "; expected = expected if rank == world_size - 1 else None",
        "needs": everyone_for(lambda p: p - 1),
        "textbook": None,
    },
    "tree_reduce-3": {
        "asks": (("holds the sum", "holds, number by number, the largest"),),
        "expected": LARGEST + "; expected = expected if rank == 0 else None",
        "slips": NO_SUM,
        "textbook": None,
    },
    "recursive_doubling_all_reduce-2": HOLDS_MAX,
    "recursive_doubling_all_reduce-3": {
        "asks": "after it, every even rank's x holds the sum of the x of all even ranks, and every odd rank's that of "
        "all odd ranks (p is a power of two), after log2(p) - 1 steps, in each of which all ranks send at once",
        "expected": EVERYONES + "sum(expected[rank % 2::2])",
        "needs": of_my_parity,
        "messages": lambda p: p * (p.bit_length() - 2),
        "busiest": lambda p: Fraction(p.bit_length() - 2),
        "steps": lambda p: p.bit_length() - 2,
        "textbook": holding(of_my_parity),
    },
    "halving_reduce_scatter-2": {
        "asks": (("it, chunk r", "it, chunk p - 1 - r"), ("everyone's chunk r", "everyone's chunk p - 1 - r")),
        "part": "x.chunk(world_size)[world_size - 1 - rank]",
        "expected": SUMMED + "[world_size - 1 - rank]",
        "textbook": None,
    },
    "halving_reduce_scatter-3": {
        "asks": (("holds the sum", "holds, number by number, the largest"),),
        "expected": CHUNK + ", dist.ReduceOp.MAX)",
        "slips": NO_SUM,
        "textbook": None,
    },
    "halving_doubling_all_reduce-2": HOLDS_MAX,
    "halving_doubling_all_reduce-3": {
        "asks": (("everyone's x", "all other ranks' x, not its own"),),
        "expected": OTHERS,
        "slips": NOT_MINE,
        "textbook": None,
    },
    "bruck_all_gather-2": {
        "asks": (
            (
                "everyone's x, one after the other in rank order,",
                "number 0 of everyone's x in rank order, then number 1 of everyone's, and so on,",
            ),
        ),
        "expected": BY_NUMBER,
        "slips": ORDERED,
        "textbook": None,
    },
    "bruck_all_gather-3": {
        "asks": (("other in rank order,", "other, the last rank's first,"),),
        "expected": GATHERED + ".view(world_size, -1).flip(0).flatten()",
        "slips": ORDERED,
        "textbook": None,
    },
    "hierarchical_all_reduce-2": HOLDS_MAX,
    "hierarchical_all_reduce-3": {
        "asks": "it returns this rank's chunk of the sum of everyone's x: GPU k of a machine returns chunk k of g. The "
        "mesh has the dimensions machine and gpu. A machine has g GPUs, and a collective between the machines may get "
        "only 1/g of x; x stays as it is",
        "expected": ALL + "; expected = expected.chunk(world_size // 2)[rank % (world_size // 2)]",
        "in_place": False,
        "textbook": None,
    },
    "rail_broadcast-2": {
        "asks": (("rank 0's.", "that of the first GPU of machine 1."),),
        "expected": root("world_size // 2"),
        "needs": lambda rank, p: {p // 2},
        "textbook": None,
    },
    "rail_broadcast-3": {
        "asks": (("rank 0's.", "that of the last GPU of machine 0."),),
        "expected": root("world_size // 2 - 1"),
        "needs": lambda rank, p: {p // 2 - 1},
        "textbook": None,
    },
}


def made(exercises: dict[str, Exercise], changed: dict[str, dict[str, Any]]) -> dict[str, Exercise]:
    """The variants, by their keys."""
    found = {}
    for key, changes in changed.items():
        name, _, number = key.rpartition("-")
        ours = exercises[name]
        texts = {field: edited(getattr(ours, field), *new) for field, new in changes.items() if isinstance(new, tuple)}
        plain: dict[str, Any] = {"variant": int(number), "hints": (), "slips": {}}
        found[key] = replace(ours, **(plain | changes | texts))
    return found


def edited(text: str, *pairs: tuple[str, str]) -> str:
    """The text with other pieces in it, each in the place of one that is there once. LookupError if it is not."""
    for old, new in pairs:
        if text.count(old) != 1:
            raise LookupError(f"{old!r} is there {text.count(old)} times: {text}")
        text = text.replace(old, new)
    return text
