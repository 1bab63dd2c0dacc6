"""The notebook's end of the connections to other machines: the Listener, and a Machine for each that has joined.

An engine (torchrun, srun) starts `python -m launch.machine TICKET` once on each machine (`__main__.py`). The process
connects to the notebook over CurveZMQ, which encrypts everything and accepts only clients that hold the ticket's
secret. All traffic of a machine goes over this one connection, in order: requests to its agent, the Jupyter messages of
its ranks, what they print, changes of their flight recorder.

The ticket is a file of mode 0600, new for each `%ranks attach`, removed when all machines have joined. So the secret is
in no command line, no environment and no saved output. On clusters all machines share the home folder; elsewhere the
file has to be copied.

    kernel -> machine   do JSON | a channel, frames | board number offset bytes | store rank answer
    machine -> kernel   come JSON | tell JSON | a channel, frames | text name stream bytes
                        | board number (offset bytes)* | store rank request

A machine from which nothing has come for LOST_AFTER seconds is lost. If it reconnects it is asked to end; it also ends
by itself when the connection is gone or the notebook is silent.

Left out: machines that join later. What ranks send each other: gloo's own connections, not encrypted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import zmq

from launch.kernel.host import Death
from launch.kernel.hub import Hub
from launch.shared.errors import LaunchError, UsageError
from launch.shared.flight_recorder import Board, current_epoch

BEAT = 1.0  # seconds between two heartbeats
LOST_AFTER = 15.0  # seconds without one; a fully loaded machine still sends them
ALONE_AFTER = 60.0  # the same for the machine: a kernel that computes holding the GIL is silent
LETTING_GO = 5.0  # seconds in which a machine confirms that it was let go
EXCHANGES = 8  # the fastest counts; NTP's clock filter holds as many
PHI = 15e-6  # seconds per second by which two clocks may drift apart (RFC 5905)
TICKETS = "~/.ringside"


class Machine:
    """A machine that has joined: the link to its agent, with the methods of an AgentLink."""

    def __init__(self, listener: Listener, peer: bytes, told: dict):
        self.listener, self.peer = listener, peer
        self.index, self.name, self.address = told["index"], told["name"], told["address"]
        self.heard = listener.hub.loop.time()
        self.gone = self.why = ""  # how its ranks ended, and why, once it is gone
        self.ranks: set[int] = set()
        self.suspended: set[int] = set()  # processes there, as last reported
        self.offset: Offset | None = None  # of its clock; the best estimate so far
        self.on_event: Callable[[dict, list[int]], None] = lambda event, fds: None
        self.ready: asyncio.Future[int] = listener.hub.loop.create_future()  # its number of GPUs
        self._asked: dict[int, tuple[asyncio.Future, float]] = {}  # and when, by our clock

    def __str__(self) -> str:
        return f"{self.name} ({self.address})"

    def start(self, ranks: list[int], spawn: bool, serial: int, key: bytes, session: dict) -> None:
        board = self.listener.board
        assert board is not None
        own = {"number": self.listener.number, "epoch": current_epoch(board.memory)}
        told = {name: value for name, value in session.items() if name not in ("board", "environ")} | own
        self.ranks |= set(ranks)
        self.set_clock()
        for rank in ranks:
            self.listener.hub.ways[self.listener.hub.address(f"{rank}.{serial}")] = self._carry
        self.send(do="start", ranks=ranks, spawn=spawn, serial=serial, session=told)

    def withdraw(self, serial: int) -> None:
        self.send(do="withdraw", serial=serial)

    def _carry(self, channel: str, frames: list[bytes]) -> None:
        self.listener.send(self.peer, channel.encode(), *frames)

    def send(self, **request) -> None:
        self.listener.send(self.peer, b"do", json.dumps(request).encode())

    def has_ended(self) -> bool:
        return bool(self.gone)

    def has_ended_process(self, pid: int) -> bool:
        """Never: the machine reports it."""
        return False

    def has_suspended(self, pid: int) -> bool:
        return pid in self.suspended

    async def memory(self, pids: list[int]) -> dict[int, int]:
        told = await self.look(memory=True)
        return {int(pid): taken for pid, taken in told.get("memory", {}).items()}

    async def look(self, memory: bool = False) -> dict:
        """{"memory": bytes by pid, "suspended": pids, "offset": of its clock}; {} if it is lost.

        By then its flight recorder is up to date here.
        """
        if self.gone:
            return {}
        number = self.listener.next_number()
        answer = self.listener.hub.loop.create_future()
        self._asked[number] = answer, time.monotonic()
        self.send(do="look", number=number, memory=memory)
        try:
            return await answer
        finally:
            self._asked.pop(number, None)

    def set_clock(self) -> None:
        """The flight recorder is read by the notebook's clock, whatever the machine's clock is."""
        if self.offset and self.listener.board:
            self.listener.board.ahead |= dict.fromkeys(self.ranks, self.offset.seconds)

    async def read_clock(self) -> Offset | None:
        """The offset of its clock now, from the fastest of several exchanges; None if it is lost."""
        seen = [told["offset"] for _ in range(EXCHANGES) if (told := await self.look())]
        return min(seen, key=lambda offset: offset.error, default=None)

    def hears(self, event: dict) -> None:
        kind = event["event"]
        if kind == "answer":
            back = time.monotonic()
            self.suspended = set(event["suspended"])
            answer, sent = self._asked.get(event["number"], (None, 0.0))
            if answer and not answer.done():
                offset = exchanged(sent, event["came"], event["left"], back)
                self.offset = latest(self.offset, offset)
                answer.set_result(event | {"offset": offset})
        elif kind == "ready":
            if not self.ready.done():
                self.ready.set_result(event["gpus"])
        elif kind in ("failed", "gone"):
            self.is_lost(event["why"])
        elif kind == "exited":
            self.on_event(event | {"death": Death(**event["death"])}, [])
        else:
            self.on_event(event, [])

    def is_lost(self, why: str) -> None:
        if self.gone:
            return
        self.gone, self.why = f"its machine {self} {why}", why
        self.listener.machines.pop(self.peer, None)
        self.listener.changed.set()
        if not self.ready.done():
            self.ready.set_exception(LaunchError(f"{self} {why}"))
            self.ready.exception()
        for answer, _ in self._asked.values():
            if not answer.done():
                answer.set_result({})
        self.on_event({"event": "gone", "death": Death(self.gone)}, [])


class Listener:
    """Where machines connect. `machines` are those that have joined. Made and used in the hub's thread."""

    def __init__(self, hub: Hub):
        self.hub, self.store = hub, KVStore()
        self.machines: dict[bytes, Machine] = {}
        self.expected = 0  # how many will join; the first one tells
        self.open = True
        self.board: Board | None = None  # the flight recorder in use
        self.number = 0  # of this board; changes of another number are dropped
        self.changed = asyncio.Event()  # a machine has joined or gone
        self._last = 0

    def next_number(self) -> int:
        self._last += 1
        return self._last

    async def listen(self, where: str) -> str:
        """Listens at an address of this machine, "10.0.0.1" or "10.0.0.1:5000". Returns the path of the ticket."""
        host, colon, port = where.partition(":")
        host = host or own_address()
        if colon and not (port.isdecimal() and 0 < int(port) < 1 << 16):
            raise UsageError(f"a port is a number from 1 to 65535, as in %ranks attach {host}:5000, got {where}")
        public, own = zmq.curve_keypair()
        theirs, secret = zmq.curve_keypair()
        self._accept_only(theirs)
        self.socket = self.hub.context.socket(zmq.ROUTER)
        self.socket.linger = 1000
        self.socket.sndhwm = self.socket.rcvhwm = 0
        self.socket.router_handover = True
        self.socket.curve_server, self.socket.curve_publickey, self.socket.curve_secretkey = True, public, own
        try:
            self.socket.bind(f"tcp://{host}:{port or '*'}")
        except zmq.ZMQError as error:
            self.socket.close(0)
            raise UsageError(f"the notebook cannot listen at {where or host}: {error.strerror.lower()}") from None
        self.address = self.socket.get_string(zmq.LAST_ENDPOINT)
        self._tasks = [self.hub.loop.create_task(each) for each in (self._receive(), self._watch())]
        self.ticket = write_ticket({"address": self.address, "server": public.decode(), "secret": secret.decode()})
        return self.ticket

    def _accept_only(self, key: bytes) -> None:
        """Encrypted sockets of this hub accept only clients that hold this key."""
        from zmq.auth.asyncio import AsyncioAuthenticator

        if not self.hub.helpers:  # one for all, since zmq is slow to release its address
            authenticator = AsyncioAuthenticator(self.hub.context)
            authenticator.start()
            self.hub.helpers.append(authenticator)
        self.hub.helpers[0].configure_curve_callback("*", OnlyThis(key))

    async def all_here(self) -> list[Machine]:
        """Waits until all machines are here and have imported torch; LaunchError if one of them fails."""
        while not self.expected or len(self.machines) < self.expected:
            self.changed.clear()
            await self.changed.wait()
        here = sorted(self.machines.values(), key=lambda machine: machine.index)
        await asyncio.gather(*(machine.ready for machine in here))
        await asyncio.gather(*(machine.read_clock() for machine in here))
        self.shut()
        return here

    def shut(self) -> None:
        """No further machine can join; removes the ticket."""
        self.open = False
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.ticket)

    async def close(self) -> None:
        """Lets all machines go, and waits until they have heard it."""
        self.shut()
        for machine in self.machines.values():
            machine.send(do="bye")
        self.changed.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LETTING_GO):
                while self.machines:
                    await self.changed.wait()
                    self.changed.clear()
        for task in self._tasks:
            task.cancel()
        self.hub.ways.clear()
        self.socket.close(1000)

    def send(self, peer: bytes, kind: bytes, *frames: bytes) -> None:
        forget(self.socket.send_multipart([peer, kind, *frames]))

    def publish(self, offset: int, raw: bytes) -> None:
        """Writes into the flight recorders of all machines."""
        for machine in self.machines.values():
            self.send(machine.peer, b"board", b"%d" % self.number, b"%d" % offset, raw)

    async def _receive(self) -> None:
        while True:
            peer, *frames = await self.socket.recv_multipart()
            machine = self.machines.get(peer)
            try:
                if machine is not None:
                    machine.heard = self.hub.loop.time()
                    self._take(machine, *frames)
                elif frames[0] == b"come" and self.open:
                    self._joins(peer, json.loads(frames[1]))
                else:  # it was given up as lost, or is too late
                    self.send(peer, b"do", b'{"do": "bye"}')
            except (ValueError, LookupError, TypeError) as error:
                if machine is not None:
                    machine.is_lost(f"has said what makes no sense here ({error!r}): is Ringside the same there?")

    def _joins(self, peer: bytes, told: dict) -> None:
        self.expected = self.expected or told["of"]
        self.machines[peer] = machine = Machine(self, peer, told)
        self.send(peer, b"do", json.dumps({"do": "welcome", "key": self.hub.key.hex()}).encode())
        machine.heard = self.hub.loop.time()
        self.changed.set()

    def _take(self, machine: Machine, kind: bytes, *rest: bytes) -> None:
        if kind == b"tell":
            machine.hears(json.loads(rest[0]))
        elif kind == b"text":
            name, stream, text = (frame.decode() for frame in rest)
            machine.on_event({"event": "text", "name": name, "stream": stream, "text": text}, [])
        elif kind == b"store":
            self.send(machine.peer, b"store", rest[0], self.store.answer(rest[1]))
        elif kind == b"board":
            if int(rest[0]) == self.number and self.board:
                for offset, raw in zip(map(int, rest[1::2]), rest[2::2], strict=True):
                    self.board.memory[offset : offset + len(raw)] = raw
                for other in self.machines.values():
                    if other is not machine:
                        self.send(other.peer, b"board", *rest)
        elif kind != b"beat":
            self.hub.hears(kind.decode(), list(rest))

    async def _watch(self) -> None:
        before = self.hub.loop.time()
        while True:
            now = self.hub.loop.time()
            for machine in list(self.machines.values()):
                self.send(machine.peer, b"beat")
                if now - before > LOST_AFTER / 2:  # this kernel was busy and has not listened
                    machine.heard = now
                if now - machine.heard > LOST_AFTER:
                    machine.is_lost("does not answer any more")
            before = now
            await asyncio.sleep(BEAT)


