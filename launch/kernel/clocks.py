"""How far the clock of another machine is from ours: what NTP works out from a message there and one back.

Ranks stamp what they do with the monotonic clock of their machine (`time.monotonic` and `time.perf_counter` are one
clock), which counts from when the machine was started: two of them differ by hours, and drift by some microseconds each
second. We send at `sent`, the message is there at `came`, the answer leaves at `left` and is here at `back`; the first
and the last by our clock, the others by theirs. If both messages took equally long, their clock is ahead of ours by

    ((came - sent) + (left - back)) / 2

and if they did not, it is wrong by at most half of what the two took together, since neither took less than no time.
So nothing is supposed about the network, and of several exchanges the quickest says most (D. L. Mills et al., "Network
Time Protocol Version 4", RFC 5905, section 8: offset and delay; section 10: the clock filter).

Left out: how fast a clock drifts, and so times inside a cell of hours that are better than what its begin and its end
say. Messages between two machines of the ranks, which might be quicker than those to the notebook.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from collectives.timed import Clock

EXCHANGES = 8  # of which the quickest counts; as many as NTP's clock filter holds
PHI = 15e-6  # seconds a second by which two clocks that nobody compares may drift apart, as RFC 5905 has it


class Offset(NamedTuple):
    """Another machine's clock is ahead of ours by `seconds`, and that is wrong by at most `error` seconds; `at` is when
    this was seen, by our clock."""

    seconds: float
    error: float
    at: float


def exchanged(sent: float, came: float, left: float, back: float) -> Offset:
    """What one exchange says."""
    return Offset(((came - sent) + (left - back)) / 2, ((back - sent) - (left - came)) / 2, back)


def latest(known: Offset | None, new: Offset) -> Offset:
    """What says more by now: a quick exchange of a while ago, or one just made."""
    return new if known is None or new.error <= known.error + PHI * (new.at - known.at) else known


def meanwhile(before: Offset, after: Offset) -> Offset:
    """What holds at all times between the two, as long as of the two clocks the same one runs faster."""
    low = min(each.seconds - each.error for each in (before, after))
    high = max(each.seconds + each.error for each in (before, after))
    return Offset((low + high) / 2, (high - low) / 2, after.at)


async def compare(machines: Iterable[Any]) -> dict[Any, Offset]:
    """What the clocks of machines (kernel/attach.py) say now; of one that is lost nothing."""
    here = list(machines)
    found = await asyncio.gather(*(each.compare_clocks() for each in here))
    return {each: offset for each, offset in zip(here, found, strict=True) if offset}


def of_ranks(workers: Sequence[Any], before: dict[Any, Offset], after: dict[Any, Offset]) -> tuple[Clock, ...]:
    """The clocks that the workers' ranks went by, from when `before` was seen until `after` was."""
    ranks = {each: tuple(worker.rank for worker in workers if worker.link is each) for each in after}
    met = {each: meanwhile(before[each], after[each]) for each in after if each in before and ranks[each]}
    return tuple(Clock(ranks[each], offset.seconds, offset.error) for each, offset in met.items())
