"""A recorded built-in told as if the library had used one of the textbook's algorithms, on the tensors of the run.

What a library sends inside `dist.all_reduce` cannot be seen; what a ring or a tree would send is known. So every call
of the collective is told again, step by step, by the schedule of that algorithm over the call's group. Tensors are cut
as `torch.tensor_split` cuts them; where an algorithm overwrites what the call leaves alone (a ring reduce_scatter its
input), it does so in a tensor of its own, "scratch".

Left out: barrier, which moves no data; calls whose blocks differ in size (uneven all_to_all).
"""

from collectives import Schedule
from collectives.catalogue import build
from collectives.errors import ScheduleError
from launch.replay.effects import block_of, kind_of
from launch.replay.footage import itemsize
from launch.replay.matching import Collective, Move
from launch.replay.memory import Region

HELD = {  # what a rank has of the data, before and after: all in one tensor, a block, or all blocks one by one
    "all_reduce": ("whole", "whole"),
    "broadcast": ("whole of root", "whole"),
    "reduce": ("whole", "whole of root"),
    "all_gather": ("block", "blocks"),
    "gather": ("block", "blocks of root"),
    "scatter": ("blocks of root", "block"),
    "reduce_scatter": ("blocks", "block"),
    "all_to_all": ("blocks", "blocks"),
}
ROOTED = ("broadcast", "reduce", "gather", "scatter")
UNSEEN = -1  # the look of what would have been there on the way: nobody has looked


def retell(reading, algorithms: dict[str, str]) -> None:
    """Tells the calls of the collectives in `algorithms` by the algorithm of that name: changes `reading`.

    ScheduleError for a name that does not exist, an algorithm that does not take that many ranks, a collective that
    was not recorded, and calls that cannot be told so.
    """
    for collective in algorithms:
        if collective == "barrier":
            raise ScheduleError("a barrier moves no data, so as_if has nothing to tell of it; leave it out")
        if collective not in HELD:
            raise ScheduleError(f"as_if knows no collective {collective!r}; there are {', '.join(HELD)}")
        if all(kind_of(item) != collective for item in reading.collectives):
            raise ScheduleError(f"no built-in {collective} was recorded, so as_if has none to tell")
    chosen = [item for item in reading.collectives if kind_of(item) in algorithms and len(item.ranks) > 1]
    calls = [_Call(reading, item, _schedule(item, algorithms[kind_of(item)])) for item in chosen]
    effects = {id(move) for item in chosen for move in reading.effects[item]}
    moves = [move for move in reading.moves if id(move) not in effects]
    _make_room(reading, moves, calls)
    reading.collectives = [item for item in reading.collectives if item not in chosen]
    for call in calls:
        moves += call.moves()
        for number, step in enumerate(call.schedule.steps):
            words = f"{kind_of(call.item)} as if {algorithms[kind_of(call.item)]}"
            reading.told[call.item.step + number].append((words, step.phase, call.item.calls))
    reading.moves = sorted(moves, key=lambda move: (move.step, move.src == move.dst))


def _schedule(item: Collective, algorithm: str) -> Schedule:
    rooted = {"root": item.ranks.index(item.calls[0].event["peer"])} if kind_of(item) in ROOTED else {}
    return build(kind_of(item), algorithm, len(item.ranks), **rooted)


def _make_room(reading, moves: list[Move], calls: list["_Call"]) -> None:
    """Moves everything to later steps, so that each call has as many as its schedule."""
    width = [1] * reading.steps
    for call in calls:
        width[call.item.step] = max(width[call.item.step], len(call.schedule.steps))
    for told in [*moves, *reading.messages, *reading.collectives]:
        told.step = sum(width[: max(told.step, 0)]) + min(told.step, 0)  # -1: a rank's own copy before all messages
    reading.steps = sum(width)


