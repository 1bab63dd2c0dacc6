"""What this rank tells the others about each of its calls, from the moment it is made until it is known to be over.

Always on: the tap passes every call through here. So the flight recorder shows at any time what the rank is in, what it
waits for and what is still open, and the guard can compare the call with those of other ranks.

A message needs its handle: gloo forgets a send or a receive whose Work is destroyed before the data have gone through.
So once the student has the Work of a message it is not held here, and the moment in which it goes is noted. A
collective is carried out by gloo's own threads, which hold it; there the Work may be kept until the collective is over.

Threads of the student's may call at the same time, and the Work of a message may be destroyed on any thread in the
middle of this code. What is counted and the rows of the flight recorder change under one lock.

Left out: values, times and places in memory; only a recording (`rank._op_log`) keeps those.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from typing import Any

import torch

from launch.backends.gloo import in_our_words, is_cut, is_lost
from launch.rank import callsite, interruptible
from launch.rank._ops import Call, dtype_name
from launch.rank.counters import Counter, Counters
from launch.rank.guard import Guard, MismatchError, Overtaken, order_in_memory, refuse_tensors
from launch.shared.flight_recorder import (
    DROPPED_EARLY,
    DROPPED_LATE,
    NEW_GROUPS,
    OPEN,
    Fingerprint,
    OpenCall,
    base_of,
    messages_begun,
)


class PendingCall:
    """One call that is open. `seq` counts within the epoch, `seq_in_cell` within the cell."""

    open: OpenCall  # what the others see of it

    def __init__(self, call: Call, counter: Counter, cell: int, line: int):
        self.name, self.kind, self.group, self.peer, self.line = call.name, call.kind, call.group, call.peer, line
        self.counter, self.seq = counter, counter.next(cell)
        self.seq_in_cell = self.seq - counter.before
        self.row: int | None = None  # of `open` in the flight recorder
        self.mark: Fingerprint | None = None  # what the guard compares
        self.memory = tuple(map(_address, call.outs)) if call.kind == "collective" else ()  # addresses it writes to
        self.held: Any = None  # the Work of a collective, and of a message until the student has it
        self.work: Handle | None = None  # the Work of a message that the student has
        self.kept: Any = None  # what is in C++ below the Work of a receive
        self.failed = _own(sys.exception())  # what the student's code is handling, if that is an error of its own
        self.event: tuple | None = None  # (recorder, event) of a call that is recorded
        self.begun: Any = None  # what the network that is played knows of it (rank/network.py)
        self.asked = 0  # how often the student asked whether it is completed
        self.thread = threading.get_ident()
        tensors = call.ins or call.outs
        self.on_gpu = tensors[0].is_cuda if tensors else torch.cuda.is_initialized()
        # Whether the wait for it may time out and begin again: NCCL would end its communicator then, and of a
        # reduce_scatter gloo makes several calls, without a limit of time.
        self.in_turns = call.kind == "collective" and not self.on_gpu and not call.name.startswith("reduce_scatter")


class Handle(weakref.ref):
    """A weak reference to the Work of a message: `key` is the id of the Work, `kind` "send" or "recv".

    Its callback must be a method of an object that lives as long as the rank, and must not lead back to it: Python's
    collector may take such a cycle apart first and then call what is left of the callback, which ends the process.
    """

    __slots__ = ("key", "kind")
    key: int
    kind: str


class PendingCalls:
    """The open calls of this process. `slot` is this rank's `launch.shared.flight_recorder.Slot`."""

    def __init__(self, slot, guard: bool):
        self.slot, self.memory, self.base = slot, slot.memory, base_of(slot.rank)
        self.guard = Guard(slot.memory, slot.rank) if guard else None
        self.tickets = 0
        self.made: tuple[int, list[tuple[str, int, str]]] = (0, [])  # number of a cell, and the groups that it has made
        self.works: dict[int, PendingCall] = {}  # by id(work)
        self.over: dict[int, Handle] = {}  # by id(work): messages that were waited for and whose Work is still there
        # (Work, addresses it writes to, event) of recorded collectives that were over before anybody waited for them
        self.swept: list[tuple[weakref.ref, tuple[int, ...], tuple]] = []
        self._lock = threading.RLock()
        os.register_at_fork(after_in_child=self._lock._at_fork_reinit)  # type: ignore[attr-defined]  # else held forever
        self.reset()

    def reset(self) -> None:
        """All counts at 0, nothing open, in the epoch the driver has begun."""
        with self._lock:
            self.counters = Counters(self.slot)
            self.new_groups = 0  # that every rank takes part in making
            for pending in list(self.works.values()):
                pending.row = None  # a thread may still wait for it
            self.works = {}
            self.free = list(range(OPEN.rows))
            self.torn = False  # a call has ended with its connection
            self.dropped: list[PendingCall] = []  # messages without a handle; the oldest give way if rows are needed
            for row in self.free:
                OPEN.erase(self.memory, self.base, row)

    # From the call until the library has it

    def post(self, call: Call, line: int, file: str) -> PendingCall:
        """A call is about to enter the library. MismatchError if another rank has made one that does not fit;
        WaitEnded if the waits of this cell were ended: no connection is left."""
        interruptible.check()
        if self.works:
            self._hand_over_all()
            self.sweep()
        with self._lock:
            pending = PendingCall(call, self.counters.of(call), self.slot.cells, line)
            self.counters.write(pending.counter)
            self._open(pending, call, file)
        self._enter(pending)
        if self.guard is not None:
            try:
                self._compare(self.guard, pending, call)
            except MismatchError:
                assert pending.mark is not None  # that is what was compared
                self.guard.refuse(pending.mark, self.slot.cells)
                self.withdraw(pending)
                if pending.failed:  # the first cause, not what came of it
                    raise keep(pending.failed)  # noqa: B904
                raise
            except Overtaken:
                pending.open = pending.open._replace(apart=True)
                self._write_open(pending, True)
                interruptible.pause()
            except BaseException:
                self.withdraw(pending)
                raise
        return pending

    def _open(self, pending: PendingCall, call: Call, file: str) -> None:
        self.tickets += 1
        tensors, failed = call.ins or call.outs, pending.failed
        pending.open = OpenCall(
            ticket=self.tickets,
            key=call.group.key,
            seq=pending.seq,
            nbytes=sum(tensor.numel() * tensor.element_size() for tensor in tensors),
            since=time.monotonic_ns(),
            peer=-1 if call.peer is None else call.peer,
            tag=call.tag,
            line=pending.line,
            waiting=False,
            kind=call.kind,
            op=call.name,
            what=_described(tensors),
            file=file,
            cell=self.slot.cells,
            number=self.slot.number,
            after=f"{type(failed).__name__}: {failed}".partition("\n")[0].removesuffix(": ") if failed else "",
        )
        if not self.free and self.dropped:
            self._erase(self.dropped.pop(0))
        pending.row = self.free.pop() if self.free else None  # more than the table holds: the rest is not shown
        self._write_open(pending, False)

    def _compare(self, guard: Guard, pending: PendingCall, call: Call) -> None:
        refuse_tensors(call)  # here, since what this rank alone has wrong is posted nowhere
        cut = call.cut() if call.name == "all_to_all_single" else None
        tensors = () if call.name in ("barrier", "monitored_barrier") else call.ins or call.outs
        dtype, own, other = dtype_name(tensors[0].dtype) if tensors else "", self.slot.rank, pending.open.peer
        if call.kind == "collective":
            ends, count = (other, -1, -1), call.count
        else:
            src, dst = (other, own) if call.kind == "recv" else (own, other)
            ends, count = (src, dst, call.tag), pending.open.nbytes
        what = call.name, call.reduce, dtype, pending.open.file, pending.failed, order_in_memory(call)
        mark = pending.mark = self._mark(call.group.key, pending.seq, count, ends, pending.line, call.kind, *what)
        guard.begin(self.slot.cells)
        if call.kind == "collective":
            guard.collective(mark, call.group.ranks)
            if cut:
                guard.splits(mark, call.group.ranks, cut)
        elif self.counters.numbered(call):
            guard.message(mark)

    def _mark(self, key, seq, count, ends, line, kind, op, reduce, dtype, file, failed, order="") -> Fingerprint:
        (src, dst, tag), epoch, number = ends, self.counters.epoch, self.slot.number
        what = op, reduce, dtype, file[:24], bool(failed), number, order
        return Fingerprint(key, epoch, seq, count, src, dst, tag, line, kind, *what)

    def new_group(self, members: list[int], world_size: int, line: int, file: str) -> None:
        """A group is about to be made by all ranks. MismatchError if another rank makes one of other members now."""
        named = ",".join(map(str, members))
        named = named if len(named) <= 32 - len("new_group([])") else f"{members[0]},...,{members[-1]}"  # as it fits
        said, failed = f"new_group([{named}])", _own(sys.exception())
        with self._lock:
            self.new_groups += 1
            self.made = (self.slot.cells, [*self.made_here(), (said, line, file)])
            what = line, "collective", said, "", "", file, failed
            mark = self._mark(NEW_GROUPS, self.new_groups, len(members), (-1, -1, -1), *what)
        if self.guard is None:
            return
        self.guard.begin(self.slot.cells)
        try:
            self.guard.collective(mark, range(world_size))
        except MismatchError:
            self.guard.refuse(mark, self.slot.cells)
            raise
        except Overtaken:
            interruptible.pause()

    def made_here(self) -> list[tuple[str, int, str]]:
        """("new_group([0,1])", line, file) of every group that this cell has made, of which all ranks have to know."""
        cell, made = self.made
        return made if cell == self.slot.cells else []

    def issued(self, pending: PendingCall, work) -> None:
        """The library has taken the call; without a `work` it is over already."""
        self.slot.leave()
        if work is None:
            self._close(pending)
        else:
            pending.held = work
            self.works[id(work)] = pending

    def refused(self, pending: PendingCall, error: BaseException) -> None:
        """The library has refused the call, for reasons of its own: it was never made."""
        self.torn |= is_lost(error)
        in_our_words(error, pending.peer if pending.kind != "collective" else None)
        if pending.mark is not None and self.guard is not None:
            self.guard.retract(pending.mark)
        self.withdraw(pending)

    def withdraw(self, pending: PendingCall) -> None:
        """The call has not begun, and the next one has its number. Its fingerprint stays: others compare with it."""
        with self._lock:
            self._erase(pending)
            pending.counter.take_back(pending.seq)
            self.counters.write(pending.counter)
        self.slot.leave()

    # The handle of a message

    def handed_over(self, work) -> None:
        """The student has the Work of a message now, and it lives as long as the student keeps it."""
        pending = self.works.get(id(work))
        if pending is not None and pending.held is work and pending.kind != "collective":
            pending.work = self._handle(work, pending.kind)
            pending.held = None
            if pending.kind == "recv":
                pending.kept = work.boxed()  # a connection whose receiver is gone can never be closed: not even by us

    def _hand_over_all(self) -> None:
        """The messages that this thread has begun without `dist.isend` and `dist.irecv`: by its next call, the caller
        has their Work. A call of another thread may not have returned yet."""
        thread = threading.get_ident()
        for pending in list(self.works.values()):
            if pending.kind != "collective" and pending.held is not None and pending.thread == thread:
                self.handed_over(pending.held)

    def _handle(self, work, kind: str) -> Handle:
        handle = Handle(work, self._gone)
        handle.key, handle.kind = id(work), kind
        return handle

    def _gone(self, handle: Handle) -> None:
        """The Work of a message is being destroyed. On any thread, at any time, so also in the middle of this code."""
        if self.over.get(handle.key) is handle:
            self.over.pop(handle.key, None)
        pending = self.works.get(handle.key)
        if pending is not None and pending.work is handle and self.works.pop(handle.key, None) is pending:
            with self._lock:
                self._drop(pending)

    def _drop(self, pending: PendingCall) -> None:
        """The Work of a message goes without a wait."""
        pending.counter.done += 1
        self.counters.write(pending.counter)
        # Asked twice, since a row that is being written cannot be read: what was begun must not be taken for not begun.
        begun = self.slot.here is not None and pending.open.peer not in self.slot.here  # what is there is not known
        begun = begun or any(messages_begun(self.memory, pending.open, self.slot.rank) for _ in range(2))
        # The data of a receive need a round trip, which takes longer than the rest of the line.
        at_once = pending.kind == "recv" and self.tickets == pending.open.ticket and callsite.line() == pending.line
        pending.open = pending.open._replace(dropped=DROPPED_LATE if begun and not at_once else DROPPED_EARLY)
        self._write_open(pending, False)
        self.dropped.append(pending)

    # The wait for a call, and its end

    def waits(self, work) -> PendingCall | None:
        """The main thread blocks on this work now. None for a work that no call here has made. RuntimeError if it is a
        message that was waited for already."""
        if (over := self.over.get(id(work))) is not None and over() is work:
            # gloo counts a message once. A second wait is for another message, which never comes, and only the end of
            # the process gets the rank out of it. torch allows two waits for a collective.
            what = f"waits a second time for an i{over.kind}: wait() once for each, and empty the list after each round"
            raise RuntimeError(f"{callsite.where(callsite.frames()) or 'a thread'} {what}")
        return self._waits(self.posting_of(work))

    def posting_of(self, work) -> PendingCall | None:
        pending = self.works.get(id(work))
        known = pending is not None and (pending.held is work or (pending.work is not None and pending.work() is work))
        return pending if known else None

    def waits_for_memory(self, tensor) -> PendingCall | None:
        """The same for functional collectives, which know only the tensor that will hold the result."""
        if not self.works or tensor.device.type == "meta":
            return None
        address = _address(tensor)
        found = [pending for pending in list(self.works.values()) if address in pending.memory]
        return self._waits(found[-1] if found else None)

    def _waits(self, pending):
        if pending is not None:
            self._write_open(pending, True)
            self._enter(pending)
        return pending

    def waited(self, pending: PendingCall | None, work) -> None:
        """The wait has returned: the call is over."""
        if pending is None:
            return
        self.slot.leave()
        from_any = pending.kind == "recv" and pending.peer is None
        if from_any:
            pending.peer = pending.group.ranks[work._source_rank()]
        if self._end(id(work), pending):
            if pending.kind != "collective" and not pending.on_gpu:  # NCCL lets a message be waited for again
                self.over[id(work)] = pending.work or self._handle(work, pending.kind)
            pending.work = None
            if from_any:  # that message of its sender's is not there for others any more
                with self._lock:
                    took = self.counters.of_messages(pending.group, "took", pending.peer, pending.open.tag)
                    took.begun += 1
                    took.done += 1
                    self.counters.write(took)

    def memory_arrived(self, pending: PendingCall | None) -> None:
        """The same for `waits_for_memory`."""
        if pending is not None:
            self.slot.leave()
            self._end(id(pending.held), pending)

    def stopped(self, pending: PendingCall | None, error: BaseException) -> BaseException:
        """The wait has ended with an error. The exception that the student is to see."""
        if pending is None:
            if is_cut(error):
                error.args = ("what this waits for was lost when an earlier cell was ended: make the call again",)
            return error
        self._write_open(pending, False)
        self.slot.leave()
        self.torn |= (torn := is_lost(error))
        if not torn and pending.kind == "collective" and pending.held.is_completed():
            self._end(id(pending.held), pending)  # it began and failed, as BAND of floats does: it is over
        in_our_words(error, pending.peer if pending.kind != "collective" else None)
        return keep(pending.failed) if pending.failed and torn else error

    def sweep(self) -> None:
        """Closes collectives that have ended without a wait in Python. From any thread."""
        for pending in list(self.works.values()):
            work = pending.held
            # Held by the pending call, `work`, and the call of getrefcount itself: the student has let go of it.
            if pending.kind == "collective" and sys.getrefcount(work) <= 3 and work.is_completed():
                if self._end(id(work), pending) and pending.event is not None:
                    # C++ may still have it: on its way to the student, or kept for the wait of a functional collective.
                    self.swept.append((weakref.ref(work), pending.memory, pending.event))

    def event_of_swept(self, work=None, tensor=None) -> tuple | None:
        """(recorder, event) of a call that was swept and is waited for only now, by its Work or by what it wrote to."""
        for swept in reversed(self.swept):
            known, memory, event = swept
            if _address(tensor) in memory if work is None else known() is work:
                self.swept.remove(swept)
                return event
        return None

    def _end(self, key: int, pending: PendingCall) -> bool:
        """Close the call unless a thread has closed it or a reset has dropped it; `key` is the id of its Work."""
        if self.works.get(key) is not pending or self.works.pop(key, None) is None:
            return False
        self._close(pending)
        return True

    def _close(self, pending: PendingCall) -> None:
        with self._lock:
            self._erase(pending)
            pending.counter.done += 1
            self.counters.write(pending.counter)

    # What the others see

    def _enter(self, pending: PendingCall, detail: str = "") -> None:
        self.slot.enter(pending.name, pending.group.label, pending.seq_in_cell, pending.peer, pending.line, detail)

    def held(self, pending: PendingCall, seconds: float) -> None:
        """The library is done with the call; the network that is played takes so much longer."""
        self._enter(pending, f"the network takes {seconds:.0f} s")

    def _write_open(self, pending: PendingCall, waiting: bool) -> None:
        if pending.row is not None:
            OPEN.write(self.memory, self.base, pending.row, pending.open._replace(waiting=waiting))

    def _erase(self, pending: PendingCall) -> None:
        row, pending.row = pending.row, None  # at once: a reset on another thread may take it away, too
        if row is not None:
            OPEN.erase(self.memory, self.base, row)
            self.free.append(row)


def keep(error: BaseException) -> BaseException:
    """The exception, to be raised again from another place; `_output.shorten_tracebacks` shows it as it is now."""
    error.__dict__.setdefault("_ringside_seen", (error.__traceback__, error.__context__))
    return error


def _own(error: BaseException | None) -> BaseException | None:
    """The exception, unless it comes from the ranks' disturbing each other or from the stop button."""
    if error is None or isinstance(error, (MismatchError, KeyboardInterrupt)) or is_lost(error):
        return None
    return error


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
