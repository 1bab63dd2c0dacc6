"""Gloo's own connections, made as slow as a link: Linux sends on a socket at most what SO_MAX_PACING_RATE says.

The rate is one connection's, and only what this rank sends; no rights are needed. A connection leads to one rank, which
is found by the port at its other end: every rank writes down which ports are its own (shared/wires.py). What has gone
over each connection, and for how long it was busy, the kernel counts itself (TCP_INFO).

The first packet after a pause goes out at once, up to 64 kB of it, and the last is not waited for: short messages are
quicker than the rate. rank/network.py holds those back.

Left out: macOS has no such option, and a sandbox may refuse it (`works` is False then).
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import time

from launch.backends.gloo import copy_of_socket
from launch.rank._reinit import Reinit

PACING = 47  # SO_MAX_PACING_RATE, bytes per second
UNPACED = 2**64 - 1
ASK_AT_ONCE, ASK_EVERY = 20, 0.2  # times, then seconds: questions for whose port it is at the other end
PATIENCE = 0.2  # seconds for the rank there to say so; it is making the same group
# tcpi_busy_time (microseconds), tcpi_bytes_sent and, of these, tcpi_bytes_retrans: what waits long is sent twice
TCP_INFO_BYTES, BUSY_AT, SENT_AT = 216, 168, 200
UNSENT = 0x5411  # SIOCOUTQ: bytes that the other side has not acknowledged

_libc = ctypes.CDLL(None, use_errno=True)


class Connection:
    """A socket of gloo's. `moved` bytes went over it, which should have taken `due` seconds and took `took`."""

    __slots__ = ("fd", "inode", "peer", "asked", "rate", "sent", "busy", "moved", "due", "took")

    def __init__(self, fd: int, inode: int, peer: int):
        self.fd, self.inode, self.peer = fd, inode, peer
        self.asked: float = UNPACED
        self.rate: float = UNPACED
        self.sent, self.busy = counted(fd)
        self.moved, self.due, self.took = 0, 0.0, 0.0

    @property
    def stands(self) -> bool:
        """Whether the descriptor is still this socket: gloo closes those of a group that is destroyed."""
        try:
            return os.fstat(self.fd).st_ino == self.inode
        except OSError:
            return False

    def count(self) -> None:
        """Adds up what went over it since the last time."""
        sent, busy = counted(self.fd)
        self.moved += sent - self.sent
        if self.asked != UNPACED:
            self.due += (sent - self.sent) / self.asked
            self.took += (busy - self.busy) / 1e6
        self.sent, self.busy = sent, busy


