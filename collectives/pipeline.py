"""Orders of a pipeline: what each rank does when, how long that takes, and how many micro-batches it keeps.

A pipeline has p ranks, each with one or more stages (whole layers), and a batch cut into micro-batches. Each rank has a
list of actions:

    F  the forward pass of a micro-batch through a stage: one slot
    B  its backward pass: two slots; or in two parts,
    I  the gradient of the input, which the stage before waits for: one slot, and
    W  the gradient of the weights, which no rank waits for: one slot

With v stages on a rank, each is v times shorter. An action begins as soon as its rank is free and what it needs is
there.

    one_f_one_b(4, 8).bubble      the share of the time in which a rank is idle: 9 of 33 slots
    one_f_one_b(4, 8).kept        the micro-batches whose activations each rank keeps, at most: (4, 3, 2, 1)
    Order("mine", ["F1 F2 B1 B2", [1, -1, 2, -2]])

Actions are text: "F3" is the forward pass of micro-batch 3, "5F3" the same in stage 5. torch writes them like this, but
counts micro-batches from 0. Numbers are understood too, as in chapter 14: 3 is F3, -3 is B3. Stages count from 0;
an action without a stage is in the stage with its rank's number.

Left out: the time that messages take, and stages of different lengths.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from collectives.errors import check_ranks, whole

TICKS = {"F": 1, "B": 2, "I": 1, "W": 1}  # a tick is a slot divided by v
_ACTION = re.compile(r"(\d*)([FBIW])(\d+)|([-−]?)(\d+)")


class Action(NamedTuple):
    """F, B, I or W of one micro-batch (from 1) in one stage (from 0)."""

    kind: str
    micro: int
    stage: int


class Slot(NamedTuple):
    """An action and when its rank does it, in ticks since the start of the step."""

    rank: int
    start: int
    end: int
    action: Action


class Order:
    """The order in which each rank of a pipeline does its actions.

    name    what it is called
    orders  the actions of each rank: a text, or a list of texts and numbers

    ValueError for an unknown action, for actions that are missing or there twice, and for a stage that two ranks have.
    An order that gets stuck is not an error: `stuck` says why, and its `bubble` is 1.
    """

    def __init__(self, name: str, orders: Iterable[str | Iterable[str | int]]):
        self.name = name
        self.orders = [_read(order, rank) for rank, order in enumerate(orders)]
        self.ranks = check_ranks("Order", len(self.orders))
        home: dict[int, int] = {}
        for rank, order in enumerate(self.orders):
            for stage in {action.stage for action in order}:
                if home.setdefault(stage, rank) != rank:
                    raise ValueError(f"rank {rank}: stage {stage} is on rank {home[stage]} already")
        everything = Counter(action for order in self.orders for action in order)
        self.micro = max((action.micro for action in everything), default=0)
        self.stages = self.ranks * (1 + max(home, default=0) // self.ranks)  # each rank has equally many
        for stage in range(self.stages):
            rank = home.get(stage, stage % self.ranks)
            for micro in range(1, self.micro + 1):
                whole = not (everything[Action("I", micro, stage)] or everything[Action("W", micro, stage)])
                wanted = Counter("FB" if whole else "FIW")
                found = Counter({kind: everything[Action(kind, micro, stage)] for kind in TICKS})
                for kind in TICKS:
                    if found[kind] != wanted[kind]:
                        many = f"there {found[kind]} times" if found[kind] > 1 else "there beside its two parts"
                        there = many if found[kind] else "missing"
                        raise ValueError(f"rank {rank}: {self._told(Action(kind, micro, stage))} is {there}")

    def _told(self, action: Action) -> str:
        """ "F3", or "5F3" where a rank has more than one stage."""
        kind, micro, stage = action
        return f"{stage if self.stages > self.ranks else ''}{kind}{micro}"

    @property
    def texts(self) -> list[str]:
        """The actions of each rank as text."""
        return [" ".join(map(self._told, order)) for order in self.orders]

    @property
    def ticks(self) -> int:
        """How many ticks a slot has: the stages of a rank."""
        return self.stages // self.ranks

    @cached_property
    def _played(self) -> tuple[list[Slot], str]:
        done: dict[tuple[str, int, int], int] = {}
        free, next_ = [0] * self.ranks, [0] * self.ranks
        slots: list[Slot] = []
        moved = True
        while moved:
            moved = False
            for rank, order in enumerate(self.orders):
                for action in order[next_[rank] :]:
                    needs = [done.get(need) for need in self._needs(action)]
                    if None in needs:
                        break
                    start = max([free[rank], *(end for end in needs if end is not None)])
                    free[rank] = start + TICKS[action.kind]
                    done[action.kind.replace("B", "I"), action.micro, action.stage] = free[rank]
                    slots.append(Slot(rank, start, free[rank], action))
                    next_[rank] += 1
                    moved = True
        waits = {rank: order[next_[rank]] for rank, order in enumerate(self.orders) if next_[rank] < len(order)}
        if not waits:
            return slots, ""
        home = {action.stage: rank for rank, order in enumerate(self.orders) for action in order}
        need = {rank: next(each for each in self._needs(action) if each not in done) for rank, action in waits.items()}
        blamed = next((rank for rank in waits if home[need[rank][2]] == rank), next(iter(waits)))  # its own list first
        kind, micro, stage = need[blamed]
        after = self._told(Action("B" if kind == "I" and "B" in self._kinds else kind, micro, stage))
        where = "later in its own list" if home[stage] == blamed else f"of rank {home[stage]}"
        return slots, f"rank {blamed} waits forever: its {self._told(waits[blamed])} needs {after} {where}"

    @property
    def _kinds(self) -> set[str]:
        return {action.kind for order in self.orders for action in order}

    def _needs(self, action: Action) -> list[tuple[str, int, int]]:
        """What must be done first; "I" means B too."""
        kind, micro, stage = action
        if kind == "F":
            return [("F", micro, stage - 1)] if stage else []
        if kind == "W":
            return [("I", micro, stage)]
        after = [("I", micro, stage + 1)] if stage + 1 < self.stages else []
        return [("F", micro, stage), *after]

    @property
    def slots(self) -> list[Slot]:
        """Every action that is done, and when."""
        return self._played[0]

    @property
    def stuck(self) -> str:
        """Why the ranks get stuck, as a sentence; "" if they do not."""
        return self._played[1]

    @property
    def length(self) -> int:
        """Ticks from the first action of any rank to the end of the last one."""
        return max((slot.end for slot in self.slots), default=0)

    @property
    def period(self) -> int:
        """Ticks from the start of a step to the start of the next, if each rank starts its next step at once: the
        longest time of any rank from its first action to the end of its last. So no rank may wait for all others
        between two steps, as it must when gradients are clipped by their global norm."""
        spans = [[(s.start, s.end) for s in self.slots if s.rank == rank] for rank in range(self.ranks)]
        return max((max(end for _, end in of) - min(start for start, _ in of) for of in spans if of), default=0)

    @property
    def idle(self) -> float:
        """The bubble in slots, the same for each rank: the length of one step minus a rank's work."""
        return float("inf") if self.stuck else self.length / self.ticks - 3 * self.micro

    @property
    def bubble(self) -> float:
        """The share of one step in which a rank is idle; the same for each rank."""
        return 1.0 if self.stuck or not self.micro else self.idle * self.ticks / self.length

    @property
    def kept(self) -> tuple[float, ...]:
        """For each rank, the most micro-batches whose activations it keeps at one time, from F until B or W. With v
        stages on a rank, each counts 1/v."""
        most = []
        for order in self.orders:
            now = [0]
            for action in order:
                now.append(now[-1] + {"F": 1, "I": 0}.get(action.kind, -1))
            most.append(max(now) / self.ticks)
        return tuple(most)

    def __repr__(self) -> str:
        return f"Order({self.name!r}, {self.ranks} ranks, {self.micro} micro-batches)"


