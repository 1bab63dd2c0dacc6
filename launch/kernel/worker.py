"""A rank's process in the notebook's kernel: its name on the wire, its pipes, its start and its end.

Its standard output and error are pipes. The first bytes are passed on at once. While more keeps coming, a pipe is read
every PAUSE seconds only, so ten thousand short lines are not ten thousand wake-ups; the pipe is large enough to hold
what comes meanwhile. `drain` reads what is there now. A rank sends "idle" after it has written its last byte, so
draining when that message arrives makes the cell's text complete.
"""

from __future__ import annotations

import asyncio
import codecs
import fcntl
import os
import struct
import termios
from collections.abc import Callable
from functools import partial
from typing import Any

from launch.kernel.host import Death
from launch.kernel.hub import Hub
from launch.shared.errors import LaunchError, RankError
from launch.shared.text import Text

COMING = 120  # seconds in which a new process connects, also if eighty others start beside it
PAUSE = 0.01  # seconds between two reads of a pipe while more keeps coming
CAPACITY = 1 << 20  # bytes; the most that Linux lets a user's pipe hold unless configured otherwise


class PipeReader:
    """Passes text to `sink` as it comes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, sink: Callable[[str], None]):
        self.loop, self.fd, self.sink = loop, fd, sink
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._resume: asyncio.TimerHandle | None = None
        os.set_blocking(fd, False)
        try:
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, CAPACITY)
        except PermissionError:
            pass  # the user's limit of pipe memory is used up; a small pipe works too, slower
        loop.add_reader(fd, self._on_readable)

    def _on_readable(self) -> None:
        if not self._read():
            return self.close()
        self.loop.remove_reader(self.fd)
        self._resume = self.loop.call_later(PAUSE, self._on_resume)

    def _on_resume(self) -> None:
        self._resume = None
        if self.fd >= 0:
            self.loop.add_reader(self.fd, self._on_readable)

    def _read(self, most: int = CAPACITY) -> bool:
        """One read; False at the end of the stream."""
        try:
            raw = os.read(self.fd, most)
        except BlockingIOError:
            return True
        if text := self._decoder.decode(raw, final=not raw):
            self.sink(text)
        return bool(raw)

    def drain(self) -> None:
        """Passes on all that has been written up to now, and not what is written meanwhile."""
        if self.fd >= 0:
            (waiting,) = struct.unpack("i", fcntl.ioctl(self.fd, termios.FIONREAD, b"\0" * 4))
            if waiting:
                self._read(waiting)

    def close(self) -> None:
        if self.fd >= 0:
            if self._resume:
                self._resume.cancel()
            self.loop.remove_reader(self.fd)
            os.close(self.fd)
            self.fd = -1


class Worker:
    """The process of `rank` from the start numbered `serial`. Made and used in the hub's thread."""

    def __init__(self, rank: int, serial: int, hub: Hub, link: Any, viewer=None):
        self.rank, self.hub, self.viewer = rank, hub, viewer
        self._tell("")
        self.link = link  # to its agent; see kernel/site.py
        self.name = f"{rank}.{serial}"  # never used twice, so no message of a dead rank is taken for a living one's
        self.pid = 0
        self.spawned = False
        self.last_words: list[str] = []  # what it wrote while it was starting
        self.late: dict[str, Text] = {}  # stream -> what it wrote between two cells
        self.readers: list[PipeReader] = []
        self.groups = 0  # made since calls were last renumbered
        self.plays = 0  # the number of the network that was sent to it last; 0: none
        self._dialled_in = False
        self.up: asyncio.Future[None] = hub.loop.create_future()
        self.ended: asyncio.Future[Death] = hub.loop.create_future()

    def started(self, pid: int, spawned: bool, fds: list[int], on_text: Callable[[Worker, str, str], None]) -> None:
        self.pid, self.spawned = pid, spawned
        self.readers = [  # none if the link sends the text of its ranks itself
            PipeReader(self.hub.loop, fd, partial(on_text, self, stream))
            for fd, stream in zip(fds, ("stdout", "stderr"), strict=False)
        ]
        self._tell("connects to the others")
        self._come_up()

    def _tell(self, note: str) -> None:
        """Shows the progress of its start in the viewer (a widgets.RankLog or None)."""
        if self.viewer:
            self.viewer.state(self.rank, "starting", note)

    def dialled_in(self) -> None:
        self._dialled_in = True
        self._come_up()

    def _come_up(self) -> None:
        """It is up once its process is known and has connected, in either order: a busy agent may report it late."""
        if self.pid and self._dialled_in and not self.up.done():
            self.up.set_result(None)

    def fail(self, why: str) -> None:
        if not self.up.done():
            self.up.set_exception(LaunchError(f"rank {self.rank} could not be started: {why}"))

    def has_ended(self, how: Death) -> None:
        if not self.ended.done():
            self.ended.set_result(how)
            self.drain()
            lines = "".join(self.last_words).strip().splitlines()
            fatal = [line for line in lines if line.startswith("Fatal Python error")]  # a long report follows
            self.fail((fatal + lines[-1:])[0] if lines else f"its process ended ({how})")

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
        either: set[asyncio.Future] = {reply, self.ended}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if reply.done():
                return reply.result()
        finally:
            reply.cancel()
        raise RankError(f"rank {self.rank}: its process has died", (self.rank,))
