"""`python -m launch.machine TICKET`: this machine joins a notebook elsewhere. An engine starts it once on each machine.

To the ranks here it is what the notebook's kernel is on one machine: it binds their sockets, drains their pipes and
starts their agent. It forwards everything over its one connection to the notebook, in order, and executes the requests
that come back (`listener.py` lists them). Text that a rank printed before a message is sent before it. The flight
recorder is a file on this machine; its changes are sent as often as the notebook looks at it.

It ends with its ranks when the notebook says so, is silent or no longer connected, and when the engine ends it.

Left out: joining again. zmq reconnects a broken connection, or the machine is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import secrets
import signal
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial

import zmq
import zmq.asyncio
from zmq.utils.monitor import recv_monitor_message

from launch.kernel.host import Deaths, is_suspended, proportional_memory
from launch.kernel.hub import Hub
from launch.kernel.site import AgentLink
from launch.kernel.worker import PipeReader
from launch.machine.listener import ALONE_AFTER, BEAT, LOST_AFTER, forget
from launch.shared.flight_recorder import HEADER_BYTES, SLOT_BYTES, Board
from launch.shared.processes import fresh_environ

BROKEN_AFTER = 5.0  # seconds without a connection, which zmq tries to make several times a second
ENGINE_SAYS = 0.5  # seconds; Slurm signals every process of a job, and this one may be the last to get it
LOOK = 0.05  # seconds between two readings of the flight recorder
CHUNK = 1024  # bytes of it that are sent if one of them has changed
SIOCGIFADDR = 0x8915
OF_THE_ENGINE = ("TORCHELASTIC_", "GROUP_", "ROLE_", "MASTER_", "SLURM_")  # variables that ranks must not inherit


USAGE = """\
usage: python -m launch.machine TICKET

Joins this machine to the notebook that waits in %ranks attach: its ranks run here from then on. TICKET is the file that
%ranks attach has written. Start it once on each machine, as with

  srun --nodes=2 --ntasks-per-node=1 python -m launch.machine TICKET

