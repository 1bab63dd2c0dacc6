"""The flight recorder: what every rank is doing, in a shared-memory file that the driver reads at any time.

A rank that is stuck in C++, holds the GIL or is dead answers no message; but the last thing it wrote here can still be
read. The driver makes the file (`Board`), each rank opens its own part of it (`Slot`) and overwrites one small record
whenever it enters or leaves an operation. That costs a few microseconds and needs no cooperation.

Every record is stored twice, in turn, with a version and a checksum: the reader takes the newest one that is whole, so
it never sees half of one record and half of the next, and a rank that is killed while it writes leaves the record
before.

Behind the record of where it is, a rank keeps what it has asked of the others, which says why it may never get on: so
that the kernel can prove a deadlock, and every rank can compare its call with the same call of the others
(`rank.guard`) before gloo turns a disagreement into wrong numbers.

    tallies       per group: collectives begun and waited for, in all and when the cell began
    messages      per group, direction, other side and tag: messages begun and over
    open calls    begun and not known to be finished: which send, recv or collective, and which of them is waited for
    fingerprints  the last calls: the n-th collective of a group, the n-th message of a pair of ranks
    refused       the first call of the cell that the guard has refused: later ones may be made only because of that

Numbers count from 1 within an epoch. The driver begins a new epoch when it has freed stuck ranks, because calls that
were cut short have left the ranks' counts apart. Every row has a checksum: a reader never believes half of one.

Left out: judging. The driver's doctor and `rank.guard` do that.
"""

import itertools
import mmap
import os
import struct
import time
import zlib
from dataclasses import dataclass
from threading import get_ident, main_thread
from typing import NamedTuple

RECORD = struct.Struct(
    "<QQQQiIiB31s64s120s"
)  # version, since (ns), seq, pid, peer, cell, line, flags, op, group, detail
CHECKSUM = struct.Struct("<I")
COPY_BYTES = 320  # room of one copy of the record
RECORD_BYTES = 2 * COPY_BYTES
SLOT_BYTES = 192 * 1024  # the record, then what the rank has asked of the others
HEADER_BYTES = 4096
RUNNING, INSIDE = 1, 2  # flags: in a cell; inside an operation


@dataclass(frozen=True)
class Status:
    """What a rank was doing when it last wrote.

    state   "new" (has not written yet), "idle", "running" (the cell's own code) or "waiting" (inside `op`)
    op      "all_reduce", "recv" ... as torch spells them; "" unless waiting
    group   "world", or the ranks of the group as "ranks 0,2"; "" unless waiting
    seq     number of the collective in its group, or of the message to/from this peer, in this cell, from 1
    peer    global rank of the other side of a message or of the root; None if there is none
    line    line of the cell (or file) that made the call; 0 if unknown
    detail  "the network takes 8 s" where a network that is played holds the call for seconds; else ""
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
    """A rank's own part of the file. Only this rank writes here; opened after the fork.

    `here` are the ranks of this machine, if not all of them are: what the others write comes late.
    """

    def __init__(self, path, rank: int, here: list[int] | None = None):
        self.rank, self.here = rank, here
        self.base = HEADER_BYTES + rank * SLOT_BYTES
        self.memory = _map(path)
        self._pid = os.getpid()
        self._version = _newest(self.memory, self.base)[0]
        self.cells = 0  # begun so far
        self.number = 0  # what the notebook calls the one under way
        self._running = False
        self._inside = False  # the main thread is, in some op

    def cell(self, state: str, number: int = 0) -> None:
        """ "running" when a cell begins, "idle" when it has ended; `number` as in `In[number]`."""
        self.number = number or self.number
        self._running = state == "running"
        self.cells += self._running
        self.leave()

    def enter(
        self, op: str, group: str = "", seq: int = 0, peer: int | None = None, line: int = 0, detail: str = ""
    ) -> None:
        """From now on this rank is inside `op`. Texts that are too long are cut. What a thread of the student is inside
        is recorded only while the main thread is in no call."""
        if get_ident() == main_thread().ident:
            self._inside = True
        elif self._inside:
            return
        self._write(INSIDE, op, group, seq, -1 if peer is None else peer, line, detail)

    def leave(self) -> None:
        """Back in the cell's own code (or idle)."""
        if get_ident() == main_thread().ident:
            self._inside = False
        elif self._inside:
            return
        self._write(0, "", "", 0, -1, 0, "")

    def _write(self, flags, op, group, seq, peer, line, detail) -> None:
        self._version = version = self._version + 1
        record = RECORD.pack(
            version, time.monotonic_ns(), seq, self._pid, peer, self.cells, line, flags | self._running,
            op.encode()[:31], group.encode()[:64], detail.encode()[:120])  # fmt: skip
        start = self.base + COPY_BYTES * (version & 1)
        self.memory[start : start + RECORD.size + CHECKSUM.size] = record + CHECKSUM.pack(zlib.crc32(record))


