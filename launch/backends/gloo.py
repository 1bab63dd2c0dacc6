"""What is gloo's alone: connections that can be ended and paced, how a backend of its is made anew, and its words.

A wait in gloo is deaf: no signal, no abort() and no destroy_process_group() reaches it. What ends it is the end of the
TCP connections it waits on. The listening sockets are to be left alone: gloo would abort the process.

Left out: whose connections are ended and when (rank/reinit.py), how they are made slow (rank/pace.py), and which calls
of gloo wait for whom (launch/doctor).
"""

from __future__ import annotations

import ctypes
import os
import re
import socket
from functools import wraps

import torch
from torch.distributed import ProcessGroup, ProcessGroupGloo, Store
from torch.distributed import distributed_c10d as c10d

from launch.shared.errors import WaitEnded

IN_GLOO = "gloo/transport"  # in the messages of torch's errors that come from a lost connection
BY_PEER = re.compile("Connection (closed|reset) by peer|Broken pipe")  # its words when the other side has gone
FATAL = 3  # a level of torch's log
LOST = "_ringside_lost"  # marks an exception that no longer says it in gloo's words


def device():
    """The thread and the interface that gloo's backends talk through."""
    interface = os.environ.get("GLOO_SOCKET_IFNAME")
    create = ProcessGroupGloo.create_device
    return create(interface=interface) if interface else ProcessGroupGloo.create_default_device()


def backend(store: Store, group: ProcessGroup, name: str, at) -> ProcessGroupGloo:
    """A new backend for the group of this name; its ranks meet in the store and talk through the device `at`."""
    options = ProcessGroupGloo._Options()
    options._timeout = c10d._get_default_timeout("gloo")
    options._devices = [at]
    made = ProcessGroupGloo(store, group.rank(), group.size(), options)
    made.options.group_name = name
    made._set_sequence_number_for_group()
    return made


def is_lost(error: BaseException) -> bool:
    """Whether it comes from a connection that has ended, or a wait that was."""
    return isinstance(error, WaitEnded) or LOST in error.__dict__ or IN_GLOO in str(error)


def in_our_words(error: BaseException, peer: int | None) -> None:
    """Has the exception say to whom the connection was that is lost, if that is known: gloo's own words name a port and
    a line of its source."""
    if IN_GLOO in str(error) and BY_PEER.search(str(error)):  # a time-out and a length that does not fit name it, too
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
