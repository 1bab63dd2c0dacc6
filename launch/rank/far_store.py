"""The notebook's store, asked through the sockets of the machine that this rank is on: for ranks on several machines.

It stands in the place of the file in rank/store.py, and answers the same calls. One request at a time, from any thread;
an answer that comes for a request whose thread was interrupted is dropped. The other end is kernel/shelf.py.

Left out: waiting. PollStore polls, so that an interrupt and `close` reach whoever waits.
"""

from __future__ import annotations

import itertools
import json
import threading

import zmq
from torch.distributed import DistStoreError

PATIENCE = 60_000  # milliseconds; the answer takes one way to the notebook and back


class FarStore:
    def __init__(self, folder: str):
        self._socket = zmq.Context.instance().socket(zmq.DEALER)
        self._socket.linger = 0
        self._socket.connect(f"ipc://{folder}/store")
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def _ask(self, do: str, *words):
        with self._lock:
            number = next(self._numbers)
            self._socket.send(json.dumps([number, do, *map(_text, words)]).encode())
            while self._socket.poll(PATIENCE):
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
    """Keys are text; values are bytes, or text of bytes."""
    return word if isinstance(word, str) else bytes(word).decode("latin1")
