"""The exercises of chapter 14: micro-batches through a pipeline, 1F1B, and an order that splits the backward pass."""

from collections.abc import Callable

import numpy as np

from collectives.pipeline import Order
from course.exercises.exercise import Exercise, nobody

MICRO_BATCHES = 5
MANY = (6, 2)
"""For how many micro-batches an order is asked: more than there are ranks, and fewer."""

STAGES = """
def _stage(row):
    if not isinstance(row, torch.Tensor) or row.shape != (3,):
        raise ValueError("stage takes one micro-batch, which is one row of x: 3 numbers")
    return 2 * row + 10 * rank + 1
def _whole(x):
    dist.broadcast(x, 0)
    for r in range(world_size):
        x = 2 * x + 10 * r + 1
    return x
"""

ORDERS = """
def _orders(one_f_one_b):
    import numbers
    orders = []
    for m in MANY:
        order = one_f_one_b(m)
        what = "nothing" if order is None else f"a {{type(order).__name__}}"
        if not isinstance(order, (list, tuple)):
            raise TypeError(f"one_f_one_b({{m}}) should return a list of whole numbers, and returned {{what}}")
        for number in order:
            if isinstance(number, bool) or not isinstance(number, numbers.Integral):
                raise TypeError(f"one_f_one_b({{m}}) should return whole numbers, and {{number!r}} is none")
        if len(order) != 2 * m:
            passes = f"{{m}} forward and {{m}} backward passes are {{2 * m}}"
            raise ValueError(f"one_f_one_b({{m}}) has {{len(order)}} numbers, and {{passes}}")
        orders += order
    return torch.tensor(orders)
def _as_asked(m):
    from collectives.pipeline import one_f_one_b
    order = one_f_one_b(world_size, m).orders[rank]
    return torch.tensor([each.micro if each.kind == "F" else -each.micro for each in order])
""".replace("MANY", str(MANY))


SPLIT = ((4, 8), (3, 3), (2, 5), (6, 9))
"""Ranks and micro-batches for which an order with a split backward pass is asked."""

PLAYED = f"""
from course.exercises.pipeline import refusal
def _played(split_backward):
    for p, m in {SPLIT}:
        lists = [split_backward(r, p, m) for r in range(p)]
        for r, actions in enumerate(lists):
            if not isinstance(actions, (list, tuple, str)):
                what = "nothing" if actions is None else f"a {{{{type(actions).__name__}}}}"
                raise TypeError(f"for rank {{{{r}}}} it should return a list of actions, and returned {{{{what}}}}")
        if why := refusal(lists, m):
            raise ValueError(f"with {{{{m}}}} micro-batches on {{{{p}}}} ranks, {{{{why}}}}")
    return torch.tensor({len(SPLIT)})
"""


def refusal(lists, m: int) -> str:
    """What is wrong with the actions of each rank as an order that splits the backward pass of m micro-batches; "" if
    nothing is."""
    try:
        order = Order("yours", lists)
    except ValueError as error:
        return str(error)
    p = order.ranks
    for r, actions in enumerate(order.orders):
        others = [action.stage for action in actions if action.stage != r]
        if others:
            return f"rank {r} has an action of stage {others[0]}; its own stage is {r}"
        if order.micro != m:
            return f"there are {order.micro} micro-batches in the lists"
    if order.stuck:
        return order.stuck
    for r, actions in enumerate(order.orders):
        kept = 0
        for action in actions:
            kept += {"F": 1, "I": 0}.get(action.kind, -1)
            if kept > p:
                over = "it keeps each micro-batch from F to W, or B"
                return f"rank {r} holds {kept} micro-batches at F{action.micro}, and {p} are allowed: {over}"
    enough = 3 * m + p - 1
    if order.length <= enough:
        return ""
    many = f"the step takes {order.length} slots, and {enough} are enough"
    for r in range(1, p):
        if any(action.kind == "B" for action in order.orders[r]):
            return (
                f"{many}: rank {r - 1} waits for both slots of each B of rank {r}, and needs only the first: write I, W"
            )
    return f"{many}: {_wait(order)}"


