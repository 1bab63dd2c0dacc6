"""The kernel's end of an agent on this machine: starts the process, asks it for ranks, hears what becomes of them.

The agent is started at once, in the background, and is at work on its imports long before anybody asks; a request sent
meanwhile waits in the socket. launch/machine/listener.py has a link to an agent elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import socket
import subprocess
import threading
from collections.abc import Callable

from launch.kernel import host
from launch.shared.processes import agent_command
from launch.shared.start_file import NO_WIDGETS, start_file, write_start_file

LAST_LINES, LONGEST = 5, 1 << 14  # lines, and bytes, of the log of an agent that has died


class AgentLink:
    """One agent process: forked by another agent of this kernel, `fork_from`, in milliseconds, or started anew.
    `on_event(event, fds)` is called for everything it tells."""

    def __init__(self, folder: str, fork_from: AgentLink | None = None):
        self.folder = folder
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process: subprocess.Popen | None = None
        self.ahead = threading.Event()  # it has imported all that its ranks may need
        self._log = open(f"{folder}/agent.log", "w+b")  # read here, too, when the agent has taken its folder away
        if fork_from is None or not fork_from.fork(theirs, folder):
            environ = os.environ | {"OMP_NUM_THREADS": "1", NO_WIDGETS: "1"}
            environ.pop("JPY_PARENT_PID", None)  # would make every rank watch for another parent than it has
            environ.pop("PYTEST_CURRENT_TEST", None)
            self.process = subprocess.Popen(
                agent_command(theirs.fileno(), os.getpid(), folder),
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
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

    def __str__(self) -> str:
        return ""  # this machine has no name to tell it from others

    def start(self, ranks: list[int], spawn: bool, serial: int, key: bytes, session: dict) -> None:
        """Asks for ranks; `withdraw` once they are up, or not wanted any more."""
        config = write_start_file(self.folder, key, serial, **session)
        self.send(do="start", config=config, ranks=ranks, spawn=spawn)

    def withdraw(self, serial: int) -> None:
        """The file that the ranks of this start have read goes, and the key with it."""
        os.unlink(start_file(self.folder, serial))

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
        """The last lines of the agent's log."""
        size = os.fstat(log := self._log.fileno()).st_size
        text = os.pread(log, LONGEST, max(0, size - LONGEST)).decode(errors="replace")
        return "\n".join(text.strip().splitlines()[-LAST_LINES:])

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
        self._log.close()
        if self.process:
            self.process.wait()
