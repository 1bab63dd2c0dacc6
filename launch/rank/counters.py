"""Numbers for calls: the n-th collective of a group, the n-th message of a sender, receiver and tag.

Every rank counts for itself; because all ranks make the calls that belong together in the same order, the same number
means the same call. The counts stand in the ledger, where the driver compares them.

Left out: the calls themselves; see `rank.postings`.
"""

from launch.ledger import MESSAGE_TALLIES, TALLIES, MessageTally, Tally, base_of, current_epoch
from launch.rank.ops import Call


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
    """All counters of this rank in the epoch that the driver has begun. `slot` is its `launch.blackbox.Slot`."""

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
        name = (call.group.key, call.kind, call.peer, call.tag)
        counter = self.messages.get(name)
        if counter is None:
            row = min(len(self.messages), MESSAGE_TALLIES.rows - 1)
            message = (call.kind, -1 if call.peer is None else call.peer, call.tag)
            counter = self.messages[name] = Counter(row, call.group, message)
        return counter

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
            row = MessageTally(group.key, self.epoch, counter.begun, counter.done, peer, tag, kind)
            MESSAGE_TALLIES.write(self.memory, self.base, counter.row, row)
        else:
            counts = (counter.begun, counter.done, counter.before, counter.cell)
            row = Tally(group.key, self.epoch, *counts, len(group.ranks), group.label, counter.members)
            TALLIES.write(self.memory, self.base, counter.row, row)
