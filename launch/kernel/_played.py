"""The network that the ranks play: who knows of it already, and what their connections have carried.

Every rank is told once, before the next cell; one that takes the place of a dead one knows it from its beginning. The
links that ranks share lie in a file (launch/shared/wires.py), a new one for each network.

Left out: what networks there are (launch/networks.py), and playing them (launch/rank/network.py).
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

from launch.shared import wires
from launch.shared.errors import RankError


class Played:
    """Belongs to a Supervisor and is used in the hub's thread.

    unpaced  whether the ranks' connections cannot be paced
    carried  rank -> [(other rank, bytes, seconds they should have taken, seconds they took)] of the last cell; None if
             there was no network
    """

    def __init__(self, supervisor: Any):
        self.supervisor = supervisor
        self.unpaced = False
        self.carried: dict[int, list] | None = None
        self._number = 0  # of the network that is played; 0: none
        self._last = 0
        self._table: dict | None = None

    def choose(self, table: dict | None) -> None:
        """What ranks are to be told: the network of `table` (launch/networks.py), or that there is none."""
        self.forget()
        if table is not None:
            self._number = self._last = self._last + 1
            self._table = {**table, "path": f"{self.supervisor.hub.folder}/wires-{self._number}"}

    def clear(self) -> None:
        """The links are free: what was under way on them was cut off with its cell, or with the ranks."""
        if self._table is not None:
            wires.clear(self._table["path"])

    def forget(self) -> None:
        """No network, and no file of one."""
        if self._table is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._table["path"])
        self._table, self._number, self.unpaced = None, 0, False

    def known_to(self, new: list) -> dict | None:
        """What new ranks know of from their beginning, so that they are slow at once; None if it is not for so many."""
        if self._table is None or len(self._table["ways"]) != self.supervisor.size:
            return None
        for worker in new:
            worker.plays = self._number
        return self._table

    async def tell(self) -> None:
        """Tells the ranks that do not know it yet."""
        self.carried = None
        behind = [worker for worker in self.supervisor.workers if worker.plays != self._number]
        if behind:
            told = await self.supervisor.request_all("shell", "network", {"table": self._table}, workers=behind)
            for worker in behind:
                worker.plays = self._number
            self.unpaced |= not all(value for value, _ in told)

    async def count(self) -> None:
        """What the cell has sent, asked before connections are renewed. Who has died has taken its counts along."""
        if self._number:
            living = [worker for worker in self.supervisor.workers if not worker.ended.done()]
            with contextlib.suppress(RankError):
                told = await self.supervisor.request_all("shell", "carried", {}, workers=living)
                self.carried = {worker.rank: value for worker, (value, _) in zip(living, told, strict=True)}
