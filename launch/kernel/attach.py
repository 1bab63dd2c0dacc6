"""Machines other than this one: what the notebook listens at while they come, and its end of each that has come.

An engine (torchrun, srun) starts `python -m launch.machine TICKET` once on each machine. It dials out to the notebook
over CurveZMQ: what goes over the wire is encrypted, and only who holds the secret of the ticket gets as far as one
message. Everything of a machine goes over its one connection, in order: requests for its agent, the Jupyter messages
of its ranks, what they print, what their flight recorders say. Ranks themselves are the same as ever, and dial in at
sockets of their machine.

The ticket is a file of mode 0600, made anew for each `attach` and removed when the machines are there. So the secret
stands in no command line, which other users of a machine can list; in no environment, which engines hand around and
write into logs; and in no output of the notebook, which is saved. On clusters the home folder is on all machines; where
it is not, the file has to be copied.

    kernel -> machine   do JSON | a channel, frames | board number offset bytes | store rank answer
    machine -> kernel   come JSON | tell JSON | a channel, frames | text name stream bytes
                        | board number (offset bytes)* | store rank request

A machine is lost when nothing was heard of it for LOST_AFTER seconds. It is told to end when it comes back, and ends by
itself when the connection is gone or nothing comes from here.

Left out: machines that come later, when the others are there. Data between ranks: gloo's own connections, in clear.
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
from typing import Any

import zmq

from launch.backends import BACKENDS
from launch.kernel import clocks
from launch.kernel._shelf import Shelf
from launch.kernel.clocks import Offset
from launch.kernel.hub import Hub
from launch.shared.errors import LaunchError, UsageError

BEAT = 1.0  # seconds between two signs of life
LOST_AFTER = 15.0  # seconds without one; a machine that computes at its limits still finds time in between
ALONE_AFTER = 60.0  # the same for the machine: a kernel that computes with Python's lock in its hand may be silent
LETTING_GO = 5.0  # seconds in which a machine that is let go says that it has heard it
TICKETS = "~/.ringside"


class Machine:
    """One that has come. What a supervisor asks of it is what it asks of an AgentLink."""

    def __init__(self, door: Door, peer: bytes, told: dict):
        self.door, self.peer = door, peer
        self.index, self.name, self.address = told["index"], told["name"], told["address"]
        self.heard = door.hub.loop.time()
        self.gone = self.why = ""  # how its ranks ended, and why, once it is gone
        self.suspended: set[int] = set()  # processes there, at the last look
        self.offset: Offset | None = None  # of its clock, as well as it is known
        self.on_event: Callable[[dict, list[int]], None] = lambda event, fds: None
        self.ready: asyncio.Future[int] = door.hub.loop.create_future()  # how many GPUs it has
        self._asked: dict[int, tuple[asyncio.Future, float]] = {}  # and when, by our clock

    def __str__(self) -> str:
        return f"{self.name} ({self.address})"

    def start(self, ranks: list[int], spawn: bool, serial: int, key: bytes, session: dict) -> None:
        own = {"number": self.door.number, "epoch": self.door.epoch(), "meeting": self.door.meeting}
        told = {name: value for name, value in session.items() if name not in ("board", "environ")} | own
        for rank in ranks:
            self.door.hub.ways[self.door.hub.address(f"{rank}.{serial}")] = self._carry
        self.send(do="start", ranks=ranks, spawn=spawn, serial=serial, session=told)

    def withdraw(self, serial: int) -> None:
        self.send(do="withdraw", serial=serial)

    def _carry(self, channel: str, frames: list[bytes]) -> None:
        self.door.send(self.peer, channel.encode(), *frames)

    def send(self, **request) -> None:
        self.door.send(self.peer, b"do", json.dumps(request).encode())

    def has_ended(self) -> bool:
        return bool(self.gone)

    def has_ended_process(self, pid: int) -> bool:
        """What is not known here yet will be told."""
        return False

    def has_suspended(self, pid: int) -> bool:
        return pid in self.suspended

    async def memory(self, pids: list[int]) -> dict[int, int]:
        told = await self.look(memory=True)
        return {int(pid): taken for pid, taken in told.get("memory", {}).items()}

    async def look(self, memory: bool = False) -> dict:
        """{"memory": bytes by pid, "suspended": pids, "offset": of its clock}; {} if it is lost. What its flight
        recorder said is here by then."""
        if self.gone:
            return {}
        number = self.door.next_number()
        answer = self.door.hub.loop.create_future()
        self._asked[number] = answer, time.monotonic()
        self.send(do="look", number=number, memory=memory)
        try:
            return await answer
        finally:
            self._asked.pop(number, None)

    async def compare_clocks(self) -> Offset | None:
        """The offset of its clock now, from the quickest of several exchanges; None if it is lost."""
        seen = [told["offset"] for _ in range(clocks.EXCHANGES) if (told := await self.look())]
        return min(seen, key=lambda offset: offset.error, default=None)

    def tells(self, event: dict) -> None:
        kind = event["event"]
        if kind == "answer":
            back = time.monotonic()
            self.suspended = set(event["suspended"])
            answer, sent = self._asked.get(event["number"], (None, 0.0))
            if answer and not answer.done():
                offset = clocks.exchanged(sent, event["came"], event["left"], back)
                self.offset = clocks.latest(self.offset, offset)
                answer.set_result(event | {"offset": offset})
        elif kind == "ready":
            if not self.ready.done():
                self.ready.set_result(event["gpus"])
        elif kind in ("failed", "gone"):
            self.is_lost(event["why"])
        else:
            self.on_event(event, [])

    def is_lost(self, why: str) -> None:
        if self.gone:
            return
        self.gone, self.why = f"its machine {self} {why}", why
        self.door.machines.pop(self.peer, None)
        self.door.came.set()
        if not self.ready.done():
            self.ready.set_exception(LaunchError(f"{self} {why}"))
            self.ready.exception()
        for answer, _ in self._asked.values():
            if not answer.done():
                answer.set_result({})
        self.on_event({"event": "gone", "how": self.gone}, [])


class Door:
    """Where machines dial in. `machines` are those that are here; made and used in the hub's thread."""

    def __init__(self, hub: Hub):
        self.hub, self.shelf = hub, Shelf()
        self.machines: dict[bytes, Machine] = {}
        self.expected = 0  # how many there will be, as the first to come says
        self.open = True
        self.number = 0  # of the flight recorder in use; what comes for another one is late
        self.on_board: Callable[[int, bytes], None] = lambda offset, raw: None
        self.epoch: Callable[[], int] = lambda: 0  # of the flight recorder
        self.meeting: dict[str, str] = {}  # where ranks meet that make a process group themselves
        self.came = asyncio.Event()  # or went
        self._last = 0

    def next_number(self) -> int:
        self._last += 1
        return self._last

    async def listen(self, where: str) -> str:
        """Listens at an address of this machine, "10.0.0.1" or "10.0.0.1:5000"; the path of the ticket."""
        host, colon, port = where.partition(":")
        host = host or own_address()
        if colon and not (port.isdecimal() and 0 < int(port) < 1 << 16):
            raise UsageError(f"a port is a number from 1 to 65535, as in %ranks attach {host}:5000, got {where}")
        public, own = zmq.curve_keypair()
        theirs, secret = zmq.curve_keypair()
        self.hub.let_in(OnlyThis(theirs))
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

    async def all_here(self) -> list[Machine]:
        """Waits until all machines are here and have imported torch; LaunchError if one of them fails."""
        while not self.expected or len(self.machines) < self.expected:
            self.came.clear()
            await self.came.wait()
        here = sorted(self.machines.values(), key=lambda machine: machine.index)
        await asyncio.gather(*(machine.ready for machine in here))
        await asyncio.gather(*(machine.compare_clocks() for machine in here))
        self.shut()
        return here

    def shut(self) -> None:
        """Nobody else comes in, and the ticket is of no use any more."""
        self.open = False
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.ticket)

    async def close(self) -> None:
        """Lets all machines go, and waits until they have heard it."""
        self.shut()
        for machine in self.machines.values():
            machine.send(do="bye")
        self.came.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LETTING_GO):
                while self.machines:
                    await self.came.wait()
                    self.came.clear()
        for task in self._tasks:
            task.cancel()
        self.hub.ways.clear()
        self.socket.close(1000)

    def send(self, peer: bytes, kind: bytes, *frames: bytes) -> None:
        unasked(self.socket.send_multipart([peer, kind, *frames]))

    def write(self, offset: int, raw: bytes) -> None:
        """Into the flight recorders of all machines."""
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
                    self._comes(peer, json.loads(frames[1]))
                else:  # it was lost, or comes too late
                    self.send(peer, b"do", b'{"do": "bye"}')
            except (ValueError, LookupError, TypeError) as error:
                if machine is not None:
                    machine.is_lost(f"has said what makes no sense here ({error!r}): is Ringside the same there?")

    def _comes(self, peer: bytes, told: dict) -> None:
        self.expected = self.expected or told["of"]
        self.machines[peer] = machine = Machine(self, peer, told)
        self.send(peer, b"do", json.dumps({"do": "welcome", "key": self.hub.key.hex()}).encode())
        machine.heard = self.hub.loop.time()
        self.came.set()

    def _take(self, machine: Machine, kind: bytes, *rest: bytes) -> None:
        if kind == b"tell":
            machine.tells(json.loads(rest[0]))
        elif kind == b"text":
            name, stream, text = (frame.decode() for frame in rest)
            machine.on_event({"event": "text", "name": name, "stream": stream, "text": text}, [])
        elif kind == b"store":
            self.send(machine.peer, b"store", rest[0], self.shelf.answer(rest[1]))
        elif kind == b"board":
            if int(rest[0]) == self.number:
                for offset, raw in zip(rest[1::2], rest[2::2], strict=True):
                    self.on_board(int(offset), raw)
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
                if now - before > LOST_AFTER / 2:  # it was this kernel that heard nothing, whoever kept it
                    machine.heard = now
                if now - machine.heard > LOST_AFTER:
                    machine.is_lost("does not answer any more")
            before = now
            await asyncio.sleep(BEAT)


