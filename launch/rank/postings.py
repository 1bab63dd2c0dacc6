"""What this rank tells the others about each of its calls, from the moment it is made until it is known to be over.

Always on: the tap hands every call through here, so that the black box and the ledger say at any time what the rank
is in, what it waits for and what is still open, and so that the guard can compare the call with those of other ranks.

Left out: values, times and places in memory; only a recording (`rank.events`) keeps those.
"""

import sys
import time

import torch

from launch.ledger import OPEN, Fingerprint, OpenCall, base_of
from launch.rank.counters import Counters
from launch.rank.guard import Guard
from launch.rank.ops import Call, dtype_name


class Posting:
    """One call that is open. `seq` counts within the epoch, `seq_in_cell` within the cell.

    `event` is (recorder, event) of a call that is recorded; `memory` the addresses a collective writes to.
    """

    __slots__ = ("call_name", "kind", "key", "label", "ranks", "peer", "line", "detail", "memory", "event")
    __slots__ += ("counter", "seq", "seq_in_cell", "row", "open", "mark")

    def __init__(self, call: Call, counter, cell: int, line: int, file: str):
        self.call_name, self.kind, self.peer, self.line = call.name, call.kind, call.peer, line
        self.key, self.label, self.ranks = call.group.key, call.group.label, call.group.ranks
        self.detail = _described(call.ins or call.outs) + (f" in {file}" if file else "")
        self.memory = tuple(map(_address, call.outs)) if call.kind == "collective" else ()
        self.counter = counter
        self.seq = counter.next(cell)
        self.seq_in_cell = self.seq - counter.before
        self.event = self.row = self.open = self.mark = None


