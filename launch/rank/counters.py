"""The numbers of this rank's calls: each call has the same number on all ranks.

The collectives of each group are counted, and the messages of each kind, between two ranks with a tag. The flight
recorder shows how many of each have begun and are over.

Left out: the calls themselves, and the lock under which they are counted (`rank.pending`).
"""

from launch.rank._ops import Call
from launch.shared.flight_recorder import MESSAGE_TALLIES, TALLIES, MessageTally, Tally, base_of, current_epoch


class Counter:
    """Counts the collectives of a group, or one kind of message, in the epoch; remembers where the cell began."""

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

    def take_back(self, number: int) -> None:
        """The call with that number was not made after all: the next one has it, or it is over if a thread has made the
        next one already."""
        if number == self.begun:
            self.begun -= 1
        else:
            self.done += 1


class Counters:
    """All counters of this rank in the epoch that the driver has begun; they are in the flight recorder, too."""

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
        return self.of_messages(call.group, call.kind, -1 if call.peer is None else call.peer, call.tag)

    def of_messages(self, group, *message) -> Counter:
        """`message` is its kind, the other side and the tag."""
        counter = self.messages.get((group.key, *message))
        if counter is None:
            row = min(len(self.messages), MESSAGE_TALLIES.rows - 1)
            counter = self.messages[group.key, *message] = Counter(row, group, message)
        return counter

    def numbered(self, call: Call) -> bool:
        """Whether the number of this message means the same on the other side."""
        return call.kind == "send" or (call.group.key, call.tag) not in self.any_source

    def write(self, counter: Counter) -> None:
        ours = self.messages.get((counter.group.key, *counter.message)) if counter.message else None
        if (ours or self.groups.get(counter.group.key)) is not counter:
            return  # of a call that a thread began before a reset: its row is another's
        group, begun, done, before = counter.group, counter.begun, counter.done, counter.before
        if counter.message:
            kind, peer, tag = counter.message
            kind, cell = "more" if counter.row == MESSAGE_TALLIES.rows - 1 else kind, counter.cell & 0xFFFFFFFF
            message = MessageTally(group.key, self.epoch, begun, done, peer, tag, kind, before, cell)
            MESSAGE_TALLIES.write(self.memory, self.base, counter.row, message)
        else:
            size, label, members = len(group.ranks), group.label, counter.members
            row = Tally(group.key, self.epoch, begun, done, before, counter.cell, size, label, members)
            TALLIES.write(self.memory, self.base, counter.row, row)
