"""A collective on tensors of one's own: where its data go, at once or by the steps of a textbook's algorithm.

What a library sends inside `dist.all_reduce` cannot be seen; what a ring would send is known. `straight` takes
every piece from where it was to where it is wanted. `hops` takes it there by a schedule: tensors are cut as
`torch.tensor_split` cuts them, and where an algorithm overwrites what the call leaves alone (a ring reduce_scatter its
input), it works in a tensor of its own.

Left out: barrier, which moves no data; calls whose blocks differ in size (uneven all_to_all).
"""

from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from typing import NamedTuple

from collectives.errors import ScheduleError
from collectives.schedule import Schedule


class Region(NamedTuple):
    """Bytes lo up to hi of a tensor that is called `place`."""

    place: str
    lo: int
    hi: int


class Share(Enum):
    """What a rank has of the data in the tensors that it gives to a call."""

    WHOLE = auto()  # all of it; several tensors are several calls in one
    BLOCK = auto()  # its own block
    BLOCKS = auto()  # the blocks of all ranks


class Held(NamedTuple):
    """Which share of the data ranks have: all of them, or the root alone."""

    share: Share
    only_root: bool = False


WHOLE, BLOCK, BLOCKS = Held(Share.WHOLE), Held(Share.BLOCK), Held(Share.BLOCKS)
ROOTS_WHOLE, ROOTS_BLOCKS = Held(Share.WHOLE, only_root=True), Held(Share.BLOCKS, only_root=True)
HELD = {  # before and after; a run is tried as each in this order, those of ROOTED last (launch/replay/_outcome.py)
    "all_reduce": (WHOLE, WHOLE),
    "broadcast": (ROOTS_WHOLE, WHOLE),
    "reduce": (WHOLE, ROOTS_WHOLE),
    "all_gather": (BLOCK, BLOCKS),
    "gather": (BLOCK, ROOTS_BLOCKS),
    "scatter": (ROOTS_BLOCKS, BLOCK),
    "reduce_scatter": (BLOCKS, BLOCK),
    "all_to_all": (BLOCKS, BLOCKS),
}
ROOTED = ("reduce", "gather", "broadcast", "scatter")
REDUCING = ("all_reduce", "reduce_scatter", "reduce")

Chunks = list[Region | None]
Parts = Callable[[int, str, Share], Sequence["Region | None"]]
"""parts(rank, side, share): the tensors that a rank reads ("ins") or writes ("outs"), or the block of each rank in
them; None for memory that cannot be looked at."""


def straight(
    collective: str, ranks: int, root: int | None, parts: Parts
) -> Iterator[tuple[int, int, Region | None, Region | None]]:
    """(src, dst, source, target) of all that a call moves; ranks are counted from 0 within its group."""
    before, after = HELD[collective]
    has = [parts(rank, "ins", before.share) for rank in range(ranks)]
    gets = [parts(rank, "outs", after.share) for rank in range(ranks)]
    for src in [root] if before.only_root else range(ranks):
        for dst in [root] if after.only_root else range(ranks):
            if src is None or dst is None or (collective == "broadcast" and src == dst):
                continue
            sources = has[src][dst : dst + 1] if before.share is Share.BLOCKS else has[src]
            targets = gets[dst][src : src + 1] if after.share is Share.BLOCKS else gets[dst]
            for source, target in zip(sources, targets, strict=False):
                yield src, dst, source, target


class Hop(NamedTuple):
    """One transfer of the schedule's step `step`; -1 puts the input where the algorithm works. `final`: what is in the
    target then is what the call leaves there."""

    step: int
    src: int
    dst: int
    source: Region
    target: Region
    op: str
    final: bool


def hops(
    collective: str, schedule: Schedule, itemsize: int, parts: Parts, scratch: Callable[[int, str, int], str]
) -> Iterator[Hop]:
    """What the schedule moves. `scratch(rank, buffer, nbytes)` is the name of a tensor of the algorithm's own.

    ScheduleError for tensors that cannot be looked at, and for blocks of different sizes.
    """
    before, after = HELD[collective]
    ranks, chunks, first = range(schedule.ranks), schedule.chunks, schedule.buffers[0]
    written = {  # (rank, buffer, chunk) -> the last step that writes there
        (t.dst, t.dst_buffer, t.dst_chunk + i): number
        for number, step in enumerate(schedule.steps)
        for t in step.transfers
        for i in range(t.count)
    }

    def cut(region: Region | None, pieces: int) -> list[Region]:
        """A region in pieces of whole elements, the first ones larger where it does not divide."""
        if region is None:
            raise ScheduleError(f"a recorded {collective} has tensors whose memory cannot be looked at")
        whole, longer = divmod((region.hi - region.lo) // itemsize, pieces)
        ends = [region.lo + itemsize * (whole * k + min(k, longer)) for k in range(pieces + 1)]
        return [region._replace(lo=lo, hi=hi) for lo, hi in zip(ends, ends[1:], strict=False)]

    def chunked(rank: int, side: str, held: Held, tensor: int) -> Chunks:
        """Where the chunks are in the tensors of a rank, None for those that it does not have."""
        if held.only_root and rank != schedule.root:
            return [None] * chunks
        there = parts(rank, side, held.share)
        if held.share is Share.WHOLE:
            return [*cut(there[tensor], chunks)]
        block = chunks // len(ranks)
        if held.share is Share.BLOCK:
            return [*[None] * block * rank, *cut(there[0], block), *[None] * block * (len(ranks) - 1 - rank)]
        if len({part.hi - part.lo for part in there if part}) > 1:
            raise ScheduleError(f"a recorded {collective} has blocks of different sizes, which no algorithm here takes")
        return [chunk for part in there for chunk in cut(part, block)]

    def places(rank: int, have: Chunks, want: Chunks, sizes: list[int]) -> dict[str, list[Region]]:
        """Where each buffer's chunks lie: in the output, else in the input, else in a tensor of the algorithm's own."""
        found: dict[str, list[Region]] = {}
        for buffer in schedule.buffers:
            whole = scratch(rank, "scratch" if buffer == first else buffer, sum(sizes))
            for chunk, size in enumerate(sizes):
                place = want[chunk] if buffer == schedule.result else None
                if buffer == first and (rank, buffer, chunk) not in written:
                    place = place or have[chunk]
                lo = sum(sizes[:chunk])
                found.setdefault(buffer, []).append(place or Region(whole, lo, lo + size))
        return found

    several = len(parts(0, "ins", Share.WHOLE)) if before.share is Share.WHOLE else 1
    for tensor in range(several):
        have = [chunked(rank, "ins", before, tensor) for rank in ranks]
        want = [chunked(rank, "outs", after, tensor) for rank in ranks]
        there = [[row[c] for row in have + want] for c in range(chunks)]
        sizes = [next((region.hi - region.lo for region in regions if region), 0) for regions in there]
        where = [places(rank, have[rank], want[rank], sizes) for rank in ranks]
        for rank in ranks:
            for held, place in zip(have[rank], where[rank][first], strict=True):
                if held is not None and held != place and held.lo < held.hi:
                    yield Hop(-1, rank, rank, held, place, "copy", False)
        for number, step in enumerate(schedule.steps):
            for t in step.transfers:
                for i in range(t.count):
                    source, at = where[t.src][t.src_buffer][t.chunk + i], t.dst_chunk + i
                    final = written[t.dst, t.dst_buffer, at] == number
                    if source.lo < source.hi:
                        yield Hop(number, t.src, t.dst, source, where[t.dst][t.dst_buffer][at], t.op, final)
