"""The network that the ranks play: which ranks have been told of it.

A rank is told once, before its next cell; one that replaces a dead rank is started with it. The links that ranks share
are in a file (launch/shared/wires.py), a new one for each network.

Left out: what networks there are (launch/networks.py), and playing them (launch/rank/network.py).
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

from launch.shared import wires


class Played:
    """Belongs to a Supervisor and is used in the hub's thread."""

    def __init__(self, supervisor: Any):
        self.supervisor = supervisor
        self._number = 0  # of the network that is played; 0: none
        self._last = 0
        self._table: dict | None = None

    def choose(self, table: dict | None) -> None:
        """The network that ranks are to be told of, as `launch.networks.table` makes it; None for no network."""
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
