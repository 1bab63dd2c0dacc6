"""Where ranks run: on this machine (`Here`), or on others (launch/machine/attached.py). The Supervisor knows a `Site`
only.

A site has links, one for each agent; a rank's link starts it, ends it and reports what becomes of it. Here there is
one, an `AgentLink`. Its agent is started at once, in the background, and is at work on its imports long before the
first request; requests wait in the socket meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from launch.kernel import host
from launch.kernel.hub import Hub
from launch.shared import processes
from launch.shared.errors import LaunchError
from launch.shared.flight_recorder import Board

if TYPE_CHECKING:
    from collectives.timed import Clock

MANY = 32  # ranks; starting that many is announced
START = 0.3  # seconds of one core to start a rank
LAST_LINES, LONGEST = 5, 1 << 14  # lines, and bytes, of the log of an agent that has died


class Site:
    """What the Supervisor asks of a site, answered as for one machine. Used in the hub's thread.

    on_event(link, event, fds) is called for what happens to ranks. event["event"] is one of "started" (name, pid,
    spawned), "refused" (name, why), "exited" (pid, death), "text" (name, stream, text), and "gone" (death) if the link
    is lost with all its ranks.
    late: whether two ranks may make calls that do not fit before the guard has seen both.
    """

    late = False
    on_event: Callable[[Any, dict, list[int]], None]

    async def prepare(self, size: int, backend: str | None, running: int) -> str:
        """Waits until `size` ranks can be started in place of the `running` ones; the backend for them.

        UsageError if there is no room for them, LaunchError if there is no agent.
        """
        raise NotImplementedError

    def link_for(self, rank: int, size: int, before: Any = None) -> Any:
        """The link that starts the rank; `before` is the one of the process that it replaces."""
        raise NotImplementedError

    def check_room(self, size: int, running: int) -> str:
        """What to tell the student before ranks are started; "" if nothing. UsageError if they do not fit."""
        return ""

    def check_network(self) -> None:
        """UsageError if no network can be played here."""

    def open(self, board: Board, number: int) -> None:
        """From now on `board`, the flight recorder of this number, is in use."""

    def publish(self, offset: int, raw: bytes) -> None:
        """Copies what was written into the flight recorder to all places where it is read."""

    async def refresh(self) -> None:
        """Waits until the flight recorder shows what all ranks have written up to now."""

    def meeting_place(self) -> dict[str, str]:
        """MASTER_ADDR and MASTER_PORT for ranks that make a process group themselves."""
        return processes.meeting_place()

    def cell_begins(self) -> None:
        """Called before each cell."""

    async def read_clocks(self) -> dict:
        """The clocks of other machines now, for `clocks_of_ranks`."""
        return {}

    def clocks_of_ranks(self, before: dict, after: dict) -> tuple[Clock, ...]:
        """The clocks by which ranks stamped a recording, read before it and after it; () if it is the notebook's."""
        return ()

    async def close(self) -> None:
        """The Supervisor moves to another site."""


