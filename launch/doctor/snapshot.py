"""All ranks at one moment: which may still act, what the others wait for, what each has begun.

`take` reads the flight recorder. The snapshot is sound only if no rank moves meanwhile: kernel.watchdog compares the
records of all ranks before and after. It is plain data, so the doctor can be tested on snapshots written by hand.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, auto

from launch.shared import flight_recorder
from launch.shared.flight_recorder import MessageTally, OpenCall, Status, Tally


class How(Enum):
    """How a cell ended on a rank."""

    ABSENT = auto()  # it does not run this cell
    LEFT = auto()  # at its end
    RAISED = auto()
    FREED = auto()  # it waited forever; decided only when the cell is over on all ranks
    DIED = auto()


@dataclass(frozen=True)
class Ending:
    """What a rank that is past the cell did last.

    name     of the exception's class; for a process that died, how ("killed by SIGKILL")
    message  of the exception
    cut      whether its connections are gone: what was open is lost
    """

    how: How
    name: str = ""
    message: str = ""
    cut: bool = False


class State(Enum):
    """What a rank may still do by itself."""

    ACTING = auto()  # it runs its own code, or that is unknown: it may still do anything
    WAITING = auto()  # nothing until one of the calls in `View.waits` is over
    MEETING = auto()  # it waits in a store (`init_process_group`, `new_group`) until another rank writes there
    ENDED = auto()  # nothing more in this cell; its open calls go on
    CUT = auto()  # as ENDED, and its connections are gone: its open calls are lost


@dataclass(frozen=True)
class View:
    """One rank.

    place     what the student called, where the rank waits inside C++ or in the store: "backward", "new_group"
    line      of that call
    ending    what an ended rank did last; else None
    cell      how many cells the rank has begun; tallies with this number count calls of the running cell
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
    """What a rank reports about itself (`rank.requests`)."""

    place: str = ""
    line: int = 0
    asleep: bool = False
    meeting: bool = False
    threads: bool = False


def take(
    board, statuses: dict[int, Status], endings: dict[int, Ending], reports: dict[int, Report]
) -> tuple[View, ...]:
    """One View per rank, in rank order.

    `statuses` come from `board.read`, `endings` are of ranks that are past the cell, `reports` were made since ranks
    stopped moving.
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
        if report is not None:  # calls of the student's threads: any of them may let the rank go on
            waits += tuple(call for call in calls if call.waiting and call not in waits)
        if not waits and report is not None and report.asleep:  # torch does not return to mark the call as begun
            waits = tuple(call for call in calls if call.op == status.op)[-1:]
        return replace(view, state=State.WAITING if waits else State.ACTING, waits=waits)
    if report is not None and report.meeting:
        return replace(view, state=State.MEETING, place=report.place, line=report.line)
    if report is not None and report.asleep:
        # In C++, for one of the collectives that it has begun; it is not known which.
        waits = tuple(call for call in calls if call.kind == "collective")
        state = State.WAITING if waits else State.ACTING
        return replace(view, state=state, waits=waits, place=report.place, line=report.line)
    return view


def _blocks(call: OpenCall, status: Status) -> bool:
    """Whether this is the call that the rank's record says it is in. monitored_barrier blocks before it has a Work."""
    return call.op == status.op and (call.waiting or call.op == "monitored_barrier")
