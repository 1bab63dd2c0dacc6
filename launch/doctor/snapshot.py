"""All ranks at one moment, as the doctor needs them: who may still act, who waits for what, what each has begun.

`take` reads the black box and the ledger. It is sound only while no rank moves: the caller compares the records of all
ranks before and after, and believes the snapshot if they are the same ones (`doctor.attendant` does).

A snapshot is plain data, so that the doctor can be tested on snapshots written by hand.
"""

from __future__ import annotations

from dataclasses import dataclass

from launch import ledger
from launch.blackbox import Status
from launch.ledger import MessageTally, OpenCall, Tally


@dataclass(frozen=True)
class View:
    """One rank.

    state     "acting"   runs its own code, or it is not known what it does: it may still do anything
              "waiting"  does nothing until one of the calls in `waits` is over
              "meeting"  waits in a store (`init_process_group`, `new_group`) until another rank writes there
              "ended"    does nothing more in this cell; calls that it left open go on
              "cut"      as "ended", and its connections are gone: what was open is lost
    place     what the student called, where the rank waits inside C++ or in the store: "backward", "new_group"
    line      of that call
    ending    what an ended rank did last, as the explanation says it: "left the cell", "raised ValueError: no"
    cell      how many cells the rank has begun: tallies of this number count calls of the cell under way
    """

    rank: int
    state: str = "acting"
    waits: tuple[OpenCall, ...] = ()
    open: tuple[OpenCall, ...] = ()
    groups: tuple[Tally, ...] = ()
    messages: tuple[MessageTally, ...] = ()
    place: str = ""
    line: int = 0
    ending: str = ""
    cell: int = 0

    def tally(self, key: int) -> Tally | None:
        """This rank's count of the group's collectives."""
        return next((tally for tally in self.groups if tally.key == key), None)


@dataclass(frozen=True)
class Report:
    """What a rank says about itself while it is inside a cell or after it (`rank.selfie`); see there."""

    place: str = ""
    line: int = 0
    asleep: bool = False
    meeting: bool = False
    threads: bool = False


def take(
    board, statuses: dict[int, Status], endings: dict[int, tuple[str, str]], reports: dict[int, Report]
) -> tuple[View, ...]:
    """One View per rank, in rank order.

    `statuses` is what `board.read` said; `endings` has (state, text) of the ranks that are past the cell; `reports` has
    what ranks have said since they stopped moving.
    """
    return tuple(_view(board, rank, status, endings, reports.get(rank)) for rank, status in sorted(statuses.items()))


def _view(board, rank: int, status: Status, endings, report: Report | None) -> View:
    calls = tuple(ledger.open_calls(board, rank))
    parts = {
        "rank": rank,
        "open": calls,
        "groups": tuple(ledger.tallies(board, rank)),
        "messages": tuple(ledger.message_tallies(board, rank)),
        "cell": status.cell,
    }
    if report is not None and report.threads:
        return View(**parts)
    if rank in endings:
        state, text = endings[rank]
        return View(**parts, state=state, ending=text)
    if status.state == "waiting":
        waits = tuple(call for call in calls if _blocks(call, status))
        return View(**parts, state="waiting" if len(waits) == 1 else "acting", waits=waits)
    if report is not None and report.meeting:
        return View(**parts, state="meeting", place=report.place, line=report.line)
    if report is not None and report.asleep:
        # In C++, for one of the collectives that it has begun; nobody sees for which.
        waits = tuple(call for call in calls if call.kind == "collective")
        return View(**parts, state="waiting" if waits else "acting", waits=waits, place=report.place, line=report.line)
    return View(**parts)


def _blocks(call: OpenCall, status: Status) -> bool:
    """Whether this is the call that the rank's record says it is in. monitored_barrier blocks before it has a Work."""
    return call.op == status.op and (call.waiting or call.op == "monitored_barrier")