class Board:
    """The whole file, as the driver sees it.

    Makes the file, readable by this user only, if it is not there yet; OSError if the disk has no room for all of it,
    since a rank that wrote where there is none would be killed.
    """

    def __init__(self, path, ranks: int):
        self.path, self.ranks = path, ranks
        self.ahead: dict[int, float] = {}  # rank -> seconds by which the clock of its machine is ahead of ours
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(handle).st_size < HEADER_BYTES + ranks * SLOT_BYTES:
                _make_room(handle, HEADER_BYTES + ranks * SLOT_BYTES)
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
        began = since / 1e9 - self.ahead.get(rank, 0.0)
        return Status(
            state, _text(op), _text(group), seq, None if peer < 0 else peer, line, _text(detail), began, cell, pid
        )

    def clear(self, rank: int) -> None:
        """Forget what the rank wrote: its process is dead and a new one takes its place."""
        start = HEADER_BYTES + rank * SLOT_BYTES
        self.memory[start : start + SLOT_BYTES] = bytes(SLOT_BYTES)

    def close(self) -> None:
        self.memory.close()


def _make_room(handle: int, nbytes: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, nbytes)
    else:  # macOS: there the file is only as long as it should be
        os.ftruncate(handle, nbytes)


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


HELD, DROPPED_EARLY, DROPPED_LATE = range(3)  # the handle of a message


class Tally(NamedTuple):
    """One group of one rank: `begun` collectives, of which `done` are over; `before` had begun before cell `cell`.

    `label` is "world" or "ranks 0,2", cut if it is long; `key` is the same on every rank of the group. `members` has
    bit r set for global rank r, in hexadecimal.
    """

    key: int
    epoch: int
    begun: int
    done: int
    before: int
    cell: int
    size: int
    label: str
    members: str


class MessageTally(NamedTuple):
    """One kind of message of one rank: `begun` of them, of which `done` are over; `before` had begun before `cell`.

    `kind` is "send" or "recv", or "took" for what receives from any source are known to have taken; `peer` is the
    global rank of the other side, -1 for messages from any source. The last row of a full table has the kind "more":
    there are messages that are not counted here.
    """

    key: int
    epoch: int
    begun: int
    done: int
    peer: int
    tag: int
    kind: str
    before: int = 0
    cell: int = 0


class OpenCall(NamedTuple):
    """A call that has begun and is not known to be finished. `waiting`: the rank's main thread is blocked on it now.

    `kind` is "send", "recv" or "collective"; `seq` counts this group's collectives, or the messages of this
    (sender, receiver, tag) of the group; `peer` is a global rank (-1: any source; for a collective its root or -1).
    `what` is being sent, as "float32[4]"; `file` is where the line is, if not in the cell under way, as
    "train.py" or "cell In[3]".
    `cell` is how many cells the rank had begun, `number` what the notebook calls that cell; `dropped` says what became
    of the handle of a message: still there, or let go of before or after the other side had begun its half. `after`
    is the exception that was being handled, as "ValueError: no such data". `apart`: the call has not entered the
    library, since another rank has made one that does not fit, while it was handling an exception.
    """

    ticket: int
    key: int
    seq: int
    nbytes: int
    since: int  # time.monotonic_ns
    peer: int
    tag: int
    line: int
    waiting: bool
    kind: str
    op: str
    what: str
    file: str = ""
    cell: int = 0
    number: int = 0
    dropped: int = HELD
    after: str = ""
    apart: bool = False

    @property
    def raised(self) -> tuple[str, str]:
        """(name of its class, message) of the exception that was being handled: the two parts of `after`."""
        name, _, message = self.after.partition(": ")
        return name, message


NEW_GROUPS = 1  # the key of no group: those are hashes