def place(rank: int, size: int, machines: int) -> int:
    """On which machine a rank is: ranks in a row share one."""
    return rank * machines // size


def check_gpus(size: int, backend: str, machines: list[Machine]) -> None:
    """UsageError if a machine has too few GPUs for its ranks."""
    for index, each in enumerate(machines):
        needed = BACKENDS[backend].gpus * sum(place(rank, size, len(machines)) == index for rank in range(size))
        if needed > (gpus := each.ready.result()):
            why = f"{size} ranks with {backend} need {needed} GPUs on {each}, which has {gpus}"
            raise UsageError(f"{why}: use --backend gloo")


def unasked(sent: Any) -> None:
    """A message of which nobody asks how it went: whoever has gone is noticed by the silence."""
    sent.add_done_callback(lambda done: done.cancelled() or done.exception())


class OnlyThis:
    """Lets in who has the secret key to this public one."""

    def __init__(self, key: bytes):
        self.key = key

    def callback(self, domain: str, key: bytes) -> bool:
        return secrets.compare_digest(key, self.key)


def write_ticket(content: dict) -> str:
    """A file of mode 0600 with the address and the keys of this once."""
    folder = Path(TICKETS).expanduser()
    folder.mkdir(mode=0o700, exist_ok=True)
    handle, path = tempfile.mkstemp(prefix="attach-", dir=folder)  # of mode 0600
    with open(handle, "w") as file:
        json.dump(content, file)
    return path


def own_address() -> str:
    """By which other machines most likely reach this one: where a packet to the world would come from."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address for documents; a datagram socket sends nothing here
        except OSError:
            raise UsageError(
                "this machine has no way to others: name the address, as in %ranks attach 10.0.0.1"
            ) from None
        return probe.getsockname()[0]
