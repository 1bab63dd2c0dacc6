"""Watches a running cell from outside: what each rank is doing, and whether ranks wait forever.

The `Watchdog` reads the flight recorder and which ranks are past the cell. When two readings in a row are the same, it
asks each living rank about itself (rank/requests.py), takes one snapshot, and has the doctor examine it. The snapshot
counts only if nothing has moved from before the questions until after it. A rank that does not answer may do anything.
A cell is given up when some ranks are proved to be stuck and no other rank can move. While another rank computes, the
cell goes on, since its result may matter.

`Live` shows for each rank, in the log of the cell, one of

    running          its own code, and the line once nothing has moved for a moment and the rank was asked
    waiting          inside a call of torch.distributed
    stuck            proved to wait for what no rank can provide any more, though other ranks may still run
    done, stopped    past the cell
    failed           past the cell: what was raised and in which line, or how the process died

with the line, and for how long if that is more than SAID_AFTER.

Left out: freeing the ranks (kernel/cell.py), the words of a deadlock (doctor/explain.py), what the log looks like
(widgets/js/ranklog.js).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from launch.doctor.proof import Diagnosis, examine
from launch.doctor.snapshot import Ending, How, Report, State, take
from launch.shared.flight_recorder import Board, Status

if TYPE_CHECKING:
    from launch.kernel.cell import Cell

LOOK = {"do": "look"}  # the question to a rank (answered by rank/requests.py)
COMPUTES_FOR = 0.25  # seconds that a rank's own code runs before it is asked whether it waits in C++
STILL_FOR = 0.3  # seconds between two questions; a waiting thread uses no processor time meanwhile
ANSWER_WITHIN = 5.0  # seconds; a rank that holds the GIL computes and cannot answer
LIKELY_AFTER = 1.0  # seconds without any change before a diagnosis that is not proved is believed
LONGEST_PAUSE = 2.0  # seconds between two examinations of ranks that compute for long
SAID_AFTER = 2  # seconds in one place before the duration is shown
STOPPING = "stopping; this takes three seconds at most"


class Watchdog:
    """Watches one cell. `diagnosis` is set when the cell has been given up.

    While nothing moves, `lines` has the places of ranks that were asked ("line 7"), and `stuck` those of ranks that are
    proved to wait forever.
    """

    def __init__(self, cell: Cell):
        self.cell, self.supervisor = cell, cell.supervisor
        self.board, self.running = cell.supervisor.board, cell.running
        self._given_up = False
        self.diagnosis: Diagnosis | None = None
        self.lines: dict[int, str] = {}
        self.stuck: dict[int, str] = {}
        self._seen: tuple = ()
        self._still_since = self._again_at = 0.0
        self._examination: asyncio.Task | None = None

    def look(self, stopping: bool) -> None:
        """Called every cell.LOOK seconds. Ranks that are being stopped are no longer examined."""
        now, seen = time.monotonic(), self._state()
        if seen != self._seen:
            self._forget(seen)
            self._seen, self._still_since, self._again_at = seen, now, now
        elif not stopping and self._due(now) and (self._examination is None or self._examination.done()):
            self._examination = asyncio.ensure_future(self._examine())

    def _forget(self, seen) -> None:
        """Something has moved. Proofs stay valid for ranks that have not."""
        self.lines = {}
        if self.diagnosis is None:
            self.stuck = {rank: where for rank, where in self.stuck.items() if seen[0][rank] == self._seen[0][rank]}

    def close(self) -> None:
        if self._examination is not None:
            self._examination.cancel()

    def _due(self, now: float) -> bool:
        if self.diagnosis is not None or now < self._again_at:
            return False
        statuses, _ = self._seen
        in_own_code = any(statuses[rank].state != "waiting" for rank in self.running)
        return not in_own_code or now - self._still_since > COMPUTES_FOR

    def _state(self) -> tuple[dict[int, Status], dict[int, Ending]]:
        """Everything that changes when ranks move: their records, and how they have left the cell."""
        return {rank: self.board.read(rank) for rank in range(self.board.ranks)}, self.cell.endings()

    async def _examine(self) -> None:
        before = self._seen
        try:
            answers = await self.supervisor.ask(range(self.board.ranks), LOOK, ANSWER_WITHIN)
            asleep = [rank for rank, report in answers.items() if report["asleep"] and not report["threads"]]
            if asleep:
                await asyncio.sleep(STILL_FOR)
                again = await self.supervisor.ask(asleep, LOOK, ANSWER_WITHIN)
                for rank in asleep:
                    answers[rank]["asleep"] = rank in again and again[rank]["cpu"] == answers[rank]["cpu"]
            await self.supervisor.site.refresh()
            if self._state() != before or self._given_up:
                return
            if all(before[0][rank].state == "waiting" for rank in self.running) and self.cell.mismatched():
                self._given_up = True
                self.cell.give_up()
                return
            self.lines = {rank: _where(report) for rank, report in answers.items()}
            suspended = self.supervisor.suspended(before[0].keys() - answers.keys())
            self.lines |= dict.fromkeys(suspended, "suspended by SIGSTOP; the stop button wakes it")
            reports = {rank: _report(answer) for rank, answer in answers.items()}
            for rank in self._waits_for_absent(answers, before[1]):
                reports[rank] = replace(reports[rank], meeting=True)
            silent = set(before[0]) - answers.keys() - {rank for rank, ending in before[1].items() if ending.cut}
            reports |= {rank: Report(threads=True) for rank in silent}
            diagnosis = examine(take(self.board, *before, reports))
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

    def _waits_for_absent(self, answers: dict[int, dict], endings: dict[int, Ending]) -> set[int]:
        """Ranks that make a store which all ranks must join, while some are elsewhere: not at the store and not past
        it.

        Without such a rank, one may only be pausing before it connects again, and another be through already.
        """
        size = self.board.ranks
        there = {rank for rank, answer in answers.items() if answer["gathers"] == size}
        past = {rank for rank, answer in answers.items() if answer["making"] or answer["meeting"]}
        made = {rank: answer["stores"].count(size) for rank, answer in answers.items()}
        made |= {rank: 0 for rank, ending in endings.items() if ending.how is How.ABSENT}
        before = min((made[rank] for rank in there), default=0)
        return there if any(made[rank] <= before for rank in answers.keys() - there - past) else set()

    def _final(self, diagnosis: Diagnosis) -> bool:
        """Whether the cell can never end and no rank in it would lose anything."""
        views, rest = diagnosis.views, time.monotonic() - self._still_since
        if not diagnosis.moving and diagnosis.proved:
            return True
        # Some may be stuck forever; the others seem to wait for messages in flight, and nothing has arrived.
        return rest > LIKELY_AFTER and all(views[rank].state is State.WAITING for rank in diagnosis.moving)

    def _place(self, view) -> str:
        """The place of a stuck rank: 'all_reduce #2, line 4', 'backward, line 7'."""
        if not view.place:
            return doing(self._seen[0][view.rank])
        return ", ".join(filter(None, (view.place, self.lines.get(view.rank))))


def _where(report: dict) -> str:
    """'line 7', 'line 7 of train.py'; '' if no line of the student's is running."""
    if not report["line"]:
        return ""
    return f"line {report['line']}" + (f" of {report['file']}" if report["file"] else "")


