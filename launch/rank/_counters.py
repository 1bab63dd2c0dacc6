"""What this rank counts of its calls, in the flight recorder, so that each call has the same number on all ranks.

Left out: the calls themselves (rank/pending.py).
"""

from __future__ import annotations

from launch.rank._ops import Call
from launch.shared.flight_recorder import (
    MESSAGE_TALLIES,
    TALLIES,
    MessageTally,
    OpenCall,
    Tally,
    base_of,
    current_epoch,
)


class Counter:
    """Counts the collectives of a group, or one kind of message, in the epoch; remembers where the cell began."""

    __slots__ = ("begun", "done", "before", "cell", "row", "group", "message", "members")

    def __init__(self, row: int, group, message: tuple = ()):
        self.begun = self.done = self.before = 0
        self.cell = -1
        self.row, self.group, self.message = row, group, message  # (kind, peer, tag); () for collectives
        self.members = f"{sum(1 << rank for rank in group.ranks):x}"

    def next(self, cell: int) -> int:
        """The number of a call that is made in that cell."""
        if cell != self.cell:
            self.cell, self.before = cell, self.begun
        self.begun += 1
        return self.begun


class Counters:
    """All counters of this rank in the epoch that the driver has begun. `slot` is its
    `launch.shared.flight_recorder.Slot`."""

    def __init__(self, slot):
        self.memory, self.base = slot.memory, base_of(slot.rank)
        self.epoch = current_epoch(slot.memory)
        self.groups: dict[int, Counter] = {}
        self.messages: dict[tuple, Counter] = {}
        self.any_source: set[tuple[int, int]] = set()  # (group, tag): its messages cannot be numbered in advance
        for table in (TALLIES, MESSAGE_TALLIES):
            for row in range(table.rows):
                table.erase(self.memory, self.base, row)

    def of(self, call: Call) -> Counter:
        """The counter that a call is counted by."""
        if call.kind == "collective":
            counter = self.groups.get(call.group.key)
            if counter is None:
                counter = self.groups[call.group.key] = Counter(len(self.groups) % TALLIES.rows, call.group)
            return counter
        if call.kind == "recv" and call.peer is None:
            self.any_source.add((call.group.key, call.tag))
        peer = -1 if call.peer is None else call.peer
        return self._counter((call.group.key, call.kind, peer, call.tag), call.group)

    def _counter(self, name: tuple, group) -> Counter:
        """Of one kind of message: (group, kind, other side, tag)."""
        counter = self.messages.get(name)
        if counter is None:
            row = min(len(self.messages), MESSAGE_TALLIES.rows - 1)
            counter = self.messages[name] = Counter(row, group, name[1:])
        return counter

    def took(self, received: OpenCall, source: int, group) -> None:
        """A receive from any source has taken a message of this one: it is not there for others any more."""
        counter = self._counter((group.key, "took", source, received.tag), group)
        counter.begun += 1
        counter.done += 1
        self.write(counter)

    def numbered(self, call: Call) -> bool:
        """Whether the number of this message means the same on the other side."""
        return call.kind == "send" or (call.group.key, call.tag) not in self.any_source

    def write(self, counter: Counter) -> None:
        """Put a counter into the ledger."""
        group = counter.group
        if counter.message:
            kind, peer, tag = counter.message
            if counter.row == MESSAGE_TALLIES.rows - 1:
                kind = "more"
            counts = counter.begun, counter.done, peer, tag, kind, counter.before, counter.cell & 0xFFFFFFFF
            message = MessageTally(group.key, self.epoch, *counts)
            MESSAGE_TALLIES.write(self.memory, self.base, counter.row, message)
        else:
            so_far = counter.begun, counter.done, counter.before, counter.cell
            row = Tally(group.key, self.epoch, *so_far, len(group.ranks), group.label, counter.members)
            TALLIES.write(self.memory, self.base, counter.row, row)
