"""The processes behind the ranks: brought up by the agent, watched, asked, restored when one dies or is stuck.

All of it runs in the hub's thread, except for reading plain attributes; launch/ranks.py is what others call. After a
cell in which a rank failed, was freed or died, `recover` gives all of them a new process group under the same objects;
a dead rank is forked anew under its number, the others keep their variables.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal

from launch import ledger, machine
from launch.agent_link import AgentLink
from launch.blackbox import Board
from launch.cell import Cell
from launch.deaths import Deaths
from launch.errors import LaunchError, RankError, name_ranks
from launch.groups import groups_in_common
from launch.hub import Hub, all_or_none
from launch.member import COMING, Member
from launch.start_file import fresh_environ, meeting_place, write_start_file
from launch.text import Text


class Crew:
    """The agent and the ranks' processes. `members` are indexed by rank; `notices` are sentences for the student."""

    def __init__(self, hub: Hub):
        self.hub = hub
        hub.on_iopub = self._on_iopub
        self.members: list[Member] = []
        self.backend, self.bare, self.gpus = "gloo", False, 0
        self.notices: list[str] = []
        self.board: Board | None = None
        self.deaths = Deaths()
        self.cell: Cell | None = None  # the one under way
        self._generation = 0
        self._coming: dict[str, Member] = {}  # by name: those that the agent has been asked for
        self._serial = itertools.count(1)
        self._work: asyncio.Task | None = None  # starting or restoring
        self._closed = False
        self._launch_agent()

    @property
    def size(self) -> int:
        return len(self.members)

    def interrupt(self) -> bool:
        """The stop button, whatever is going on. False if nothing is."""
        if self.cell:
            self.cell.interrupt()
        elif self._work:
            self._work.cancel()
        return bool(self.cell or self._work)

    # What the agent and the ranks say

    def _launch_agent(self) -> None:
        self.agent = AgentLink(self.hub.folder)
        self._agent_ready = self.hub.loop.create_future()
        self.hub.loop.call_soon_threadsafe(self.agent.listen, self.hub.loop, self._on_agent)

    def _on_agent(self, event: dict, fds: list[int]) -> None:
        kind = event["event"]
        if kind == "ready":
            self.gpus = event["gpus"]
            self._agent_ready.set_result(None)
        elif kind == "started":
            member = self._coming.get(event["name"])
            if member is None:
                for fd in fds:
                    os.close(fd)
                self.agent.send(do="kill", pids=[event["pid"]])
            else:
                member.started(event["pid"], event["spawned"], fds, self._on_text)
        elif kind == "refused" and (member := self._coming.get(event["name"])):
            member.fail(f"the system refused a new process: {event['why']}")
        elif kind == "exited":
            for member in {*self.members, *self._coming.values()}:
                if member.pid == event["pid"]:
                    member.has_ended(self.deaths.how(event["status"]))
        elif kind in ("failed", "gone"):
            why = event.get("why", "the agent has died; its log was lost with it")
            if not self._agent_ready.done():
                self._agent_ready.set_exception(LaunchError(f"ranks cannot be started on this machine: {why}"))
                self._agent_ready.exception()
            how = self.deaths.how(-signal.SIGKILL)  # of the agent, which its ranks do not outlive
            for member in {*self.members, *self._coming.values()}:
                member.has_ended(how)

    def _on_iopub(self, name: str, message: dict) -> None:
        rank = int(name.partition(".")[0])
        if name in self._coming:
            if message["header"]["msg_type"] == "iopub_welcome":
                self._coming[name].is_up()
        elif self.cell and rank in self.cell.members and self.cell.members[rank].name == name:
            self.cell.on_iopub(rank, message)

    def _on_text(self, member: Member, stream: str, text: str) -> None:
        if member.name in self._coming:
            member.last_words.append(text)
        elif self.cell and member.rank in self.cell.running:
            self.cell.on_text(member.rank, stream, text)
        else:
            member.late.setdefault(stream, Text()).append(text)

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
        if self.agent.process.poll() is not None:
            self._launch_agent()
        await asyncio.shield(self._agent_ready)  # the stop button ends the waiting, not the agent
        backend = machine.choose_backend(size, backend, self.gpus, self.size)
        await self.stop()
        self.backend, self.bare = backend, bare
        self.board = Board(f"{self.hub.folder}/board-{next(self._serial)}", size)
        self._environ = fresh_environ()
        self.members = await self._bring_up(list(range(size)), size, 1, viewer)

    async def _bring_up(self, ranks: list[int], size: int, group_count: int, viewer=None) -> list[Member]:
        """Has the agent start these ranks and waits until they are up; all of them, or LaunchError and none."""
        serial = next(self._serial)
        wanted = [Member(rank, serial) for rank in ranks]
        for member in wanted:
            member.hub = self.hub
            member.expect()
            if viewer:
                viewer.state(member.rank, "starting", "")
        session = {"world_size": size, "backend": self.backend, "bare": self.bare, "generation": self._generation}
        session |= {"group_count": group_count, "board": self.board.path, "environ": self._environ}
        config = write_start_file(self.hub.folder, self.hub.key, serial, **session)
        self._coming = {member.name: member for member in wanted}
        self.agent.send(do="start", config=config, ranks=ranks, spawn=self.backend == "nccl")
        try:
            await asyncio.wait_for(asyncio.gather(*(member.up for member in wanted)), COMING)
        except BaseException:
            await self._kill(wanted)
            raise
        finally:
            self._coming = {}
            os.unlink(config)
        return wanted

    async def _kill(self, members: list[Member]) -> None:
        alive = [member for member in members if member.pid and not member.ended.done()]
        self.agent.send(do="kill", pids=[member.pid for member in alive])
        await asyncio.gather(*(member.ended for member in alive))
        for member in members:
            member.close()

    async def stop(self) -> None:
        await self._kill(self.members)
        self.members = []
        self._generation += 1
        if self.board:
            self.board.close()
            os.unlink(self.board.path)
            self.board = None

    # Between cells

    async def dead(self) -> list[Member]:
        """The members whose process has ended; of one that ended a moment ago the agent's word is waited for."""
        await asyncio.gather(*(member.ended for member in self.members if machine.has_ended(member.pid)))
        return [member for member in self.members if member.ended.done()]

    async def recover(self) -> None:
        """Replaces dead ranks and renews the process groups of all; starts over where that is impossible."""
        try:
            await self._interruptible(self._renew())
        except (LaunchError, RankError) as error:
            self.notices.append(f"all ranks were started anew, their variables are new ({error})")
            await self.start(self.size, self.backend, self.bare, None)

    async def renumber(self) -> None:
        """Counts of messages begin anew after a receive from any source, whose sender had no number before it came."""
        ranks = range(self.size)
        if any(tally.peer < 0 for rank in ranks for tally in ledger.message_tallies(self.board, rank)) and not any(
            ledger.open_calls(self.board, rank) for rank in ranks
        ):
            ledger.begin_epoch(self.board.memory)
            await self.request_all("shell", "renumber", {})

    async def _renew(self) -> None:
        dead = await self.dead()
        living = [member for member in self.members if member not in dead]
        self._generation += 1
        if not living:
            raise LaunchError("no rank has survived")
        known = [value for value, _ in await self.request_all("control", "groups", {}, members=living)]
        count = max(value["count"] for value in known)
        groups = {m.rank: value["groups"] for m, value in zip(living, known, strict=True)}
        names = groups_in_common(groups, {member.rank for member in dead}, {value["world"] for value in known})
        ledger.begin_epoch(self.board.memory)
        # Whoever makes a group by himself after this must not meet what is left of the last one in its store.
        self._environ |= (environ := meeting_place() if self.bare else {})
        if self.bare and dead:
            work = [self.request_all("shell", "leave", {"environ": environ}, members=living)]
            if any(groups.values()):
                self.notices.append("the process group has lost a member: make it again with dist.init_process_group()")
        else:
            content = {"generation": self._generation, "names": names, "group_count": count, "environ": environ}
            work = [self.request_all("shell", "regroup", content, members=living)]
        for member in dead:
            member.close()
            self.board.clear(member.rank)
        if dead:
            work.append(self._bring_up([member.rank for member in dead], self.size, count))
        results = await all_or_none(work)
        for member in results[-1] if dead else ():
            self.members[member.rank] = member

    async def request_all(self, channel: str, what: str, content: dict, buffers=(), members=None) -> list:
        """(value, buffers) of each rank; RankError with every rank that refused or died."""
        members = self.members if members is None else members
        replies = await asyncio.gather(*(m.request(channel, {"do": what, **content}, buffers) for m in members))
        wrong = {m.rank: r["content"] for m, r in zip(members, replies, strict=True) if r["content"]["status"] != "ok"}
        if wrong:
            by_message: dict[str, list[int]] = {}
            for rank, reply in wrong.items():
                by_message.setdefault(reply["message"], []).append(rank)
            raise RankError("; ".join(f"{name_ranks(who)}: {why}" for why, who in by_message.items()), tuple(wrong))
        return [(reply["content"]["value"], reply["buffers"]) for reply in replies]
