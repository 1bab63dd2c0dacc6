"""A recorded built-in told as if the library had used one of the textbook's algorithms, on the tensors of the run.

What a library sends inside `dist.all_reduce` cannot be seen; what a ring or a tree would send is known. So every call
of the collective is told again, step by step, by the schedule of that algorithm over the call's group. Tensors are cut
as `torch.tensor_split` cuts them; where an algorithm overwrites what the call leaves alone (a ring reduce_scatter its
input), it does so in a tensor of its own, "scratch".

Left out: barrier, which moves no data; calls whose blocks differ in size (uneven all_to_all).
"""

from dataclasses import replace
from enum import Enum, auto
from itertools import accumulate
from typing import NamedTuple

from collectives import Schedule
from collectives.catalogue import build
from collectives.errors import ScheduleError
from launch.replay._calls import Collective, Message, block_of, kind_of
from launch.replay._happened import Happened
from launch.replay._layout import Label
from launch.replay._moves import Move, given_to, left_by, unseen
from launch.replay._places import Places
from launch.replay._torch_ops import SIZES
from launch.replay.provenance import Region


class Share(Enum):
    """What a rank has of the data in the tensors that it gives to a call."""

    WHOLE = auto()  # all of it in one tensor
    BLOCK = auto()  # its own block
    BLOCKS = auto()  # all blocks, one by one


class Held(NamedTuple):
    """Which share of the data ranks have: all of them, or the root alone."""

    share: Share
    only_root: bool = False


WHOLE, BLOCK, BLOCKS = Held(Share.WHOLE), Held(Share.BLOCK), Held(Share.BLOCKS)
ROOTS_WHOLE, ROOTS_BLOCKS = Held(Share.WHOLE, only_root=True), Held(Share.BLOCKS, only_root=True)
HELD = {  # before and after
    "all_reduce": (WHOLE, WHOLE),
    "broadcast": (ROOTS_WHOLE, WHOLE),
    "reduce": (WHOLE, ROOTS_WHOLE),
    "all_gather": (BLOCK, BLOCKS),
    "gather": (BLOCK, ROOTS_BLOCKS),
    "scatter": (ROOTS_BLOCKS, BLOCK),
    "reduce_scatter": (BLOCKS, BLOCK),
    "all_to_all": (BLOCKS, BLOCKS),
}
ROOTED = ("broadcast", "reduce", "gather", "scatter")


class Shown(NamedTuple):
    """The moves, messages and collectives of a run, as they were or as if. `labels`: step -> whose calls it shows."""

    moves: list[Move]
    messages: list[Message]
    collectives: list[Collective]
    labels: dict[int, list[Label]]

    @property
    def numbers(self) -> list[int]:
        """The steps in which anything happens; one may be a call's whose memory cannot be looked at."""
        steps = {each.step for some in (self.moves, self.messages, self.collectives) for each in some}
        return sorted({*self.labels, *steps})

    def only(self, steps: set[int]) -> "Shown":
        """What is in those steps."""
        return Shown(
            [move for move in self.moves if move.step in steps],
            [message for message in self.messages if message.step in steps],
            [item for item in self.collectives if item.step in steps],
            {step: labels for step, labels in self.labels.items() if step in steps},
        )


