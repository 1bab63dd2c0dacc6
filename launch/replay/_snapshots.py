"""The bytes that a rank's snapshots kept: to find changes that no op made, and to check claims about memory.

Left out: what a change means (`replay._replay`), and the numbers in a picture (`replay._places`).
"""

import numpy as np

from launch.replay._types import SIZES


class Snapshots:
    """`now` are the bytes of every part at the snapshot that `changed` was asked for last."""

    def __init__(self, snapshots: dict):
        self.parts = snapshots["parts"]
        self.sizes = {int(number): known for number, known in snapshots["storages"].items()}
        self.changes, self.looked = snapshots["changes"], snapshots["looked"]
        self.at = 0
        self.now: dict[int, bytearray] = {}
        self._whole = {part["storage"] for part in self.parts if part["whole"]}
        self._numbers: dict[int, list[int]] = {}  # storage -> its parts
        for number, part in enumerate(self.parts):
            self._numbers.setdefault(part["storage"], []).append(number)

    def dtype(self, storage: int) -> str:
        return self.sizes[storage]["dtype"]

    def itemsize(self, storage: int) -> int:
        return SIZES.get(self.dtype(storage), 1)

    def bytes_at(self, storage: int, lo: int, hi: int) -> bytes:
        """What was there at the last snapshot; of a large storage the first numbers, if any were kept; b"" if none."""
        for number in self._numbers.get(storage, ()):
            first, now = self.parts[number]["lo"], self.now.get(number, b"")
            if first <= lo < first + len(now) and (hi <= first + len(now) or not self.parts[number]["whole"]):
                return bytes(now[lo - first : hi - first])
        return b""

    def whole(self, storage: int) -> bool:
        """Whether snapshots have all bytes of a storage."""
        return storage in self._whole

    def changed(self, snapshot: int):
        """(storage, bytes) that are others at this snapshot than at the one before; of what is not kept
        whole, all bytes of the part that changed somewhere."""
        while self.at < len(self.changes) and self.changes[self.at][0] <= snapshot:
            _, number, lo, data = self.changes[self.at]
            self.at += 1
            part, before = self.parts[number], self.now.get(number)
            if before is None:
                self.now[number] = bytearray(data)
            elif not part["whole"]:
                self.now[number] = bytearray(data)
                yield part["storage"], np.array([part["lo"], part["lo"] + part["nbytes"] - 1])
            else:
                old, new = np.frombuffer(before, np.uint8)[lo : lo + len(data)], np.frombuffer(data, np.uint8)
                differs = lo + np.flatnonzero(old != new)
                before[lo : lo + len(data)] = data
                if len(differs):
                    yield part["storage"], differs


def decode(raw: bytes, dtype: str) -> np.ndarray:
    """The numbers in some bytes; bfloat16, which numpy lacks, as float32; types it cannot show as bytes."""
    try:
        if dtype == "bfloat16":
            return (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
        return np.frombuffer(raw, np.dtype(dtype))
    except (TypeError, ValueError):  # a type of torch's own, or bytes that are no whole numbers of it
        return np.frombuffer(raw, np.uint8)