def _report(answer: dict) -> Report:
    meeting = answer["meeting"] or (answer["making"] and answer["asleep"])
    return Report(meeting=meeting, **{name: answer[name] for name in ("place", "line", "asleep", "threads")})


def doing(status: Status) -> str:
    """'all_reduce #2, line 4', 'recv from rank 1, line 3, the network takes 8 s', 'running Python code', 'idle'."""
    if status.state != "waiting":
        return {"running": "running Python code", "new": "starting"}.get(status.state, status.state)
    text = status.op
    if status.peer is not None:
        text += f" {'to' if 'send' in status.op else 'from'} rank {status.peer}"
    elif status.seq:
        text += f" #{status.seq}"
    return ", ".join(filter(None, (text, f"line {status.line}" if status.line else "", status.detail)))


class Live:
    """Tells the viewer (a widgets.RankLog or None) what changes. Lines and stuck ranks come from `watchdog`."""

    def __init__(self, viewer, board: Board, watchdog):
        self.viewer, self.board, self.watchdog = viewer, board, watchdog
        self._shown: dict[int, tuple] = {}

    def absent(self, ranks) -> None:
        """These ranks do not run the cell."""
        for rank in ranks:
            self._show(rank, "not in this cell", "")

    def look(self, ranks: set[int], stopping: bool) -> None:
        """Called every cell.LOOK seconds, with the ranks that run the cell."""
        for rank in ranks:
            state, note, seconds = self._live(rank)
            self._show(rank, state, *((STOPPING, 0) if stopping else (note, seconds)))

    def ended(self, rank: int, freed: bool, failure: str, stopped: bool = False) -> None:
        """The rank is past the cell; `failure` is "" if it succeeded. `stopped`: by the stop button."""
        if freed:
            self._show(rank, "stuck", self.watchdog.stuck.get(rank, ""))
        elif stopped:
            self._show(rank, "stopped", "")
        else:
            self._show(rank, "failed" if failure else "done", failure)

    def _live(self, rank: int) -> tuple[str, str, int]:
        status = self.board.read(rank)
        in_cell = status.state in ("running", "waiting")
        seconds = int(time.monotonic() - status.since) if in_cell else 0
        seconds = seconds if seconds >= SAID_AFTER else 0
        if rank in self.watchdog.stuck:
            return "stuck", self.watchdog.stuck[rank], seconds
        if status.state == "waiting":
            return "waiting", doing(status), seconds
        return "running", self.watchdog.lines.get(rank, ""), seconds

    def _show(self, rank: int, state: str, note: str, seconds: int = 0) -> None:
        if self.viewer and self._shown.get(rank) != (state, note, seconds):
            self._shown[rank] = (state, note, seconds)
            self.viewer.state(rank, state, note, seconds)
