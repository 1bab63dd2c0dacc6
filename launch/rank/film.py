"""The film: what the tensors of a rank held at every moment the tap looked, and what the student called them.

Whenever a call begins or a wait ends, the film looks at the tensors of the call and at what ops have written since the
last look, and keeps what differs; when the cell has ended, at everything that it knows. The numbers in a picture are
taken from it. What became of what is not read from it (`rank.account` sees that), except for one thing: bytes that
changed although no op of torch wrote them.

A storage up to 16 KiB is filmed whole. Of a larger one the first numbers of each part that is sent or named are kept,
and a sum over samples of it says whether it changed. What a run may keep is bounded; how many looks were lost beyond
that is said.

Left out: tensors that only an object's attribute reaches, until they are sent; a change of a few bytes of a large
storage that was made outside torch, if no sample lies there.
"""

import base64
import ctypes
import weakref
import zlib
from typing import NamedTuple

import numpy as np
import torch

from launch.rank.ops import dtype_name, has_memory
from launch.rank.storages import Known, Storages

WHOLE_BYTES = 16 * 1024
FIRST = 32  # numbers of one part of a large storage that are kept
SAMPLES = 1024  # bytes of such a part that tell whether it changed
SEEN = 256  # tensors that are known again without asking where they lie
PARTS = 64  # parts of one storage
LIVE = 32  # storages looked at each time: those that were reached last
BUDGET_BYTES = 16 * 1024 * 1024  # of changes kept in one recording


class _Part:
    """A byte range of a storage, and what it held when it was looked at last."""

    def __init__(self, number: int, lo: int, nbytes: int, itemsize: int, whole: bool):
        self.number, self.lo, self.nbytes, self.last = number, lo, nbytes, None
        self.kept = nbytes if whole else min(nbytes, FIRST * itemsize)
        self.mark, self.samples = 0, None
        if not whole:
            self.samples = np.linspace(0, nbytes - 1, min(SAMPLES, nbytes)).astype(np.int64)

    def read(self, storage, on_cpu: bool) -> tuple[bytes, int]:
        """The bytes that are kept, and what stands for the others."""
        if on_cpu:
            address = storage.data_ptr() + self.lo
            if self.samples is None:
                return ctypes.string_at(address, self.nbytes), 0
            raw = np.frombuffer((ctypes.c_char * self.nbytes).from_address(address), np.uint8)
            return raw[: self.kept].tobytes(), zlib.crc32(raw[self.samples].tobytes())
        flat = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage, self.lo, (self.nbytes,), (1,))
        first = flat[: self.kept].cpu().numpy().tobytes()
        if self.samples is None:
            return first, 0
        return first, zlib.crc32(flat[torch.from_numpy(self.samples).to(storage.device)].cpu().numpy().tobytes())


class _Filmed:
    """A storage that is looked at, in its parts."""

    def __init__(self, known: Known, itemsize: int):
        self.known, self.itemsize = known, itemsize
        self.parts: dict[tuple[int, int], _Part] = {}


class _Seen(NamedTuple):
    """A tensor as it was when it was placed last; most looks meet the same tensors again."""

    tensor: weakref.ref
    address: int
    shape: torch.Size
    place: list[int]
    entry: _Filmed

    def again(self, tensor) -> bool:
        return self.tensor() is tensor and tensor.data_ptr() == self.address and tensor.shape == self.shape


