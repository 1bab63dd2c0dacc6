"""The processes behind the ranks: brought up by the agent, given cells, asked, restored when one dies or is stuck.

There is one agent (kernel/agent_link.py), or one on each machine that is attached (kernel/attach.py); here both are
links. Of ranks on other machines the flight recorder is what these have sent: `refresh` waits for the newest.

All of it runs in the hub's thread, except for reading plain attributes; launch/ranks.py is what others call. After a
cell in which a rank failed, was freed or died, `recover` gives all of them a new process group under the same objects;
a dead rank is forked anew under its number, the others keep their variables.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from collections.abc import Iterable
from functools import partial

from launch.backends import BACKENDS
from launch.doctor.snapshot import How
from launch.doctor.trouble import find_missing_group, find_swapped
from launch.kernel import machine
from launch.kernel._played import Played
from launch.kernel.agent_link import AgentLink
from launch.kernel.attach import Door, Machine, check_gpus, place
from launch.kernel.cell import Answer, Cell
from launch.kernel.hub import Hub, all_or_none
from launch.kernel.machine import Death, Deaths
from launch.kernel.worker import COMING, Worker
from launch.shared import flight_recorder
from launch.shared.errors import LaunchError, RankError, UsageError, name_ranks
from launch.shared.flight_recorder import Board, OpenCall, Status
from launch.shared.start_file import fresh_environ, meeting_place
from launch.shared.text import Text

# Of all ranks. Two belong to every group that was ever renewed, and torch gives none back: a cell that makes groups,
# fails and is run again leaves more each time. Linux has 32,768 for everybody unless told otherwise.
MOST_THREADS = 16_000
MEETING = 120  # seconds in which ranks that were freed have met again, those that died among them; one may never come


class Supervisor:
    """The agent and the ranks' processes. `workers` are indexed by rank; `notices` are sentences for the student.
    Without `mend` a cell that fails is not followed by `recover`, which costs as much as a start."""

    def __init__(self, hub: Hub, beside: AgentLink | None = None, mend: bool = True):
        self.hub, self.mend = hub, mend
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
        self._turn = asyncio.Lock()  # of whoever runs a cell and restores what it has broken
        self._replaced = False  # the ranks are about to be ended, and nothing there is restored
        self._closed = False
        self.door: Door | None = None  # where machines have come in; None: the ranks are on this one
        self._machines: list[Machine] = []
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
        self.hub.loop.call_soon_threadsafe(self.agent.listen, self.hub.loop, partial(self._on_agent, self.agent))

    def _on_agent(self, link: AgentLink | Machine, event: dict, fds: list[int]) -> None:
        kind = event["event"]
        if kind == "ready":
            self.gpus = event["gpus"]
            self._agent_ready.set_result(None)
        elif kind == "started":
            worker = self._coming.get(event["name"])
            if worker is None:
                for fd in fds:
                    os.close(fd)
                link.send(do="kill", pids=[event["pid"]])
            else:
                worker.started(event["pid"], event["spawned"], fds, self._on_text)
        elif kind == "refused" and (worker := self._coming.get(event["name"])):
            worker.fail(f"the system refused a new process: {event['why']}")
        elif kind == "exited":
            for worker in self._of(link):
                if worker.pid == event["pid"]:
                    worker.has_ended(Death(**event["death"]) if "death" in event else self._deaths.how(event["status"]))
        elif kind == "text":
            for worker in self._of(link):
                if worker.name == event["name"]:
                    self._on_text(worker, event["stream"], event["text"])
        elif kind == "gone" and isinstance(link, Machine):
            for worker in self._of(link):
                worker.has_ended(Death(event["how"]))
        elif kind in ("failed", "gone"):
            why = event.get("why") or "\n".join(filter(None, ["the agent has died", event["log"]]))
            if not self._agent_ready.done():
                self._agent_ready.set_exception(LaunchError(f"ranks cannot be started on this machine: {why}"))
                self._agent_ready.exception()
            how = self._deaths.how(-signal.SIGKILL)  # of the agent, which its ranks do not outlive
            for worker in self._of(link):
                worker.has_ended(how)

    def _of(self, link: AgentLink | Machine) -> set[Worker]:
        """The workers that the link has been asked for."""
        return {worker for worker in {*self.workers, *self._coming.values()} if worker.link is link}

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

    # Beginning and end

    async def start(self, size: int, backend: str | None, bare: bool, viewer) -> None:
        """New processes; those that run are ended, but not before it is known that the new ones have room."""
        await self._end_cell()
        await self._interruptible(self._start(size, backend, bare, viewer))

    async def _end_cell(self) -> None:
        """Ends the cell that still runs, since its call was interrupted before it could wait, and its ranks with it."""
        self._replaced = self._turn.locked()  # else two starts would wait for the same processes
        if self._replaced:
            self.act("kill", [worker for worker in self.workers if worker.pid and not worker.ended.done()])
            if self._work:
                self._work.cancel()
            async with self._turn:
                self._replaced = False

    async def close(self) -> None:
        """Ends a start that is under way; none begins after this."""
        self._closed = True
        if self._work:
            self._work.cancel()
            await asyncio.wait({self._work})
        if self.door:
            await self.door.close()

    async def attach(self, door: Door | None, machines: list[Machine]) -> None:
        """From now on ranks are on those machines; on this one again if there is no door."""
        await self.stop()
        if self.door:
            await self.door.close()
        self.door, self._machines = door, machines
        if door:
            door.on_board, door.epoch = self._on_board, lambda: flight_recorder.current_epoch(self.board.memory)
        for each in machines:
            each.on_event = partial(self._on_agent, each)

    def _on_board(self, offset: int, raw: bytes) -> None:
        if self._board:
            self._board.memory[offset : offset + len(raw)] = raw

    def machines(self) -> list[Machine]:
        """Those that are there, in the order of their numbers."""
        return [each for each in self._machines if not each.has_ended()]

    async def refresh(self) -> None:
        """Waits until what ranks on other machines have written up to now stands in the flight recorder here."""
        if self.door:
            await asyncio.gather(*(each.look() for each in self.machines()))
            self._set_clocks(self.workers)

    def _set_clocks(self, workers: list[Worker]) -> None:
        """The flight recorder is read by our clock, whatever the clocks of the machines are."""
        for worker in workers:
            if isinstance(worker.link, Machine) and worker.link.offset:
                self.board.ahead[worker.rank] = worker.link.offset.seconds

    def end_agent(self) -> None:
        """Ends the agent and with it every rank, whatever they do; from any thread."""
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
        if self._machines:
            if not (here := self.machines()):
                last = max(self._machines, key=lambda each: each.heard)
                raise LaunchError(f"{last} {last.why}, and no other is left: %ranks attach off, then attach others")
            backend = backend or "gloo"
            check_gpus(size, backend, here)
        else:
            if self.agent.has_ended():
                self._launch_agent()
            await asyncio.shield(self._agent_ready)  # the stop button ends the waiting, not the agent
            backend = machine.choose_backend(size, backend, self.gpus, self.size)
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
        if self.door:
            self.door.number, self.door.meeting = next(self._serial), self._meeting_place()
        self.came_back = {}
        await self._bring_up(list(range(size)), size, 1, viewer)

    def _meeting_place(self) -> dict[str, str]:
        """Where ranks meet that make a process group themselves: at rank 0."""
        there = self._link_for(0, 1)
        return meeting_place() | ({"MASTER_ADDR": there.address} if isinstance(there, Machine) else {})

    def _link_for(self, rank: int, size: int) -> AgentLink | Machine:
        """Ranks in a row are on one machine; one whose machine is lost comes back on another."""
        machines = self.machines()
        if rank < len(self.workers) and not self.workers[rank].link.has_ended():
            return self.workers[rank].link
        return machines[place(rank, size, len(machines))] if machines else self.agent

    async def _bring_up(self, ranks: list[int], size: int, group_count: int, viewer=None) -> None:
        """Has the agent start these ranks and waits until they are up and workers; all, or LaunchError and none."""
        serial = next(self._serial)
        wanted = [Worker(rank, serial, self.hub, self._link_for(rank, size), viewer) for rank in ranks]
        session = {"world_size": size, "backend": self.backend, "bare": self.bare, "generation": self._generation}
        session |= {"group_count": group_count, "board": self.board.path, "environ": self._environ}
        session |= {"network": self.played.known_to(wanted)}
        self._coming = {worker.name: worker for worker in wanted}
        self._set_clocks(wanted)
        links, spawn = dict.fromkeys(worker.link for worker in wanted), not BACKENDS[self.backend].forks
        for link in links:
            link.start([m.rank for m in wanted if m.link is link], spawn, serial, self.hub.key, session)
        try:
            async with asyncio.timeout(COMING):  # wait_for would leave a cancelled gather to complain of that later
                await asyncio.gather(*(worker.up for worker in wanted))
        except BaseException as error:
            await self._kill(wanted)
            if isinstance(error, TimeoutError):
                raise LaunchError(f"the ranks did not come up within {COMING} seconds: run the cell again") from None
            raise
        else:  # now, and not when others have met them, since meanwhile they may die
            self.workers = sorted([*(m for m in self.workers if m.rank not in ranks), *wanted], key=lambda m: m.rank)
        finally:
            self._coming = {}
            for link in links:
                link.withdraw(serial)

    async def _kill(self, workers: list[Worker]) -> None:
        while alive := [worker for worker in workers if worker.pid and not worker.ended.done()]:
            self.act("kill", alive)
            await asyncio.gather(*(worker.ended for worker in alive))  # more may have started meanwhile
        for worker in workers:
            worker.close()

    async def stop(self) -> None:
        await self._end_cell()
        await self._stop()

    async def _stop(self) -> None:
        await self._kill(self.workers)
        self.played.clear()
        self.workers = []
        self._generation += 1
        if self._board:
            self._board.close()
            os.unlink(self._board.path)
            self._board = None

    # A cell, and what it asks for

    async def execute(self, code: str, only: list[int] | None, count: int, viewer) -> list[Answer]:
        """Runs a cell on all ranks, or on those in `only`, and restores what it has broken; see `Ranks.execute`."""
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
            self._deaths.begin()
            self.cell = cell = Cell(self, workers, code, count, viewer)
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
            await self.played.count()
            self.notices += find_swapped(self.board, code)
            self.notices += find_missing_group(answers, [m.groups for m in self.workers])
            if cell.freed or cell.stops or any(answer.how is not How.LEFT or answer.trouble for answer in answers):
                if self.mend:
                    await self.recover()
            else:
                await self.renumber()
            for answer in answers:
                answer.ended = cell.workers[answer.rank].ended.done()
            return answers

    async def ask(self, ranks: Iterable[int], content: dict, seconds: float) -> dict[int, dict]:
        """What those ranks answer to a request on the control channel that do so in time."""
        living = [self.workers[rank] for rank in ranks if not self.workers[rank].ended.done()]
        tasks = {asyncio.ensure_future(worker.request("control", content)): worker.rank for worker in living}
        if not tasks:
            return {}
        try:
            done, _ = await asyncio.wait(tasks, timeout=seconds)
        finally:  # also if the cell is over meanwhile, and nobody wants to know any more
            for task in tasks:
                task.cancel()
        replies = {tasks[task]: task.result()["content"] for task in done if task.exception() is None}
        return {rank: reply["value"] for rank, reply in replies.items() if reply["status"] == "ok"}

    def suspended(self, ranks: Iterable[int]) -> set[int]:
        """Those of the ranks whose process SIGSTOP or the like keeps from running."""
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
        """Has the agent "kill" or "wake" processes."""
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
        """The workers whose process has ended; of one that ended a moment ago the agent's word is waited for."""
        await asyncio.gather(*(worker.ended for worker in self.workers if worker.link.has_ended_process(worker.pid)))
        return [worker for worker in self.workers if worker.ended.done()]

    async def recover(self) -> None:
        """Replaces dead ranks and renews the process groups of all; starts over where that is impossible."""
        try:
            await self._interruptible(self._renew_in_time())
            self.played.clear()
        except (LaunchError, RankError) as error:
            if not self._replaced:
                await self._interruptible(self._start(self.size, self.backend, self.bare, None))
                self.notices.append(f"all ranks were started anew, their variables are new ({error})")

    async def _renew_in_time(self) -> None:
        try:
            async with asyncio.timeout(MEETING):
                await self._renew()
        except TimeoutError:
            raise LaunchError(f"they had not met again in a new process group after {MEETING} seconds") from None

    async def renumber(self) -> None:
        """Counts of messages begin anew after a receive from any source, whose sender had no number before it came."""
        ranks = range(self.size)
        unnamed = any(tally.peer < 0 for rank in ranks for tally in flight_recorder.message_tallies(self.board, rank))
        if unnamed and not any(flight_recorder.open_calls(self.board, rank) for rank in ranks):
            self._begin_epoch()
            await self.request_all("shell", "renumber", {})

    def _begin_epoch(self) -> None:
        for worker in self.workers:
            worker.groups = 0
        flight_recorder.begin_epoch(self.board.memory)
        if self.door:
            self.door.write(0, self.board.memory[0:8])

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
        self._begin_epoch()
        # Whoever makes a group by himself after this must not meet what is left of the last one in its store.
        self._environ |= (environ := self._meeting_place() if self.bare else {})
        if self.door and environ:
            self.door.meeting = environ
        what, more = "regroup", {"generation": self._generation, "names": names, "group_count": count}
        if (self.bare and dead) or len(worlds) > 1:
            what, more = "leave", {}
            left = [m.rank for m, value in zip(living, known, strict=True) if not value["world"]]
            if worlds != {""}:
                how = f"{name_ranks(left)} had destroyed" if left else "a member has died of"
                again = "make it again with dist.init_process_group('gloo')"
                self.notices.append(f"{how} the process group, so that it is gone on every rank: {again}")
        for worker in dead:
            worker.close()
            self.board.clear(worker.rank)
        # One by one: the first that refuses ends it, since the others wait for it to meet them.
        meeting = [self.request_all("shell", what, more | {"environ": environ}, workers=[m]) for m in living]
        coming = [self._bring_up([worker.rank for worker in dead], self.size, count)] if dead else []
        await all_or_none([*meeting, *coming])
        self.came_back |= {worker.rank: f"died ({worker.ended.result()})" for worker in dead}

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
    """Names of the groups that can be renewed: that all their members know and in which all of them live.

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
