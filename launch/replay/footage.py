"""The film of one rank, developed: what some bytes of a storage were at every look.

`rank.film` keeps changes of whole storages, or of samples; here they are put together again for any part of a storage
that somebody asks about, once, and kept. Samples answer only for exactly the part that was sampled.

gloo may write into a receive buffer any time between the call and the end of the wait, so when a look first saw the
data is an accident. Here it counts as there when the wait was over, on every run.

Left out: names; see `replay.memory`.
"""

import base64
from bisect import bisect_left, bisect_right

import numpy as np


class Footage:
    """`arriving` is (storage, lo, hi, first look, last look) of everything received."""

    def __init__(self, film: dict, arriving):
        self.storages = film["storages"]
        self.arriving: dict[int, list] = {}
        for storage, *span in arriving:
            self.arriving.setdefault(storage, []).append(span)
        self.whole: dict[int, int] = {}  # storage -> part
        self.sampled: dict[tuple[int, int, int], int] = {}  # (storage, lo, nbytes) -> part
        for number, part in enumerate(film["parts"]):
            if part["places"] is None:
                self.whole[part["storage"]] = number
            else:
                self.sampled[part["storage"], part["lo"], part["nbytes"]] = number
        self.patches: dict[int, list] = {}
        for look, part, lo, data in film["changes"]:
            self.patches.setdefault(part, []).append((look, lo, base64.b64decode(data)))
        self._histories: dict[tuple, tuple[list[int], list]] = {}

    def history(self, storage: int, lo: int, nbytes: int):
        """(looks, arrays): what those bytes of a storage were, from each look on."""
        key = (storage, lo, nbytes)
        if key not in self._histories:
            part = self.whole.get(storage)
            if part is not None:
                looks, raws = self._sliced(part, lo, lo + nbytes)
            else:
                part = self.sampled.get((storage, lo, nbytes))
                looks, raws = self._sliced(part, 0, None) if part is not None else ([], [])
            self._hold_back(storage, lo, lo + nbytes, looks, raws, storage in self.whole)
            dtype = self.storages[storage]["dtype"]
            self._histories[key] = (looks, [decode(raw, dtype) for raw in raws])
        return self._histories[key]

    def _sliced(self, part: int, lo: int, hi: int | None):
        looks, raws, now = [], [], None
        for look, start, data in self.patches.get(part, []):
            if now is None:
                now = bytearray(data[lo:hi])
            else:
                length = len(now)
                first, last = max(start, lo), min(start + len(data), lo + length)
                if first >= last:
                    continue
                now = now[:]
                now[first - lo : last - lo] = data[first - start : last - start]
                if now == raws[-1]:
                    continue
            looks.append(look)
            raws.append(now)
        return looks, raws

    def _hold_back(self, storage: int, lo: int, hi: int, looks: list, raws: list, whole: bool) -> None:
        """gloo may write into a buffer any time before the wait returns: make it the moment of the wait, always."""
        if not raws:
            return
        for start, end, begun, done in self.arriving.get(storage, ()):
            if end <= lo or start >= hi:
                continue
            first, last = (max(start, lo) - lo, min(end, hi) - lo) if whole else (0, len(raws[0]))
            at = bisect_right(looks, begun) - 1
            before = raws[at][first:last] if at >= 0 else None
            finally_there = raws[bisect_right(looks, done) - 1]
            for i in range(at + 1, bisect_left(looks, done) if before is not None else 0):
                raws[i] = raws[i][:first] + before + raws[i][last:]
            i = bisect_right(looks, done)
            if not (i and looks[i - 1] == done):
                looks.insert(i, done)
                raws.insert(i, finally_there)


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """What a tensor of that type would hold of the values: for bfloat16, kept as float32 here, to the nearest even."""
    if dtype != "bfloat16":
        return values
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def itemsize(dtype: str) -> int:
    """Bytes of one number; 1 for types that are kept as bytes."""
    try:
        return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize
    except TypeError:
        return 1


def decode(raw: bytes, dtype: str) -> np.ndarray:
    """The numbers in some bytes; bfloat16, which numpy lacks, as float32; types it cannot add as bytes."""
    raw = bytes(raw)
    if dtype == "bfloat16":
        return (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
    try:
        return np.frombuffer(raw, np.dtype(dtype))
    except (TypeError, ValueError):
        return np.frombuffer(raw, np.uint8)
