"""The processes behind the ranks: brought up by the agent, given cells, asked, restored when one dies or is stuck.

`AgentLink` is the kernel's end of the agent: it starts the process, asks it for ranks and hears what becomes of them.
The agent is started at once, in the background, and is at work on its imports long before anybody asks; a request sent
meanwhile waits in the socket.

All of it runs in the hub's thread, except for reading plain attributes; launch/ranks.py is what others call. After a
cell in which a rank failed, was freed or died, `recover` gives all of them a new process group under the same objects;
a dead rank is forked anew under its number, the others keep their variables.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable

from launch.backends import BACKENDS
from launch.doctor.snapshot import How
from launch.doctor.trouble import find_swapped
from launch.kernel import machine
from launch.kernel._worker import COMING, Worker
from launch.kernel.cell import Answer, Cell
from launch.kernel.hub import Hub, all_or_none
from launch.kernel.machine import Deaths
from launch.kernel.played import Played
from launch.shared import flight_recorder
from launch.shared.errors import LaunchError, RankError, UsageError, name_ranks
from launch.shared.flight_recorder import Board, OpenCall, Status
from launch.shared.start_file import NO_WIDGETS, fresh_environ, meeting_place, write_start_file
from launch.shared.text import Text

# Of all ranks. Two belong to every group that was ever renewed, and torch gives none back: a cell that makes groups,
# fails and is run again leaves more each time. Linux has 32,768 for everybody unless told otherwise.
MOST_THREADS = 16_000
MEETING = 120  # seconds in which ranks that were freed have met again, those that died among them; one may never come


class Supervisor:
    """The agent and the ranks' processes. `workers` are indexed by rank; `notices` are sentences for the student."""

    def __init__(self, hub: Hub, beside: AgentLink | None = None):
        self.hub = hub
        hub.on_iopub = self._on_iopub
        self.workers: list[Worker] = []
        self.backend, self.bare, self.gpus = "gloo", False, 0
        self.notices: list[str] = []
        self._board: Board | None = None
        self._deaths = Deaths()
        self.came_back: dict[int, str] = {}  # ranks whose variables went with a process that died, and how it did
        self.cell: Cell | None = None  # the one under way
        self._generation = 0
        self._coming: dict[str, Worker] = {}  # by name: those that the agent has been asked for
        self._serial = itertools.count(1)
        self._work: asyncio.Task | None = None  # starting or restoring
        self._closed = False
        self.played = Played(self)
        self._launch_agent(beside)

    @property
    def size(self) -> int:
        return len(self.workers)

    @property
    def board(self) -> Board:
        """The flight recorder of the ranks; there is one as long as they run."""
        assert self._board is not None
        return self._board

    def interrupt(self) -> bool:
        """The stop button, whatever is going on. False if nothing is."""
        if self.cell:
            self.cell.interrupt()
        elif self._work:
            self._work.cancel()
        return bool(self.cell or self._work)

    # What the agent and the ranks say

    def _launch_agent(self, beside: AgentLink | None = None) -> None:
        self.agent = AgentLink(self.hub.folder, beside)
        self._agent_ready = self.hub.loop.create_future()
        self.hub.loop.call_soon_threadsafe(self.agent.listen, self.hub.loop, self._on_agent)

    def _on_agent(self, event: dict, fds: list[int]) -> None:
        kind = event["event"]
        if kind == "ready":
            self.gpus = event["gpus"]
            self._agent_ready.set_result(None)
        elif kind == "started":
            worker = self._coming.get(event["name"])
            if worker is None:
                for fd in fds:
                    os.close(fd)
                self.agent.send(do="kill", pids=[event["pid"]])
            else:
                worker.started(event["pid"], event["spawned"], fds, self._on_text)
        elif kind == "refused" and (worker := self._coming.get(event["name"])):
            worker.fail(f"the system refused a new process: {event['why']}")
        elif kind == "exited":
            for worker in {*self.workers, *self._coming.values()}:
                if worker.pid == event["pid"]:
                    worker.has_ended(self._deaths.how(event["status"]))
        elif kind in ("failed", "gone"):
            why = event.get("why", "the agent has died; its log was lost with it")
            if not self._agent_ready.done():
                self._agent_ready.set_exception(LaunchError(f"ranks cannot be started on this machine: {why}"))
                self._agent_ready.exception()
            how = self._deaths.how(-signal.SIGKILL)  # of the agent, which its ranks do not outlive
            for worker in {*self.workers, *self._coming.values()}:
                worker.has_ended(how)

    def _on_iopub(self, name: str, message: dict) -> None:
        if name in self._coming:
            if message["header"]["msg_type"] == "iopub_welcome":
                self._coming[name].is_up()
        elif self.cell and (rank := self.cell.rank_of(name)) is not None:
            self.cell.on_iopub(rank, message)

    def _on_text(self, worker: Worker, stream: str, text: str) -> None:
        if worker.name in self._coming:
            worker.last_words.append(text)
        elif self.cell and worker.rank in self.cell.running:
            self.cell.on_text(worker.rank, stream, text)
        else:
            worker.late.setdefault(stream, Text()).append(text)

    # Beginning and end

    async def start(self, size: int, backend: str | None, bare: bool, viewer) -> None:
        """New processes; those that run are ended, but not before it is known that the new ones have room."""
        await self._interruptible(self._start(size, backend, bare, viewer))

    async def close(self) -> None:
        """Ends a start that is under way; none begins after this."""
        self._closed = True
        if self._work:
            self._work.cancel()
            await asyncio.wait({self._work})

    def end_agent(self) -> None:
        """Ends the agent and with it every rank, whatever they do; from any thread."""
        self.agent.close()

    async def _interruptible(self, coroutine):
        self._work = asyncio.ensure_future(coroutine)
        try:
            return await self._work
        except asyncio.CancelledError:
            raise LaunchError("stopped while the ranks were starting; none runs") from None
        except TimeoutError:
            raise LaunchError(f"the ranks did not come up within {COMING} seconds: run the cell again") from None
        finally:
            self._work = None

    async def _start(self, size: int, backend: str | None, bare: bool, viewer) -> None:
        if self._closed:
            raise LaunchError("the ranks have been closed")
        if self.agent.has_ended():
            self._launch_agent()
        await asyncio.shield(self._agent_ready)  # the stop button ends the waiting, not the agent
        backend = machine.choose_backend(size, backend, self.gpus, self.size)
        await self.stop()
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
        self.came_back = {}
        self.workers = await self._bring_up(list(range(size)), size, 1, viewer)

    async def _bring_up(self, ranks: list[int], size: int, group_count: int, viewer=None) -> list[Worker]:
        """Has the agent start these ranks and waits until they are up; all of them, or LaunchError and none."""
        serial = next(self._serial)
        wanted = [Worker(rank, serial, self.hub) for rank in ranks]
        for worker in wanted:
            if viewer:
                viewer.state(worker.rank, "starting", "")
        session = {"world_size": size, "backend": self.backend, "bare": self.bare, "generation": self._generation}
        session |= {"group_count": group_count, "board": self.board.path, "environ": self._environ}
        session |= {"network": self.played.known_to(wanted)}
        config = write_start_file(self.hub.folder, self.hub.key, serial, **session)
        self._coming = {worker.name: worker for worker in wanted}
        self.agent.send(do="start", config=config, ranks=ranks, spawn=not BACKENDS[self.backend].forks)
        try:
            await asyncio.wait_for(asyncio.gather(*(worker.up for worker in wanted)), COMING)
        except BaseException:
            await self._kill(wanted)
            raise
        finally:
            self._coming = {}
            os.unlink(config)
        return wanted

    async def _kill(self, workers: list[Worker]) -> None:
        alive = [worker for worker in workers if worker.pid and not worker.ended.done()]
        self.act("kill", alive)
        await asyncio.gather(*(worker.ended for worker in alive))
        for worker in workers:
            worker.close()

    async def stop(self) -> None:
        await self._kill(self.workers)
        self.workers = []
        self._generation += 1
        if self._board:
            self._board.close()
            os.unlink(self._board.path)
            self._board = None

    # A cell, and what it asks for

    async def execute(self, code: str, only: list[int] | None, count: int, viewer, can_ask: bool) -> list[Answer]:
        """Runs a cell on all ranks, or on those in `only`, and restores what it has broken; see `Ranks.execute`."""
        if self.cell:  # of a call that was interrupted before it could wait
            raise UsageError("the ranks still run another cell; %ranks restart ends it")
        if dead := await self.dead():
            how = dead[0].ended.result()
            self.notices.append(f"{name_ranks(m.rank for m in dead)} died between two cells ({how}) and starts anew")
            await self.recover()
        await self.played.tell()
        workers = [worker for worker in self.workers if only is None or worker.rank in only]
        self._deaths.begin()
        self.cell = cell = Cell(self, workers, code, count, viewer, can_ask)
        for worker in workers:
            for stream, text in worker.late.items():
                cell.on_text(worker.rank, stream, str(text))
            worker.late.clear()
        try:
            answers = await cell.run()
        finally:
            cell.close()
            self.cell = None
        for answer in answers:
            if answer.ename == "NameError" and any(other.ename != "NameError" for other in answers):
                answer.came_back = self.came_back.get(answer.rank, "")
        await self.played.count()
        self.notices += find_swapped(self.board, code)
        if cell.freed or cell.stops or any(answer.how is not How.LEFT or answer.trouble for answer in answers):
            await self.recover()
        else:
            await self.renumber()
        return answers

    async def ask(self, ranks: Iterable[int], content: dict, seconds: float) -> dict[int, dict]:
        """What those ranks answer to a request on the control channel that do so in time."""
        living = [self.workers[rank] for rank in ranks if not self.workers[rank].ended.done()]
        tasks = {asyncio.ensure_future(worker.request("control", content)): worker.rank for worker in living}
        if not tasks:
            return {}
        done, late = await asyncio.wait(tasks, timeout=seconds)
        for task in late:
            task.cancel()
        replies = {tasks[task]: task.result()["content"] for task in done if task.exception() is None}
        return {rank: reply["value"] for rank, reply in replies.items() if reply["status"] == "ok"}

    def suspended(self, ranks: Iterable[int]) -> set[int]:
        """Those of the ranks whose process SIGSTOP or the like keeps from running."""
        return {rank for rank in ranks if machine.is_suspended(self.workers[rank].pid)}

    def act(self, what: str, workers: list[Worker]) -> None:
        """Has the agent "kill" or "wake" processes."""
        self.agent.send(do=what, pids=[worker.pid for worker in workers])

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
        """The workers whose process has ended; of one that ended a moment ago the agent's word is waited for."""
        await asyncio.gather(*(worker.ended for worker in self.workers if machine.has_ended(worker.pid)))
        return [worker for worker in self.workers if worker.ended.done()]

    async def recover(self) -> None:
        """Replaces dead ranks and renews the process groups of all; starts over where that is impossible."""
        try:
            await self._interruptible(self._renew_in_time())
        except (LaunchError, RankError) as error:
            self.notices.append(f"all ranks were started anew, their variables are new ({error})")
            await self.start(self.size, self.backend, self.bare, None)

    async def _renew_in_time(self) -> None:
        try:
            async with asyncio.timeout(MEETING):
                await self._renew()
        except TimeoutError:
            raise LaunchError(f"they had not met again in a new process group after {MEETING} seconds") from None

    async def renumber(self) -> None:
        """Counts of messages begin anew after a receive from any source, whose sender had no number before it came."""
        ranks = range(self.size)
        if any(
            tally.peer < 0 for rank in ranks for tally in flight_recorder.message_tallies(self.board, rank)
        ) and not any(flight_recorder.open_calls(self.board, rank) for rank in ranks):
            flight_recorder.begin_epoch(self.board.memory)
            await self.request_all("shell", "renumber", {})

    async def _renew(self) -> None:
        dead = await self.dead()
        living = [worker for worker in self.workers if worker not in dead]
        self._generation += 1
        if not living:
            raise LaunchError("no rank has survived")
        known = [value for value, _ in await self.request_all("control", "groups", {}, workers=living)]
        count = max(value["count"] for value in known)
        groups = {m.rank: value["groups"] for m, value in zip(living, known, strict=True)}
        worlds = {value["world"] for value in known}  # "" of a rank that has left it
        if sum(value["threads"] for value in known) > MOST_THREADS:
            raise LaunchError("their process groups have been renewed so often that no more threads should be spent")
        if dead and not self.bare and (len(worlds) > 1 or "" in worlds):
            raise LaunchError("a rank has died, and others had destroyed the process group")
        names = groups_in_common(groups, {worker.rank for worker in dead}, worlds)
        flight_recorder.begin_epoch(self.board.memory)
        # Whoever makes a group by himself after this must not meet what is left of the last one in its store.
        self._environ |= (environ := meeting_place() if self.bare else {})
        if (self.bare and dead) or len(worlds) > 1:
            work = [self.request_all("shell", "leave", {"environ": environ}, workers=living)]
            left = [m.rank for m, value in zip(living, known, strict=True) if not value["world"]]
            if worlds != {""}:
                how = f"{name_ranks(left)} had destroyed" if left else "a member has died of"
                self.notices.append(
                    f"{how} the process group, so that it is gone on every rank: make it again with "
                    "dist.init_process_group('gloo')"
                )
        else:
            content = {"generation": self._generation, "names": names, "group_count": count, "environ": environ}
            work = [self.request_all("shell", "regroup", content, workers=living)]
        for worker in dead:
            worker.close()
            self.board.clear(worker.rank)
        if dead:
            work.append(self._bring_up([worker.rank for worker in dead], self.size, count))
        results = await all_or_none(work)
        self.came_back |= {worker.rank: f"died ({worker.ended.result()})" for worker in dead}
        for worker in results[-1] if dead else ():
            self.workers[worker.rank] = worker

    async def request_all(self, channel: str, what: str, content: dict, buffers=(), workers=None) -> list:
        """(value, buffers) of each rank; RankError with every rank that refused or died."""
        workers = self.workers if workers is None else workers
        replies = await asyncio.gather(*(m.request(channel, {"do": what, **content}, buffers) for m in workers))
        wrong = {m.rank: r["content"] for m, r in zip(workers, replies, strict=True) if r["content"]["status"] != "ok"}
        if wrong:
            by_message: dict[str, list[int]] = {}
            for rank, reply in wrong.items():
                by_message.setdefault(reply["message"], []).append(rank)
            raise RankError("; ".join(f"{name_ranks(who)}: {why}" for why, who in by_message.items()), tuple(wrong))
        return [(reply["content"]["value"], reply["buffers"]) for reply in replies]


