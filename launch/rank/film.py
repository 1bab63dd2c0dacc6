"""What the student's tensors held, at every moment the tap looked: the evidence from which a recording is read.

Ordinary torch ops are not seen by the tap, so `acc[k] += buf` between two messages leaves no event. It leaves a changed
`acc`, though. Whenever a call begins or a wait ends, the film looks at the tensors that the call and the student's
variables reach, and keeps what differs from the last look. From that `replay.dataflow` finds out what was added where.

Memory is told apart by storage and byte offset, so views of one tensor are parts of one storage. A storage up to 16 KiB
is filmed whole; a larger one is sampled at 32 places of each part that is sent or named. Storages are held weakly: the
student's memory is freed when it would be. What a run may keep is bounded; how many looks were lost beyond that is
said.

Left out: tensors that only an object's attribute or a nested list reaches, until they are sent.
"""

import base64
import ctypes
import weakref
from typing import NamedTuple

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from launch.rank.ops import dtype_name, has_memory

WHOLE_BYTES = 16 * 1024
PLACES = 32  # samples of one part of a large storage
SEEN = 256  # tensors that are known again without asking where they lie
PARTS = 64  # parts of one storage
LIVE = 32  # storages looked at each time: those that were reached last
BUDGET_BYTES = 16 * 1024 * 1024  # of changes kept in one recording


class _Part:
    """A byte range of a storage, and what it held when it was looked at last. `places` is None when filmed whole."""

    def __init__(self, number, lo, nbytes, itemsize, whole):
        self.number, self.lo, self.nbytes, self.itemsize, self.last = number, lo, nbytes, itemsize, None
        length = nbytes // itemsize
        self.places = None if whole else np.unique(np.linspace(0, length - 1, min(PLACES, length)).astype(np.int64))

    def read(self, storage, on_cpu: bool) -> bytes:
        if on_cpu:
            address = storage.data_ptr() + self.lo
            if self.places is None:
                return ctypes.string_at(address, self.nbytes)
            raw = np.frombuffer((ctypes.c_char * self.nbytes).from_address(address), np.uint8)
            return raw.reshape(-1, self.itemsize)[self.places].tobytes()
        flat = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage, self.lo, (self.nbytes,), (1,))
        if self.places is not None:
            flat = flat.view(-1, self.itemsize)[torch.from_numpy(self.places).to(storage.device)]
        return flat.cpu().numpy().tobytes()


class _Storage:
    def __init__(self, number, storage, itemsize):
        self.number, self.cdata, self.weak = number, storage._cdata, StorageWeakRef(storage)
        self.nbytes, self.itemsize, self.on_cpu = storage.nbytes(), itemsize, storage.device.type == "cpu"
        self.parts: dict[tuple[int, int], _Part] = {}

    def alive(self):
        """The storage itself, None if its memory is gone or was resized (FSDP does that) since it was seen first."""
        storage = torch.UntypedStorage._new_with_weak_ptr(self.weak.cdata)
        return storage if storage is not None and storage.nbytes() == self.nbytes else None


class _Seen(NamedTuple):
    """A tensor as it was when it was placed last; most looks meet the same tensors again."""

    tensor: weakref.ref
    address: int
    shape: torch.Size
    place: list[int]
    entry: _Storage

    def again(self, tensor) -> bool:
        return self.tensor() is tensor and tensor.data_ptr() == self.address and tensor.shape == self.shape


