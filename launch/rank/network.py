"""Plays a network in this rank: every wait is held until the network would have delivered what is waited for.

The bytes go over gloo's own connections at the machine's speed; the network only decides when a wait returns. A
message is put on the shared links when both ranks are there (shared/wires.py). A collective takes the steps that gloo
takes inside it (backends/gloo.py), which begin once the last of the ranks that it needs data from has made the call; so
all ranks leave a barrier at the same moment. What else is in flight on the same links delays it.

The tap calls `begin` when a call is made, and `hold` when the wait for it has returned. A call begins, by the network's
clock, when the last wait ended by that clock, plus what the rank did meanwhile. Not counted is the time in which the
machine ran other processes (the kernel measures it), and up to SOFTWARE of Python's own, which belongs to the latency.

Left out: a call that is never waited for and never asked about costs its rank nothing, only the others bandwidth.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from typing import NamedTuple

from launch.backends import gloo
from launch.rank import interruptible
from launch.rank._ops import Call
from launch.shared.wires import Links, Wires

SOFTWARE = 0.0005  # seconds
LEAST = 1e-6  # seconds; less is not waited for


class Begun(NamedTuple):
    """A call that began `at` that moment. A collective ends `until` then at the earliest, and `seconds` after the last
    of the ranks that it `needs` has begun it under this `name`; without needs nothing is known of its steps."""

    at: float
    until: float = 0.0
    seconds: float = 0.0
    needs: tuple[int, ...] = ()
    name: int = 0


class Network:
    """The network of `table`, which launch/networks.py makes:

    path     of the shared file
    betas    seconds per byte of every link
    ways     [src][dst] -> (alpha, [[link, rank at that end], ...])
    """

    def __init__(self, rank: int, table: dict):
        self.rank, self.table = rank, table
        self.betas, self.ways = table["betas"], table["ways"]
        self.wires = Wires(table["path"], len(self.ways), len(self.betas))
        self._sent: Counter[int] = Counter()  # bytes to each rank, since they were asked for last
        self._holds: dict[int, float] = {}  # by thread: until when
        self._ended = 0.0  # when the last wait was over, by the network's clock
        self._schedule = main_thread_schedule()
        self._delayed = self._delay()  # until then, how long the main thread had waited for a processor
        self._plans: dict[tuple, tuple | None] = {}

    def _now(self) -> float:
        now = time.monotonic()
        if threading.current_thread() is not threading.main_thread() or now < self._ended:
            return now
        return max(self._ended, now - SOFTWARE - (self._delay() - self._delayed))

    def _delay(self) -> float:
        """Seconds that the main thread has waited for a processor in its life."""
        return int(os.pread(self._schedule, 64, 0).split()[1]) / 1e9 if self._schedule is not None else 0.0

    def begin_cell(self) -> None:
        """The time between two cells is not counted."""
        self._ended, self._delayed = time.monotonic(), self._delay()

    # Around a call

    def begin(self, call: Call, name: int, nbytes: int) -> Begun:
        """A call is about to enter the library; it has a `name` (`wires.name_of`)."""
        start = self._now()
        if call.kind == "collective":
            return self._collective(call, name, start)
        if call.kind == "recv":
            if call.peer is not None:
                self._ask(call.peer, name, start)
            return Begun(start)
        assert call.peer is not None  # a send has one
        dst, way = call.peer, self.ways[self.rank][call.peer]
        with self.wires.locked():
            self.wires.sent(self.rank, dst, name, start, nbytes, way, self.betas)
            self._sent[dst] += nbytes
        return Begun(start)

    def _ask(self, src: int, name: int, at: float) -> None:
        with self.wires.locked():
            self.wires.asked(src, self.rank, name, at, self.ways[src][self.rank], self.betas)

    def _collective(self, call: Call, name: int, start: float) -> Begun:
        nbytes = [sum(t.numel() * t.element_size() for t in tensors) for tensors in (call.ins, call.outs)]
        root = call.group.ranks.index(call.peer) if call.peer in call.group.ranks else 0
        key = (call.name, call.group.ranks, root, gloo.amount(call.name, *nbytes), call.pieces())
        if key not in self._plans:
            if len(self._plans) > 1000:
                self._plans.clear()
            self._plans[key] = self._plan(*key)
        plan = self._plans[key]
        if plan is None:
            return Begun(start)
        seconds, needs, sent, loads = plan
        with self.wires.locked():  # what is under way already, or comes before this is over, shares the links with it
            self.wires.began(self.rank, name, start)
            ends = [self.wires.links.occupy(link, end, start, alpha, busy) for link, end, alpha, busy in loads]
            self._sent.update(sent)
        return Begun(start, max(ends, default=0.0), seconds, needs, name)

    def _plan(self, op: str, ranks: tuple[int, ...], root: int, nbytes: int, pieces) -> tuple | None:
        """(seconds until it ends here if all begin now, the ranks that it needs, {rank: bytes} that this rank sends,
        [(link, this end, seconds of latency, seconds of bytes)] of those); None for an op whose steps are not known."""
        steps = gloo.steps_of(op, len(ranks), root)
        if steps is None:
            return None
        if pieces:
            steps, nbytes = gloo.uneven(ranks.index(self.rank), *pieces), 1  # which are bytes, not shares
        links = Links(len(self.betas), len(self.ways))
        ready, sent = dict.fromkeys(ranks, 0.0), Counter[int]()
        needs = {rank: {rank} for rank in ranks}
        busy: dict[tuple[int, int], tuple[float, float]] = {}
        for step in steps:
            after, known = dict(ready), {rank: set(before) for rank, before in needs.items()}
            for src, dst, share in [(ranks[src], ranks[dst], share) for src, dst, share in step]:
                way = self.ways[src][dst]
                left, arrives = links.send(way, self.betas, ready[src], round(share * nbytes))
                after[src], after[dst] = max(after[src], left), max(after[dst], arrives)
                known[dst] |= needs[src]
                if src == self.rank and share:
                    sent[dst] += round(share * nbytes)
                    for link, end in way[1]:
                        latency, seconds = busy.get((link, end), (0.0, 0.0))
                        busy[link, end] = latency + way[0], seconds + share * nbytes * self.betas[link]
            ready, needs = after, known
        loads = [(*link, *times) for link, times in busy.items()]
        return ready[self.rank], tuple(needs[self.rank]), sent, loads

    def end(self, call: Begun) -> float:
        """When a collective that the library is done with may be over; 0.0 if its steps are not known."""
        last = max((self.wires.begun(rank, call.name) for rank in call.needs), default=0.0)
        return max(call.until, max(last, call.at) + call.seconds) if call.needs else 0.0

    def arrival(self, src: int, name: int, begun: float) -> float:
        """When that message may be here, whose receive was `begun` then."""
        if not any(met := self.wires.met(src, self.rank, name)):  # received from any source: only now it is known which
            self._ask(src, name, begun)
            met = self.wires.met(src, self.rank, name)
        return met[1]

    def departure(self, dst: int, name: int) -> float:
        """When that message has left; 0.0 if it was received from any source, and has not been asked for by name."""
        return self.wires.met(self.rank, dst, name)[0]

    def hold(self, until: float) -> None:
        """Waits until that moment. WaitEnded if the waits of this cell are ended meanwhile.

        Another thread waits where the main thread waits in C++ for what it will be told (`rank._reducer.late`).
        """
        self._delayed = self._delay()
        left = until - time.monotonic()
        if left > LEAST:
            self._holds[threading.get_ident()] = until
            try:
                interruptible.pause(left)
            finally:
                del self._holds[threading.get_ident()]
        self._ended = max(self._ended, until)

    # What others ask

    def holds(self) -> bool:
        """Whether a wait is held that is over but for the network: the rank will move. From any thread."""
        return any(until > time.monotonic() for until in [*self._holds.values()])

    def carried(self) -> dict[int, int]:
        """Bytes that this rank has sent to each rank since it was asked last. Of a collective they are those of gloo's
        steps."""
        sent, self._sent = self._sent, Counter()
        return dict(sent)

    def close(self) -> None:
        self.wires.close()
        if self._schedule is not None:
            os.close(self._schedule)


def main_thread_schedule() -> int | None:
    """The file in which Linux counts how long the main thread has run and has waited for a processor."""
    try:
        return os.open(f"/proc/self/task/{os.getpid()}/schedstat", os.O_RDONLY)
    except OSError:
        return None