def groups_in_common(groups: dict[int, dict[str, list[int]]], dead: set[int], worlds: set[str]) -> list[str]:
    """Names of the groups that all their members know and in which all of them live.

    A rank that is forked anew in place of a dead one makes the world's again, one of `worlds`, and no other.
    """
    names = {name: ranks for known in groups.values() for name, ranks in known.items()}
    common = [
        name
        for name, ranks in names.items()
        if (name in worlds or not dead & set(ranks))
        and all(groups[rank].get(name) == ranks for rank in ranks if rank not in dead)
    ]
    return sorted(common, key=lambda name: (len(name), name))


class AgentLink:
    """One agent process: forked by another agent of this kernel, `beside`, within milliseconds, or a new one.
    `on_event(event, fds)` is called for everything it tells."""

    def __init__(self, folder: str, beside: AgentLink | None = None):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process: subprocess.Popen | None = None
        if beside is None or not beside.fork(theirs, folder):
            environ = os.environ | {"OMP_NUM_THREADS": "1", NO_WIDGETS: "1"}
            environ.pop("JPY_PARENT_PID", None)  # would make every rank watch for another parent than it has
            environ.pop("PYTEST_CURRENT_TEST", None)
            with open(f"{folder}/agent.log", "wb") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-m", "launch.agent", str(theirs.fileno()), str(os.getpid()), folder],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[theirs.fileno()],
                    env=environ,
                    start_new_session=True,  # the notebook's stop button is not meant for the agent
                )
        theirs.close()
        self.socket.setblocking(False)

    def fork(self, theirs: socket.socket, folder: str) -> bool:
        """Asks for another agent at the other end of a socket. False if there is nobody to ask."""
        request = json.dumps({"do": "fork", "folder": folder}).encode()
        try:
            socket.send_fds(self.socket, [request], [theirs.fileno()])
        except OSError:
            return False
        return True

    def has_ended(self, wait: bool = False) -> bool:
        """Whether nobody holds the other end of the socket any more."""
        end = select.poll()
        end.register(self.socket, 0)  # what is reported then is the hang-up alone
        return bool(end.poll(None if wait else 0))

    def listen(self, loop: asyncio.AbstractEventLoop, on_event: Callable[[dict, list[int]], None]) -> None:
        self.on_event = on_event
        self.loop = loop
        loop.add_reader(self.socket, self._receive)

    def _receive(self) -> None:
        try:
            packet, fds, _, _ = socket.recv_fds(self.socket, 1 << 16, 2, socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return
        except ConnectionResetError:
            packet, fds = b"", []
        except OSError:
            if self.socket.fileno() < 0:
                return  # closed on this side since
            raise
        if packet:
            self.on_event(json.loads(packet), list(fds))
        else:
            self.loop.remove_reader(self.socket)
            self.on_event({"event": "gone"}, [])

    def send(self, **request) -> None:
        try:
            self.socket.send(json.dumps(request).encode())
        except (BrokenPipeError, ConnectionResetError):
            pass  # "gone" is on its way

    def close(self) -> None:
        """Ends the agent and with it every rank; returns when they are gone."""
        with contextlib.suppress(OSError):  # it has gone already
            self.socket.shutdown(socket.SHUT_WR)
        self.has_ended(wait=True)
        self.socket.close()
        if self.process:
            self.process.wait()
