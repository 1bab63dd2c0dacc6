"""The ranks' processes: started, given cells, asked, replaced when they die.

Where they run is the site's concern (launch/kernel/site.py), what follows a cell that failed is recovery's
(launch/kernel/recovery.py). All of it runs in the hub's thread, except for reading plain attributes; other modules call
launch/ranks.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from collections.abc import Iterable
from typing import Any

from launch.backends import BACKENDS
from launch.doctor.snapshot import How
from launch.doctor.trouble import find_missing_group, find_swapped
from launch.kernel import recovery
from launch.kernel.cell import Answer, Cell
from launch.kernel.hub import Hub
from launch.kernel.site import AgentLink, Here, Site
from launch.kernel.worker import COMING, Worker
from launch.shared import flight_recorder, wires
from launch.shared.errors import LaunchError, RankError, UsageError, name_ranks
from launch.shared.flight_recorder import Board, OpenCall, Status
from launch.shared.processes import fresh_environ
from launch.shared.text import Text


class Supervisor:
    """`workers` are indexed by rank; `notices` are sentences for the student. With `recovers=False` a cell that fails
    is not followed by `recover`, which costs as much as a start."""

    def __init__(self, hub: Hub, fork_from: AgentLink | None = None, recovers: bool = True):
        self.hub, self.recovers = hub, recovers
        hub.on_iopub = self._on_iopub
        self.workers: list[Worker] = []
        self.backend, self.bare = "gloo", False
        self.notices: list[str] = []
        self._board: Board | None = None
        self.came_back: dict[int, str] = {}  # ranks whose variables went with a process that died, and how it did
        self.cell: Cell | None = None  # the one under way
        self.generation = 0
        self.meeting: dict[str, str] = {}  # MASTER_ADDR and MASTER_PORT of the ranks
        self._coming: dict[str, Worker] = {}  # by name: requested from their links
        self._serial = itertools.count(1)
        self._work: asyncio.Task | None = None  # starting or restoring
        self._turn = asyncio.Lock()  # held while a cell runs and while the ranks recover from it
        self._replaced = False  # the ranks are about to be ended: no recovery
        self._closed = False
        self.played = Played(self)
        self.here = Here(hub, self._on_link, fork_from)
        self.site: Site = self.here

    @property
    def size(self) -> int:
        return len(self.workers)

    @property
    def agent(self) -> AgentLink:
        """The agent on this machine; it stays when the ranks are elsewhere."""
        return self.here.agent

    @property
    def board(self) -> Board:
        """The flight recorder of the ranks, as long as they run."""
        assert self._board is not None
        return self._board

    def interrupt(self) -> bool:
        """The stop button: stops a cell or a start. False if there is none."""
        if self.cell:
            self.cell.interrupt()
        elif self._work:
            self._work.cancel()
        return bool(self.cell or self._work)

    # Events of links and ranks

    def _on_link(self, link: Any, event: dict, fds: list[int]) -> None:
        """What happens to ranks; see `Site`."""
        kind = event["event"]
        if kind == "started":
            worker = self._coming.get(event["name"])
            if worker is None:
                for fd in fds:
                    os.close(fd)
                link.send(do="kill", pids=[event["pid"]])
            else:
                worker.started(event["pid"], event["spawned"], fds, self._on_text)
        elif kind == "refused" and (worker := self._coming.get(event["name"])):
            worker.fail(f"the system refused a new process: {event['why']}")
        for worker in {*self.workers, *self._coming.values()}:
            if worker.link is not link:
                continue
            if kind == "gone" or (kind == "exited" and worker.pid == event["pid"]):
                worker.has_ended(event["death"])
            elif kind == "text" and worker.name == event["name"]:
                self._on_text(worker, event["stream"], event["text"])

    def _on_iopub(self, name: str, message: dict) -> None:
        if name in self._coming:
            if message["header"]["msg_type"] == "iopub_welcome":
                self._coming[name].dialled_in()
        elif self.cell and (rank := self.cell.rank_of(name)) is not None:
            self.cell.on_iopub(rank, message)

    def _on_text(self, worker: Worker, stream: str, text: str) -> None:
        if not worker.up.done():
            worker.last_words.append(text)
        elif self.cell and worker.rank in self.cell.running:
            self.cell.on_text(worker.rank, stream, text)
        else:
            worker.late.setdefault(stream, Text()).append(text)

    # Start and end

    async def start(self, size: int, backend: str | None, bare: bool, viewer) -> None:
        """Starts new processes; ends those that run once it is known that the new ones fit."""
        await self._end_cell()
        await self._interruptible(self._start(size, backend, bare, viewer))

    async def _end_cell(self) -> None:
        """Kills the ranks of a cell that still runs because its call was interrupted before it could wait."""
        self._replaced = self._turn.locked()  # else two starts would wait for the same processes
        if self._replaced:
            self.act("kill", [worker for worker in self.workers if worker.pid and not worker.ended.done()])
            if self._work:
                self._work.cancel()
            async with self._turn:
                self._replaced = False

    async def close(self) -> None:
        """Ends a running start; none begins after this."""
        self._closed = True
        if self._work:
            self._work.cancel()
            await asyncio.wait({self._work})
        await self.site.close()

    async def move(self, site: Site | None) -> None:
        """Ends the ranks; the next ones start at this site. None is this machine."""
        await self.stop()
        await self.site.close()
        self.site = site or self.here
        self.site.on_event = self._on_link

    def end_agent(self) -> None:
        """Ends the agent on this machine and with it all its ranks, whatever they do; from any thread."""
        self.agent.close()

    async def _interruptible(self, coroutine):
        self._work = asyncio.ensure_future(coroutine)
        try:
            return await self._work
        except asyncio.CancelledError:
            raise LaunchError("stopped while the ranks were starting; none runs") from None
        finally:
            self._work = None

    async def _start(self, size: int, backend: str | None, bare: bool, viewer) -> None:
        if self._closed:
            raise LaunchError("the ranks have been closed")
        backend = await self.site.prepare(size, backend, self.size)
        await self._stop()
        self.backend, self.bare = backend, bare
        try:
            self._board = Board(path := f"{self.hub.folder}/board-{next(self._serial)}", size)
        except OSError as error:
            os.unlink(path)
            raise LaunchError(
                f"the ranks have no room for their files: {error.strerror} in {os.path.dirname(self.hub.folder)}; make "
                "room there, or restart the kernel with TMPDIR set to another folder"
            ) from None
        self._environ = fresh_environ()
        self.site.open(self._board, next(self._serial))
        self.meeting = self.site.meeting_place()
        self.came_back = {}
        await self.bring_up(list(range(size)), size, 1, viewer)

    async def bring_up(self, ranks: list[int], size: int, group_count: int, viewer=None) -> None:
        """Starts these ranks and waits until they are up and workers: all of them, or LaunchError and none."""
        serial = next(self._serial)
        before = {worker.rank: worker.link for worker in self.workers}
        links = {rank: self.site.link_for(rank, size, before.get(rank)) for rank in ranks}
        wanted = [Worker(rank, serial, self.hub, link, viewer) for rank, link in links.items()]
        session = {"world_size": size, "backend": self.backend, "bare": self.bare, "generation": self.generation}
        session |= {"environ": self._environ | self.meeting, "meeting": self.meeting}
        session |= {"group_count": group_count, "board": self.board.path, "network": self.played.known_to(wanted)}
        self._coming = {worker.name: worker for worker in wanted}
        spawn = not BACKENDS[self.backend].forks
        for link in dict.fromkeys(links.values()):
            link.start([m.rank for m in wanted if m.link is link], spawn, serial, self.hub.key, session)
        try:
            try:
                async with asyncio.timeout(COMING):  # wait_for would leave a cancelled gather that logs an error later
                    await asyncio.gather(*(worker.up for worker in wanted))
            finally:  # after a stop the agents start no more ranks
                for link in dict.fromkeys(links.values()):
                    link.withdraw(serial)
        except BaseException as error:
            await self._kill(wanted)
            if isinstance(error, TimeoutError):
                raise LaunchError(f"the ranks did not come up within {COMING} seconds: run the cell again") from None
            raise
        else:  # now, and not once the groups are made, since they may die meanwhile
            self.workers = sorted([*(m for m in self.workers if m.rank not in ranks), *wanted], key=lambda m: m.rank)
        finally:
            self._coming = {}

    async def _kill(self, workers: list[Worker]) -> None:
        while alive := [worker for worker in workers if worker.pid and not worker.ended.done()]:
            self.act("kill", alive)
            await asyncio.gather(*(worker.ended for worker in alive))  # meanwhile more may have started
        for worker in workers:
            worker.close()

    async def stop(self) -> None:
        await self._end_cell()
        await self._stop()

    async def _stop(self) -> None:
        await self._kill(self.workers)
        self.played.clear()
        self.workers = []
        self.generation += 1
        if self._board:
            self._board.close()
            os.unlink(self._board.path)
            self._board = None

    # Cells and requests

    async def execute(self, code: str, only: list[int] | None, count: int, viewer, record: bool) -> list[Answer]:
        """Runs a cell on all ranks, or on those in `only`, and recovers; see `Ranks.execute`."""
        if self.cell:  # of a call that was interrupted before it could wait
            raise UsageError("the ranks still run another cell; %ranks restart ends it")
        async with self._turn:
            if dead := await self.dead():
                who, how, before = name_ranks(m.rank for m in dead), dead[0].ended.result(), len(self.notices)
                await self.recover()  # LaunchError where no machine is left
                starts = "starts" if len(dead) == 1 else "start"
                self.notices.insert(before, f"{who} died between two cells ({how}) and {starts} anew")
            await self.played.tell()
            workers = [worker for worker in self.workers if only is None or worker.rank in only]
            self.site.cell_begins()
            self.cell = cell = Cell(self, workers, code, count, viewer, record)
            for worker in workers:
                for stream, text in worker.late.items():
                    cell.on_text(worker.rank, stream, str(text))
                worker.late.clear()
            try:
                answers = await cell.run()
            finally:
                cell.close()
                self.cell = None
            if self._replaced:
                return answers
            for answer in answers:
                if answer.ename == "NameError" and any(other.ename != "NameError" for other in answers):
                    answer.came_back = self.came_back.get(answer.rank, "")
            self.notices += find_swapped(self.board, code)
            self.notices += find_missing_group(answers, [m.groups for m in self.workers])
            if cell.freed or cell.stops or any(answer.how is not How.LEFT or answer.trouble for answer in answers):
                if self.recovers:
                    await self.recover()
            else:
                await recovery.renumber(self)
            for answer in answers:
                answer.ended = cell.workers[answer.rank].ended.done()
            return answers

    async def ask(self, ranks: Iterable[int], content: dict, seconds: float) -> dict[int, dict]:
        """The answers, by rank, to a request on the control channel that arrive in time."""
        living = [self.workers[rank] for rank in ranks if not self.workers[rank].ended.done()]
        tasks = {asyncio.ensure_future(worker.request("control", content)): worker.rank for worker in living}
        if not tasks:
            return {}
        try:
            done, _ = await asyncio.wait(tasks, timeout=seconds)
        finally:  # also if this is cancelled because the cell is over
            for task in tasks:
                task.cancel()
        replies = {tasks[task]: task.result()["content"] for task in done if task.exception() is None}
        return {rank: reply["value"] for rank, reply in replies.items() if reply["status"] == "ok"}

    def suspended(self, ranks: Iterable[int]) -> set[int]:
        """The ranks whose process SIGSTOP or the like keeps from running."""
        return {rank for rank in ranks if self.workers[rank].link.has_suspended(self.workers[rank].pid)}

    async def memory(self) -> dict[int, int]:
        """Bytes of each rank's process."""
        found = {}
        for link in dict.fromkeys(worker.link for worker in self.workers):
            mine = {worker.rank: worker.pid for worker in self.workers if worker.link is link}
            known = await link.memory(list(mine.values()))
            found |= {rank: known.get(pid, 0) for rank, pid in mine.items()}
        return found

    def act(self, what: str, workers: list[Worker]) -> None:
        """Has the agents "kill" or "wake" processes."""
        for link in {worker.link for worker in workers}:
            link.send(do=what, pids=[worker.pid for worker in workers if worker.link is link])

    # Between cells

    def take_notices(self) -> list[str]:
        """The notices since the last call."""
        notices, self.notices = self.notices, []
        return notices

    def doing(self, rank: int) -> Status:
        """What the rank was doing when it last wrote."""
        return self.board.read(rank)

    def unfinished(self, rank: int) -> list[OpenCall]:
        """The calls that the rank has begun and that have not ended, oldest first."""
        return flight_recorder.open_calls(self.board, rank)

    async def dead(self) -> list[Worker]:
        """The workers whose process has ended. Waits for the agent's event about a process that is gone already."""
        await asyncio.gather(*(worker.ended for worker in self.workers if worker.link.has_ended_process(worker.pid)))
        return [worker for worker in self.workers if worker.ended.done()]

    async def recover(self) -> None:
        """Replaces dead ranks and renews the process groups of all; starts all ranks again if that is impossible."""
        try:
            await self._interruptible(recovery.renew(self))
            self.played.clear()
        except (LaunchError, RankError) as error:
            if not self._replaced:
                await self._interruptible(self._start(self.size, self.backend, self.bare, None))
                self.notices.append(f"all ranks were restarted and lost their variables ({error})")

    async def request_all(self, channel: str, what: str, content: dict, buffers=(), workers=None) -> list:
        """(value, buffers) of each rank. RankError names every rank that refused or died."""
        workers = self.workers if workers is None else workers
        replies = await asyncio.gather(*(m.request(channel, {"do": what, **content}, buffers) for m in workers))
        wrong = {m.rank: r["content"] for m, r in zip(workers, replies, strict=True) if r["content"]["status"] != "ok"}
        if wrong:
            by_message: dict[str, list[int]] = {}
            for rank, reply in wrong.items():
                by_message.setdefault(reply["message"], []).append(rank)
            raise RankError("; ".join(f"{name_ranks(who)}: {why}" for why, who in by_message.items()), tuple(wrong))
        return [(reply["content"]["value"], reply["buffers"]) for reply in replies]


