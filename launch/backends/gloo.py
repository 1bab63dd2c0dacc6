"""What is gloo's alone: connections that can be ended, how a backend of its is made anew, its words, and what
its collectives send.

A wait in gloo is deaf: no signal, no abort() and no destroy_process_group() reaches it. What ends it is the end of the
TCP connections it waits on. The listening sockets are to be left alone: gloo would abort the process.

What is sent inside a collective was seen in gloo's source (gloo/allreduce.cc, broadcast.cc, allgather.cc ...; torch's
ProcessGroupGloo.cpp for reduce_scatter) and counted on the connections, which tests/launch/test_gloo_steps.py does
again. A step is a list of (from, to, share): positions in the group, and bytes as a share of what `amount` says. A rank
begins a step when it has what it received in the one before.

An all_to_all_single may be uneven, and a rank knows its own pieces only: what it sends to each rank, and what comes
from each. Of two other ranks it supposes that the one sends the other what it sends there itself. So each rank is right
about when its own data are there, and about when it has sent all as far as the ranks send alike.

Left out: segments. gloo cuts long tensors, so that a rank passes on the first part while the next one comes: a long
all_reduce is a little quicker than its steps. Also whose connections are ended and when (rank/_regroup.py), and which
calls of gloo wait for which (launch/doctor/proof.py).
"""

from __future__ import annotations

import ctypes
import os
import re
import socket
import tempfile
import threading
from contextlib import contextmanager
from datetime import timedelta
from functools import wraps

import torch
from torch.distributed import ProcessGroup, ProcessGroupGloo, Store
from torch.distributed import distributed_c10d as c10d

from launch.shared.errors import WaitEnded

IN_GLOO = "gloo/transport"  # in the messages of torch's errors that come from a lost connection
BY_PEER = re.compile("Connection (closed|reset) by peer|Broken pipe")  # its words when the other side has gone
# what torch's log puts before its words: "[rank0]:[F1123 09:14:01.285 ProcessGroupGloo.cpp:1537] "
LOGGED = re.compile(r"^\[rank\d+\]:\[F\d{4} [\d:.]+ \S+:\d+\] ")
FATAL = 3  # a level of torch's log
PR_SET_TIMERSLACK = 29  # of <linux/prctl.h>
IDLE_SLACK = 20_000_000  # nanoseconds
GREETING = re.compile(rb"\[Gloo\] Rank \d+ is connected to .*\n")
GREETS = tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])) < (2, 13)
LOST = "_ringside_lost"  # marks an exception that no longer says it in gloo's words

Step = list[tuple[int, int, float]]

_quiet = threading.Lock()


def devices() -> list:
    """Threads that gloo's backends talk through, one for each interface, as torch makes them for a group.

    Such a thread polls its connections every 10 ms: eight idle ranks wake a laptop 800 times a second. With slack in
    its timer it polls a third as often; data that arrive wake it at once as before. Only closing a connection waits for
    the next poll: 8 ranks destroy their group in 0.1 s instead of 0.03.
    """
    interfaces = os.environ.get("GLOO_SOCKET_IFNAME")
    with _timer_slack(IDLE_SLACK):
        if not interfaces:
            return [ProcessGroupGloo.create_default_device()]
        return [ProcessGroupGloo.create_device(interface=each) for each in interfaces.split(",")]


@contextmanager
def _timer_slack(nanoseconds: int):
    """For this thread, and for those that it begins meanwhile for good; elsewhere than on Linux it does nothing."""
    set_slack = getattr(ctypes.CDLL(None), "prctl", lambda *_: None)
    set_slack(PR_SET_TIMERSLACK, ctypes.c_ulong(nanoseconds))
    try:
        yield
    finally:
        set_slack(PR_SET_TIMERSLACK, ctypes.c_ulong(0))  # what this thread began with


def options(timeout: timedelta, at: list) -> ProcessGroupGloo._Options:
    """Of a backend that talks through the devices `at`, with as many threads of its own as torch gives it."""
    made = ProcessGroupGloo._Options()
    made._timeout, made._devices, made._threads = timeout, at, 2 * len(at)
    return made


def backend(store: Store, group: ProcessGroup, name: str, at: list) -> ProcessGroupGloo:
    """A new backend for the group of this name; its ranks meet in the store and talk through the devices `at`."""
    timeout = c10d._get_default_timeout("gloo")
    made = ProcessGroupGloo(store, group.rank(), group.size(), options(timeout, at))
    made.options.group_name = name
    if hasattr(ProcessGroup, "_set_sequence_number_for_group"):  # 2.14 does that itself, and warns of the call
        made._set_sequence_number_for_group()
    return made


def is_lost(error: BaseException) -> bool:
    """Whether it comes from a connection that has ended, or a wait that was."""
    return isinstance(error, WaitEnded) or LOST in error.__dict__ or IN_GLOO in str(error)


def is_cut(error: BaseException) -> bool:
    """Whether gloo says that the other end of a connection has gone; a time-out and a length that does not fit name the
    connection, too."""
    return IN_GLOO in str(error) and BY_PEER.search(str(error)) is not None


