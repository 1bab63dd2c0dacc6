"""One rank's process as the notebook's kernel knows it: its name on the wire, its pipes, its beginning and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from launch.errors import LaunchError, RankError
from launch.pipes import PipeReader
from launch.text import Text

COMING = 120  # seconds in which a new process dials in, also on a machine that is busy with eighty others


class Member:
    """A process under the number `rank`, from the start numbered `serial`. Used in the hub's thread."""

    def __init__(self, rank: int, serial: int):
        self.rank = rank
        self.name = f"{rank}.{serial}"  # never used twice, so that nothing from a dead rank is taken for a living one's
        self.pid = 0
        self.spawned = False
        self.last_words: list[str] = []  # what it wrote while it was starting
        self.late: dict[str, Text] = {}  # stream -> what it wrote between two cells
        self.readers: list[PipeReader] = []
        self.hub = None

    def expect(self) -> None:
        self.up: asyncio.Future[None] = self.hub.loop.create_future()
        self.ended: asyncio.Future[str] = self.hub.loop.create_future()  # how it ended

    def started(self, pid: int, spawned: bool, fds: list[int], on_text: Callable[[Member, str, str], None]) -> None:
        self.pid, self.spawned = pid, spawned
        self.readers = [
            PipeReader(self.hub.loop, fd, lambda text, stream=stream: on_text(self, stream, text))
            for fd, stream in zip(fds, ("stdout", "stderr"), strict=True)
        ]

    def is_up(self) -> None:
        if not self.up.done():
            self.up.set_result(None)

    def fail(self, why: str) -> None:
        if not self.up.done():
            self.up.set_exception(LaunchError(f"rank {self.rank} could not be started: {why}"))

    def has_ended(self, how: str) -> None:
        if not self.ended.done():
            self.ended.set_result(how)
            self.drain()
            lines = "".join(self.last_words).strip().splitlines()
            self.fail(lines[-1] if lines else f"its process ended ({how})")

    def drain(self) -> None:
        for reader in self.readers:
            reader.drain()

    def close(self) -> None:
        for reader in self.readers:
            reader.close()

    async def request(self, channel: str, content: dict, buffers=()) -> dict:
        """The rank's reply to a rank_request; RankError if it dies instead."""
        reply = asyncio.ensure_future(
            self.hub.request(self.name, channel, self.hub.message("rank_request", content), buffers)
        )
        await asyncio.wait({reply, self.ended}, return_when=asyncio.FIRST_COMPLETED)
        if reply.done():
            return reply.result()
        reply.cancel()
        raise RankError(f"rank {self.rank}: its process has died", (self.rank,))
