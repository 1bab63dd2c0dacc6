"""The kernel's end of the agent: starts the process, asks it for ranks, hears what becomes of them.

Used from the hub's asyncio thread only, apart from the constructor. The agent is started at once, in the background,
and is at work on its imports long before anybody asks; a request sent meanwhile waits in the socket.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable


class AgentLink:
    """One agent process. `on_event(event, fds)` is called for everything it tells."""

    def __init__(self, folder: str):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environ = os.environ | {"OMP_NUM_THREADS": "1"}
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
        self.on_event: Callable[[dict, list[int]], None] | None = None

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
        self.socket.close()
        self.process.wait()
