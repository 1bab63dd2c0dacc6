"""The network that this rank plays: what it sends is paced, and a wait for what it receives is over when that may come.

Messages by hand are put on the shared links when both ranks are there (shared/wires.py), and the wait for one is held
until it may arrive: that is how several share a card, or a link between machines. A collective of gloo's runs at the
rates that its steps leave (backends/gloo.py), and is over, on this rank, no earlier than those steps are. Connections
are a little quicker than the links, so that a process that wakes up late does not make the network slower than it was
asked to be.

The tap calls `begin` when a call is made, and `hold` when the wait for it has returned. A call begins, by the network's
clock, when the last wait was over by it, plus what the rank did meanwhile: not the time in which the machine was busy
with other processes (the kernel counts it), and up to SOFTWARE of Python's own, which belongs to the latency.

DDP's reducer waits in C++, for a future: that one is done no earlier either (rank/_reducer.py).

Left out: a call that nobody waits for costs bandwidth alone, and so does what is asked about with `is_completed`.
"""

from __future__ import annotations

import os
import threading
import time

from launch.backends import gloo
from launch.rank import interruptible
from launch.rank._ops import Call
from launch.rank._pace import Pace
from launch.rank._reinit import Reinit
from launch.shared.wires import Links, Wires

SOFTWARE = 0.0005  # seconds
ROOM = 0.2  # by what share connections are quicker than links: what wakes up late is not late, and the hold is exact
PACKET = 1 << 16  # bytes that a connection sends at once and makes good later: the next message would come late by them
LEAST = 1e-6  # seconds; less is not waited for


