"""The bytes that a rank's snapshots kept, and whether its memory really holds what it is said to be made of.

What torch's ops did is known from the op logs. What a thread, numpy, ctypes or an op on other types did to the same
bytes is not. So the numbers that every leaf had when it was first seen are kept. What is made of leaves is worked out
from them and compared with the bytes that the rank had: at the end of the cell everywhere, at calls by sample. Sums may
differ by rounding.

Left out: bytes that no snapshot has, and of large tensors all but their first numbers.
"""

from bisect import bisect_right
from collections.abc import Callable

import numpy as np

from launch.replay.provenance import Kind, Leaves, Span, Value

EACH = 16  # calls of a rank of which one is checked
SIZES = {"float64": 8, "int64": 8, "complex64": 8, "complex128": 16, "complex32": 4, "float32": 4, "int32": 4}
SIZES |= {"uint64": 8, "uint32": 4, "qint32": 4, "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2}
ROUNDING = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
ROUNDING |= {"complex128": 2.0**-52, "complex64": 2.0**-23}
LARGEST = {"float16": 65504.0, "float32": 3.4e38, "bfloat16": 3.38e38}
ANY = ("uint8", "float32", "bfloat16", "float16", "float64", "int64", "int32")  # what bytes without a type may be
FOLDS: dict[str, Callable] = {"sum": np.add, "max": np.maximum, "min": np.minimum, "product": np.multiply}
FOLDS |= {"band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor}


class Snapshots:
    """One rank's. `now` are the bytes of every part at the snapshot that `changed` was asked for last."""

    def __init__(self, snapshots: dict):
        self.parts = snapshots["parts"]
        self.sizes = {int(number): known for number, known in snapshots["storages"].items()}
        self.changes, self.looked = snapshots["changes"], snapshots["looked"]
        self.kept_until = snapshots["kept_until"]
        self.at = 0
        self.now: dict[int, bytearray] = {}
        self._whole = {part["storage"] for part in self.parts if part["whole"]}
        self._numbers: dict[int, list[int]] = {}  # storage -> its parts
        for number, part in enumerate(self.parts):
            self._numbers.setdefault(part["storage"], []).append(number)
        self._patches: dict[int, list] = {}  # part -> its changes
        for snapshot, number, *change in self.changes:
            self._patches.setdefault(number, []).append((snapshot, *change))
        self._histories: dict[Span, tuple[list[int], list[bytes]]] = {}

    def dtype(self, storage: int) -> str:
        return self.sizes[storage]["dtype"]

    def itemsize(self, storage: int) -> int:
        return SIZES.get(self.dtype(storage), 1)

    def bytes_at(self, span: Span) -> bytes:
        """What was there at the last snapshot; of a large storage the first numbers, if any were kept; b"" if none."""
        storage, lo, hi = span
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

    def value(self, span: Span, snapshot: int, dtype: str) -> np.ndarray | None:
        """The numbers there at any snapshot; of a large tensor the first ones. None if there are none."""
        if self.kept_until is not None and snapshot >= self.kept_until:
            return None
        if span not in self._histories:
            self._histories[span] = self._history(span)
        looks, raws = self._histories[span]
        at = bisect_right(looks, snapshot) - 1
        return None if at < 0 else decode(raws[at], dtype)

    def _history(self, span: Span) -> tuple[list[int], list[bytes]]:
        """(snapshots, bytes): what was seen there, in order."""
        storage, lo, hi = span
        parts = [(self.parts[number], number) for number in self._numbers.get(storage, ())]
        fits = [(p["nbytes"], n) for p, n in parts if p["whole"] or (p["lo"] == lo and p["nbytes"] >= hi - lo)]
        looks: list[int] = []
        raws: list[bytes] = []
        if not fits:
            return looks, raws
        part, whole = max(fits)[1], storage in self._whole
        lo, hi = (lo, hi) if whole else (0, hi - lo)
        for snapshot, start, data in self._patches.get(part, ()):
            if not raws or not whole:
                now = data[lo:hi]
            else:
                first, last = max(start, lo), min(start + len(data), lo + len(raws[-1]))
                if first >= last:
                    continue
                now = raws[-1][: first - lo] + data[first - start : last - start] + raws[-1][last - lo :]
            if not raws or now != raws[-1]:
                looks.append(snapshot)
                raws.append(now)
        return looks, raws


class Numbers:
    """`known`: leaf -> [(its first byte, bytes, dtype)], as they were when they were seen first."""

    def __init__(self, leaves: Leaves):
        self.leaves = leaves
        self.known: dict[int, list[tuple[int, bytes, str]]] = {}
        self._expected: dict[tuple, tuple[np.ndarray, np.ndarray]] = {}

    def knows(self, value: Value, lo: int, hi: int) -> bool:
        """Whether the numbers of a copy of a leaf are known already."""
        leaf, shift, _ = value.terms[0]
        return any(a <= lo + shift and hi + shift <= a + len(raw) for a, raw, _ in self.known.get(leaf, ()))

    def learn(self, value: Value, lo: int, raw: bytes, dtype: str) -> None:
        """The bytes from `lo` on held that copy of a leaf when they were `raw`."""
        leaf, shift, _ = value.terms[0]
        self.known.setdefault(leaf, []).append((lo + shift, raw, dtype))

    def differing(self, value: Value, lo: int, raw: bytes) -> list[tuple[int, int]]:
        """The ranges, in bytes from `lo` on, that hold something else than that value; [] where that is not known."""
        if value.plain:
            copied = self._bytes(value.terms[0][0], lo + value.terms[0][1], len(raw))
            if copied is None or copied[0] == raw:
                return []
            size = SIZES.get(copied[1], 1) if len(raw) % SIZES.get(copied[1], 1) == 0 else 1  # whole numbers
            was, now = (np.frombuffer(each, np.uint8).reshape(-1, size) for each in (copied[0], raw))
            return in_a_row(np.flatnonzero((was != now).any(axis=1)), size)
        types = self._types(value)
        found: list[tuple[int, int]] = []
        for dtype in ANY if "uint8" in types else sorted(types):
            expected = self._worked_out(value, lo, len(raw), dtype)
            if expected is None:
                return []
            there = decoded(raw, dtype)
            if there is None or len(there) != len(expected[0]):
                continue
            differs = _apart(there, *expected, dtype, 8 + 2 * len(value.terms), value.how)
            found = in_a_row(np.flatnonzero(differs), SIZES.get(dtype, 1))
            if not found:
                return []
        return found

    def _bytes(self, leaf: int, lo: int, nbytes: int) -> tuple[bytes, str] | None:
        for first, raw, dtype in self.known.get(leaf, ()):
            if first <= lo and lo + nbytes <= first + len(raw):
                return raw[lo - first : lo - first + nbytes], dtype
        return None

    def _types(self, value: Value) -> set[str]:
        """The types of the leaves' numbers."""
        found: set[str] = set()
        seen: set[int] = set()
        ahead = [leaf for leaf, *_ in value.terms]
        while ahead:
            leaf = ahead.pop()
            if leaf in self.known:
                found |= {dtype for *_, dtype in self.known[leaf]}
            elif leaf in self.leaves.inside and leaf not in seen:  # each round of a loop refers to the one before twice
                seen.add(leaf)
                ahead += [inner for inner, *_ in self.leaves.inside[leaf].terms]
            elif leaf in self.leaves.wider:
                found.add(self.leaves.wider[leaf][2])
        return found

    def _worked_out(self, value: Value, lo: int, nbytes: int, dtype: str) -> tuple[np.ndarray, np.ndarray] | None:
        """The numbers, and how large what was put together was; None if it cannot be told."""
        key = (value.shifted(lo), nbytes, dtype)  # ranks mostly hold the same, and so do the rounds of a loop
        if key in self._expected:
            return self._expected[key]
        result, size = None, None
        for leaf, shift, times in value.terms:
            found = self._leaf(leaf, lo + shift, nbytes, dtype)
            if found is None:
                return None
            there, large = found
            if value.how == "sum":
                there, large = (there * times, large * abs(times)) if times != 1 else found
            elif value.how == "product":
                there = there**times if times != 1 else there
            elif value.how not in FOLDS or (value.how[0] == "b" and there.dtype.kind == "f"):
                return None
            result = there if result is None else FOLDS[value.how](result, there)
            size = large if size is None else np.maximum(size, large)
        if result is None or size is None:
            return None
        self._expected[key] = result, np.maximum(size, np.abs(result))
        return self._expected[key]

    def _leaf(self, leaf: int, lo: int, nbytes: int, dtype: str) -> tuple[np.ndarray, np.ndarray] | None:
        known = self._bytes(leaf, lo, nbytes)
        if self.leaves.all[leaf].kind is Kind.ZERO:
            known = bytes(nbytes), dtype
        if known is not None:
            numbers = decoded(known[0], dtype)
            return None if numbers is None else (numbers, np.abs(numbers))
        if leaf in self.leaves.inside:
            return self._worked_out(self.leaves.inside[leaf], lo, nbytes, dtype)
        inside, before, after = self.leaves.wider.get(leaf, (None, "", ""))
        if inside is None or after != dtype:
            return None
        lo, nbytes = (n // SIZES[after] * SIZES.get(before, 1) for n in (lo, nbytes))
        found = self._worked_out(inside, lo, nbytes, before)
        if found is None or before not in ROUNDING:
            return found and (found[0].astype(dtype), found[1])
        ops = 8 + 2 * len(inside.terms)  # they were rounded as the narrower type is
        rounded = found[1] * (ops / 8 * ROUNDING[before] / ROUNDING[after])
        return found[0], np.where(ops * found[1] > LARGEST.get(before, np.inf), np.inf, rounded)


def decode(raw: bytes, dtype: str) -> np.ndarray:
    """The numbers in some bytes; bfloat16, which numpy lacks, as float32; types it cannot show as bytes."""
    try:
        if dtype == "bfloat16":
            return (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
        return np.frombuffer(raw, np.dtype(dtype))
    except (TypeError, ValueError):  # a type of torch's own, or bytes that are no whole numbers of it
        return np.frombuffer(raw, np.uint8)


@np.errstate(invalid="ignore")  # memory that nobody has filled may hold a nan that numpy warns of
def decoded(raw: bytes, dtype: str) -> np.ndarray | None:
    """The numbers in some bytes, floats as float64; None for a type that numpy lacks, and for parts of numbers."""
    numbers = decode(raw, dtype)
    if numbers.dtype == np.uint8 and dtype != "uint8":
        return None
    return numbers.astype(np.float64) if numbers.dtype.kind == "f" else numbers


def _apart(there: np.ndarray, expected: np.ndarray, size: np.ndarray, dtype: str, ops: int, how: str) -> np.ndarray:
    """Where it is not the same within the rounding of so many operations on numbers up to `size`."""
    if expected.dtype.kind not in "fc":
        return there != expected
    with np.errstate(all="ignore"):
        far = np.abs(there - expected) > ROUNDING.get(dtype, 0) * ops * size + 1e-30
        overflowed = ~np.isfinite(there) & (ops * size > LARGEST.get(dtype, np.inf))  # it may be: a sum on the way was
        lost = np.isfinite(there) & (how == "sum")  # an inf or a nan, which no sum gets rid of
        return np.where(np.isfinite(expected), (far | np.isnan(there)) & ~overflowed, lost)


def in_a_row(at: np.ndarray, size: int) -> list[tuple[int, int]]:
    """The numbers at these indices, of `size` bytes each: neighbours as one range of bytes."""
    runs = np.split(at, np.flatnonzero(np.diff(at) > 1) + 1) if len(at) else []
    return [(int(run[0]) * size, (int(run[-1]) + 1) * size) for run in runs]
