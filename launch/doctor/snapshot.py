"""All ranks at one moment, as the doctor needs them: who may still act, who waits for what, what each has begun.

`take` reads the flight recorder. It is sound only while no rank moves: the caller compares the records of all
ranks before and after, and believes the snapshot if they are the same ones (`kernel.watchdog` does).

A snapshot is plain data, so that the doctor can be tested on snapshots written by hand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto

from launch.shared import flight_recorder
from launch.shared.flight_recorder import MessageTally, OpenCall, Status, Tally


class How(Enum):
    """How a rank came to do nothing more in a cell."""

    ABSENT = auto()  # it does not run this cell
    LEFT = auto()  # at its end
    RAISED = auto()
    FREED = auto()  # it waited in vain; said only when the cell is over on all ranks
    DIED = auto()


@dataclass(frozen=True)
class Ending:
    """What a rank that is past the cell did last.

    name     of the exception's class; of a process that has died how it did ("killed by SIGKILL")
    message  the exception's
    cut      whether its connections are gone: what was open is lost
    """

    how: How
    name: str = ""
    message: str = ""
    cut: bool = False


class State(Enum):
    """What a rank may still do by itself."""

    ACTING = auto()  # it runs its own code, or it is not known what it does: it may still do anything
    WAITING = auto()  # nothing until one of the calls in `View.waits` is over
    MEETING = auto()  # it waits in a store (`init_process_group`, `new_group`) until another rank writes there
    ENDED = auto()  # nothing more in this cell; calls that it left open go on
    CUT = auto()  # as ENDED, and its connections are gone: what was open is lost


@dataclass(frozen=True)
class View:
    """One rank.

    place     what the student called, where the rank waits inside C++ or in the store: "backward", "new_group"
    line      of that call
    ending    what an ended rank did last; None of the others
    cell      how many cells the rank has begun: tallies of this number count calls of the cell under way
    """

    rank: int
    state: State = State.ACTING
    waits: tuple[OpenCall, ...] = ()
    open: tuple[OpenCall, ...] = ()
    groups: tuple[Tally, ...] = ()
    messages: tuple[MessageTally, ...] = ()
    place: str = ""
    line: int = 0
    ending: Ending | None = None
    cell: int = 0

    def tally(self, key: int) -> Tally | None:
        """This rank's count of the group's collectives."""
        return next((tally for tally in self.groups if tally.key == key), None)


@dataclass(frozen=True)
class Report:
    """What a rank says about itself while it is inside a cell or after it (`rank._threads`); see there."""

    place: str = ""
    line: int = 0
    asleep: bool = False
    meeting: bool = False
    threads: bool = False


def take(
    board, statuses: dict[int, Status], endings: dict[int, Ending], reports: dict[int, Report]
) -> tuple[View, ...]:
    """One View per rank, in rank order.

    `statuses` is what `board.read` said; `endings` those of the ranks that are past the cell; `reports` has
    what ranks have said since they stopped moving.
    """
    return tuple(_view(board, rank, status, endings, reports.get(rank)) for rank, status in sorted(statuses.items()))


def _view(board, rank: int, status: Status, endings, report: Report | None) -> View:
    calls = tuple(flight_recorder.open_calls(board, rank))
    view = View(
        rank=rank,
        open=calls,
        groups=tuple(flight_recorder.tallies(board, rank)),
        messages=tuple(flight_recorder.message_tallies(board, rank)),
        cell=status.cell,
    )
    if report is not None and report.threads:
        return view
    if rank in endings:
        if waits := () if endings[rank].cut else tuple(call for call in calls if call.waiting):
            return replace(view, state=State.WAITING, waits=waits)  # in a thread, which may go on
        return replace(view, state=State.CUT if endings[rank].cut else State.ENDED, ending=endings[rank])
    if status.state == "waiting":
        waits = tuple(call for call in calls if _blocks(call, status))
        if report is not None:  # so do threads of the student; with any of these calls the rank may go on
            waits += tuple(call for call in calls if call.waiting and call not in waits)
        if not waits and report is not None and report.asleep:  # torch does not come back to say that it has begun
            waits = tuple(call for call in calls if call.op == status.op)[-1:]
        return replace(view, state=State.WAITING if waits else State.ACTING, waits=waits)
    if report is not None and report.meeting:
        return replace(view, state=State.MEETING, place=report.place, line=report.line)
    if report is not None and report.asleep:
        # In C++, for one of the collectives that it has begun; nobody sees for which.
        waits = tuple(call for call in calls if call.kind == "collective")
        state = State.WAITING if waits else State.ACTING
        return replace(view, state=state, waits=waits, place=report.place, line=report.line)
    return view


def _blocks(call: OpenCall, status: Status) -> bool:
    """Whether this is the call that the rank's record says it is in. monitored_barrier blocks before it has a Work."""
    return call.op == status.op and (call.waiting or call.op == "monitored_barrier")
