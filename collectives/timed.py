"""The measured calls of a run: what a Timeline draws, and how a file keeps it.

A file holds each call as a short row of numbers; lines of code, and which calls belong together, are in tables
beside them. Times are whole nanoseconds since the first call of the run: how long things took, never what time
of day it was.

Left out: what the calls did to the data (`Schedule`), and measuring (launch).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

TIMES = ("start", "issued", "wait", "end", "finished")


class Match(NamedTuple):
    """A call of all ranks together: one collective, or a message with its send and its receive.

    number  counted from 0 over the run; the same on every side
    label   "all_reduce #3 of world", "message #2 from rank 0 to rank 1"; counted from 1 within the run
    sides   how many ranks it takes
    part    what it carries for the library that made it: "bucket 0" of DDP's; "" if that is not known
    """

    number: int
    label: str
    sides: int
    part: str = ""


class Clock(NamedTuple):
    """The clock of one machine while a run was recorded, against that of the notebook. Ranks stamp their calls with the
    clock of their machine; all times of a run on several machines are by the notebook's, and this says how exactly.

    ranks   those that were on the machine
    offset  seconds by which its clock was ahead of the notebook's; subtracted from its ranks' stamps
    error   the most seconds by which `offset` may be wrong, at any time of the run

    Measured from messages both ways before and after the run, as in D. L. Mills et al., "Network Time Protocol Version
    4", RFC 5905; launch/machine/listener.py has the arithmetic. The error holds however different the two directions
    are, as long as the same clock is the faster one throughout the run.
    """

    ranks: tuple[int, ...]
    offset: float
    error: float


def uncertainty(clocks: Iterable[Clock]) -> float:
    """The most seconds by which times on two machines may be off against each other; 0.0 on one machine."""
    errors = sorted((clock.error for clock in clocks), reverse=True)
    return sum(errors[:2]) if len(errors) > 1 else 0.0


class Timed(NamedTuple):
    """One call of one rank. Times are seconds since the first call of the run; None if not observed. Those of ranks
    on one machine compare exactly; between machines see `Clock`.

    peer   the other side of a message, or the root of a collective, or None
    bytes  what the call sends, or the larger of its two sides for a collective
    match  what it is one side of; None for a message whose other side was not recorded
    start, issued, wait, end, finished  when it began, it returned, a wait for it began, that wait ended, the library
           was done
    """

    rank: int
    op: str
    peer: int | None
    bytes: int
    line: int
    code: str
    match: Match | None
    start: float
    issued: float | None
    wait: float | None
    end: float | None
    finished: float | None


def packed(events: Iterable[Any]) -> dict[str, Any]:
    """The calls as lists of numbers and texts; `events` are anything with the fields of `Timed`."""
    lines: dict[tuple[int, str], int] = {}
    matches = sorted({event.match for event in events if event.match is not None})
    numbers = {match: number for number, match in enumerate(matches)}
    calls = [
        [
            event.rank,
            event.op,
            event.peer,
            event.bytes,
            lines.setdefault((event.line, event.code), len(lines)),
            numbers.get(event.match),
            *(None if seconds is None else round(1e9 * seconds) for seconds in (getattr(event, t) for t in TIMES)),
        ]
        for event in events
    ]
    together = [[*match[1:]] if match.part else [match.label, match.sides] for match in matches]
    return {"lines": [*lines], "matches": together, "calls": calls}


def unpacked(kept: dict[str, Any]) -> list[Timed]:
    """What `packed` was given."""
    matches = [Match(number, *match) for number, match in enumerate(kept["matches"])]  # older files have no parts
    made = []
    for rank, op, peer, nbytes, line, match, *times in kept["calls"]:
        seconds = (None if time is None else time / 1e9 for time in times)
        made.append(
            Timed(rank, op, peer, nbytes, *kept["lines"][line], None if match is None else matches[match], *seconds)  # type: ignore[call-arg]
        )
    return made