class Fingerprint(NamedTuple):
    """What the n-th collective of a group, or the n-th message from `src` to `dst`, looked like on one rank; the n-th
    call of new_group too, under the key NEW_GROUPS, with its members in `op`: "new_group([0,1])".

    `side` is "collective", "send" or "recv"; for a collective `src` is the root (-1: none) and `dst`, `tag` are -1.
    `failed`: the rank was handling an exception of its own when it made the call, in `finally` say. `number` is what
    the notebook calls the cell. `order` is that of the dimensions in memory, "1,0" of a transposed matrix; "" if the
    tensor is contiguous, or if it does not matter.
    """

    key: int
    epoch: int
    seq: int
    count: int  # type: ignore[assignment]  # elements for a collective, bytes for a message; a tuple has a method so called
    src: int
    dst: int
    tag: int
    line: int
    side: str
    op: str
    reduce: str
    dtype: str
    file: str
    failed: bool = False
    number: int = 0
    order: str = ""

    @property
    def layout(self) -> str:
        return f"a tensor whose dimensions lie in the order {self.order}" if self.order else "a contiguous tensor"

    def call(self, before: int = 0) -> str:
        """ "all_reduce #2", counted from the `before` that came earlier; of a new group its members say which it is."""
        return self.op if self.key == NEW_GROUPS else f"{self.op} #{self.seq - before}"


COMPARED = ("op", "src", "reduce", "count", "dtype", "order")
"""Fields of the fingerprint of a collective that must be the same on every rank of its group."""


class Splits(NamedTuple):
    """How all_to_all_single number `seq` of a group cuts its tensors on one rank: elements, in group order ("6,6,6"),
    and how many there are in one row."""

    key: int
    epoch: int
    seq: int
    row_sent: int
    row_received: int
    sent: str
    received: str


class Unfitting(NamedTuple):
    """What rank `src` sends to rank `dst` in an all_to_all_single, and what that one expects: rows, or elements."""

    src: int
    dst: int
    sent: int
    expected: int
    unit: str  # "row" or "element"

    @property
    def amount(self) -> str:
        """What is sent: "3 rows"."""
        return f"{self.sent} {self.unit}{'' if self.sent == 1 else 's'}"


class _Table:
    """`rows` rows of one NamedTuple at a place of the slot. A row that is all zero or torn reads as None."""

    def __init__(self, kind, layout: str, offset: int, rows: int):
        self.kind, self.layout, self.rows, self.offset = kind, struct.Struct(layout), rows, offset
        self.stride = self.layout.size + CHECKSUM.size
        self.end = offset + rows * self.stride

    def write(self, memory, base: int, row: int, values) -> None:
        raw = self.layout.pack(*[value.encode() if type(value) is str else value for value in values])
        start = base + self.offset + row * self.stride
        memory[start : start + self.stride] = raw + CHECKSUM.pack(zlib.crc32(raw))

    def erase(self, memory, base: int, row: int) -> None:
        start = base + self.offset + row * self.stride
        memory[start : start + self.stride] = bytes(self.stride)

    def read(self, memory, base: int, row: int):
        start = base + self.offset + row * self.stride
        raw = memory[start : start + self.layout.size]
        if zlib.crc32(raw) != CHECKSUM.unpack_from(memory, start + self.layout.size)[0]:
            return None
        fields = self.layout.unpack(raw)
        return self.kind(*[f.rstrip(b"\0").decode(errors="ignore") if type(f) is bytes else f for f in fields])

    def every(self, memory, base: int) -> list:
        if not memory[base + self.offset : base + self.end].strip(b"\0"):
            return []  # the usual case after a cell
        return [row for i in range(self.rows) if (row := self.read(memory, base, i)) is not None]

    def first(self, memory, base: int) -> list:
        """The rows of a table that is filled from the top, up to the first free one."""
        rows = (self.read(memory, base, i) for i in range(self.rows))
        return list(itertools.takewhile(lambda row: row is not None, rows))


TALLIES = _Table(Tally, "<QQQQQQI48s64s", 1024, 64)
OPEN = _Table(OpenCall, "<QQQQQiii?12s32s48s32sIIB120s?", TALLIES.end, 64)
_FINGERPRINT = "<QQQQiiii12s32s12s16s24s?I12s"
COLLECTIVES = _Table(Fingerprint, _FINGERPRINT, OPEN.end, 256)
MESSAGES = _Table(Fingerprint, _FINGERPRINT, COLLECTIVES.end, 512)
MESSAGE_TALLIES = _Table(MessageTally, "<QQQQii8sQI", MESSAGES.end, 384)
REFUSED = _Table(Fingerprint, _FINGERPRINT, MESSAGE_TALLIES.end, 1)
SPLITS = _Table(Splits, "<QQQQQ240s240s", REFUSED.end, 16)
assert SPLITS.end <= SLOT_BYTES