class Film:
    """Looks are numbered from 0. `dump` gives everything in a form that JSON can carry."""

    def __init__(self):
        self.looks = 0
        self.lost = 0
        self.kept_bytes = 0
        self.storages: dict[int, _Storage] = {}  # by address, all that were reached and may live
        self.live: dict[int, _Storage] = {}  # those that are looked at; least recently reached first
        self.known: list[dict] = []
        self.parts: list[dict] = []
        self.changes: list[tuple[int, int, int, bytes]] = []
        self.bindings: list[list] = []
        self._bound: dict[str, tuple] = {}
        self._sizes: set[tuple[int, int]] = set()
        self._seen: dict[int, _Seen] = {}  # by id of the tensor

    def place(self, tensor, message: bool = False) -> list | None:
        """[storage, first byte, bytes] of the tensor's memory, which is filmed from now on; None if it has none to look
        at."""
        seen = self._seen.get(id(tensor))
        if seen is None or not seen.again(tensor) or self.storages.get(seen.entry.cdata) is not seen.entry:
            if not has_memory(tensor):
                return None
            seen = self._see(tensor)
        entry = seen.entry
        self.live.pop(entry.cdata, None)
        self.live[entry.cdata] = entry  # back in at the end: reached last
        if message:
            self._sizes.add((seen.place[2], entry.itemsize))
        return seen.place

    def _see(self, tensor) -> _Seen:
        storage = tensor.untyped_storage()
        itemsize = tensor.element_size()
        place = [0, tensor.storage_offset() * itemsize, _extent(tensor) * itemsize]
        entry = self.storages.get(storage._cdata)
        if entry is None or entry.nbytes != storage.nbytes():  # it was resized, as FSDP does
            entry = self.storages[storage._cdata] = _Storage(len(self.known), storage, itemsize)
            self.known.append({"nbytes": entry.nbytes, "dtype": dtype_name(tensor.dtype), "first": self.looks})
            if entry.nbytes <= WHOLE_BYTES:
                self._film(entry, 0, entry.nbytes, True)
        if entry.nbytes > WHOLE_BYTES:
            self._film(entry, *place[1:], False)
        place[0] = entry.number
        if len(self._seen) >= SEEN:
            self._seen.clear()
        seen = self._seen[id(tensor)] = _Seen(weakref.ref(tensor), tensor.data_ptr(), tensor.shape, place, entry)
        return seen

    def _film(self, entry: _Storage, lo: int, nbytes: int, whole: bool) -> None:
        if (lo, nbytes) not in entry.parts and len(entry.parts) < PARTS and nbytes > 0:
            entry.parts[lo, nbytes] = _Part(len(self.parts), lo, nbytes, entry.itemsize if not whole else 1, whole)
            places = entry.parts[lo, nbytes].places
            self.parts.append(
                {
                    "storage": entry.number,
                    "lo": lo,
                    "nbytes": nbytes,
                    "places": None if places is None else places.tolist(),
                }
            )

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

    def look(self) -> int:
        """Keep what has changed in everything that is filmed; the number of this look."""
        while len(self.live) > LIVE:
            del self.live[next(iter(self.live))]
        for entry in list(self.live.values()):
            storage = entry.alive()
            if storage is None:
                del self.live[entry.cdata], self.storages[entry.cdata]
                continue
            if entry.nbytes > WHOLE_BYTES:
                self._cut_like_messages(entry)
            for part in entry.parts.values():
                now = part.read(storage, entry.on_cpu)
                if now != part.last:
                    self._keep(part, now)
        return self.blink()

    def blink(self) -> int:
        """A look with closed eyes, for a moment in which nothing can have arrived; its number."""
        self.looks += 1
        return self.looks - 1

    def _cut_like_messages(self, entry: _Storage) -> None:
        """A large buffer is also sampled in parts as large as the messages: one of them may be added to it unseen."""
        for nbytes, itemsize in self._sizes:
            if itemsize == entry.itemsize and nbytes < entry.nbytes <= nbytes * PARTS // 2:
                for lo in range(0, entry.nbytes, nbytes):
                    self._film(entry, lo, min(nbytes, entry.nbytes - lo), False)

    def _keep(self, part: _Part, now: bytes) -> None:
        lo, changed = 0, now
        if part.last is not None and len(now) > 64:
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
            "lost": self.lost,
            "storages": self.known,
            "parts": self.parts,
            "bindings": self.bindings,
            "changes": [(look, part, lo, base64.b64encode(data).decode()) for look, part, lo, data in self.changes],
        }


def _extent(tensor) -> int:
    """Elements from the first to the last in memory: more than it has, if the tensor is not contiguous."""
    if tensor.is_contiguous():
        return tensor.numel()
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