def shown_as(moves: list[Move], happened: Happened, places: Places, algorithms: dict[str, str]) -> Shown:
    """The run with the calls of the collectives in `algorithms` told by the algorithm of that name.

    ScheduleError for a name that does not exist, an algorithm that does not take that many ranks, a collective that
    was not recorded, and calls that cannot be told so.
    """
    if not algorithms:
        return Shown(moves, happened.messages, happened.collectives, {})
    for collective in algorithms:
        if collective == "barrier":
            raise ScheduleError("a barrier moves no data, so as_if has nothing to tell of it; leave it out")
        if collective not in HELD:
            raise ScheduleError(f"as_if knows no collective {collective!r}; there are {', '.join(HELD)}")
        if all(kind_of(item) != collective for item in happened.collectives):
            raise ScheduleError(f"no built-in {collective} was recorded, so as_if has none to tell")
    chosen = [item for item in happened.collectives if kind_of(item) in algorithms and len(item.ranks) > 1]
    calls = [_Call(happened, places, item, _schedule(item, algorithms[kind_of(item)])) for item in chosen]
    replaced = {id(item.calls) for item in chosen}
    at = _room(happened, calls)
    kept = [move._replace(step=at(move.step)) for move in moves if id(move.calls) not in replaced]
    labels: dict[int, list[Label]] = {}
    for call in calls:
        kept += call.moves(at(call.item.step))
        for number, step in enumerate(call.schedule.steps):
            words = f"{kind_of(call.item)} as if {algorithms[kind_of(call.item)]}"
            label = Label(words, step.phase, step.in_network, call.item.calls)
            labels.setdefault(at(call.item.step) + number, []).append(label)
    kept.sort(key=lambda move: (move.step, move.src == move.dst))
    messages = [replace(message, step=at(message.step)) for message in happened.messages]
    left = [replace(item, step=at(item.step)) for item in happened.collectives if id(item.calls) not in replaced]
    return Shown(kept, messages, left, labels)


def _room(happened: Happened, calls: list["_Call"]):
    """A function from steps to later ones, so that each call has as many as its schedule."""
    steps = 1 + max(item.step for item in happened.matched)
    width = [1] * steps
    for call in calls:
        width[call.item.step] = max(width[call.item.step], len(call.schedule.steps))
    before = [0, *accumulate(width)]
    return lambda step: before[min(max(step, 0), steps)] + min(step, 0)  # -1: a rank's own copy before all messages


def _schedule(item: Collective, algorithm: str) -> Schedule:
    rooted = {"root": item.ranks.index(item.calls[0].event["peer"])} if kind_of(item) in ROOTED else {}
    return build(kind_of(item), algorithm, len(item.ranks), **rooted)