class Network:
    """The network of `table`, which launch/networks.py makes:

    path     of the shared file
    betas    seconds per byte of every link
    ways     [src][dst] -> (alpha, [[link, rank at that end], ...])
    """

    def __init__(self, rank: int, reinit: Reinit, table: dict):
        self.rank, self.table = rank, table
        self.betas, self.ways = table["betas"], table["ways"]
        self.wires = Wires(table["path"], len(self.ways), len(self.betas))
        self.pace = Pace(rank, reinit, self.wires.ports)
        self._holds: dict[int, float] = {}  # by thread: until when
        self._ended = 0.0  # when the last wait was over, by the network's clock
        self._schedule = main_thread_schedule()
        self._delayed = self._delay()  # until then, how long the main thread had waited for a processor
        self._plans: dict[tuple, tuple | None] = {}
        for peer, way in enumerate(self.ways[rank]):
            if peer != rank:
                self.pace.set(peer, self._alone(way))

    def _alone(self, way) -> float:
        """Bytes per second of a message that has its links for itself."""
        return 1 / max(max(self.betas[link] for link, _ in way[1]), 1e-15)

    def _now(self) -> float:
        now = time.monotonic()
        if threading.current_thread() is not threading.main_thread() or now < self._ended:
            return now
        return max(self._ended, now - SOFTWARE - (self._delay() - self._delayed))

    def _delay(self) -> float:
        """Seconds that the main thread has waited for a processor in its life."""
        return int(os.pread(self._schedule, 64, 0).split()[1]) / 1e9 if self._schedule is not None else 0.0

    def begin_cell(self) -> None:
        """What the rank did between two cells is nobody's time."""
        self._ended, self._delayed = time.monotonic(), self._delay()

    # Around a call

    def begin(self, call: Call, name: int, nbytes: int) -> float:
        """A call is about to enter the library; a message has a `name` (`wires.name_of`). Returns when the wait for a
        collective may be over, 0.0 if that is not known; of a message when it began."""
        self.pace.refresh()
        start = self._now()
        if call.kind == "collective":
            return self._collective(call, start)
        if call.kind == "recv":
            if call.peer is not None:
                self._ask(call.peer, name, start)
            return start
        assert call.peer is not None  # a message is sent to somebody
        dst, way = call.peer, self.ways[self.rank][call.peer]
        with self.wires.locked():
            self.wires.sent(self.rank, dst, name, start, nbytes, way, self.betas)
        self.pace.set(dst, self._alone(way), ROOM + PACKET / max(nbytes, 1))
        return start

    def _ask(self, src: int, name: int, at: float) -> None:
        with self.wires.locked():
            self.wires.asked(src, self.rank, name, at, self.ways[src][self.rank], self.betas)

    def _collective(self, call: Call, start: float) -> float:
        nbytes = [sum(t.numel() * t.element_size() for t in tensors) for tensors in (call.ins, call.outs)]
        root = call.group.ranks.index(call.peer) if call.peer in call.group.ranks else 0
        key = (call.name, call.group.ranks, root, gloo.amount(call.name, *nbytes), call.pieces())
        if key not in self._plans:
            if len(self._plans) > 1000:
                self._plans.clear()
            self._plans[key] = self._plan(*key)
        plan = self._plans[key]
        if plan is None:
            return 0.0
        seconds, rates, loads = plan
        with self.wires.locked():  # what is under way already, or comes before this is over, shares the links with it
            ends = [self.wires.links.occupy(link, end, start, alpha, busy) for link, end, alpha, busy in loads]
        for peer in call.group.ranks:
            if peer != self.rank:
                self.pace.set(peer, *(rates.get(peer) or (self._alone(self.ways[self.rank][peer]),)))
        return max(start + seconds, *ends, 0.0)

    def _plan(self, op: str, ranks: tuple[int, ...], root: int, nbytes: int, pieces) -> tuple | None:
        """(seconds until it is over here if all begin now, (bytes per second, room) of each peer, [(link, this end,
        seconds of latency, seconds of bytes)] of what this rank sends)."""
        steps = gloo.steps_of(op, len(ranks), root)
        if steps is None:
            return None
        if pieces:
            steps, nbytes = gloo.uneven(ranks.index(self.rank), *pieces), 1  # which are bytes, not shares
        links = Links(len(self.betas), len(self.ways))
        ready, rates = dict.fromkeys(ranks, 0.0), {}
        busy: dict[tuple[int, int], tuple[float, float]] = {}
        for step in steps:
            messages = [(ranks[src], ranks[dst], share) for src, dst, share in step]
            load = [0.0] * len(self.betas)
            ends = {(src, dst) for src, dst, _ in messages}
            for src, dst, share in messages:
                for link, _ in self.ways[src][dst][1]:
                    load[link] += share * self.betas[link]
            after = dict(ready)
            for src, dst, share in messages:
                way = self.ways[src][dst]
                left, arrives = links.send(way, self.betas, ready[src], round(share * nbytes))
                after[src], after[dst] = max(after[src], left), max(after[dst], arrives)
                if src == self.rank and share:
                    rate = share / max(max(load[link] for link, _ in way[1]), 1e-15)
                    # Both ways on one connection: gloo's notice that a receive is ready waits behind the data.
                    room = 1.0 if (dst, src) in ends else ROOM / 4
                    # Of steps that go at different rates the quickest: a step is not to wait for another's rate.
                    rates[dst] = max(rates.get(dst, (0.0, 0.0)), (rate, room + PACKET / max(share * nbytes, 1)))
                    for link, end in way[1]:
                        latency, seconds = busy.get((link, end), (0.0, 0.0))
                        busy[link, end] = latency + way[0], seconds + share * nbytes * self.betas[link]
            ready = after
        return ready[self.rank], rates, [(*link, *times) for link, times in busy.items()]

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

    def unsent(self) -> bool:
        """Whether bytes wait on this side for the network: a rank may move that waits for them. From any thread."""
        return self.pace.unsent()

    def lift(self) -> None:
        self.pace.lift()
        self.wires.close()
        if self._schedule is not None:
            os.close(self._schedule)


def main_thread_schedule() -> int | None:
    """The file in which Linux counts how long the main thread has run and has waited for a processor."""
    try:
        return os.open(f"/proc/self/task/{os.getpid()}/schedstat", os.O_RDONLY)
    except OSError:
        return None
