"""The links of a network that ranks play together: when each of them is free again, in memory that all ranks share.

A message goes onto its links once it has been sent and its receive has begun, since gloo's messages are a rendezvous:
the second of the two ranks puts it there. (If the sender did so, messages would queue in the order in which they were
sent, and a root that receives them in another order would wait for those that it has not asked for yet.) A link
carries one thing after the other: alpha seconds for each message that one rank issues there, beta for each byte. From
that follows when the message has left its sender, and when it may arrive; both are written beside the message's name,
where either rank finds them. It is the model of `collectives.network`, with the moments in which messages really meet
in place of steps. When each rank began a collective is written here too, since it takes them all to end it.

Left out: waiting until a moment has come (rank/network.py).
"""

from __future__ import annotations

import fcntl
import mmap
import os
import threading
from contextlib import contextmanager, suppress

REMEMBERED = 64  # messages of each pair of ranks
COLUMNS = 8  # of 8 bytes


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
        """The bytes that they need."""
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
        rows = ranks * ranks * REMEMBERED
        at = Links.room(links, ranks)
        end = at + 8 * COLUMNS * rows
        size = end + 16 * ranks * REMEMBERED
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if os.fstat(self._file).st_size != size:
            os.ftruncate(self._file, size)
        memory = memoryview(mmap.mmap(self._file, size))
        self.links = Links(links, ranks, memory[:at].cast("d"))
        names, moments = memory[at : at + 24 * rows].cast("Q"), memory[at + 24 * rows : end].cast("d")
        # Of every rank's last collectives: the name, and when the rank began it.
        self._collectives = memory[end : end + 8 * ranks * REMEMBERED].cast("Q")
        self._began_at = memory[end + 8 * ranks * REMEMBERED :].cast("d")
        # Of every pair's last messages: the names of what was sent, was asked for and is on the links; ...
        self._sent, self._asked, self._put = (names[i * rows : (i + 1) * rows] for i in range(3))
        # ... when it was sent and asked for, when it has left and may arrive; and its bytes.
        self._sent_at, self._asked_at, self._left, self._arrives, self._nbytes = (
            moments[i * rows : (i + 1) * rows] for i in range(5)
        )
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

    # Of message `name` from `src` to `dst`, whose `way` is as in `Links.send`. Seconds; both inside of `locked`.

    def sent(self, src: int, dst: int, name: int, at: float, nbytes: int, way, betas: list[float]) -> None:
        """It was sent then."""
        row = self._row(src, dst, name)
        self._sent[row], self._sent_at[row], self._nbytes[row] = name, at, nbytes
        if self._asked[row] == name:
            self._meet(row, way, betas)

    def asked(self, src: int, dst: int, name: int, at: float, way, betas: list[float]) -> None:
        """Its receive began then."""
        row = self._row(src, dst, name)
        self._asked[row], self._asked_at[row] = name, at
        if self._sent[row] == name:
            self._meet(row, way, betas)

    def _meet(self, row: int, way, betas: list[float]) -> None:
        start = max(self._sent_at[row], self._asked_at[row])
        self._left[row], self._arrives[row] = self.links.send(way, betas, start, int(self._nbytes[row]))
        self._put[row] = self._sent[row]

    def met(self, src: int, dst: int, name: int) -> tuple[float, float]:
        """When it has left, and when it may arrive; zeros as long as it was not both sent and asked for."""
        row = self._row(src, dst, name)
        return (self._left[row], self._arrives[row]) if self._put[row] == name else (0.0, 0.0)

    def began(self, rank: int, name: int, at: float) -> None:
        """The rank began that collective then."""
        row = rank * REMEMBERED + name % REMEMBERED
        self._began_at[row], self._collectives[row] = at, name

    def begun(self, rank: int, name: int) -> float:
        """When it did; 0.0 if it has not yet, or long ago."""
        row = rank * REMEMBERED + name % REMEMBERED
        return self._began_at[row] if self._collectives[row] == name else 0.0

    def close(self) -> None:
        os.close(self._file)


def clear(path: str) -> None:
    """Frees the links and forgets all messages. No rank may be sending anything."""
    with suppress(FileNotFoundError), open(path, "r+b") as file:  # no rank may have made it yet
        os.pwrite(file.fileno(), bytes(os.fstat(file.fileno()).st_size), 0)


def name_of(key: int, tag: int, seq: int, epoch: int) -> int:
    """A name of 64 bits for message or collective number `seq` of a group and tag. Numbers start again in each epoch.
    Consecutive ones never share a row."""
    return (key * 31 + tag * 7919 + epoch * 104729 * REMEMBERED + seq) % 2**64