def in_our_words(error: BaseException, peer: int | None) -> None:
    """Has the exception say to whom the connection was that is lost, if that is known: gloo's own words name a port and
    a line of its source. Of a check that failed it leaves out what torch's log puts before the words: a rank, and the
    time of day, which would make each rank's error and each run's another."""
    if LOGGED.match(str(error)):
        error.args = (LOGGED.sub("", str(error)).rstrip(),)
    if is_cut(error):
        who = "another rank" if peer is None else f"rank {peer}"
        why = "it has destroyed its process group, or its process is gone"
        error.args, error.__dict__[LOST] = (f"the connection to {who} has ended: {why}",), True


def quietly(function):
    """The function without the lines that torch logs meanwhile. They hold the time, and say what it raises."""
    try:
        library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so"))
        level = ctypes.c_int.in_dll(library, "FLAGS_caffe2_log_level")  # what TORCH_CPP_LOG_LEVEL sets at the start
    except (OSError, ValueError):
        return function

    @wraps(function)
    def quiet(*args, **kwargs):
        before, level.value = level.value, FATAL
        try:
            return function(*args, **kwargs)
        finally:
            level.value = before

    return quiet


def without_greeting(begin):
    """The making of a backend without the line that gloo printed for every group before torch 2.13."""
    if not GREETS:
        return begin

    @wraps(begin)
    def quiet(*args, **kwargs):
        if not _quiet.acquire(blocking=False):  # another thread makes a group, and may wait for long
            return begin(*args, **kwargs)
        plain = os.dup(1)
        with tempfile.TemporaryFile() as written:
            os.dup2(written.fileno(), 1)
            try:
                return begin(*args, **kwargs)
            finally:
                os.dup2(plain, 1)
                os.close(plain)
                written.seek(0)
                os.write(1, GREETING.sub(b"", written.read()))
                _quiet.release()

    return quiet


def connected_sockets() -> dict[int, int]:
    """inode -> file descriptor of this process's TCP connections; listening sockets are none."""
    found = {}
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            with copy_of_socket(fd) as copy:
                if copy.family in (socket.AF_INET, socket.AF_INET6):
                    copy.getpeername()
                    found[os.fstat(copy.fileno()).st_ino] = fd
        except OSError:
            pass  # no socket, not connected, or gone
    return found


def shut_down(fd: int, inode: int) -> None:
    """Ends the connection, unless the descriptor has come to mean another file in the meantime."""
    try:
        with copy_of_socket(fd) as copy:
            if os.fstat(copy.fileno()).st_ino == inode:
                copy.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # closed already


def copy_of_socket(fd: int) -> socket.socket:
    """A second descriptor of the same socket, so that closing this one closes nothing; OSError if it is no socket."""
    copy = os.dup(fd)
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise


def steps_of(op: str, p: int, root: int) -> list[Step] | None:
    """None for an op that is not known here. `root` is a position in the group of `p`."""
    op = op.removesuffix("_coalesced").removesuffix("_single")
    if op in ("all_reduce", "reduce_scatter"):  # gloo reduces everywhere, and torch keeps a part of it
        return _ring(p, 2 * (p - 1), 1 / p, -1)
    if op == "all_gather":
        return _ring(p, p - 1, 1.0, 1)
    if op == "broadcast":
        return _binomial(p, root)
    if op == "reduce":
        return [*_ring(p, p - 1, 1 / p, -1), [(rank, root, 1 / p) for rank in range(p) if rank != root]]
    if op == "gather":
        return [[(rank, root, 1.0) for rank in range(p) if rank != root]]
    if op == "scatter":
        return [[(root, rank, 1.0) for rank in range(p) if rank != root]]
    if op == "all_to_all":
        return [[(rank, (rank + hop) % p, 1 / p) for hop in range(1, p) for rank in range(p)]]
    if op == "barrier":
        hops = [1 << i for i in range((p - 1).bit_length())]
        return [[(rank, (rank + hop) % p, 0.0) for rank in range(p)] for hop in hops]
    return None


def uneven(own: int, sent: list[int], received: list[int]) -> list[Step]:
    """The step of an all_to_all_single whose pieces differ, in bytes: `own` sends these to each rank of the group, and
    gets those from each."""
    p = len(sent)
    pairs = [(rank, (rank + hop) % p) for hop in range(1, p) for rank in range(p)]
    step = [(src, dst, float(received[src] if dst == own else sent[dst])) for src, dst in pairs]
    return [[(src, dst, nbytes) for src, dst, nbytes in step if nbytes]]


def amount(op: str, ins: int, outs: int) -> int:
    """The bytes of which `steps_of` has shares: of one rank's block in scatter, of what it hands in everywhere else."""
    return outs if op == "scatter" else ins or outs


def _ring(p: int, steps: int, share: float, way: int) -> list[Step]:
    return [[(rank, (rank + way) % p, share) for rank in range(p)] for _ in range(steps)]


def _binomial(p: int, root: int) -> list[Step]:
    """In step k the 2^k ranks that have it, counted from the root, pass it on to the next 2^k."""
    return [
        [((v + root) % p, (v + (1 << k) + root) % p, 1.0) for v in range(min(1 << k, p - (1 << k)))]
        for k in range((p - 1).bit_length())
    ]
