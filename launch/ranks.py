"""The ranks of this notebook: start, cells, variables, recordings, status, restart, stop.

`Ranks` is what the magics, the checks of the course and `launch.pull` work with. Its methods are called from the
kernel's main thread and block until the answer is there; the stop button reaches the ranks meanwhile. The work is
done in the hub's thread by launch/crew.py (processes) and launch/cell.py (cells).
"""

from __future__ import annotations

import asyncio
import atexit
from dataclasses import dataclass

from launch import codec, machine
from launch.blackbox import Status
from launch.cell import Answer, Cell
from launch.crew import Crew
from launch.doctor.trouble import find_swapped
from launch.errors import UsageError, name_ranks
from launch.hub import Hub
from launch.questions import Questions, front_end

DEFAULT_SIZE = 4
CLOSING = 10  # seconds; a bound for what takes milliseconds, or as long as a start that is under way


@dataclass
class RankStatus:
    """One line of `%ranks`. memory is in bytes (PSS)."""

    rank: int
    pid: int
    backend: str
    memory: int
    doing: Status


class Ranks:
    """All ranks of one notebook. Making one starts the agent in the background; ranks come with `ensure`."""

    def __init__(self):
        self.hub = Hub()
        self.crew = Crew(self.hub)
        self.questions = Questions(self.crew)
        self._tapes: list[dict] | None = None
        self._recording = None
        atexit.register(self.close)

    @property
    def size(self) -> int:
        """How many ranks there are; 0 when none run."""
        return len(self.crew.members)

    def ensure(self, size: int | None = None, backend: str | None = None, bare: bool = False, viewer=None) -> None:
        """Makes sure that `size` ranks run, with that backend; None means: as they are, else 4 and what fits."""
        before = self.size
        if before:
            same = size in (None, self.size) and backend in (None, self.crew.backend)
            if same and (self.crew.bare == bare or (size is None and not bare)):
                return
            size = size or before
        self._wait(self.crew.start(size or DEFAULT_SIZE, backend, bare, viewer))
        if before:
            instead = "" if size == before else f" with {size} ranks instead of {before}"
            self.crew.notices.append(f"restarted{instead}; the ranks' variables are new")

    def take_notices(self) -> list[str]:
        """Sentences about what happened to the ranks since the last call."""
        notices, self.crew.notices = self.crew.notices, []
        return notices

    def execute(self, code: str, only: list[int] | None = None, count: int = 1, viewer=None) -> list[Answer]:
        """Runs the code as a cell on all ranks, or on those in `only`; one Answer per rank, in rank order.

        `count` is the number that tracebacks give the cell. What ranks raise is in the answers; LaunchError or
        UsageError if the cell cannot be run at all. Restores dead ranks and broken process groups before it returns.
        """
        self._need_ranks(only)
        return self._wait(self._execute(code, only, count, viewer, front_end() is not None))

    def pull(self, name: str) -> list:
        """The variable `name` of every rank, indexed by rank."""
        self._need_ranks()
        replies = self._wait(self.crew.request_all("shell", "pull", {"name": name}))
        return [codec.decode(value, buffers) for value, buffers in replies]

    def push(self, **values) -> None:
        """Sets variables on every rank."""
        self._need_ranks()
        buffers: list[bytes] = []
        content = {"values": {name: codec.encode(value, buffers, name) for name, value in values.items()}}
        self._wait(self.crew.request_all("shell", "push", content, buffers))

    def call(self, what: str, **content) -> list:
        """The reply of every rank's desk (rank/desk.py) to a request on the shell channel, indexed by rank."""
        self._need_ranks()
        return [value for value, _ in self._wait(self.crew.request_all("shell", what, content))]

    def start_recording(self) -> None:
        """Keeps what the ranks send, until `stop_recording`."""
        self.call("record")

    def stop_recording(self) -> None:
        self._recording = None
        self._tapes = [tape for tape in self.call("tape") if tape is not None]
        left_out = sum(tape["dropped"] for tape in self._tapes)
        if left_out:
            kept = max(len(tape["events"]) for tape in self._tapes)
            self.crew.notices.append(
                f"the recording kept the first {kept:,} calls of every rank; {left_out:,} later ones were left out"
            )

    def recording(self):
        """The launch.replay.recording.Recording of what was recorded last; made when it is first asked for.

        After a check that is the run it has judged: the one that failed, or of a solved exercise the first.
        """
        if self._recording is None and self._tapes is None:
            raise UsageError("nothing has been recorded yet: run a cell with %%ranks --record")
        if self._recording is None:
            from launch.replay.recording import Recording

            self._recording = Recording(self._tapes)
        return self._recording

    def keep(self, recording) -> None:
        """Makes a run of other ranks, one that a check has judged, what `recording()` gives; None if it left none."""
        self._tapes, self._recording = None, recording

    def status(self) -> list[RankStatus]:
        return [
            RankStatus(
                m.rank, m.pid, self.crew.backend, machine.proportional_memory(m.pid), self.crew.board.read(m.rank)
            )
            for m in self.crew.members
        ]

    def restart(self, viewer=None) -> None:
        """New processes under the same numbers; all variables are new."""
        self._need_ranks()
        self._wait(self.crew.start(self.size, self.crew.backend, self.crew.bare, viewer))

    def stop(self) -> None:
        """Ends the ranks. The agent stays, so that the next start is quick."""
        self._wait(self.crew.stop())

    def interrupt(self) -> None:
        """The stop button: what runs on the ranks ends with KeyboardInterrupt. From any thread."""
        self.hub.loop.call_soon_threadsafe(self.crew.interrupt)

    def close(self) -> None:
        """Ends everything, for good."""
        atexit.unregister(self.close)
        try:
            self.hub.run(self.crew.close()).result(timeout=CLOSING)
        finally:  # whatever the ranks did, their agent goes, and they with it
            self.crew.agent.close()
            self.hub.close()

    # Between the threads

    def _wait(self, coroutine):
        """The coroutine's result; the stop button goes to the ranks, and the coroutine decides when it is over.

        What ranks ask meanwhile with `input()` is put to the student.
        """
        future = self.hub.run(coroutine)
        while True:
            try:
                return self.questions.wait_for(future)
            except KeyboardInterrupt:
                if future.done():
                    raise
                self.hub.run(self._interrupt(future))

    async def _interrupt(self, future) -> None:
        """Interrupts what the future stands for, as soon as it has begun."""
        while not future.done() and not self.crew.interrupt():
            await asyncio.sleep(0.01)

    def _need_ranks(self, only: list[int] | None = None) -> None:
        if not self.crew.members:
            raise UsageError("no ranks are running: start some with %%ranks 4")
        for rank in only or ():
            if not 0 <= rank < self.size:
                raise UsageError(f"there is no rank {rank}: {self.size} ranks are running, 0 to {self.size - 1}")

    async def _execute(self, code: str, only: list[int] | None, count: int, viewer, can_ask: bool) -> list[Answer]:
        crew = self.crew
        if crew.cell:  # of a call that was interrupted before it could wait
            raise UsageError("the ranks still run another cell; %ranks restart ends it")
        if dead := await crew.dead():
            how = dead[0].ended.result()
            crew.notices.append(f"{name_ranks(m.rank for m in dead)} died between two cells ({how}) and starts anew")
            await crew.recover()
        members = [member for member in crew.members if only is None or member.rank in only]
        crew.deaths.begin()
        crew.cell = cell = Cell(crew, members, code, count, viewer, can_ask)
        for member in members:
            for stream, text in member.late.items():
                cell.on_text(member.rank, stream, str(text))
            member.late.clear()
        try:
            answers = await cell.run()
        finally:
            cell.close()
            crew.cell = None
        crew.notices += find_swapped(crew.board, code)
        if any(answer.status != "ok" for answer in answers) or cell.freed:
            await crew.recover()
        else:
            await crew.renumber()
        return answers
