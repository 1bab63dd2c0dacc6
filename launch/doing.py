"""What each rank is doing, in a few words: for `%ranks`, for the stop button's report, and live for the log's chips.

While a cell runs the log shows beside every rank one of

    running          its own code; on which line is known once nothing has moved for a moment and the rank was asked
    waiting          inside a call of torch.distributed
    asks for input   in `input()`
    stuck            it waits for what nobody can provide any more; that is proved, though others may go on for a while
    done, failed     past the cell

with the place, and from SAID_AFTER on since when: stragglers are seen at a glance.

Left out: what it looks like (widgets/js/ranklog.js).
"""

from __future__ import annotations

import time

from launch.blackbox import Board, Status

SAID_AFTER = 2  # seconds in one place, before it is said for how long
STOPPING = "stopping; press stop again to end the rank itself"


def doing(status: Status) -> str:
    """'all_reduce #2, line 4', 'recv from rank 1, line 3', 'its own code', 'idle'."""
    if status.state != "waiting":
        return {"running": "its own code", "new": "starting"}.get(status.state, status.state)
    text = status.op
    if status.peer is not None:
        text += f" {'to' if 'send' in status.op else 'from'} rank {status.peer}"
    elif status.seq:
        text += f" #{status.seq}"
    return text + (f", line {status.line}" if status.line else "")


class Live:
    """Tells the viewer (a widgets.RankLog or None) what changes. `attendant` knows the lines and who is stuck."""

    def __init__(self, viewer, board: Board, attendant):
        self.viewer, self.board, self.attendant = viewer, board, attendant
        self.asking: set[int] = set()  # ranks that are in input()
        self._shown: dict[int, tuple] = {}

    def absent(self, ranks) -> None:
        """These ranks do not run the cell."""
        for rank in ranks:
            self._show(rank, "not in this cell", "")

    def look(self, ranks: set[int], stopping: bool) -> None:
        """Called at every look at the black box, with the ranks that run the cell."""
        for rank in ranks:
            state, note, seconds = self._live(rank)
            self._show(rank, state, *((STOPPING, 0) if stopping else (note, seconds)))

    def ended(self, rank: int, freed: bool, failure: str) -> None:
        """The rank is past the cell; `failure` is "" if it got through."""
        if freed and rank in self.attendant.stuck:
            self._show(rank, "stuck", self.attendant.stuck[rank])
        else:
            self._show(rank, "failed" if failure else "done", failure)

    def _live(self, rank: int) -> tuple[str, str, int]:
        status = self.board.read(rank)
        in_cell = status.state in ("running", "waiting")
        seconds = int(time.monotonic() - status.since) if in_cell else 0
        seconds = seconds if seconds >= SAID_AFTER else 0
        if rank in self.asking:
            return "asks for input", "", seconds
        if rank in self.attendant.stuck:
            return "stuck", self.attendant.stuck[rank], seconds
        if status.state == "waiting":
            return "waiting", doing(status), seconds
        return "running", self.attendant.lines.get(rank, ""), seconds

    def _show(self, rank: int, state: str, note: str, seconds: int = 0) -> None:
        if self.viewer and self._shown.get(rank) != (state, note, seconds):
            self._shown[rank] = (state, note, seconds)
            self.viewer.state(rank, state, note, seconds)
