"""A running cell, from the request until the last of its ranks is idle or dead.

A cell is over when each rank has sent "idle" or has died; there is no barrier and no time limit. While it runs, the
flight recorder is read twenty times a second: it shows what each rank is doing, and when ranks wait forever
(kernel/watchdog.py). Those are freed (rank/_regroup.py), and so are ranks that the stop button does not reach in
Python. A rank that still runs three seconds after the stop button is killed; the others keep their variables.

Runs in the hub's thread. What ranks print and raise is collected in `Answer`s; only the viewer (a widgets.RankLog or
None) gets text while the cell runs.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from launch.doctor.proof import Diagnosis
from launch.doctor.snapshot import Ending, How
from launch.doctor.trouble import find_trouble, mismatch
from launch.hints import Hint
from launch.hints.leftovers import suspicious
from launch.kernel.watchdog import Live, Watchdog, doing
from launch.shared.capture import unpacked
from launch.shared.errors import Trouble, name_ranks
from launch.shared.flight_recorder import Status
from launch.shared.text import Text

LOOK = 0.05  # seconds between two readings of the flight recorder
DEAF_AFTER = 0.1  # seconds after an interrupt until a rank that still runs the cell is considered stuck in C++
LOST_AFTER = 10  # seconds after its connections were closed until a rank that still waits in gloo is killed
CLEANUP = 1.5  # seconds that a cell has to clean up after an interrupt, before the second one
ASK_AFTER = 0.3  # seconds until a rank that still runs is asked why, and then again: it may only be slow
ANSWER_WITHIN = 0.4  # seconds
MOST_LEAVING = 6  # times that a rank which is leaving the cell is asked, on a busy machine
REPLY_AFTER_IDLE = 0.5  # seconds; an interrupt at the wrong moment can cost a rank its reply, never its "idle"
REPLY_LATE = 15  # seconds; without an interrupt the reply does come, late on a busy machine


@dataclass
class Answer:
    """The outcome of a cell on one rank.

    how         the cell ended there; LEFT until it has
    signal      that killed its process; 0 if none
    out, err    standard output and error
    value       mime bundle {"data", "metadata"} of the last expression, or None
    displays    mime bundles in the order in which they were displayed, with "display_id" or None
    """

    rank: int
    how: How = How.LEFT
    signal: int = 0
    ename: str = ""
    evalue: str = ""
    traceback: list[str] = field(default_factory=list)
    out: Text = field(default_factory=Text)
    err: Text = field(default_factory=Text)
    value: dict | None = None
    displays: list[dict] = field(default_factory=list)
    ended: bool = False  # the process, in this cell or after it: its variables are gone
    came_back: str = ""  # "died (killed by SIGKILL)", if it misses variables of the process that it replaces
    was_doing: Status | None = None  # when the stop button was pressed
    was_at: str = ""  # "line 3": the line that ran then, if the rank could say it
    deaf: str = ""  # why the stop button did not reach the rank, which was killed for that
    line: int = 0  # of this cell, in which it raised; 0 if unknown
    hint: Hint = Hint()  # about what it raised
    notes: list[str] = field(default_factory=list)  # about what the cell has left behind (hints/leftovers.py)
    lost: bool = False  # it raised because a connection, or its wait, was ended
    has_group: bool = True  # False if the rank has no process group after the cell
    groups: list[tuple[str, int, str]] = field(default_factory=list)  # ("new_group([0,1])", line, file) made in it
    carried: dict[int, int] = field(default_factory=dict)  # bytes it sent to each rank, on a network that is played
    capture: dict | None = None  # what its tap kept of a recorded cell
    trouble: Trouble | None = None  # between the ranks; the same in every answer of a cell


class Cell:
    """A running cell."""

    def __init__(self, supervisor, workers, code: str, count: int, viewer, record: bool):
        self.supervisor, self.hub, self.viewer = supervisor, supervisor.hub, viewer
        self.workers = {worker.rank: worker for worker in workers}
        self.answers = {rank: Answer(rank) for rank in self.workers}
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False, "stop_on_error": False}
        metadata = {"execution_count": count, "suspicious": suspicious(code), "record": record}
        self.record = record
        self.requests = {rank: self.hub.message("execute_request", content, metadata) for rank in self.workers}
        self.idle = {rank: self.hub.loop.create_future() for rank in self.workers}
        self.running = set(self.workers)
        self.stops = 0  # how often the student has asked to stop
        self._heard: set[int] = set()  # the ranks that have answered the stop
        self.freed: set[int] = set()
        self._lost: set[int] = set()  # of these, the ranks that had to be killed
        self._watchdog = Watchdog(self)
        self._clears: set[int] = set()
        self._live = Live(viewer, supervisor.board, self._watchdog)
        self._errands: set[asyncio.Task] = set()

    async def run(self) -> list[Answer]:
        self._live.absent(set(range(self.supervisor.size)) - self.running)
        watch = asyncio.ensure_future(self._watch())
        try:
            await asyncio.gather(*(self._follow(rank) for rank in self.workers))
        finally:
            watch.cancel()
        await self.supervisor.site.refresh()
        diagnosis = self._watchdog.diagnosis
        failed = failed_before(diagnosis, self.answers) if diagnosis else set()
        excuse(self.answers, self.freed - failed)
        for rank, answer in self.answers.items():
            if answer.how is How.FREED:  # also of those that gloo raised in before the reason was known
                self._live.ended(rank, not self.stops, answer.ename, answer.ename == "KeyboardInterrupt")
        trouble = find_trouble(self.supervisor.board, self.answers, diagnosis, self.supervisor.site.late)
        for answer in self.answers.values():
            answer.trouble = trouble
        return [self.answers[rank] for rank in sorted(self.answers)]

    async def _follow(self, rank: int) -> None:
        """Sends the cell to a rank and waits until it has ended there."""
        worker, answer = self.workers[rank], self.answers[rank]
        reply = asyncio.ensure_future(self.hub.request(worker.name, "shell", self.requests[rank]))
        try:
            await asyncio.wait({self.idle[rank], worker.ended}, return_when=asyncio.FIRST_COMPLETED)
            if not worker.ended.done():
                late = REPLY_AFTER_IDLE if self.stops and not self.record else REPLY_LATE
                await asyncio.wait({reply, worker.ended}, return_when=asyncio.FIRST_COMPLETED, timeout=late)
            worker.drain()
            if reply.done():
                self._judge(answer, **reply.result())
            elif rank in self._lost and not self.stops:
                answer.how = How.FREED  # killing it is what freed it
            elif worker.ended.done():
                death = worker.ended.result()
                answer.how, answer.evalue, answer.signal = How.DIED, str(death), death.signal
            elif self.stops:
                answer.how, answer.ename = How.RAISED, "KeyboardInterrupt"
            else:
                answer.how, answer.ename, answer.evalue = How.RAISED, "RuntimeError", "the cell ended without an answer"
        finally:
            reply.cancel()
            self.running.discard(rank)
        failure = "" if answer.how is How.LEFT else answer.ename or f"died: {answer.evalue}"
        failure += f", line {answer.line}" if answer.line else ""
        stopped = answer.ename == "KeyboardInterrupt"
        self._live.ended(rank, rank in self.freed and not self.stops, failure, stopped)

    def _judge(self, answer: Answer, content: dict, buffers: list, **_) -> None:
        answer.hint = Hint(**content.get("hint", {}))
        answer.line, answer.notes = content.get("line", 0), content.get("notes", [])
        answer.lost, answer.has_group = content.get("lost", False), content.get("has_group", True)
        answer.groups = content.get("groups", [])
        answer.carried = {int(rank): nbytes for rank, nbytes in content.get("carried", {}).items()}
        self.workers[answer.rank].groups += len(answer.groups)
        if "capture" in content:
            answer.capture = unpacked(content["capture"], bytes(buffers[0]))
        if content["status"] == "ok":
            return
        answer.how = How.RAISED
        answer.ename, answer.evalue = content["ename"], content["evalue"]
        answer.traceback = content["traceback"]

    # Messages of the ranks

    def rank_of(self, name: str) -> int | None:
        """The rank with this name on the wire; None if it is not in this cell."""
        return next((rank for rank, worker in self.workers.items() if worker.name == name), None)

    def on_text(self, rank: int, stream: str, text: str) -> None:
        answer = self.answers[rank]
        shown = (answer.out if stream == "stdout" else answer.err).append(text)
        if self.viewer and shown:
            self.viewer.write(rank, stream, shown)

    def on_iopub(self, rank: int, message: dict) -> None:
        if message["parent_header"].get("msg_id") != self.requests[rank]["header"]["msg_id"]:
            return
        kind, content, answer = message["header"]["msg_type"], message["content"], self.answers[rank]
        if kind == "status" and content["execution_state"] == "idle" and not self.idle[rank].done():
            self.idle[rank].set_result(None)
        elif kind == "execute_result":
            answer.value = bundle(content)
        elif kind == "display_data":
            if rank in self._clears:
                self._clears.discard(rank)
                answer.displays.clear()
            answer.displays.append(bundle(content))
        elif kind == "update_display_data":
            new = bundle(content)
            answer.displays[:] = [new if old["display_id"] == new["display_id"] else old for old in answer.displays]
        elif kind == "clear_output":
            if content.get("wait"):
                self._clears.add(rank)
            else:
                answer.displays.clear()

    # The flight recorder, and the stop button

    async def _watch(self) -> None:
        while True:
            self._live.look(self.running, bool(self.stops))
            self._watchdog.look(bool(self.stops))
            await asyncio.sleep(LOOK)

    def endings(self) -> dict[int, Ending]:
        """The ranks that are past this cell, and what they did last."""
        absent = {rank: Ending(How.ABSENT) for rank in range(self.supervisor.size) if rank not in self.workers}
        return absent | {rank: ending(answer) for rank, answer in self.answers.items() if rank not in self.running}

    def mismatched(self) -> bool:
        """Whether ranks are in calls that do not fit and that the guard (rank/guard.py) has not seen in time."""
        board = self.supervisor.board
        return self.supervisor.site.late and bool(mismatch(board, list(range(board.ranks))))

    def give_up(self) -> None:
        """The remaining ranks wait forever."""
        self._free(set(self.running))

    def interrupt(self) -> None:
        """The stop button: Python first, then gloo, then the process; all within three seconds, however often."""
        self.stops += 1
        if self.stops == 1:
            for rank in self.running:
                self.answers[rank].was_doing = self.supervisor.doing(rank)
            self._errand(self._stop())

    async def _stop(self) -> None:
        """Interrupts Python first. Connections are closed only when nothing moves any more: gloo may forget a message
        that is in flight then, and a rank would wait for it forever."""
        self._act("wake", self.running)
        for rank in self.running:
            self._errand(self._interrupt(rank))
        await asyncio.sleep(DEAF_AFTER)
        self._free(set(self.running))
        await asyncio.sleep(CLEANUP)
        for rank in self.running:
            self._tell(rank, "interrupt")
        before = dict.fromkeys(self.running - self._heard, "it has not answered since the stop")
        for leaving in range(MOST_LEAVING):
            await asyncio.sleep(ASK_AFTER)
            now = await self._why_deaf()
            for rank in now.keys() & self.running:
                if (before.get(rank) and now[rank]) or leaving == MOST_LEAVING - 1:
                    self.answers[rank].deaf = now[rank]
                    self._act("kill", {rank})
            before = now

    async def _interrupt(self, rank: int) -> None:
        """The reply, if the rank can send one before it ends, has its line."""
        reply = await self._request(rank, "interrupt")
        self._heard.add(rank)
        self.answers[rank].was_at = reply["content"].get("value") or ""

    async def _why_deaf(self) -> dict[int, str]:
        """Why each rank still runs the cell; "" if it is leaving."""
        asked = set(self.running)
        said = await self.supervisor.ask(asked, {"do": "deaf"}, ANSWER_WITHIN)
        found = {}
        for rank in asked:
            status = self.supervisor.doing(rank)
            if status.state == "idle":  # the cell is over there, but its message was lost
                found[rank] = "it could not say that the cell had ended"
            elif status.state == "waiting":
                found[rank] = f"its wait in {doing(status)} could not be ended"
            else:
                found[rank] = said.get(
                    rank, "it did not answer: C code holds Python's lock, or the machine is too busy"
                )
        return found

    def _act(self, what: str, ranks: set[int]) -> None:
        """As `Supervisor.act`."""
        self.supervisor.act(what, [self.workers[rank] for rank in ranks])

    def _free(self, ranks: set[int]) -> None:
        for rank in ranks:
            self.freed.add(rank)
            self._tell(rank, "free")
        self._errand(self._end_the_lost(ranks, time.monotonic()))

    async def _end_the_lost(self, ranks: set[int], freed: float) -> None:
        """Kills ranks whose wait did not end: gloo may forget a message that was in flight when a connection closed."""
        await asyncio.sleep(LOST_AFTER)
        doing = {rank: self.supervisor.doing(rank) for rank in ranks & self.running}
        self._lost |= (lost := {rank for rank, now in doing.items() if now.state == "waiting" and now.since < freed})
        if lost and not self.stops:  # output.failure reports what the stop button did
            self.supervisor.notices.append(f"{name_ranks(lost)} had to be restarted, the variables there are lost")
        self._act("kill", lost)

    def _tell(self, rank: int, what: str) -> None:
        """Sends a request about this cell and waits for no reply: the rank may not be able to send one."""
        self._errand(self._request(rank, what))

    async def _request(self, rank: int, what: str) -> dict:
        content = {"do": what, "cell": self.requests[rank]["header"]["msg_id"]}
        return await self.hub.request(self.workers[rank].name, "control", self.hub.message("rank_request", content))

    def _errand(self, coroutine) -> None:
        task = asyncio.ensure_future(coroutine)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    def close(self) -> None:
        self._watchdog.close()
        for task in list(self._errands):
            task.cancel()


def failed_before(diagnosis: Diagnosis, answers: dict[int, Answer]) -> set[int]:
    """Ranks that were stuck in cleanup after an exception of their own, and ended with it."""
    raised = {view.rank: call.raised[0] for view in diagnosis.views for call in view.waits if call.after}
    return {rank for rank, name in raised.items() if answers[rank].ename == name}


def excuse(answers: dict[int, Answer], freed: set[int]) -> None:
    """Ranks that were freed are not to blame, nor are those whose partner was freed or has died.

    The latter see their connection end, often before the death is known here, so this is decided after the cell.
    """
    disturbed = freed or any(answer.how is How.DIED for answer in answers.values())
    for rank, answer in answers.items():
        if answer.how is How.RAISED and (rank in freed or (disturbed and answer.lost)):
            answer.how = How.FREED


def ending(answer: Answer) -> Ending:
    """How a rank left the cell, for the doctor. If gloo raised in it, its connections are gone."""
    if answer.how is How.DIED:
        return Ending(How.DIED, answer.evalue, cut=True)
    if answer.how is How.LEFT:
        return Ending(How.LEFT)
    return Ending(How.RAISED, answer.ename, answer.evalue, cut=answer.lost)


def bundle(content: dict) -> dict:
    data = dict(content["data"])
    if len(data) > 1:  # a rank's widget would have no comm to talk to; its text form stays
        data.pop("application/vnd.jupyter.widget-view+json", None)
    display_id = content.get("transient", {}).get("display_id")
    return {"data": data, "metadata": content.get("metadata", {}), "display_id": display_id}