def _wait(order: Order) -> str:
    """Why a rank waits in an order that is too long: it could do a W meanwhile, the other rank does one, or it has done
    all of its own too soon; else which wait is the longest."""
    slots = sorted(order.slots, key=lambda slot: slot.start)
    found = []
    for r in range(order.ranks):
        mine = [slot for slot in slots if slot.rank == r]
        due: list[int] = []  # micro-batches whose I is done and W not
        free = 0
        for slot in mine:
            kind, micro, _ = slot.action
            length, source = slot.start - free, r - 1 if kind == "F" else r + 1
            many = f"{length} slot{'s' * (length > 1)}"
            waits = f"rank {r} waits {many} for {kind}{micro} of rank {source}"
            theirs = [s.action for s in slots if s.rank == source and free < s.end <= slot.start]
            late = next((action.micro for action in theirs if action.kind == "W"), None)
            if length and due:
                found.append((3, length, f"{waits}, and could do W{due[0]} meanwhile"))
            elif length and late:
                found.append((2, length, f"{waits}, which does W{late} first"))
            elif length and any(s.action.kind == "W" for s in mine if s.end <= free):
                found.append((1, length, f"{waits}, and has no W left to do meanwhile: put W off for longer"))
            elif length:
                found.append((0, length, waits))
            due = due + [micro] if kind == "I" else [each for each in due if (kind, each) != ("W", micro)]
            free = slot.end
    return max(found)[2]


def last_rank_of_all(rank: int, p: int) -> set[int]:
    """Rank 0 for the last rank, nobody for the others: what they return does not matter."""
    return {0} if rank == p - 1 else set()


def next_stage(rank: int, p: int) -> set[int]:
    """The rank that has the next stage; nobody for the last."""
    return {rank + 1} if rank < p - 1 else set()


def without(stage: int):
    """A slip: rank 0's rows after all stages but this one."""

    def rows(trial, rank: int) -> np.ndarray:
        x = trial.given[0] * (1.0 if stage < trial.p else np.nan)
        for r in range(trial.p):
            x = x if r == stage else 2 * x + 10 * r + 1
        return x

    return rows


def all_forward_first(trial, rank: int) -> np.ndarray:
    """The orders of GPipe."""
    return np.concatenate([[*range(1, m + 1), *range(-1, -m - 1, -1)] for m in MANY])


def begins_with(first: Callable[[int, int], int]):
    """A slip: 1F1B in which each rank r begins with first(r, p) forward passes."""

    def order(rank: int, p: int) -> list[int]:
        found: list[int] = []
        for m in MANY:
            head = min(m, first(rank, p))
            turns = [each for i in range(1, m - head + 1) for each in (-i, head + i)]
            found += [*range(1, head + 1), *turns, *range(head - m - 1, -m - 1, -1)]
        return found

    def orders(trial, rank: int) -> np.ndarray:
        answers = [seen["values"].tolist() for seen in trial.answers]
        alike = all(answer == order(r, trial.p) for r, answer in enumerate(answers))
        return np.array(order(rank, trial.p) if alike else [])

    return orders


