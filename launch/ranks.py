"""The ranks of this notebook: start, cells, variables, recordings, status, restart, stop.

The magics, the checks of the course and `launch.pull` use `Ranks`. Its methods are called from the kernel's main thread
and block until the answer is there; the stop button reaches the ranks meanwhile. The work is done in the hub's thread,
by launch/kernel/supervisor.py (processes, one cell after the other) and launch/kernel/cell.py (the running cell).
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Callable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from launch import networks
from launch.kernel.cell import Answer
from launch.kernel.hub import Hub, result_of
from launch.kernel.site import Site
from launch.kernel.supervisor import Supervisor
from launch.shared import codec
from launch.shared.capture import empty
from launch.shared.errors import RanksStopped, UsageError
from launch.shared.flight_recorder import OpenCall, Status

if TYPE_CHECKING:
    from collectives import Network, Topology
    from collectives.played import Carried
    from launch.replay.recording import Recording

DEFAULT_SIZE = 4
BEGINNING = 2  # seconds after the stop button in which a requested cell begins, or a rank answers
MOST_OPEN = 2  # calls of one rank that `%ranks` names
CLOSING = 10  # seconds; it takes milliseconds, or as long as a running start


@dataclass
class RankStatus:
    """One line of `%ranks`. memory is in bytes (PSS)."""

    rank: int
    pid: int
    backend: str
    memory: int
    doing: Status
    machine: str = ""  # where the rank is; "" for this machine


def unfinished(call: OpenCall) -> str:
    """About a call that an earlier cell has left: 'isend to rank 1 (line 2) has not ended: wait() for it'."""
    where = f" (line {call.line})" if call.line else ""
    if call.kind == "collective" or call.peer < 0:
        return f"{call.op}{where} has not ended: wait() for it"
    way, other = ("to", "recv") if call.kind == "send" else ("from", "send")
    return f"{call.op} {way} rank {call.peer}{where} has not ended: it needs its {other} there, and a wait() here"


class Ranks:
    """All ranks of one notebook. Making one starts the agent in the background; ranks come with `ensure`.

    With `fork_from` their agent is forked from the agent of other Ranks, which has imported torch already.
    With `recovers=False` what a cell has broken stays broken, for callers that end ranks that have failed.
    """

    def __init__(self, fork_from: Ranks | None = None, recovers: bool = True):
        self.hub = Hub()
        self.supervisor: Supervisor = Supervisor(self.hub, fork_from.supervisor.agent if fork_from else None, recovers)
        self.captures: list[dict] | None = None  # of the ranks, of the cell that was recorded last
        self._recording: Recording | None = None
        self._judged: Callable[[], Recording | None] = lambda: None
        self._ran_on: tuple = (None, None, (), ())  # network, Carried, Clocks and edges of what was recorded
        self.network: Network | Topology | None = None  # that all cells run on
        self.carried: Carried | None = None  # what the last cell sent over it; None if it ran on none
        self._asked_for: tuple = (None, 0)  # what `network` is, as it was asked for, and for how many ranks
        self._told_of: tuple = (None, 0)  # the network, and how many ranks there were
        atexit.register(self.close)

    @property
    def size(self) -> int:
        """How many ranks there are; 0 when none run."""
        return self.supervisor.size

    @property
    def came_back(self) -> dict[int, str]:
        """The ranks whose variables were lost with a process that died, and how it died."""
        return self.supervisor.came_back

    def ensure(self, size: int | None = None, backend: str | None = None, bare: bool = False, viewer=None) -> None:
        """Makes sure that `size` ranks run with that backend. None: as they are, else 4 and the default."""
        before = self.size
        if before:
            same = size in (None, self.size) and backend in (None, self.supervisor.backend)
            if same and (self.supervisor.bare == bare or (size is None and not bare)):
                return
            size = size or before
        self._wait(self.supervisor.start(size or DEFAULT_SIZE, backend, bare, viewer))
        if before:
            instead = "" if size == before else f" with {size} ranks instead of {before}"
            self.supervisor.notices.append(f"restarted{instead}; the ranks' variables are new")

    def will_import(self, module: str) -> None:
        """Has the agent import it, so that ranks which start from now on need not. Returns at once."""
        send = partial(self.supervisor.agent.send, do="import", module=module)
        self.hub.loop.call_soon_threadsafe(send)

    def take_notices(self) -> list[str]:
        """Sentences about what happened to the ranks since the last call."""
        return self.supervisor.take_notices()

    def execute(
        self, code: str, only: list[int] | None = None, count: int = 1, viewer=None, record: bool = False
    ) -> list[Answer]:
        """Runs the code as a cell on all ranks, or on those in `only`; one Answer per rank, in rank order.

        `count` is the number that tracebacks give the cell. What ranks raise is in the answers; LaunchError or
        UsageError if the cell cannot be run at all. Restores dead ranks and broken process groups before it returns.
        With `record`, `recording()` then has what the ranks sent.
        """
        self._need_ranks(only)
        return self._wait(self._execute(code, only, count, viewer, record))

    async def _execute(self, code: str, only: list[int] | None, count: int, viewer, record: bool) -> list[Answer]:
        self.carried = None
        self._choose(self._asked_for[0])  # again, since there may be another number of ranks by now
        if self._told_of != (self.network, self.size):
            self._told_of = self.network, self.size
            table = None if self.network is None else networks.table(self.network, self.size)
            self.supervisor.played.choose(table)
        if record:
            self.captures, self._recording, self._judged = [], None, lambda: None
            clocks = await self.supervisor.site.read_clocks()
        answers = await self.supervisor.execute(code, only, count, viewer, record)
        if self.network is not None:
            self.carried = networks.carried_by(self.size, {answer.rank: answer.carried for answer in answers})
        if record:
            ran_by = self.supervisor.site.clocks_of_ranks(clocks, await self.supervisor.site.read_clocks())
            trouble = answers[0].trouble
            self._ran_on = self.network, self.carried, ran_by, trouble.edges if trouble else ()
            self._keep({answer.rank: answer.capture for answer in answers})
        return answers

    def _keep(self, captures: dict[int, dict | None]) -> None:
        """The captures of a cell by rank; None of a rank that has died. Says how much was left out."""
        idle = [empty(rank) for rank in range(self.size) if rank not in captures]
        self.captures = [each for each in captures.values() if each] + idle
        left_out = sum(each["dropped"] for each in self.captures)
        if left_out:
            kept = max(len(each["events"]) for each in self.captures)
            self.supervisor.notices.append(
                f"the recording kept the first {kept:,} calls of every rank; {left_out:,} later ones were left out"
            )

    def play(self, network) -> None:
        """From the next cell on, cells run on that network: a name, a Network, a Topology; None: on none.

        UsageError, and no change, if there is no such network or it has too few ranks.
        """
        self._choose(network)

    def _choose(self, network) -> None:
        if network is not None:
            self.supervisor.site.check_network()
        asked = network, self.size or DEFAULT_SIZE
        if asked != self._asked_for:
            self.network = networks.chosen(*asked)
            self._asked_for = asked

    def lost(self) -> dict[int, str]:
        """The ranks whose process has ended since the last cell, and how."""
        return {worker.rank: str(worker.ended.result()) for worker in self._wait(self.supervisor.dead())}

    def to_do(self) -> list[tuple[list[int], str]]:
        """[(ranks, sentence)]: what the student may have to fix on living ranks."""
        anew = sorted(self.came_back)
        found = [(anew, "a new process, since the one before died: what cells set before that is gone")] if anew else []
        changed = self.call("changed")
        for name, back in dict.fromkeys(item for names in changed for item in names.items()):
            who = [rank for rank, names in enumerate(changed) if name in names]
            found.append((who, f"a cell has changed {name}: {back} brings it back"))
        left = {rank: self.supervisor.unfinished(rank)[:MOST_OPEN] for rank in range(self.size)}
        return found + [([rank], unfinished(call)) for rank, calls in left.items() for call in calls]

    def find(self, name: str) -> dict:
        """The variable `name` of the ranks that have it, by rank. RankError if none has it."""
        self._need_ranks()
        has = [rank for rank, it in enumerate(self.call("has", name=name)) if it]
        workers = [self.supervisor.workers[rank] for rank in has] or None  # if no rank has it, all are asked and raise
        replies = self._wait(self.supervisor.request_all("shell", "pull", {"name": name}, workers=workers))
        return {rank: codec.decode(value, buffers) for rank, (value, buffers) in zip(has, replies, strict=True)}

    def pull(self, name: str) -> list:
        """The variable `name` of every rank, indexed by rank. RankError names the ranks that lack it."""
        self._need_ranks()
        replies = self._wait(self.supervisor.request_all("shell", "pull", {"name": name}))
        return [codec.decode(value, buffers) for value, buffers in replies]

    def push(self, **values) -> None:
        """Sets variables on every rank."""
        self._need_ranks()
        buffers: list[bytes] = []
        content = {"values": {name: codec.encode(value, buffers, name) for name, value in values.items()}}
        self._wait(self.supervisor.request_all("shell", "push", content, buffers))

    def call(self, what: str, **content) -> list:
        """The reply of every rank's requests (rank/requests.py) to a request on the shell channel, indexed by rank."""
        self._need_ranks()
        return [value for value, _ in self._wait(self.supervisor.request_all("shell", what, content))]

    def recording(self):
        """The launch.replay.recording.Recording of the last recorded cell, made at the first call.

        After a check it is the run that was judged: the one that failed, or the first of a solved exercise.
        """
        self._recording = self._recording or self._judged()
        if self._recording is None:
            if not self.captures:
                raise UsageError("nothing has been recorded yet: run a cell with %%ranks --record")
            from launch.replay.recording import Captures, Recording

            self._recording = Recording(Captures(self.captures, *self._ran_on))
        return self._recording

    def keep(self, judged: Callable[[], Recording | None]) -> None:
        """Makes a recording of other ranks, which a check has judged, the result of `recording()`, when that is asked
        for; None: there is none."""
        self.captures, self._recording, self._judged = None, None, judged

    def status(self) -> list[RankStatus]:
        memory, backend = self._wait(self.supervisor.memory()), self.supervisor.backend
        return [
            RankStatus(m.rank, m.pid, backend, memory[m.rank], self.supervisor.doing(m.rank), str(m.link))
            for m in self.supervisor.workers
        ]

    def move(self, site: Site | None) -> None:
        """Ends the ranks; the next ones start at this site. None is this machine."""
        self._wait(self.supervisor.move(site))

    def restart(self, viewer=None) -> None:
        """New processes under the same numbers; all variables are new."""
        self._need_ranks()
        self._wait(self.supervisor.start(self.size, self.supervisor.backend, self.supervisor.bare, viewer))

    def stop(self) -> None:
        """Ends the ranks. The agent stays, so the next start is fast."""
        self._wait(self.supervisor.stop())

    def interrupt(self) -> None:
        """The stop button: what runs on the ranks ends with KeyboardInterrupt. From any thread."""
        self.hub.loop.call_soon_threadsafe(self.supervisor.interrupt)

    def close(self) -> None:
        """Ends the ranks, the agent and the hub."""
        atexit.unregister(self.close)
        try:
            self.hub.run(self.supervisor.close()).result(timeout=CLOSING)
        finally:  # in any case the agent ends, and the ranks with it
            self.supervisor.end_agent()
            self.hub.close()

    # Between the threads

    def _wait(self, coroutine):
        """The coroutine's result. The stop button interrupts the ranks, and the coroutine ends by itself."""
        future = self.hub.run(coroutine)
        while True:
            try:
                return result_of(future)
            except CancelledError:
                raise RanksStopped("stopped; a rank did not answer, and %ranks restart replaces it") from None
            except KeyboardInterrupt:
                if future.done():
                    raise
                self.hub.run(self._interrupt(future))

    async def _interrupt(self, future) -> None:
        """Interrupts the ranks once the future's work has begun; cancels a future that only waits for an answer."""
        until = self.hub.loop.time() + BEGINNING
        while not future.done() and not self.supervisor.interrupt():
            await asyncio.sleep(0.01)
            if self.hub.loop.time() > until:
                future.cancel()

    def _need_ranks(self, only: list[int] | None = None) -> None:
        if not self.size:
            raise UsageError("no ranks are running: start some with %%ranks 4")
        for rank in only or ():
            if not 0 <= rank < self.size:
                raise UsageError(f"there is no rank {rank}: {self.size} ranks are running, 0 to {self.size - 1}")