class Pace:
    """Paces this rank's connections; `ports` say whose port is whose."""

    def __init__(self, rank: int, reinit: Reinit, ports):
        self.rank, self.reinit, self.ports = rank, reinit, ports
        self.by_peer: dict[int, list[Connection]] = {}
        self.rates: dict[int, tuple[float, float]] = {}  # of connections to a peer that have none of their own yet
        self.works = True
        self._known: dict[int, int] = {}  # inode -> fd, as Reinit has them
        self._unknown: dict[int, int] = {}  # of these, whose peer is not known yet
        self._asked, self._times = 0.0, 0
        self._version = -1
        reinit.on_connections = self.meet
        self.refresh()

    def refresh(self) -> None:
        """Finds connections that were made since the last time, and the peers of those whose peer was not known."""
        if self._version != self.reinit.version:
            self._version = self.reinit.version
            now = self.reinit.connections()
            for inode in now.keys() - self._known.keys():
                self._unknown[inode] = now[inode]
                self._claim(now[inode])
            self._known = now
            self.by_peer = {peer: [c for c in all_ if c.inode in now] for peer, all_ in self.by_peer.items()}
            self._times = 0
        if self._unknown and (self._times < ASK_AT_ONCE or time.monotonic() - self._asked > ASK_EVERY):
            self._asked, self._times = time.monotonic(), self._times + 1
            for inode, fd in list(self._unknown.items()):
                self._find(inode, fd)

    def meet(self) -> None:
        """There are new connections: nothing is sent before it is known where they lead."""
        self.refresh()
        until = time.monotonic() + PATIENCE
        while self._unknown and time.monotonic() < until:
            time.sleep(0.0005)
            for inode, fd in list(self._unknown.items()):
                self._find(inode, fd)

    def _claim(self, fd: int) -> None:
        try:
            with copy_of_socket(fd) as copy:
                self.ports[copy.getsockname()[1]] = self.rank + 1
        except OSError:
            pass  # closed already

    def _find(self, inode: int, fd: int) -> None:
        try:
            with copy_of_socket(fd) as copy:
                if os.fstat(copy.fileno()).st_ino != inode:
                    raise OSError
                peer = self.ports[copy.getpeername()[1]] - 1
        except OSError:
            del self._unknown[inode]
            return
        if peer >= 0 and peer != self.rank:
            del self._unknown[inode]
            connection = Connection(fd, inode, peer)
            self.by_peer.setdefault(peer, []).append(connection)
            if peer in self.rates:
                self._set(connection, *self.rates[peer])

    def set(self, peer: int, asked: float, room: float = 0.0) -> None:
        """From now on this many bytes a second to that rank, on every connection to it, and a share `room` more."""
        self.rates[peer] = asked, room
        for connection in self.by_peer.get(peer, ()):
            self._set(connection, asked, room)

    def _set(self, connection: Connection, asked: float, room: float) -> None:
        rate = asked * (1 + room)
        if abs(connection.rate - rate) < 0.01 * rate or not connection.stands:
            return
        connection.count()
        connection.asked, connection.rate = asked, rate
        self.works &= set_rate(connection.fd, min(UNPACED, max(1, int(rate))))

    def lift(self) -> None:
        """No pace on any connection, whoever is at its other end."""
        self.rates = {}
        self.reinit.on_connections = None
        for connections in self.by_peer.values():
            for connection in connections:
                if connection.stands:
                    set_rate(connection.fd, UNPACED)
                    connection.asked = connection.rate = UNPACED

    def unsent(self) -> bool:
        """Whether something is on its way that the other side has not got."""
        return any(waiting(c.fd) for all_ in self.by_peer.values() for c in all_ if c.stands)

    def carried(self) -> list[tuple[int, int, float, float]]:
        """(peer, bytes, seconds they should have taken, seconds they took) of every connection, since the last time."""
        found = []
        for connection in self._all():
            connection.count()
            if connection.moved:
                found.append((connection.peer, connection.moved, connection.due, connection.took))
            connection.moved, connection.due, connection.took = 0, 0.0, 0.0
        return found

    def _all(self) -> list[Connection]:
        return [c for connections in self.by_peer.values() for c in connections if c.stands]


def set_rate(fd: int, rate: int) -> bool:
    """Whether the system has taken it."""
    value, size = ctypes.c_uint64(rate), ctypes.c_uint(8)
    if _libc.setsockopt(fd, socket.SOL_SOCKET, PACING, ctypes.byref(value), 8):
        return False
    told = ctypes.c_uint64(0)
    _libc.getsockopt(fd, socket.SOL_SOCKET, PACING, ctypes.byref(told), ctypes.byref(size))
    return told.value == rate


def counted(fd: int) -> tuple[int, int]:
    """(bytes that were sent, microseconds in which some were under way); zeros where the system does not count."""
    told, size = ctypes.create_string_buffer(TCP_INFO_BYTES), ctypes.c_uint(TCP_INFO_BYTES)
    info = getattr(socket, "TCP_INFO", 11)
    if _libc.getsockopt(fd, socket.IPPROTO_TCP, info, told, ctypes.byref(size)) or size.value < TCP_INFO_BYTES:
        return 0, 0
    sent, again = struct.unpack_from("<QQ", told, SENT_AT)
    return sent - again, struct.unpack_from("<Q", told, BUSY_AT)[0]


def waiting(fd: int) -> int:
    """Bytes that were written to the socket and have not arrived."""
    told = ctypes.c_int(0)
    return 0 if _libc.ioctl(fd, UNSENT, ctypes.byref(told)) else told.value
