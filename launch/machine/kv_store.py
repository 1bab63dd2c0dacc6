"""The key-value store in which ranks on several machines meet, and a rank's connection to it.

`KVStore` is in the notebook's kernel and not in rank 0, so it outlives every rank. `RemoteStore` is in a rank, in place
of the file that ranks on one machine share (launch/rank/_stores.py); requests go through the sockets of its machine.
The values are the addresses where gloo listens, and no secrets.
"""

from __future__ import annotations

import itertools
import json
import threading

PATIENCE = 60_000  # milliseconds; the answer takes one round trip to the notebook


class KVStore:
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


class RemoteStore:
    """The notebook's KVStore, with the methods of a torch Store.

    One request at a time, from any thread; the answer to a request whose thread was interrupted is dropped.
    """

    def __init__(self, address: str):
        import zmq

        self._socket = zmq.Context.instance().socket(zmq.DEALER)
        self._socket.linger = 0
        self._socket.connect(address)
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
        from torch.distributed import DistStoreError  # the notebook's kernel imports this module, too

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