def _read(order: str | Iterable[str | int], rank: int) -> list[Action]:
    words = order.replace(",", " ").split() if isinstance(order, str) else list(order)
    return [_action(word, rank) for word in words]


def _action(word: str | int, rank: int) -> Action:
    found = _ACTION.fullmatch(str(word).upper())
    stage, kind, micro, minus, number = found.groups() if found else ("", "", "", "", "0")
    if not int(micro or number):
        raise ValueError(f"rank {rank}: {word} is no action; write F1, B1, I1 or W1, and count micro-batches from 1")
    return Action(kind or ("B" if minus else "F"), int(micro or number), int(stage or rank))


def gpipe(ranks: int, micro: int) -> Order:
    """All forward passes, then all backward passes: a rank keeps all micro-batches."""
    p, micro = _checked("gpipe", ranks, micro)
    order = [f"F{i}" for i in range(1, micro + 1)] + [f"B{i}" for i in range(1, micro + 1)]
    return Order("GPipe", [order] * p)


def one_f_one_b(ranks: int, micro: int) -> Order:
    """One forward, one backward: the same bubble, and rank r keeps p - r micro-batches at most."""
    p, micro = _checked("one_f_one_b", ranks, micro)
    return Order("1F1B", [_in_turns(micro, p - r, "B") for r in range(p)])


