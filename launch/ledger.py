"""What a rank has asked of the others: calls that are open, calls counted per group, and a fingerprint of each call.

The black box says where a rank is; this says why it may never get on. It lies in the same shared memory, behind the
record of `launch.blackbox`, so that the driver can prove a deadlock and every rank can compare its call with the same
call of the others (`rank.guard`) before gloo turns a disagreement into wrong numbers.

    tallies       per group: collectives begun and waited for, in all and when the cell began
    messages      per group, direction, other side and tag: messages begun and over
    open calls    begun and not known to be finished: which send, recv or collective, and which of them is waited for
    fingerprints  the last calls: the n-th collective of a group, the n-th message of a pair of ranks

Numbers count from 1 within an epoch. The driver begins a new epoch when it has freed stuck ranks, because calls that
were cut short have left the ranks' counts apart. Every row has a checksum: a reader never believes half of one.

Left out: judging. The driver's doctor and `rank.guard` do that.
"""

import itertools
import struct
import zlib
from typing import NamedTuple

from launch.blackbox import HEADER_BYTES, SLOT_BYTES

CHECKSUM = struct.Struct("<I")


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
    """One kind of message of one rank: `begun` of them, of which `done` are over.

    `kind` is "send" or "recv"; `peer` is the global rank of the other side, -1 for messages received from any source.
    The last row of a full table has the kind "more": there are messages that are not counted here.
    """

    key: int
    epoch: int
    begun: int
    done: int
    peer: int
    tag: int
    kind: str


class OpenCall(NamedTuple):
    """A call that has begun and is not known to be finished. `waiting`: the rank's main thread is blocked on it now.

    `kind` is "send", "recv" or "collective"; `seq` counts this group's collectives, or the messages of this
    (sender, receiver, tag) of the group; `peer` is a global rank (-1: any source; for a collective its root or -1).
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
    detail: str


class Fingerprint(NamedTuple):
    """What the n-th collective of a group, or the n-th message from `src` to `dst`, looked like on one rank.

    `side` is "collective", "send" or "recv"; for a collective `src` is the root (-1: none) and `dst`, `tag` are -1.
    """

    key: int
    epoch: int
    seq: int
    count: int  # elements for a collective, bytes for a message
    src: int
    dst: int
    tag: int
    line: int
    side: str
    op: str
    reduce: str
    dtype: str
    file: str


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
        return [row for i in range(self.rows) if (row := self.read(memory, base, i)) is not None]

    def first(self, memory, base: int) -> list:
        """The rows of a table that is filled from the top, up to the first free one."""
        rows = (self.read(memory, base, i) for i in range(self.rows))
        return list(itertools.takewhile(lambda row: row is not None, rows))


TALLIES = _Table(Tally, "<QQQQQQI48s64s", 1024, 64)
OPEN = _Table(OpenCall, "<QQQQQiii?12s32s48s", TALLIES.end, 64)
COLLECTIVES = _Table(Fingerprint, "<QQQQiiii12s32s12s16s24s", OPEN.end, 256)
MESSAGES = _Table(Fingerprint, "<QQQQiiii12s32s12s16s24s", COLLECTIVES.end, 512)
MESSAGE_TALLIES = _Table(MessageTally, "<QQQQii8s", MESSAGES.end, 384)
assert MESSAGE_TALLIES.end <= SLOT_BYTES


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


def fingerprints(board, rank: int) -> list[Fingerprint]:
    """Driver: the rank's last calls of this epoch."""
    epoch, base = current_epoch(board.memory), base_of(rank)
    rows = COLLECTIVES.every(board.memory, base) + MESSAGES.every(board.memory, base)
    return sorted(
        (row for row in rows if row.epoch == epoch), key=lambda row: (row.side, row.key, row.src, row.dst, row.seq)
    )