EXERCISES = (
    Exercise(
        name="pipeline_forward",
        asks="the last rank returns all rows of rank 0's x after all stages; what other ranks return does not matter. "
        "Each stage sends a row on as soon as it has computed it. x stays as it is",
        lines=12,
        x=f"torch.randint(low, high, ({MICRO_BATCHES}, 3)).to(dtype) * scale",
        setup=STAGES,
        expected="_whole(x.clone()); expected = expected if rank == world_size - 1 else None",
        call="{name}(x, _stage)",
        in_place=False,
        needs=last_rank_of_all,
        messages=lambda p: MICRO_BATCHES * (p - 1),
        busiest=lambda p: 1,
        numbers=lambda draw: 3,
        steps=lambda p: MICRO_BATCHES + p - 2,
        why_steps="while a stage works on one row, the stage before it can work on the next: send each row on as soon "
        "as it is through your stage, with isend, then receive the next; wait for the handles at the end",
        peers=next_stage,
        talks="the rank that has the next stage",
        slips={
            **{
                without(r): f"these are the rows without rank {r}'s stage: send on, or keep, what stage(row) returns"
                for r in range(8)
            },
            lambda trial, rank: np.tile(trial.expected[rank][-1], (MICRO_BATCHES, 1)): "every row is the last one; "
            "if you put one buffer into the list again and again, put row.clone() there",
        },
        hints=(
            "All ranks go through the rows in the same order. What differs is where a row comes from (rank 0: its x) "
            "and where it goes (the last rank keeps it).",
            "dist.recv(row, rank - 1) fills a tensor like x[i]; rank 0 needs no recv and the last rank no isend.",
            "Keep what isend returns in a list, and call wait() on each at the end. A wait() inside the loop makes "
            "your stage wait for the next one.",
            "The last rank collects its rows in a list: torch.stack(rows) makes one tensor of them.",
        ),
    ),
    Exercise(
        name="one_f_one_b",
        asks="it returns this rank's order for m micro-batches, as a list of whole numbers: i is the forward pass of "
        "micro-batch i, -i its backward pass. Nothing is sent",
        lines=7,
        x="torch.zeros(1)",
        setup=ORDERS,
        expected=f"torch.cat([_as_asked(m) for m in {MANY}])",
        call="_orders({name})",
        parts=lambda p: {f"the order for {m} micro-batches": 2 * m for m in MANY},
        in_place=False,
        needs=nobody,
        allowed=frozenset(),
        slips={
            all_forward_first: "that is GPipe, all forward passes first; in 1F1B a rank begins with at most "
            "world_size - rank of them",
            begins_with(lambda rank, p: 1): "each rank begins with one forward pass, and only the last one should; "
            "rank r begins with world_size - r",
            begins_with(lambda rank, p: max(1, p - rank - 1)): "rank r begins with world_size - r - 1 forward passes, "
            "one too few",
            begins_with(lambda rank, p: rank + 1): "rank r begins with r + 1 forward passes; it should be the other "
            "way round: rank 0 waits longest for its first gradient, so it begins with most",
            begins_with(lambda rank, p: p): "each rank begins with world_size forward passes; rank r needs only "
            "world_size - r",
        },
        hints=(
            "It begins with world_size - rank forward passes; with all m of them, if m is smaller.",
            "Then turns: one backward pass, one forward pass, until the last forward pass has been made.",
            "What remains are backward passes, and each micro-batch has one: the last number is -m on every rank.",
        ),
        dtypes=("float32", "float32", "float32"),
        more=(5, 6),
    ),
    Exercise(
        name="split_backward",
        asks="it returns the order of rank r of p for m micro-batches, m at least p. F1 is the forward pass of "
        "micro-batch 1, I1 its input's gradient, W1 its weights' gradient: one slot each. A step takes at most "
        "3 m + p - 1 slots. A micro-batch is in memory from F to W, and no rank may hold more than p",
        lines=12,
        x="torch.zeros(1)",
        setup=PLAYED,
        expected=f"torch.tensor({len(SPLIT)})",
        call="_played({name})",
        in_place=False,
        needs=nobody,
        allowed=frozenset(),
        hints=(
            "Begin with 1F1B and write I for the backward pass: p - r forward passes, then I and F in turns. Where do "
            "the W go?",
            "The stage before waits for I, and no rank waits for W. On rank 0 no stage waits for I either: there W "
            "follows its I at once. The last rank puts its W off longest.",
            "W of micro-batch i comes right behind I of micro-batch i + r, on rank r. The last r of them come at the "
            "end.",
        ),
        world_sizes=(2, 2, 2),
        dtypes=("float32", "float32", "float32"),
        more=(2,),
    ),
)
