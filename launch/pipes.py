"""Reads what a rank writes to its standard output or error.

The first bytes are passed on at once. While more keeps coming the pipe is looked at only every PAUSE seconds, so that a
rank that prints ten thousand short lines is not ten thousand wake-ups; the pipe is made large enough to hold what comes
meanwhile. `drain` takes what is there right now: the rank's "idle" message is sent after its last byte was written, so
that draining when it arrives makes the cell's text complete, without waiting and without guessing.
"""

from __future__ import annotations

import asyncio
import codecs
import fcntl
import os
import struct
import termios
from collections.abc import Callable

PAUSE = 0.01  # seconds
CAPACITY = 1 << 20  # bytes; the most that Linux lets a user's pipe hold unless configured otherwise


class PipeReader:
    """Passes text to `sink` as it comes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, fd: int, sink: Callable[[str], None]):
        self.loop, self.fd, self.sink = loop, fd, sink
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._resume = None
        os.set_blocking(fd, False)
        try:
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, CAPACITY)
        except PermissionError:
            pass  # this user's share of pipe memory is used up; a small pipe does as well, slower
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
        """Passes on all that has been written up to now (a writer that goes on writing does not keep us)."""
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