def zero_bubble_h1(ranks: int, micro: int) -> Order:
    """1F1B with the backward pass in two parts (ZB-H1 of Qi et al., 2024). With p or more micro-batches the bubble is
    a third of 1F1B's; each rank keeps p, as rank 0 does in 1F1B."""
    p, micro = _checked("zero_bubble_h1", ranks, micro)
    return Order("Zero bubble H1", [_in_turns(micro, p - r, "I", r) for r in range(p)])


def zero_bubble_h2(ranks: int, micro: int) -> Order:
    """More forward passes first (ZB-H2): each rank keeps 2p - 1 micro-batches. One step takes as long as with H1, but
    its idle slots are all at the ends, where the steps before and after fit in."""
    p, micro = _checked("zero_bubble_h2", ranks, micro)
    return Order("Zero bubble H2", [_in_turns(micro, 2 * (p - r) - 1, "I", 2 * r) for r in range(p)])


def interleaved(ranks: int, micro: int, stages: int = 2) -> Order:
    """1F1B with v `stages` on each rank, stage s on rank s mod p: the bubble is v times shorter. As in Megatron-LM,
    the number of micro-batches must be a multiple of p (ValueError otherwise)."""
    p, micro = _checked("interleaved", ranks, micro)
    v = whole("pipeline.interleaved", stages, "stages", 1)
    if micro % p:
        raise ValueError(f"pipeline.interleaved takes a multiple of {p} micro-batches, got {micro}")
    orders = []
    for rank in range(p):
        turns = [(k // (p * v) * p + k % p + 1, k // p % v) for k in range(micro * v)]  # micro-batch, my n-th stage
        forward = [f"{piece * p + rank}F{i}" for i, piece in turns]
        backward = [f"{(v - 1 - piece) * p + rank}B{i}" for i, piece in turns]
        first = min(len(turns), 2 * (p - 1 - rank) + (v - 1) * p)
        pairs = [each for pair in zip(forward[first:], backward, strict=False) for each in pair]
        orders.append(forward[:first] + pairs + backward[len(turns) - first :])
    return Order(f"Interleaved, {v} stages a rank", orders)


def _checked(name: str, ranks: int, micro: int) -> tuple[int, int]:
    return check_ranks(f"pipeline.{name}", ranks), whole(f"pipeline.{name}", micro, "micro-batches", 1)


def _in_turns(micro: int, first: int, backward: str, late: int = 0) -> list[str]:
    """`first` forward passes, then backward and forward in turns; W comes `late` turns after its I, if there is one."""
    first = min(micro, first)
    order = [f"F{i}" for i in range(1, first + 1)]
    for i in range(1, micro + late + 1):
        order += [f"{backward}{i}"] if i <= micro else []
        order += [f"W{i - late}"] if backward == "I" and i > late else []
        order += [f"F{first + i}"] if first + i <= micro else []
    return order
