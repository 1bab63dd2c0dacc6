"""Where ranks run: on this machine (`Here`), or on others (launch/machine/attached.py). The Supervisor knows a `Site`
only.

A site has links, one for each agent; a rank's link starts it, ends it and reports what becomes of it. Here there is one
(launch/kernel/agent_link.py).
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from launch.kernel import host
from launch.kernel.agent_link import AgentLink
from launch.kernel.hub import Hub
from launch.shared import start_file
from launch.shared.errors import LaunchError
from launch.shared.flight_recorder import Board

if TYPE_CHECKING:
    from collectives.timed import Clock

MANY = 32  # ranks; starting that many is announced
START = 0.3  # seconds of one core to start a rank


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
        return start_file.meeting_place()

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
        host.check_room(size, running)
        if size == running or size < MANY:
            return ""
        return f"{size} ranks take about {max(1, round(size * START / (os.cpu_count() or 1)))} seconds to start here"

    def cell_begins(self) -> None:
        self._deaths.begin()