class _Call:
    """One call of a built-in by all its ranks, and the schedule that tells it. Ranks are those of the group here."""

    def __init__(self, happened: Happened, places: Places, item: Collective, schedule: Schedule):
        self.happened, self.places, self.item, self.schedule = happened, places, item, schedule
        self.op = item.calls[0].event["op"]
        self.calls = {call.rank: call for call in item.calls}
        if set(self.calls) != set(item.ranks):
            raise ScheduleError(f"{self.op} was not recorded on all its ranks, so it cannot be told as if")
        self.written = {  # (rank, buffer, chunk) -> the last step that writes there
            (t.dst, t.dst_buffer, t.dst_chunk + i): number
            for number, step in enumerate(schedule.steps)
            for t in step.transfers
            for i in range(t.count)
        }

    def moves(self, at: int) -> list[Move]:
        """What the schedule moves from step `at` on, with the copies that put the input where it works."""
        # Several tensors are several calls in one, or else the blocks of one.
        together = HELD[kind_of(self.item)][0].share is Share.WHOLE
        several = len(self.calls[self.item.ranks[0]].event["ins"]) if together else 1
        return [move for index in range(several) for move in self._moves_of(index, at)]

    def _moves_of(self, index: int, at: int) -> list[Move]:
        before, after = HELD[kind_of(self.item)]
        ranks = range(len(self.item.ranks))
        have = [self._regions(rank, "ins", before, index) for rank in ranks]
        want = [self._regions(rank, "outs", after, index) for rank in ranks]
        there = [[row[c] for row in have + want] for c in range(self.schedule.chunks)]
        sizes = [next((region.hi - region.lo for region in regions if region), 0) for regions in there]
        places = [self._places(rank, have[rank], want[rank], sizes) for rank in ranks]
        first, moves = self.schedule.buffers[0], []
        for rank in ranks:
            for held, place in zip(have[rank], places[rank][first], strict=True):
                if held is not None and held != place:
                    moves.append(self._move(at - 1, rank, rank, held, place, "copy", False))
        for number, step in enumerate(self.schedule.steps):
            for t in step.transfers:
                for i in range(t.count):
                    source = places[t.src][t.src_buffer][t.chunk + i]
                    target = places[t.dst][t.dst_buffer][t.dst_chunk + i]
                    final = self.written[t.dst, t.dst_buffer, t.dst_chunk + i] == number
                    moves.append(self._move(at + number, t.src, t.dst, source, target, t.op, final))
        return [move for move in moves if move.source and move.source.lo < move.source.hi]

    def _move(self, step: int, src: int, dst: int, source: Region, target: Region, op: str, final: bool) -> Move:
        """`final`: what is in the target then is what the call has left there; before, nobody has looked."""
        calls, nbytes = (self.item.calls, source.hi - source.lo) if src != dst else ((), 0)
        how = (self.item.calls[0].event["reduce"].lower() or "sum") if op == "reduce" else ""
        src, dst = self.item.ranks[src], self.item.ranks[dst]
        held, origin = given_to(self.happened, self.places, self.item, self.calls[src], source)
        onto, _ = (
            given_to(self.happened, self.places, self.item, self.calls[dst], target) if op == "reduce" else ((), None)
        )
        spot = left_by(self.happened, self.places, self.calls[dst], target) if final else unseen(dst, target)
        return Move(step, src, dst, source, target, op, how, calls, nbytes, spot, held, onto, origin)

    def _regions(self, rank: int, side: str, held: Held, index: int) -> list[Region | None]:
        """Where the schedule's chunks are in the tensors of a call, None for those that the rank does not have."""
        chunks, ranks = self.schedule.chunks, len(self.item.ranks)
        call, place = self.calls[self.item.ranks[rank]], self.places.tensor
        if held.only_root and rank != self.schedule.root:
            return [None] * chunks
        if held.share is Share.WHOLE:
            return [*self._cut(place(call, side, index), chunks)]
        block = chunks // ranks
        if held.share is Share.BLOCK:
            return [
                *[None] * block * rank,
                *self._cut(place(call, side, 0), block),
                *[None] * block * (ranks - 1 - rank),
            ]
        blocks = [block_of(call, side, number, ranks, place) for number in range(ranks)]
        if len({part.hi - part.lo for part in blocks if part}) > 1:
            raise ScheduleError(f"a recorded {self.op} has blocks of different sizes, which no algorithm here takes")
        return [chunk for part in blocks for chunk in self._cut(part, block)]

    def _cut(self, region: Region | None, parts: int) -> list[Region]:
        """A region in `parts` of whole elements, the first ones larger where it does not divide."""
        if region is None:
            raise ScheduleError(f"a recorded {self.op} has tensors whose memory cannot be looked at")
        size = SIZES.get(self._dtype, 1)
        whole, longer = divmod((region.hi - region.lo) // size, parts)
        ends = [region.lo + size * (whole * k + min(k, longer)) for k in range(parts + 1)]
        return [region._replace(lo=lo, hi=hi) for lo, hi in zip(ends, ends[1:], strict=False)]

    def _places(self, rank: int, have: list, want: list, sizes: list[int]) -> dict[str, list[Region]]:
        """Where each buffer's chunks lie: in the output, else in the input, else in a tensor of the algorithm's own."""
        first, result, made = self.schedule.buffers[0], self.schedule.result, {}
        for buffer in self.schedule.buffers:
            name = f"scratch of {self.op}" if buffer == first else f"{buffer} of {self.op}"
            whole = self.places.memories[self.item.ranks[rank]].imagine(name, sum(sizes), self._dtype)
            made[buffer] = []
            for chunk, size in enumerate(sizes):
                untouched = (rank, buffer, chunk) not in self.written
                place = want[chunk] if buffer == result else None
                place = place or (have[chunk] if buffer == first and untouched else None)
                lo = sum(sizes[:chunk])
                made[buffer].append(place or Region(whole, lo, lo + size))
        return made

    @property
    def _dtype(self) -> str:
        return self.item.calls[0].event["dtype"]