%ranks attach prints the command for torchrun, too."""


class LocalHub(Hub):
    """The sockets of the ranks here; every message is forwarded to the notebook unchanged."""

    CHANNELS = (*Hub.CHANNELS, "store")
    on_frames: Callable[[str, list[bytes]], None]

    def hears(self, channel: str, frames: list[bytes]) -> None:
        self.on_frames(channel, frames)


class Joined:
    """This machine, once it has joined. `interface` is the network interface that reaches the notebook."""

    def __init__(self, wire: zmq.Socket, key: bytes, interface: str):
        self.interface = interface
        self.hub = LocalHub(key)
        self.hub.on_frames = self._from_rank
        self.loop = self.hub.loop
        self.readers: dict[int, list[PipeReader]] = {}  # pid -> of its pipes
        self.names: dict[str, int] = {}  # rank's name -> pid
        self.deaths = Deaths()
        self.board: Board | None = None
        self.number = 0
        self.ranks: set[int] = set()
        self._sent: dict[int, bytes] = {}  # rank -> its part of the flight recorder, as it was sent last
        self.ended = self.loop.create_future()
        self.heard = self.loop.time()
        self.events = wire.get_monitor_socket(zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED)
        self.connected = True
        self.hub.run(self._begin(wire)).result()

    async def _begin(self, wire: zmq.Socket) -> None:
        self.wire = zmq.asyncio.Socket(shadow=wire.underlying)
        self.agent = AgentLink(self.hub.folder)
        self.agent.listen(self.loop, self._from_agent)
        self._tasks = [self.loop.create_task(each) for each in (self._receive(), self._look(), self._beat())]

    # To the notebook

    def send(self, kind: bytes, *frames: bytes) -> None:
        forget(self.wire.send_multipart([kind, *frames]))

    def tell(self, **event) -> None:
        self.send(b"tell", json.dumps(event).encode())

    def _drain(self) -> None:
        for readers in self.readers.values():
            for reader in readers:
                reader.drain()

    def _from_rank(self, channel: str, frames: list[bytes]) -> None:
        if channel == "store":
            self.send(b"store", *frames)
        else:
            self._drain()
            self.send(channel.encode(), *frames)

    def _on_text(self, name: str, stream: str, text: str) -> None:
        self.send(b"text", name.encode(), stream.encode(), text.encode())

    def _from_agent(self, event: dict, fds: list[int]) -> None:
        kind = event["event"]
        if kind == "started":
            self.tell(**event)
            self.readers[event["pid"]] = [
                PipeReader(self.loop, fd, partial(self._on_text, event["name"], stream))
                for fd, stream in zip(fds, ("stdout", "stderr"), strict=True)
            ]
        elif kind == "exited":
            self._drain()
            for reader in self.readers.pop(event["pid"], ()):
                reader.close()
            self._look_once()  # its last words
            self.tell(event="exited", pid=event["pid"], death=asdict(self.deaths.how(event["status"])))
        elif kind == "gone":  # it died, or the engine is ending all processes: then that is the reason
            assert self.agent.process, "no other agent has forked it"
            log, how = event["log"], str(self.deaths.how(self.agent.process.wait()))
            print(
                f"the agent has ended ({how}); " + (f"the end of its log:\n{log}" if log else "its log is empty"),
                flush=True,
            )
            why = f"has lost its agent ({log.rpartition(chr(10))[2] or how})"
            self.loop.call_later(ENGINE_SAYS, self.end, why)
        else:
            self.tell(**event)

    # From the notebook

    async def _receive(self) -> None:
        while True:
            kind, *rest = await self.wire.recv_multipart()
            self.heard = self.loop.time()
            if kind == b"do":
                self._obey(json.loads(rest[0]))
            elif kind == b"board":
                if int(rest[0]) == self.number and self.board:
                    for offset, raw in zip(map(int, rest[1::2]), rest[2::2], strict=True):
                        self.board.memory[offset : offset + len(raw)] = raw
            elif kind == b"store":
                forget(self.hub.sockets["store"].send_multipart(rest))
            elif kind != b"beat":
                self.loop.create_task(self._deliver(kind.decode(), rest))

    async def _deliver(self, channel: str, frames: list[bytes]) -> None:
        with contextlib.suppress(zmq.ZMQError):  # this machine ends, and its sockets are closed already
            await self.hub.deliver(channel, frames)

    def _obey(self, request: dict) -> None:
        what = request.pop("do")
        if what == "start":
            self._start(**request)
        elif what == "look":
            came = time.monotonic()
            self._look_once()
            pids = list(self.readers)
            memory = {pid: proportional_memory(pid) for pid in pids} if request.get("memory") else {}
            asleep = [pid for pid in pids if is_suspended(pid)]
            told = {"number": request["number"], "memory": memory, "suspended": asleep, "came": came}
            self.tell(event="answer", **told, left=time.monotonic())
        elif what == "withdraw":
            self.agent.withdraw(**request)
        elif what == "bye":
            self.end("was let go")
        else:
            self.agent.send(do=what, **request)

    def _start(self, ranks: list[int], spawn: bool, serial: int, session: dict) -> None:
        """Starts ranks in this machine's folder, environment and network."""
        if session["number"] != self.number:
            if self.board:
                self.board.close()
                os.unlink(self.board.path)
            path = f"{self.hub.folder}/board-{session['number']}"
            self.board = Board(path, session["world_size"])
            self.number, self.ranks, self._sent = session["number"], set(), {}
        board = self.board
        assert board is not None
        board.memory[0:8] = session.pop("epoch").to_bytes(8, "little")
        self.ranks |= set(ranks)
        for rank in ranks:
            board.clear(rank)
            self._sent.pop(rank, None)  # nor does the notebook know anything of it any more
        session |= {"board": board.path, "environ": environ_here(self.interface) | session.pop("meeting")}
        session |= {"here": sorted(self.ranks), "store": f"ipc://{self.hub.folder}/store"}
        self.agent.start(ranks, spawn, serial, self.hub.key, session)

    def end(self, why: str = "") -> None:
        """Ends this process and its ranks; tells the notebook why, unless that is ""."""
        if not self.ended.done():
            if why:
                self.tell(event="gone", why=why)
            self.ended.set_result(None)

    # Periodic work

    async def _look(self) -> None:
        while True:
            self._look_once()
            await asyncio.sleep(LOOK)

    def _look_once(self) -> None:
        """Sends what the ranks here have written since the last time, in one message."""
        if self.board is None:
            return
        frames = []
        for rank in self.ranks:
            start = HEADER_BYTES + rank * SLOT_BYTES
            now, before = self.board.memory[start : start + SLOT_BYTES], self._sent.get(rank, bytes(SLOT_BYTES))
            if now != before:
                self._sent[rank] = now
                for at in range(0, SLOT_BYTES, CHUNK):
                    if now[at : at + CHUNK] != before[at : at + CHUNK]:
                        frames += [b"%d" % (start + at), now[at : at + CHUNK]]
        if frames:
            self.send(b"board", b"%d" % self.number, *frames)

    async def _beat(self) -> None:
        connected = self.loop.time()
        while True:
            self.send(b"beat")
            now = self.loop.time()
            while self.events.poll(0):
                self.connected = recv_monitor_message(self.events)["event"] != zmq.EVENT_DISCONNECTED
            if self.connected:
                connected = now
            if now - self.heard > ALONE_AFTER or now - connected > BROKEN_AFTER:
                print("the notebook does not answer any more: the ranks here end", flush=True)
                self.end()
            await asyncio.sleep(BEAT)

    def serve(self) -> None:
        """Runs until the notebook or the engine ends it; then all ranks here end."""

        async def over():
            await self.ended
            for task in self._tasks:
                task.cancel()
            self.loop.remove_reader(self.agent.socket)

        over_there = self.hub.run(over())
        while not over_there.done():  # with timeouts: a signal is handled only between two waits
            with contextlib.suppress(TimeoutError):
                over_there.result(timeout=0.2)
        self.agent.close()
        self.hub.close()
        self.wire.close(1000)