def unfitting(memory, ranks, key: int, epoch: int, seq: int, own: int | None = None) -> Unfitting | None:
    """The first pair of the group's `ranks` that disagrees about the all_to_all_single of that number; if `own` is
    given, the first pair with that rank. None if all ranks that have called it agree."""
    rows = {rank: SPLITS.read(memory, base_of(rank), seq % SPLITS.rows) for rank in ranks}
    known = {rank: row for rank, row in rows.items() if row is not None and row[:3] == (key, epoch, seq)}
    for src, sender in known.items():
        for dst, receiver in known.items():
            sent = int(sender.sent.split(",")[ranks.index(dst)])
            expected = int(receiver.received.split(",")[ranks.index(src)])
            if sent != expected and own in (None, src, dst):
                return Unfitting(src, dst, *_counted(sent, expected, {sender.row_sent, receiver.row_received}))
    return None


def _counted(sent: int, expected: int, widths: set[int]) -> tuple[int, int, str]:
    """In rows if both ranks have rows of the same width, of more than one element; otherwise in elements."""
    width = max(widths)
    if len(widths) > 1 or width < 2 or sent % width or expected % width:
        return sent, expected, "element"
    return sent // width, expected // width, "row"


def begin_epoch(memory) -> int:
    """Driver: all counts start again at 0. Call it while no rank is in a call; then each rank calls `tap.reset()`."""
    epoch = current_epoch(memory) + 1
    memory[0:8] = epoch.to_bytes(8, "little")
    return epoch


def current_epoch(memory) -> int:
    return int.from_bytes(memory[0:8], "little")


def base_of(rank: int) -> int:
    return HEADER_BYTES + rank * SLOT_BYTES


def tallies(board, rank: int) -> list[Tally]:
    """Driver: the rank's groups, in the order it used them first; those of this epoch only."""
    epoch = current_epoch(board.memory)
    return [tally for tally in TALLIES.first(board.memory, base_of(rank)) if tally.epoch == epoch]


def message_tallies(board, rank: int) -> list[MessageTally]:
    """Driver: the rank's messages by kind, in the order it used them first; those of this epoch only."""
    epoch = current_epoch(board.memory)
    return [tally for tally in MESSAGE_TALLIES.first(board.memory, base_of(rank)) if tally.epoch == epoch]


def open_calls(board, rank: int) -> list[OpenCall]:
    """Driver: the rank's calls that are not known to be finished, oldest first (the newest 64 of them)."""
    return sorted(OPEN.every(board.memory, base_of(rank)))


def messages_begun(memory, half: OpenCall, rank: int) -> bool:
    """Whether the other side of this rank's message has begun its half; a receive from any source may be it."""
    kind, peers = ("recv", (rank, -1)) if half.kind == "send" else ("send", (rank,))
    others = range((len(memory) - HEADER_BYTES) // SLOT_BYTES) if half.peer < 0 else (half.peer,)
    rows = (row for other in others for row in MESSAGE_TALLIES.first(memory, base_of(other)))
    epoch = current_epoch(memory)
    same = [r for r in rows if (r.epoch, r.key, r.tag, r.kind) == (epoch, half.key, half.tag, kind) and r.peer in peers]
    return sum(row.begun for row in same) >= half.seq


def fingerprints(board, rank: int) -> list[Fingerprint]:
    """Driver: the rank's last calls of this epoch."""
    epoch, base = current_epoch(board.memory), base_of(rank)
    rows = COLLECTIVES.every(board.memory, base) + MESSAGES.every(board.memory, base)
    if refused := REFUSED.read(board.memory, base, 0):
        rows = [row for row in rows if row[:3] != refused[:3] or row.side != refused.side] + [refused]
    return sorted(
        (row for row in rows if row.epoch == epoch), key=lambda row: (row.side, row.key, row.src, row.dst, row.seq)
    )


def row_of(mark: Fingerprint, table) -> int:
    """The row of this call in the table, the same on every rank; a newer call replaces an old one."""
    mixed = mark.key ^ (mark.src + 1) * 0x9E3779B1 ^ (mark.dst + 1) * 0x85EBCA77 ^ (mark.tag + 1) * 0xC2B2AE3D
    if mark.side == "collective":
        mixed = mark.key  # ranks that disagree about the root must meet in one row
    return ((mixed ^ mixed >> 29) * 2 + mark.seq * 2 + (mark.side == "recv")) % table.rows


def posted(memory, rank: int, key: int, seq: int) -> Fingerprint | None:
    """The rank's collective of that group and number, if its fingerprint is still there."""
    row = row_of(Fingerprint(key, 0, seq, 0, -1, -1, -1, 0, "collective", "", "", "", ""), COLLECTIVES)
    mark = COLLECTIVES.read(memory, base_of(rank), row)
    return mark if mark is not None and (mark.key, mark.seq) == (key, seq) else None