class Film:
    """Looks are numbered from 0. `dump` gives everything in a form that JSON can carry."""

    def __init__(self, storages: Storages):
        self.storages = storages
        self.looks = 0
        self.lost = 0
        self.kept_bytes = 0
        self.filmed: dict[int, _Filmed] = {}  # by number of the storage
        self.live: dict[int, _Filmed] = {}  # those that are looked at; least recently reached first
        self.known: dict[int, dict] = {}
        self.parts: list[dict] = []
        self.changes: list[tuple[int, int, int, bytes]] = []
        self.bindings: list[list] = []
        self._bound: dict[str, tuple] = {}
        self.final: list[list] = []  # [path, *place] of the variables that are left when the cell has ended
        self._seen: dict[int, _Seen] = {}  # by id of the tensor
        self.due: set[int] = set()  # storages to look at next time: new ones, and what ops have written
        self.handed_out: set[int] = set()  # storages that numpy may write to: looked at every time
        self.looked: list[list[int]] = []  # by look: the storages that were looked at

    def place(self, tensor) -> list | None:
        """[storage, first byte, bytes] of the tensor's memory, which is filmed from now on; None if it has none to look
        at."""
        seen = self._seen.get(id(tensor))
        if seen is None or not seen.again(tensor) or self.filmed.get(seen.place[0]) is not seen.entry:
            if not has_memory(tensor):
                return None
            seen = self._see(tensor)
        number = seen.place[0]
        self.live.pop(number, None)
        self.live[number] = seen.entry  # back in at the end: reached last
        return seen.place

    def _see(self, tensor) -> _Seen:
        known, itemsize = self.storages.of(tensor), tensor.element_size()
        place = [known.number, tensor.storage_offset() * itemsize, _extent(tensor) * itemsize]
        entry = self.filmed.get(known.number)
        if entry is None:
            entry = self.filmed[known.number] = _Filmed(known, itemsize)
            self.known[known.number] = {"nbytes": known.nbytes, "dtype": dtype_name(tensor.dtype), "first": self.looks}
            if known.nbytes <= WHOLE_BYTES:
                self._film(entry, 0, known.nbytes, True)
        if known.nbytes > WHOLE_BYTES:
            self._film(entry, *place[1:], False)
        if len(self._seen) >= SEEN:
            self._seen.clear()
        seen = self._seen[id(tensor)] = _Seen(weakref.ref(tensor), tensor.data_ptr(), tensor.shape, place, entry)
        return seen

    def _film(self, entry: _Filmed, lo: int, nbytes: int, whole: bool) -> None:
        if (lo, nbytes) not in entry.parts and len(entry.parts) < PARTS and nbytes > 0:
            self.due.add(entry.known.number)
            entry.parts[lo, nbytes] = _Part(len(self.parts), lo, nbytes, entry.itemsize, whole)
            self.parts.append({"storage": entry.known.number, "lo": lo, "nbytes": nbytes, "whole": whole})

    def bind(self, names) -> None:
        """The student's variables as they stand (`callsite.names`): what is new or points elsewhere than at the last
        look is kept."""
        seen = set()
        for path, tensor, base, index, length in names:
            if path in seen or path[0] == "_":
                continue
            seen.add(path)
            place = self.place(tensor)
            bound = self._bound.get(path)
            if place is None or bound is not None and bound[0] is place and bound[1] == length:
                continue
            now = (place, length, index, list(tensor.shape))
            if bound != now:
                self.bindings.append([self.looks, path, base, *place, index, length, now[3]])
            self._bound[path] = now

    def wrote(self, number: int) -> None:
        """An op has written to that storage."""
        if number in self.filmed:
            self.due.add(number)

    def look(self, *places: list | None) -> int:
        """Keep what has changed in the storages of these places and in what is due; the number of this look."""
        for place in places:
            if place is not None:
                self.due.add(place[0])
        self.due |= self.handed_out
        looked = sorted(self.due)
        self.due.clear()
        return self._look(looked)

    def look_at_all(self) -> int:
        """The same for all storages that the call and the variables have reached of late."""
        while len(self.live) > LIVE:
            del self.live[next(iter(self.live))]
        looked = sorted({*self.live, *self.due})
        self.due.clear()
        return self._look(looked)

    def _look(self, numbers: list[int]) -> int:
        seen = []
        for number in numbers:
            entry = self.filmed[number]
            storage = entry.known.alive()
            if storage is None:
                self.live.pop(number, None)
                self.handed_out.discard(number)
                continue
            seen.append(number)
            for part in entry.parts.values():
                now, mark = part.read(storage, entry.known.on_cpu)
                if now != part.last or mark != part.mark:
                    part.mark = mark
                    self._keep(part, now)
        self.looked.append(seen)
        self.looks += 1
        return self.looks - 1

    def blink(self) -> int:
        """A look with closed eyes, for a moment in which nothing can have arrived; its number."""
        return self._look([])

    def _keep(self, part: _Part, now: bytes) -> None:
        lo, changed = 0, now
        if part.samples is None and part.last is not None and len(now) > 64:
            differs = np.nonzero(np.frombuffer(now, np.uint8) != np.frombuffer(part.last, np.uint8))[0]
            lo, changed = int(differs[0]), now[differs[0] : differs[-1] + 1]
        if self.kept_bytes + len(changed) > BUDGET_BYTES:
            self.lost += 1
            return
        part.last = now
        self.kept_bytes += len(changed) + 64
        self.changes.append((self.looks, part.number, lo, changed))

    def dump(self) -> dict:
        return {
            "looks": self.looks,
            "looked": self.looked,
            "lost": self.lost,
            "storages": {str(number): known for number, known in self.known.items()},
            "parts": self.parts,
            "bindings": self.bindings,
            "final": self.final,
            "changes": [(look, part, lo, base64.b64encode(data).decode()) for look, part, lo, data in self.changes],
        }


def _extent(tensor) -> int:
    """Elements from the first to the last in memory: more than it has, if the tensor is not contiguous."""
    if tensor.is_contiguous():
        return tensor.numel()
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