def environ_here(interface: str) -> dict[str, str]:
    """This machine's environment for its ranks: without the engine's variables, with gloo on the right interface."""
    environ = {name: value for name, value in fresh_environ().items() if not name.startswith(OF_THE_ENGINE)}
    if name := os.environ.get("GLOO_SOCKET_IFNAME") or interface:
        environ["GLOO_SOCKET_IFNAME"] = name
    return environ


def interface_with(address: str) -> str:
    """The name of the interface that has this address; "" if none has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                answer = fcntl.ioctl(probe, SIOCGIFADDR, struct.pack("256s", name.encode()))
                if socket.inet_ntoa(answer[20:24]) == address:
                    return name
    return ""


def own_address(notebook: str) -> str:
    """This machine's address on the interface that reaches the notebook."""
    host, port = notebook.removeprefix("tcp://").rsplit(":", 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, int(port)))  # sends nothing
        return probe.getsockname()[0]


def read_ticket(path: str) -> dict:
    """SystemExit, in one sentence, if it cannot be used."""
    try:
        if stat.S_IMODE(os.stat(path).st_mode) & 0o077:
            raise SystemExit(f"others can read the ticket {path}: chmod 600 {path}, or attach anew if they may have")
        with open(path) as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not one"
        raise SystemExit(f"the ticket {path} cannot be read ({why}): run %ranks attach again") from None


def position() -> tuple[int, int]:
    """(index of this machine, number of machines), from torchrun's or srun's variables."""
    environ = os.environ
    for index, count in (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")):
        if index in environ and count in environ:
            return int(environ[index]), int(environ[count])
    return 0, 1


def dial(ticket: dict) -> zmq.Socket:
    """The connection to the notebook, which proves its identity with the key that the ticket names."""
    wire = zmq.Context.instance().socket(zmq.DEALER)
    wire.identity = secrets.token_bytes(16)
    wire.linger = 1000
    wire.sndhwm = wire.rcvhwm = 0
    wire.curve_serverkey = ticket["server"].encode()
    wire.curve_secretkey = (secret := ticket["secret"].encode())
    wire.curve_publickey = zmq.curve_public(secret)
    wire.connect(ticket["address"])
    return wire


def main() -> None:
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(USAGE)
        return
    if len(sys.argv) != 2:
        raise SystemExit("python -m launch.machine needs the ticket that %ranks attach has written")
    ticket = read_ticket(sys.argv[1])
    address = own_address(ticket["address"])
    wire = dial(ticket)
    index, count = position()
    told = {"index": index, "of": count, "name": socket.gethostname(), "address": address}
    wire.send_multipart([b"come", json.dumps(told).encode()])
    if not wire.poll(int(LOST_AFTER * 1000)):
        raise SystemExit(
            f"no answer from {ticket['address']}: is %ranks attach still waiting, and can this machine reach it?"
        )
    kind, content = wire.recv_multipart()
    welcome = json.loads(content)
    if welcome["do"] != "welcome":
        raise SystemExit("the notebook waits for no more machines: run %ranks attach again")
    joined = Joined(wire, bytes.fromhex(welcome["key"]), interface_with(address))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: joined.loop.call_soon_threadsafe(joined.end, "was ended by its engine"))
    joined.serve()


if __name__ == "__main__":
    main()
