"""The store in which ranks on several machines meet: keys and values in the notebook's kernel.

It lives with the notebook, not in rank 0, so that it outlives every rank; ranks ask it through the connection of their
machine (rank/_store.py). What lies here is where gloo listens, and no key of anything.
"""

from __future__ import annotations

import json


class Shelf:
    def __init__(self):
        self._kept: dict[str, str] = {}  # bytes as latin1

    def answer(self, request: bytes) -> bytes:
        """[number, what to do, words ...] -> [number, value]"""
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
        """torch's rule: also a key that is not there yet is set, if nothing was expected there."""
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