class Postings:
    """The open calls of this process. `slot` is this rank's `launch.blackbox.Slot`."""

    def __init__(self, slot, guard: bool):
        self.slot, self.memory, self.base = slot, slot.memory, base_of(slot.rank)
        self.guard = Guard(slot.memory, slot.rank) if guard else None
        self.tickets = 0
        self.reset()

    def reset(self) -> None:
        """All counts at 0, nothing open, in the epoch the driver has begun."""
        self.counters = Counters(self.slot)
        self.works: dict[int, tuple] = {}  # id(work) -> (work, posting); holding the work keeps its id its own
        self.free = list(range(OPEN.rows))
        for row in self.free:
            OPEN.erase(self.memory, self.base, row)

    def post(self, call: Call, line: int, file: str) -> Posting:
        """A call is about to enter the library. MismatchError if another rank has made one that does not fit."""
        if self.works:
            self.sweep()
        posting = Posting(call, self.counters.of(call), self.slot.cells, line, file)
        self.counters.write(posting.counter)
        self._open(posting, call)
        self._enter(posting)
        if self.guard is not None:
            try:
                self._compare(posting, call, file)
            except BaseException:
                self.withdraw(posting)
                raise
        return posting

    def issued(self, posting: Posting, work) -> None:
        """The library has taken the call; without a `work` it is over already."""
        self.slot.leave()
        if work is None:
            self._close(posting)
        else:
            self.works[id(work)] = (work, posting)

    def refused(self, posting: Posting) -> None:
        """The library has refused the call, for reasons of its own: it was never made."""
        if posting.mark is not None:
            self.guard.retract(posting.mark)
        self.withdraw(posting)

    def withdraw(self, posting: Posting) -> None:
        """The call has not begun, and the next one has its number. Its fingerprint stays: others compare with it."""
        self._erase(posting)
        posting.counter.begun -= 1
        self.counters.write(posting.counter)
        self.slot.leave()

    def waits(self, work) -> Posting | None:
        """The main thread blocks on this work now. None for a work that no call here has made."""
        _, posting = self.works.get(id(work), (None, None))
        return self._waits(posting)

    def waits_for_memory(self, tensor) -> Posting | None:
        """The same for functional collectives, which know only the tensor that will hold the result."""
        if not self.works or tensor.device.type == "meta":
            return None
        address = _address(tensor)
        found = [(work, posting) for work, posting in self.works.values() if address in posting.memory]
        return self._waits(found[-1][1] if found else None)

    def _waits(self, posting):
        if posting is not None:
            self._write_open(posting, True)
            self._enter(posting)
        return posting

    def waited(self, posting: Posting | None, work) -> None:
        """The wait has returned: the call is over."""
        if posting is None:
            return
        self.slot.leave()
        if self.works.pop(id(work), None):
            self._close(posting)
        if posting.kind == "recv" and posting.peer is None:
            posting.peer = posting.ranks[work._source_rank()]

    def memory_arrived(self, posting: Posting | None) -> None:
        """The same for `waits_for_memory`."""
        if posting is not None:
            self.slot.leave()
        for key, (_, other) in list(self.works.items()):
            if other is posting:
                del self.works[key]
                self._close(posting)

    def stopped(self, posting: Posting | None) -> None:
        """No longer blocked, though the call is not over: the wait was interrupted."""
        if posting is not None:
            self._write_open(posting, False)
            self.slot.leave()

    def sweep(self) -> None:
        """Close what is over though nobody has waited for it in Python, and what nobody can wait for any more."""
        for key, (work, posting) in list(self.works.items()):
            # Held by the dict's tuple, `work`, and the call of getrefcount itself: the student has let go of it.
            abandoned = sys.getrefcount(work) <= 3
            if abandoned and (posting.kind != "collective" or work.is_completed()):
                self.works.pop(key, None)
                self._close(posting)

    def _enter(self, posting: Posting) -> None:
        self.slot.enter(
            posting.call_name, posting.label, posting.seq_in_cell, posting.peer, posting.line, posting.detail
        )

    def _open(self, posting: Posting, call: Call) -> None:
        self.tickets += 1
        posting.open = OpenCall(
            ticket=self.tickets,
            key=posting.key,
            seq=posting.seq,
            nbytes=sum(tensor.numel() * tensor.element_size() for tensor in call.ins or call.outs),
            since=time.monotonic_ns(),
            peer=-1 if call.peer is None else call.peer,
            tag=call.tag,
            line=posting.line,
            waiting=False,
            kind=call.kind,
            op=call.name,
            detail=posting.detail,
        )
        posting.row = self.free.pop() if self.free else None  # more than the table holds: the rest is not shown
        self._write_open(posting, False)

    def _write_open(self, posting: Posting, waiting: bool) -> None:
        if posting.row is not None:
            OPEN.write(self.memory, self.base, posting.row, posting.open._replace(waiting=waiting))

    def _erase(self, posting: Posting) -> None:
        if posting.row is not None:
            OPEN.erase(self.memory, self.base, posting.row)
            self.free.append(posting.row)
            posting.row = None

    def _close(self, posting: Posting) -> None:
        self._erase(posting)
        posting.counter.done += 1
        self.counters.write(posting.counter)

    def _compare(self, posting: Posting, call: Call, file: str) -> None:
        tensors = () if call.name in ("barrier", "monitored_barrier") else call.ins or call.outs
        collective, me = call.kind == "collective", self.slot.rank
        src, dst = (call.peer, me) if call.kind == "recv" else (me, call.peer)
        mark = Fingerprint(
            key=posting.key,
            epoch=self.counters.epoch,
            seq=posting.seq,
            count=call.count if collective else posting.open.nbytes,
            src=(-1 if call.peer is None else call.peer) if collective else src,
            dst=-1 if collective else dst,
            tag=-1 if collective else call.tag,
            line=posting.line,
            side=call.kind,
            op=call.name,
            reduce=call.reduce,
            dtype=dtype_name(tensors[0].dtype) if tensors else "",
            file=file[:24],
        )
        posting.mark = mark
        if collective:
            self.guard.collective(mark, posting.ranks)
        elif self.counters.numbered(call):
            self.guard.message(mark)


def _described(tensors) -> str:
    """ "float32[4]", or "float32[4] and 3 more"; "" without tensors."""
    if not tensors:
        return ""
    first = tensors[0]
    text = f"{dtype_name(first.dtype)}[{','.join(map(str, first.shape))}]"
    return text if len(tensors) == 1 else f"{text} and {len(tensors) - 1} more"


def _address(tensor: torch.Tensor) -> int:
    try:
        return tensor.data_ptr()
    except RuntimeError:  # a fake tensor, while torch.compile traces
        return 0