class AgentLink:
    """One agent process: forked by the agent `fork_from` in milliseconds, or a new process.

    on_event(event, fds) is called for everything that it reports.
    """

    def __init__(self, folder: str, fork_from: AgentLink | None = None):
        self.folder = folder
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process: subprocess.Popen | None = None
        self.ahead = threading.Event()  # it has imported all that its ranks may need
        self._log = open(f"{folder}/agent.log", "w+b")  # can be read after the agent has removed its folder
        if fork_from is None or not fork_from.fork(theirs, folder):
            environ = os.environ | {"OMP_NUM_THREADS": "1", processes.NO_WIDGETS: "1"}
            environ.pop("JPY_PARENT_PID", None)  # ranks would watch the wrong parent
            environ.pop("PYTEST_CURRENT_TEST", None)
            self.process = subprocess.Popen(
                processes.agent_command(theirs.fileno(), os.getpid(), folder),
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                pass_fds=[theirs.fileno()],
                env=environ,
                start_new_session=True,  # the notebook's stop button must not interrupt the agent
            )
        theirs.close()
        self.socket.setblocking(False)

    def fork(self, theirs: socket.socket, folder: str) -> bool:
        """Asks this agent to fork another one at the other end of a socket. False if it has ended."""
        request = json.dumps({"do": "fork", "folder": folder}).encode()
        try:
            socket.send_fds(self.socket, [request], [theirs.fileno()])
        except OSError:
            return False
        return True

    def has_ended(self, wait: bool = False) -> bool:
        """Whether the agent's end of the socket is closed."""
        end = select.poll()
        end.register(self.socket, 0)  # reports a hang-up only
        return bool(end.poll(None if wait else 0))

    def __str__(self) -> str:
        return ""  # this machine needs no name in %ranks

    def start(self, ranks: list[int], spawn: bool, serial: int, key: bytes, session: dict) -> None:
        """Asks for ranks. Call `withdraw` once they are up, or have been given up."""
        config = processes.write_start_file(self.folder, key, serial, **session)
        self.send(do="start", config=config, ranks=ranks, spawn=spawn)

    def withdraw(self, serial: int) -> None:
        """Removes the file that the ranks of this start have read, and the key in it."""
        os.unlink(processes.start_file(self.folder, serial))

    def has_ended_process(self, pid: int) -> bool:
        return host.has_ended(pid)

    def has_suspended(self, pid: int) -> bool:
        return host.is_suspended(pid)

    async def memory(self, pids: list[int]) -> dict[int, int]:
        return {pid: host.proportional_memory(pid) for pid in pids}

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
            event = json.loads(packet)
            if event["event"] == "ahead":
                self.ahead.set()
            else:
                self.on_event(event, list(fds))
        else:
            self.loop.remove_reader(self.socket)
            self.on_event({"event": "gone", "log": self.last_words()}, [])

    def last_words(self) -> str:
        """The last lines of the agent's log; "" if this side has closed it meanwhile."""
        try:
            size = os.fstat(log := self._log.fileno()).st_size
            text = os.pread(log, LONGEST, max(0, size - LONGEST)).decode(errors="replace")
        except (OSError, ValueError):
            return ""
        return "\n".join(text.strip().splitlines()[-LAST_LINES:])

    def send(self, **request) -> None:
        try:
            self.socket.send(json.dumps(request).encode())
        except (BrokenPipeError, ConnectionResetError):
            pass  # "gone" is on its way

    def close(self) -> None:
        """Ends the agent and all its ranks; returns when they are gone."""
        with contextlib.suppress(OSError):  # it has gone already
            self.socket.shutdown(socket.SHUT_WR)
        self.has_ended(wait=True)
        self.socket.close()
        self._log.close()
        if self.process:
            self.process.wait()


class Here(Site):
    """This machine. Its agent starts at once, in the background."""

    def __init__(self, hub: Hub, on_event, fork_from: AgentLink | None = None):
        self.hub, self.on_event = hub, on_event
        self.gpus = 0
        self._deaths = host.Deaths()
        self._launch(fork_from)

    def _launch(self, fork_from: AgentLink | None = None) -> None:
        self.agent = AgentLink(self.hub.folder, fork_from)
        self._ready = self.hub.loop.create_future()
        hears = partial(self._hears, self.agent, self._ready)
        self.hub.loop.call_soon_threadsafe(self.agent.listen, self.hub.loop, hears)

    def _hears(self, agent: AgentLink, ready: asyncio.Future, event: dict, fds: list[int]) -> None:
        kind = event["event"]
        if kind == "ready":
            self.gpus = event["gpus"]
            ready.set_result(None)
        elif kind == "exited":
            self.on_event(agent, event | {"death": self._deaths.how(event["status"])}, fds)
        elif kind in ("failed", "gone"):
            if not ready.done():
                why = event.get("why") or "\n".join(filter(None, ["the agent has died", event["log"]]))
                ready.set_exception(LaunchError(f"ranks cannot be started on this machine: {why}"))
                ready.exception()
            # The ranks die with their agent.
            self.on_event(agent, {"event": "gone", "death": self._deaths.how(-signal.SIGKILL)}, [])
        else:
            self.on_event(agent, event, fds)

    async def prepare(self, size: int, backend: str | None, running: int) -> str:
        if self.agent.has_ended():
            self._launch()
        await asyncio.shield(self._ready)  # the stop button ends the waiting, not the agent
        return host.choose_backend(size, backend, self.gpus, running)

    def link_for(self, rank: int, size: int, before: Any = None) -> AgentLink:
        return self.agent

    def check_room(self, size: int, running: int) -> str:
        if size == running:
            return ""
        host.check_room(size, running)
        if size < MANY:
            return ""
        return f"{size} ranks take about {max(1, round(size * START / (os.cpu_count() or 1)))} seconds to start here"

    def cell_begins(self) -> None:
        self._deaths.begin()