class KVStore:
    """The key-value store in which ranks on several machines meet. It outlives every rank. `RemoteStore` of
    rank/_stores.py asks it. The values are the addresses where gloo listens, and no secrets."""

    def __init__(self):
        self._kept: dict[str, str] = {}  # bytes as latin1

    def answer(self, request: bytes) -> bytes:
        """[number, method, arguments ...] -> [number, value]"""
        number, do, *words = json.loads(request)
        return json.dumps([number, getattr(self, f"_{do}")(*words)]).encode()

    def _set(self, key: str, value: str) -> None:
        self._kept[key] = value

    def _get(self, key: str) -> str:
        return self._kept[key]

    def _add(self, key: str, amount: str) -> int:
        self._kept[key] = str(int(self._kept.get(key, "0")) + int(amount))
        return int(self._kept[key])

    def _compare_set(self, key: str, expected: str, desired: str) -> str:
        """As in torch, a missing key is set too, if nothing was expected."""
        found = self._kept.get(key)
        if found == expected or (found is None and not expected):
            self._kept[key] = desired
            return desired
        return expected if found is None else found

    def _delete_key(self, key: str) -> bool:
        return self._kept.pop(key, None) is not None

    def _num_keys(self) -> int:
        return len(self._kept)

    def _check(self, *keys: str) -> bool:
        return self._kept.keys() >= set(keys)