class _Call:
    """One call of a built-in by all its ranks, and the schedule that tells it. Ranks are those of the group here."""

    def __init__(self, reading, item: Collective, schedule: Schedule):
        self.reading, self.item, self.schedule = reading, item, schedule
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

    def moves(self) -> list[Move]:
        """What the schedule moves, with the copies that put the input where it works."""
        together = HELD[kind_of(self.item)][0].startswith("whole")  # else several tensors are the blocks of one call
        several = len(self.calls[self.item.ranks[0]].event["ins"]) if together else 1
        return [move for index in range(several) for move in self._moves_of(index)]

    def _moves_of(self, index: int) -> list[Move]:
        before, after = HELD[kind_of(self.item)]
        ranks = range(len(self.item.ranks))
        have = [self._regions(rank, "ins", before, index) for rank in ranks]
        want = [self._regions(rank, "outs", after, index) for rank in ranks]
        sizes = [next((row[c].hi - row[c].lo for row in have + want if row[c]), 0) for c in range(self.schedule.chunks)]
        places = [self._places(rank, have[rank], want[rank], sizes) for rank in ranks]
        first, told = self.schedule.buffers[0], []
        for rank in ranks:
            for held, place in zip(have[rank], places[rank][first], strict=True):
                if held is not None and held != place:
                    told.append(self._move(self.item.step - 1, rank, rank, held, place, "copy", UNSEEN))
        for number, step in enumerate(self.schedule.steps):
            for t in step.transfers:
                for i in range(t.count):
                    source = places[t.src][t.src_buffer][t.chunk + i]
                    target = places[t.dst][t.dst_buffer][t.dst_chunk + i]
                    final = self.written[t.dst, t.dst_buffer, t.dst_chunk + i] == number
                    look = self.calls[self.item.ranks[t.dst]].end if final else UNSEEN
                    told.append(self._move(self.item.step + number, t.src, t.dst, source, target, t.op, look))
        return [move for move in told if move.source.lo < move.source.hi]

    def _move(self, step: int, src: int, dst: int, source: Region, target: Region, op: str, look) -> Move:
        calls, nbytes = (self.item.calls, source.hi - source.lo) if src != dst else ((), 0)
        how = self.item.calls[0].event["reduce"].lower() or "sum"
        src, dst = self.item.ranks[src], self.item.ranks[dst]
        return Move(step, src, dst, source, target, op, look, calls, nbytes, how)

    def _regions(self, rank: int, side: str, held: str, index: int) -> list[Region | None]:
        """Where the schedule's chunks are in the tensors of a call, None for those that the rank does not have."""
        chunks, ranks = self.schedule.chunks, len(self.item.ranks)
        what, _, only_root = held.partition(" of ")
        call, place = self.calls[self.item.ranks[rank]], self.reading.place
        if only_root and rank != self.schedule.root:
            return [None] * chunks
        if what == "whole":
            return self._cut(place(call, side, index), chunks)
        block = chunks // ranks
        if what == "block":
            own = self._cut(place(call, side, 0), block)
            return [None] * block * rank + own + [None] * block * (ranks - 1 - rank)
        blocks = [block_of(call, side, number, ranks, place) for number in range(ranks)]
        if len({part.hi - part.lo for part in blocks if part}) > 1:
            raise ScheduleError(f"a recorded {self.op} has blocks of different sizes, which no algorithm here takes")
        return [chunk for part in blocks for chunk in self._cut(part, block)]

    def _cut(self, region: Region | None, parts: int) -> list[Region]:
        """A region in `parts` of whole elements, the first ones larger where it does not divide."""
        if region is None:
            raise ScheduleError(f"a recorded {self.op} has tensors whose memory cannot be looked at")
        size = itemsize(self._dtype)
        whole, longer = divmod((region.hi - region.lo) // size, parts)
        ends = [region.lo + size * (whole * k + min(k, longer)) for k in range(parts + 1)]
        return [region._replace(lo=lo, hi=hi) for lo, hi in zip(ends, ends[1:], strict=False)]

    def _places(self, rank: int, have: list, want: list, sizes: list[int]) -> dict[str, list[Region]]:
        """Where each buffer's chunks lie: in the output, else in the input, else in a tensor of the algorithm's own."""
        first, result, made = self.schedule.buffers[0], self.schedule.result, {}
        for buffer in self.schedule.buffers:
            name = f"scratch of {self.op}" if buffer == first else f"{buffer} of {self.op}"
            whole = self.reading.memories[self.item.ranks[rank]].imagine(name, sum(sizes), self._dtype)
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
