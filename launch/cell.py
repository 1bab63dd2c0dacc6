"""One cell on some of the ranks, from the request until the last of them is idle or dead.

A cell has ended when every rank has said "idle" or has died; there is no barrier and no time limit. While it runs the
black box is read twenty times a second: it tells the student what each rank is doing, and it shows when ranks wait for
ever (doctor/attendant.py). Those are freed (rank/rescue.py); so are ranks that the stop button does not reach in
Python.

Runs in the hub's thread. What was printed and raised is collected in `Answer`s; nothing is shown from here except to
the viewer (a widgets.RankLog or None), which gets the text as it comes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from launch.blackbox import Status
from launch.doctor import explain
from launch.doctor.attendant import Attendant
from launch.doctor.trouble import find_trouble
from launch.doing import Live
from launch.errors import Trouble
from launch.text import Text

IN_GLOO = "gloo/transport"  # in the messages of errors that come from a lost connection
LOOK = 0.05  # seconds between two looks at the black box
DEAF_AFTER = 0.1  # seconds after an interrupt until a rank that still runs the cell is taken for stuck in C++
REPLY_AFTER_IDLE = 0.5  # seconds; an interrupt at the wrong moment can cost a rank its reply, never its "idle"


@dataclass
class Answer:
    """What one rank made of a cell.

    status      "ok", "error" (the cell raised), "freed" (it waited in vain), "died"
    out, err    standard output and error
    value       mime bundle {"data", "metadata"} of the last expression, or None
    displays    mime bundles in the order in which they were displayed, with "display_id" or None
    """

    rank: int
    status: str = "ok"
    ename: str = ""
    evalue: str = ""
    traceback: list[str] = field(default_factory=list)
    out: Text = field(default_factory=Text)
    err: Text = field(default_factory=Text)
    value: dict | None = None
    displays: list[dict] = field(default_factory=list)
    was_doing: Status | None = None  # when the stop button was pressed
    trouble: Trouble | None = None  # between the ranks; the same in every answer of a cell


class Cell:
    """A cell under way."""

    def __init__(self, crew, members, code: str, count: int, viewer, can_ask: bool):
        self.crew, self.hub, self.viewer = crew, crew.hub, viewer
        self.members = {member.rank: member for member in members}
        self.answers = {rank: Answer(rank) for rank in self.members}
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": can_ask, "stop_on_error": False}
        self.requests = {
            rank: self.hub.message("execute_request", content, {"execution_count": count}) for rank in self.members
        }
        self.idle = {rank: self.hub.loop.create_future() for rank in self.members}
        self.running = set(self.members)
        self.stops = 0  # how often the student has asked to stop
        self.freed: set[int] = set()
        self._attendant = Attendant(self)
        self._clears: set[int] = set()
        self.live = Live(viewer, crew.board, self._attendant)
        self._errands: set[asyncio.Task] = set()

    async def run(self) -> list[Answer]:
        self.live.absent(set(range(self.crew.size)) - self.running)
        watch = asyncio.ensure_future(self._watch())
        try:
            await asyncio.gather(*(self._follow(rank) for rank in self.members))
        finally:
            watch.cancel()
        excuse(self.answers, self.freed)
        trouble = find_trouble(self.crew.board, self.answers, self._attendant.diagnosis)
        for answer in self.answers.values():
            answer.trouble = trouble
        return [self.answers[rank] for rank in sorted(self.answers)]

    async def _follow(self, rank: int) -> None:
        """Sends the cell to a rank and waits until it has ended there."""
        member, answer = self.members[rank], self.answers[rank]
        reply = asyncio.ensure_future(self.hub.request(member.name, "shell", self.requests[rank]))
        try:
            await asyncio.wait({self.idle[rank], member.ended}, return_when=asyncio.FIRST_COMPLETED)
            if not member.ended.done():
                await asyncio.wait({reply, member.ended}, return_when=asyncio.FIRST_COMPLETED, timeout=REPLY_AFTER_IDLE)
            member.drain()
            if reply.done():
                self._judge(answer, reply.result()["content"])
            elif member.ended.done():
                answer.status, answer.evalue = "died", member.ended.result()
            else:
                answer.status, answer.ename = "error", "KeyboardInterrupt"
        finally:
            reply.cancel()
            self.running.discard(rank)
        failure = "" if answer.status == "ok" else answer.ename or answer.evalue
        self.live.ended(rank, rank in self.freed and not self.stops, failure)

    def _judge(self, answer: Answer, content: dict) -> None:
        if content["status"] == "ok":
            return
        answer.status = "error"
        answer.ename, answer.evalue = content["ename"], content["evalue"]
        answer.traceback = content["traceback"]

    # What the rank says

    def on_text(self, rank: int, stream: str, text: str) -> None:
        answer = self.answers[rank]
        (answer.out if stream == "stdout" else answer.err).append(text)
        if self.viewer:
            self.viewer.write(rank, stream, text)

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

    # What is seen from outside

    async def _watch(self) -> None:
        while True:
            self.live.look(self.running, bool(self.stops))
            self._attendant.look()
            await asyncio.sleep(LOOK)

    def endings(self) -> dict[int, tuple[str, str]]:
        """Which ranks do nothing more in this cell, as doctor.snapshot.View wants it: (state, what they did last)."""
        outside = range(len(self.crew.members))
        absent = {rank: ("ended", "does not run this cell") for rank in outside if rank not in self.members}
        return absent | {rank: ending(answer) for rank, answer in self.answers.items() if rank not in self.running}

    def give_up(self) -> None:
        """The ranks that are left wait for ever."""
        self._free(set(self.running))

    def interrupt(self) -> None:
        """The stop button: Python first, then gloo; asked again, ranks that still run are killed."""
        self.stops += 1
        if self.stops == 1:
            for rank in self.running:
                self.answers[rank].was_doing = self.crew.board.read(rank)
            self._errand(self._stop_gently())
        else:
            self.crew.agent.send(do="kill", pids=[self.members[rank].pid for rank in self.running])

    async def _stop_gently(self) -> None:
        """Who is in a call of torch.distributed is deaf, that is known; of the others it has to be seen."""
        for rank in self.running:
            self._tell(rank, "interrupt")
        self._free({rank for rank in self.running if self.crew.board.read(rank).state == "waiting"})
        await asyncio.sleep(DEAF_AFTER)
        self._free(set(self.running))

    def _free(self, ranks: set[int]) -> None:
        for rank in ranks:
            self.freed.add(rank)
            self._tell(rank, "free")

    def _tell(self, rank: int, what: str) -> None:
        """A word to a rank about this very cell; nobody waits for the reply, since a rank may be past replying."""
        content = {"do": what, "cell": self.requests[rank]["header"]["msg_id"]}
        message = self.hub.message("rank_request", content)
        self._errand(self.hub.request(self.members[rank].name, "control", message))

    def _errand(self, coroutine) -> None:
        task = asyncio.ensure_future(coroutine)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    def close(self) -> None:
        self._attendant.close()
        for task in list(self._errands):
            task.cancel()


def excuse(answers: dict[int, Answer], freed: set[int]) -> None:
    """Ranks that were freed did not fail of themselves, nor did those whose partner was freed or has died.

    These see the end of their connection, often before it is known here that the other one has died: so this is asked
    when the cell is over.
    """
    disturbed = freed or any(answer.status == "died" for answer in answers.values())
    for rank, answer in answers.items():
        if answer.status == "error" and (rank in freed or (disturbed and IN_GLOO in answer.evalue)):
            answer.status = "freed"


def ending(answer: Answer) -> tuple[str, str]:
    """How a rank left the cell, for the doctor: (state, words). Whom gloo has thrown out has lost his connections."""
    if answer.status == "died":
        return "cut", f"died ({answer.evalue})"
    if answer.status == "ok":
        return "ended", "left the cell"
    return "cut" if IN_GLOO in answer.evalue else "ended", explain.raised(answer.ename, answer.evalue)


def bundle(content: dict) -> dict:
    data = dict(content["data"])
    if len(data) > 1:  # a live widget of a rank has nobody to talk to; what it shows as text is left
        data.pop("application/vnd.jupyter.widget-view+json", None)
    display_id = content.get("transient", {}).get("display_id")
    return {"data": data, "metadata": content.get("metadata", {}), "display_id": display_id}
