"""The stores in which ranks meet: `PollStore`, whose waits an interrupt can end, and torch's TCPStore, made to listen
where its host name says and nowhere else.

torch's own stores wait in C++, where no signal reaches them; a rank that waits in `init_process_group` or `new_group`
for one that never comes would be lost. PollStore polls from Python, so that SIGINT works, and `close()` from another
thread frees the rank that waits. The file is in the session's private folder: it outlives every rank, rank 0 too. A
generation is a prefix of every key. After a rank was freed or replaced all ranks move on to the next generation and
meet again, undisturbed by what is left of the last.

`init_process_group` in a cell of `%%ranks --bare` makes rank 0 the master of a TCPStore, and torch lets that listen on
every network interface, though it is asked for at MASTER_ADDR, 127.0.0.1. The store has no key: any process that
reaches it can read and write what the ranks meet by. In a `LoopbackStore` the socket is bound first and handed over. A
cell that sets MASTER_ADDR to an address that others can reach is reached there.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import socket
import threading
import time
from datetime import timedelta
from typing import Any

import torch.distributed as dist
import zmq
from torch.distributed import DistStoreError, FileStore, Store

from launch.rank import interruptible
from launch.rank.patches import replace

FIRST_PAUSE = 0.0005  # seconds between two looks at the file; doubles up to LONGEST_PAUSE
LONGEST_PAUSE = 0.008

_everywhere = dist.TCPStore
_opened: set[int] = set()  # ports of the masters that this process has opened
PATIENCE = timedelta(seconds=300)  # torch's own
ANSWER_WITHIN = 60_000  # milliseconds; the answer takes one round trip to the notebook


class PollStore(Store):
    """A store over the file `path`, or over the socket of a machine that is attached, "ipc://..."; raises
    DistStoreError when closed or late."""

    def __init__(self, path: str, generation: int = 0):
        super().__init__()
        self._file: Any = RemoteStore(path) if path.startswith("ipc:") else FileStore(path, -1)
        self._timeout = timedelta(minutes=30)
        self._closed = False
        self._awaited: list[str] = []
        self.generation = generation

    def open(self, generation: int) -> None:
        """Moves to another generation, where nothing is stored yet."""
        self.generation = generation
        self._closed = False

    def close(self) -> None:
        """Frees the thread that waits here, and any that comes, until `open`."""
        self._closed = True

    def missing(self) -> bool:
        """Whether a thread waits here, now, for something that is not there. From any thread."""
        awaited = self._awaited
        return bool(awaited) and not self.check(awaited)

    def _key(self, key: str) -> str:
        return f"{self.generation}:{key}"

    def set(self, key, value):
        self._file.set(self._key(key), value)

    def get(self, key):
        self.wait([key])
        return self._file.get(self._key(key))

    def add(self, key, value):
        return self._file.add(self._key(key), value)

    def compare_set(self, key, expected, desired):
        return self._file.compare_set(self._key(key), expected, desired)

    def delete_key(self, key):
        return self._file.delete_key(self._key(key))

    def num_keys(self):
        return self._file.num_keys()

    def check(self, keys):
        return self._file.check([self._key(key) for key in keys])

    def set_timeout(self, timeout):
        self._timeout = timeout

    @property
    def timeout(self):
        return self._timeout

    def wait(self, keys, timeout=None):
        deadline = time.monotonic() + (timeout or self._timeout).total_seconds()
        self._awaited = keys
        try:
            self._wait(keys, deadline)
        finally:
            self._awaited = []

    def _wait(self, keys, deadline: float) -> None:
        pause, generation = FIRST_PAUSE, self.generation
        # It may have been closed and opened again between two looks.
        while (moved_on := self.generation != generation) or not self.check(keys):
            if self._closed or moved_on:
                raise DistStoreError("the wait for the other ranks was ended")
            if time.monotonic() > deadline:
                raise DistStoreError(f"the other ranks did not come in time: {keys} are missing")
            # A file does not announce that it has grown, so the pause grows.
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


class RemoteStore:
    """The store in the notebook (machine/listener.py) where ranks on several machines meet, with the methods of a torch
    Store; requests go through the sockets of its machine.

    One request at a time, from any thread; the answer to a request whose thread was interrupted is dropped.
    """

    def __init__(self, address: str):
        self._socket = zmq.Context.instance().socket(zmq.DEALER)
        self._socket.linger = 0
        self._socket.connect(address)
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def _ask(self, do: str, *words):
        with self._lock:
            number = next(self._numbers)
            self._socket.send(json.dumps([number, do, *map(_text, words)]).encode())
            while self._socket.poll(ANSWER_WITHIN):
                answered, value = json.loads(self._socket.recv())
                if answered == number:
                    return value
        raise DistStoreError("the notebook, in which the ranks meet, does not answer")

    def set(self, key, value):
        self._ask("set", key, value)

    def get(self, key):
        return self._ask("get", key).encode("latin1")

    def add(self, key, value):
        return self._ask("add", key, str(value))

    def compare_set(self, key, expected, desired):
        return self._ask("compare_set", key, expected, desired).encode("latin1")

    def delete_key(self, key):
        return self._ask("delete_key", key)

    def num_keys(self):
        return self._ask("num_keys")

    def check(self, keys):
        return self._ask("check", *keys)


def _text(word) -> str:
    """Keys are str; values are bytes, or str of latin1."""
    return word if isinstance(word, str) else bytes(word).decode("latin1")


class LoopbackStore(_everywhere):  # type: ignore[valid-type, misc]
    """A TCPStore; what it is given means what it means there."""

    regrouper: Any

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = PATIENCE,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ):
        if is_master and master_listen_fd is None:
            try:
                listening = socket.create_server((host_name, port))
            except OSError as error:
                if port not in _opened:
                    raise
                if not multi_tenant:
                    own = self.regrouper.bare and str(port) == os.environ.get("MASTER_PORT")
                    instead = "run the cell again, MASTER_PORT is a new one now" if own else "take another port"
                    said = f"port {port} belongs to the store that an earlier cell made here: {instead}"
                    raise OSError(error.errno, said) from None
                # A group that was destroyed may live on in a DDP module; torch then shares its master with the next.
            else:
                # The store owns the socket from here on and closes it; only the libuv one can take it.
                port, master_listen_fd = listening.getsockname()[1], listening.detach()
                _opened.add(port)
            use_libuv = True
        more = (timeout, wait_for_workers, multi_tenant, master_listen_fd, use_libuv)
        # It waits for the others in C++: in another thread, so that the stop button ends a wait for a missing rank.
        with self.regrouper.making_store(world_size):
            interruptible.wait(super().__init__, host_name, port, world_size, is_master, *more)


def listen_at_loopback(regrouper) -> None:
    """From now on every way to a TCPStore in this process leads here; `regrouper` hears of their connections."""
    LoopbackStore.regrouper = regrouper
    # By name, since torch.distributed.rendezvous is a function that hides the module of the same name.
    for module in (dist, importlib.import_module("torch.distributed.rendezvous")):
        replace(module, "TCPStore", LoopbackStore)
