"""Stands by a running cell: notices that nothing moves, asks the ranks, has the doctor say whether that is for ever.

Looks are cheap: the records of the black box, and which ranks are past the cell. When two looks in a row are the same,
every living rank is asked about itself (rank/selfie.py) and one snapshot is taken; it is believed only if nothing has
moved from before the questions until after it. A rank that does not answer may do anything.

A cell is given up when the doctor has proved that some ranks are stuck and no other rank can move any more. While one
still computes, the cell goes on: its result may matter, and it loses nothing by that.

Left out: freeing the ranks (launch/cell.py does it), words (doctor/explain.py).
"""

from __future__ import annotations

import asyncio
import time

from launch.blackbox import Status
from launch.doctor import Diagnosis, examine
from launch.doctor.snapshot import Report, take
from launch.doing import doing

COMPUTES_FOR = 0.25  # seconds that a rank's own code runs before it is asked whether it waits somewhere in C++
STILL_FOR = 0.3  # seconds between two questions; a thread that waits uses no processor time meanwhile
ANSWER_WITHIN = 5.0  # seconds; a rank that holds Python's lock cannot answer, and computes
LIKELY_AFTER = 1.0  # seconds of rest before a diagnosis that is not proved is believed
LONGEST_PAUSE = 2.0  # seconds between two examinations of ranks that compute for long


class Attendant:
    """Attends to one cell. `diagnosis` is set when the cell has been given up.

    While nothing moves, `lines` says where ranks are that were asked ("line 7"), and `stuck` where those are that are
    proved to wait for ever.
    """

    def __init__(self, cell):
        self.cell = cell
        self.diagnosis: Diagnosis | None = None
        self.lines: dict[int, str] = {}
        self.stuck: dict[int, str] = {}
        self._seen: tuple = ()
        self._still_since = self._again_at = 0.0
        self._examination: asyncio.Task | None = None

    def look(self) -> None:
        """Called at every look at the black box."""
        now, seen = time.monotonic(), self._state()
        if seen != self._seen:
            self._forget(seen)
            self._seen, self._still_since, self._again_at = seen, now, now
        elif self._due(now) and (self._examination is None or self._examination.done()):
            self._examination = asyncio.ensure_future(self._examine())

    def _forget(self, seen) -> None:
        """Something has moved. What was proved stays true of those that have not moved themselves."""
        self.lines = {}
        if self.diagnosis is None:
            self.stuck = {rank: where for rank, where in self.stuck.items() if seen[0][rank] == self._seen[0][rank]}

    def close(self) -> None:
        if self._examination is not None:
            self._examination.cancel()

    def _due(self, now: float) -> bool:
        if self.diagnosis is not None or self.cell.stops or now < self._again_at:
            return False
        statuses, _ = self._seen
        in_own_code = any(statuses[rank].state != "waiting" for rank in self.cell.running)
        return not in_own_code or now - self._still_since > COMPUTES_FOR

    def _state(self) -> tuple[dict[int, Status], dict[int, tuple[str, str]]]:
        """Everything that can change while ranks move: their records, and how they have left the cell."""
        board, cell = self.cell.crew.board, self.cell
        return {rank: board.read(rank) for rank in range(board.ranks)}, cell.endings()

    async def _examine(self) -> None:
        before = self._seen
        try:
            reports = await self._ask(range(self.cell.crew.board.ranks))
            asleep = [rank for rank, report in reports.items() if report["asleep"] and not report["threads"]]
            if asleep:
                await asyncio.sleep(STILL_FOR)
                again = await self._ask(asleep)
                for rank in asleep:
                    reports[rank]["asleep"] = rank in again and again[rank]["cpu"] == reports[rank]["cpu"]
            if self._state() != before:
                return
            self.lines = {rank: _where(report) for rank, report in reports.items()}
            told = {rank: _report(report) for rank, report in reports.items()}
            silent = (
                set(before[0]) - reports.keys() - {rank for rank, (state, _) in before[1].items() if state == "cut"}
            )
            told |= {rank: Report(threads=True) for rank in silent}
            diagnosis = examine(take(self.cell.crew.board, *before, told))
            if diagnosis is None or self._state() != before:
                return
            if diagnosis.proved:
                self.stuck = {rank: self._place(diagnosis.views[rank]) for rank in diagnosis.stuck}
            if self._final(diagnosis):
                self.diagnosis = diagnosis
                self.cell.give_up()
        finally:
            rest = time.monotonic() - self._still_since
            self._again_at = time.monotonic() + min(LONGEST_PAUSE, rest / 2)

    def _final(self, diagnosis: Diagnosis) -> bool:
        """Whether the cell can never end and nobody in it would lose anything."""
        views, rest = diagnosis.views, time.monotonic() - self._still_since
        if not diagnosis.moving:
            return diagnosis.proved or rest > LIKELY_AFTER
        # Some are stuck for ever; the others wait for what is on its way, or so it seems, and nothing has come.
        return rest > LIKELY_AFTER and all(views[rank].state == "waiting" for rank in diagnosis.moving)

    def _place(self, view) -> str:
        """Where a stuck rank is: 'all_reduce #2, line 4', 'backward, line 7'."""
        if not view.place:
            return doing(self._seen[0][view.rank])
        return ", ".join(filter(None, (view.place, self.lines.get(view.rank))))

    async def _ask(self, ranks) -> dict[int, dict]:
        """What those ranks answer that do so in time."""
        members = [self.cell.crew.members[rank] for rank in ranks]
        living = [member for member in members if not member.ended.done()]
        tasks = {asyncio.ensure_future(m.request("control", {"do": "look"})): m.rank for m in living}
        if not tasks:
            return {}
        done, late = await asyncio.wait(tasks, timeout=ANSWER_WITHIN)
        for task in late:
            task.cancel()
        replies = {tasks[task]: task.result()["content"] for task in done if task.exception() is None}
        return {rank: reply["value"] for rank, reply in replies.items() if reply["status"] == "ok"}


def _where(report: dict) -> str:
    """'line 7', 'line 7 of train.py'; '' if the rank is in nobody's code."""
    if not report["line"]:
        return ""
    return f"line {report['line']}" + (f" of {report['file']}" if report["file"] else "")


def _report(told: dict) -> Report:
    return Report(**{name: told[name] for name in ("place", "line", "asleep", "meeting", "threads")})
