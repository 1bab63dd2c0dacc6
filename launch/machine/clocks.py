"""How far another machine's clock is from the notebook's, as NTP works it out from one exchange of messages.

Ranks stamp what they do with the monotonic clock of their machine (`time.monotonic` and `time.perf_counter` are the
same clock). It counts from the boot, so two machines differ by hours, and they drift by some microseconds a second. The
notebook sends at `sent`, the message arrives at `came`, the answer leaves at `left` and arrives at `back`; `came` and
`left` are read on the other clock. If both ways took equally long, the other clock is ahead by

    ((came - sent) + (left - back)) / 2

and in any case that is wrong by at most half of the round trip, since neither way took less than no time. Nothing is
assumed about the network; of several exchanges the fastest gives the tightest bound (D. L. Mills et al., "Network Time
Protocol Version 4", RFC 5905, section 8: offset and delay; section 10: the clock filter).

Left out: the drift rate, which would give better times inside a cell that runs for hours; messages between two
machines, which may be faster than those to the notebook (launch/replay/_one_clock.py uses them for the order of
events).
"""

from typing import NamedTuple

EXCHANGES = 8  # the fastest counts; NTP's clock filter holds as many
PHI = 15e-6  # seconds per second by which two clocks may drift apart (RFC 5905)


class Offset(NamedTuple):
    """Another machine's clock is ahead of the notebook's by `seconds`, give or take `error` seconds. `at` is when this
    was measured, by the notebook's clock."""

    seconds: float
    error: float
    at: float


def exchanged(sent: float, came: float, left: float, back: float) -> Offset:
    """The offset from one exchange."""
    return Offset(((came - sent) + (left - back)) / 2, ((back - sent) - (left - came)) / 2, back)


def latest(known: Offset | None, new: Offset) -> Offset:
    """The tighter offset, allowing for drift since it was measured."""
    return new if known is None or new.error <= known.error + PHI * (new.at - known.at) else known


def meanwhile(before: Offset, after: Offset) -> Offset:
    """An offset that holds at all times between the two, if the same clock is the faster one all the time."""
    low = min(each.seconds - each.error for each in (before, after))
    high = max(each.seconds + each.error for each in (before, after))
    return Offset((low + high) / 2, (high - low) / 2, after.at)
