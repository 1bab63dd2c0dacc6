"""The black box: what every rank is doing, in a shared-memory file that the driver reads at any time.

A rank that is stuck in C++, holds the GIL or is dead answers no message; but the last thing it wrote here can still be
read. The driver makes the file (`Board`), each rank opens its own part of it (`Slot`) and overwrites one small record
whenever it enters or leaves an operation. That costs a few microseconds and needs nobody's cooperation.

Every record is stored twice, in turn, with a version and a checksum: the reader takes the newest one that is whole, so
it never sees half of one record and half of the next, and a rank that is killed while it writes leaves the record
before.

Left out: which calls of different ranks belong together, and what is still open; see `launch.ledger`, which lives in
the same file, behind the records.
"""

import mmap
import os
import struct
import time
import zlib
from dataclasses import dataclass

RECORD = struct.Struct(
    "<QQQQiIiB31s64s120s"
)  # version, since (ns), seq, pid, peer, cell, line, flags, op, group, detail
CHECKSUM = struct.Struct("<I")
COPY_BYTES = 320  # room of one copy of the record
RECORD_BYTES = 2 * COPY_BYTES
SLOT_BYTES = 160 * 1024  # the record, then the rank's ledger; the file is sparse, untouched pages cost nothing
HEADER_BYTES = 4096
RUNNING, INSIDE = 1, 2  # flags: in a cell; inside an operation


@dataclass(frozen=True)
class Status:
    """What a rank was doing when it last wrote.

    state   "new" (has not written yet), "idle", "running" (the cell's own code) or "waiting" (inside `op`)
    op      "all_reduce", "recv" ... as torch spells them; "" unless waiting
    group   "world", or the ranks of the group as "ranks 0,2"; "" unless waiting
    seq     the how-manieth collective of this group in this cell, or message to/from this peer in this cell, from 1
    peer    global rank of the other side of a message or of the root; None if there is none
    line    line of the cell (or file) that made the call; 0 if unknown
    detail  what is being sent, as "float32[4]", and what the line stands in if it is not the cell
    since   `time.monotonic()` seconds at which this began
    cell    how many cells this rank has begun
    """

    state: str = "new"
    op: str = ""
    group: str = ""
    seq: int = 0
    peer: int | None = None
    line: int = 0
    detail: str = ""
    since: float = 0.0
    cell: int = 0
    pid: int = 0


class Slot:
    """A rank's own part of the file. Only this rank writes here; opened after the fork."""

    def __init__(self, path, rank: int):
        self.rank = rank
        self.base = HEADER_BYTES + rank * SLOT_BYTES
        self.memory = _map(path)
        self._pid = os.getpid()
        self._version = _newest(self.memory, self.base)[0]
        self.cells = 0  # begun so far
        self._running = False

    def cell(self, state: str) -> None:
        """ "running" when a cell begins, "idle" when it has ended."""
        self._running = state == "running"
        self.cells += self._running
        self.leave()

    def enter(
        self, op: str, group: str = "", seq: int = 0, peer: int | None = None, line: int = 0, detail: str = ""
    ) -> None:
        """From now on this rank is inside `op`. Texts that are too long are cut."""
        self._write(INSIDE, op, group, seq, -1 if peer is None else peer, line, detail)

    def leave(self) -> None:
        """Back in the cell's own code (or idle)."""
        self._write(0, "", "", 0, -1, 0, "")

    def _write(self, flags, op, group, seq, peer, line, detail) -> None:
        self._version = version = self._version + 1
        record = RECORD.pack(
            version, time.monotonic_ns(), seq, self._pid, peer, self.cells, line, flags | self._running,
            op.encode()[:31], group.encode()[:64], detail.encode()[:120])  # fmt: skip
        start = self.base + COPY_BYTES * (version & 1)
        self.memory[start : start + RECORD.size + CHECKSUM.size] = record + CHECKSUM.pack(zlib.crc32(record))


class Board:
    """The whole file, as the driver sees it. Makes the file, readable by this user only, if it is not there yet."""

    def __init__(self, path, ranks: int):
        self.path, self.ranks = path, ranks
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(handle).st_size < HEADER_BYTES + ranks * SLOT_BYTES:
                os.ftruncate(handle, HEADER_BYTES + ranks * SLOT_BYTES)
        finally:
            os.close(handle)
        self.memory = _map(path)

    def read(self, rank: int) -> Status:
        """What the rank wrote last; never half of it."""
        if not 0 <= rank < self.ranks:
            raise IndexError(f"rank {rank}: the board has ranks 0 to {self.ranks - 1}")
        version, record = _newest(self.memory, HEADER_BYTES + rank * SLOT_BYTES)
        if not version:
            return Status()
        _, since, seq, pid, peer, cell, line, flags, op, group, detail = record
        state = "waiting" if flags & INSIDE else "running" if flags & RUNNING else "idle"
        return Status(
            state, _text(op), _text(group), seq, None if peer < 0 else peer, line, _text(detail), since / 1e9, cell, pid
        )

    def clear(self, rank: int) -> None:
        """Forget what the rank wrote: its process is dead and a new one takes its place."""
        start = HEADER_BYTES + rank * SLOT_BYTES
        self.memory[start : start + SLOT_BYTES] = bytes(SLOT_BYTES)

    def close(self) -> None:
        self.memory.close()


def _map(path) -> mmap.mmap:
    handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        return mmap.mmap(handle, 0)
    finally:
        os.close(handle)


def _newest(memory, base: int) -> tuple[int, tuple]:
    """(version, fields) of the newer whole copy; version 0 if nothing was ever written."""
    for _ in range(100):  # a copy is whole again within microseconds; a dead writer spoils at most one of the two
        best = (0, ())
        for start in (base, base + COPY_BYTES):
            raw = memory[start : start + RECORD.size + CHECKSUM.size]
            record, (checksum,) = raw[: RECORD.size], CHECKSUM.unpack(raw[RECORD.size :])
            fields = RECORD.unpack(record)
            if fields[0] > best[0] and zlib.crc32(record) == checksum:
                best = (fields[0], fields)
        if best[0] or not any(memory[base : base + RECORD_BYTES]):
            break
    return best


def _text(raw: bytes) -> str:
    return raw.rstrip(b"\0").decode(errors="ignore")