class Played:
    """The network that the ranks play, and which ranks have it.

    It is sent to a rank once, before its next cell; one that replaces a dead rank starts with it. The links that ranks
    share are in a file (launch/shared/wires.py), a new one for each network.
    """

    def __init__(self, supervisor: Supervisor):
        self.supervisor = supervisor
        self._number = 0  # of the network that is played; 0: none
        self._last = 0
        self._table: dict | None = None

    def choose(self, table: dict | None) -> None:
        """The network to send to ranks, as `launch.networks.table` makes it; None for no network."""
        if self._table is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._table["path"])
        self._table, self._number = None, 0
        if table is not None:
            self._number = self._last = self._last + 1
            self._table = {**table, "path": f"{self.supervisor.hub.folder}/wires-{self._number}"}

    def clear(self) -> None:
        """Frees the links: what was in flight on them was cut off with its cell, or with the ranks."""
        if self._table is not None:
            wires.clear(self._table["path"])

    def known_to(self, new: list) -> dict | None:
        """The table that new ranks start with; None if it is for another number of ranks."""
        if self._table is None or len(self._table["ways"]) != self.supervisor.size:
            return None
        for worker in new:
            worker.plays = self._number
        return self._table

    async def tell(self) -> None:
        """Tells the ranks that do not know it yet."""
        behind = [worker for worker in self.supervisor.workers if worker.plays != self._number]
        if behind:
            await self.supervisor.request_all("shell", "network", {"table": self._table}, workers=behind)
            for worker in behind:
                worker.plays = self._number
