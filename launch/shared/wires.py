"""The links of a network that ranks play together: when each of them is free again, in memory that all ranks share.

A message is put on the links it goes over when it is sent. A link carries one thing after the other: alpha seconds for
each message that one rank issues there, beta for each byte. From that follows when the message has left its sender,
and when it may arrive; the sender writes the second beside the message's number, where the receiver finds it. It is
the model of `collectives.network`, with the moments in which messages are really sent instead of steps.

The file also says which rank owns which TCP port, by which a rank knows who is at the other end of a connection.

Left out: pacing (rank/pace.py), and waiting until a moment has come (rank/network.py).
"""

from __future__ import annotations

import fcntl
import mmap
import os
import threading
from contextlib import contextmanager

PORTS = 1 << 16
REMEMBERED = 64  # messages of each pair of ranks


class Links:
    """Busy periods of links, each with room for `ranks` ranks at its ends. Seconds on any one clock."""

    def __init__(self, links: int, ranks: int, memory: memoryview[float] | None = None):
        self.ranks = ranks
        sizes = (links, links, links, links * ranks, links * ranks)
        room: memoryview[float] = memoryview(bytearray(8 * sum(sizes))).cast("d") if memory is None else memory
        parts, at = [], 0
        for size in sizes:
            parts.append(room[at : at + size])
            at += size
        # When its busy period began; the seconds of data in it; the latency of the rank that issues most; and the
        # latency of each rank with the beginning of the period in which it was added up.
        self.begun, self.data, self.latency, self.issued, self.period = parts

    @staticmethod
    def room(links: int, ranks: int) -> int:
        """Bytes."""
        return 8 * (3 * links + 2 * links * ranks)

    def occupy(self, link: int, end: int, start: float, alpha: float, seconds: float) -> float:
        """Rank `end` puts something on the link at `start`. Returns when the link will have carried it."""
        begun, data, latency = self.begun, self.data, self.latency
        if start >= begun[link] + latency[link] + data[link]:
            begun[link], data[link], latency[link] = start, 0.0, 0.0
        at = link * self.ranks + end
        if self.period[at] != begun[link]:
            self.period[at], self.issued[at] = begun[link], 0.0
        self.issued[at] += alpha
        latency[link] = max(latency[link], self.issued[at])
        data[link] += seconds
        return begun[link] + latency[link] + data[link]

    def send(self, way: tuple[float, list], betas: list[float], start: float, nbytes: int) -> tuple[float, float]:
        """A message that is issued at `start`: when it has left its sender, and when it has arrived."""
        alpha, links = way
        ends = [self.occupy(link, end, start, alpha, nbytes * betas[link]) for link, end in links]
        return ends[0], max(ends)


class Wires:
    """The shared file, `path`, for `ranks` ranks and `links` links."""

    def __init__(self, path: str, ranks: int, links: int):
        self.path, self.ranks = path, ranks
        pairs = ranks * ranks * REMEMBERED
        size = 2 * PORTS + Links.room(links, ranks) + 24 * pairs
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if os.fstat(self._file).st_size != size:
            os.ftruncate(self._file, size)
        memory = memoryview(mmap.mmap(self._file, size))
        self.ports = memory[: 2 * PORTS].cast("H")  # rank + 1; 0 of a port that belongs to none
        end = 2 * PORTS + Links.room(links, ranks)
        self.links = Links(links, ranks, memory[2 * PORTS : end].cast("d"))
        self._names = memory[end : end + 8 * pairs].cast("Q")
        self._arrivals = memory[end + 8 * pairs : end + 16 * pairs].cast("d")
        self._lengths = memory[end + 16 * pairs :].cast("d")
        self._lock = threading.Lock()

    @contextmanager
    def locked(self):
        """Alone among all ranks and threads; a rank that dies in here leaves nothing locked."""
        with self._lock:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _row(self, src: int, dst: int, name: int) -> int:
        return (src * self.ranks + dst) * REMEMBERED + name % REMEMBERED

    def announce(self, src: int, dst: int, name: int, arrives: float, seconds: float) -> None:
        """The message of that name (of its group, tag and number) may arrive then, and needs so long by itself."""
        row = self._row(src, dst, name)
        self._arrivals[row], self._lengths[row] = arrives, seconds
        self._names[row] = name

    def arrival(self, src: int, dst: int, name: int) -> tuple[float, float]:
        """When it may arrive, and how long it needs by itself; zeros if nobody has said so."""
        row = self._row(src, dst, name)
        return (self._arrivals[row], self._lengths[row]) if self._names[row] == name else (0.0, 0.0)

    def close(self) -> None:
        os.close(self._file)


def name_of(key: int, tag: int, seq: int) -> int:
    """64 bits for message number `seq` of a group and tag; consecutive ones never share a row."""
    return (key * 31 + tag * 7919 + seq) % 2**64