def forget(sent: Any) -> None:
    """Ignores the outcome of a send: a peer that is gone is noticed by its silence."""
    sent.add_done_callback(lambda done: done.cancelled() or done.exception())


class OnlyThis:
    """Accepts clients with the secret key that belongs to this public key."""

    def __init__(self, key: bytes):
        self.key = key

    def callback(self, domain: str, key: bytes) -> bool:
        return secrets.compare_digest(key, self.key)


def write_ticket(content: dict) -> str:
    """Writes the address and the one-time keys to a new file of mode 0600; its path."""
    folder = Path(TICKETS).expanduser()
    folder.mkdir(mode=0o700, exist_ok=True)
    handle, path = tempfile.mkstemp(prefix="attach-", dir=folder)  # of mode 0600
    with open(handle, "w") as file:
        json.dump(content, file)
    return path


def own_address() -> str:
    """This machine's address on the interface that packets to other networks leave by."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # reserved for documentation; connecting a datagram socket sends nothing
        except OSError:
            raise UsageError(
                "this machine has no way to others: name the address, as in %ranks attach 10.0.0.1"
            ) from None
        return probe.getsockname()[0]


# How far another machine's clock is from the notebook's, as in NTP (RFC 5905, sections 8 and 10).
#
# Ranks stamp what they do with the monotonic clock of their machine (`time.monotonic` and `time.perf_counter` are the
# same clock). It counts from the boot, so two machines differ by hours. The notebook sends at `sent`, the message
# arrives at `came`, the answer leaves at `left` and arrives at `back`; `came` and `left` are read on the other clock.
# If both ways took equally long, the other clock is ahead by ((came - sent) + (left - back)) / 2. In any case that is
# wrong by at most half of the round trip.
#
# Left out: the drift rate, for cells that run for hours; messages between two machines, which may be faster than those
# to the notebook (launch/replay/_one_clock.py uses them for the order of events).


class Offset(NamedTuple):
    """Another machine's clock is ahead of the notebook's by `seconds`, give or take `error` seconds. `at` is when this
    was measured, by the notebook's clock."""

    seconds: float
    error: float
    at: float


def exchanged(sent: float, came: float, left: float, back: float) -> Offset:
    """The offset from one exchange."""
    return Offset(((came - sent) + (left - back)) / 2, ((back - sent) - (left - came)) / 2, back)


def latest(known: Offset | None, new: Offset) -> Offset:
    """The tighter offset, allowing for drift since it was measured."""
    return new if known is None or new.error <= known.error + PHI * (new.at - known.at) else known


def meanwhile(before: Offset, after: Offset) -> Offset:
    """An offset that holds at all times between the two, if the same clock is the faster one all the time."""
    low = min(each.seconds - each.error for each in (before, after))
    high = max(each.seconds + each.error for each in (before, after))
    return Offset((low + high) / 2, (high - low) / 2, after.at)
