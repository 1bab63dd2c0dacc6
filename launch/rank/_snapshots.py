"""Snapshots: what the tensors of a rank held at certain moments, and what the student called them.

Whenever a call begins or a wait ends, the tensors of the call and whatever ops have written since the last snapshot are
read, and what differs is kept; when the cell has ended, everything that is known. Pictures take their numbers from
here. The op log (`rank._op_log`) says how they came about, except for bytes that changed without an op of torch.

A storage up to 16 KiB is kept whole. Of a larger one the first numbers of each part that is sent or named are kept,
and a checksum over samples of it says whether it changed. What a run may keep is bounded; beyond that the numbers of a
picture are missing.

Left out: tensors in attributes until they are sent, except of `self` in a method and of objects of the student's
classes when the cell ends; a change of a few bytes of a large storage outside torch that no sample hits.
"""

import ctypes
import weakref
import zlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch

from launch.rank._ops import PLAIN, dtype_name, has_memory
from launch.rank.callsite import is_list_of_tensors, paths
from launch.rank.patches import TORCH

WHOLE_BYTES = 16 * 1024
FIRST = 32  # numbers of one part of a large storage that are kept
SAMPLES = 1024  # bytes of such a part that tell whether it changed
SEEN = 256  # tensors that are known again without asking where they lie
PARTS = 64  # parts of one storage
SWEEP = 16  # storages after which `Held` ones are let go that nobody else holds
BUDGET_BYTES = 16 * 1024 * 1024  # of changes kept in one recording
_MAY_BE_BOUND = PLAIN | {list, tuple}
_NEVER = (None, 0, (), 0)
# Python gives a tensor one weak reference, as long as somebody keeps it. So a kept one is compared with `ref(tensor)`
# and never followed: before torch 2.10 it may lead to a tensor that a thread of gloo's is destroying.
ref = weakref.ref


class Known(weakref.ref):
    """A weak reference to a storage, with its number and size.

    Not torch's own: those keep the small C++ object of each storage, and such pinned objects fragment the heap. A
    training step then got new memory from the system for every op, which cost 12 microseconds and was never given back.
    """

    __slots__ = ("number", "nbytes", "address", "met")
    number: int
    nbytes: int
    address: int  # of the C++ object
    met: dict  # it is removed from this with the storage

    def alive(self):
        """The storage itself, None if its memory is gone or was resized (FSDP does that) since it was met."""
        storage = self()
        if storage is None or storage.nbytes() != self.nbytes:
            return None
        storage._fix_weakref()  # torch asks for it where a weak reference was followed
        return storage


class Held:
    """A `Known` for torch before 2.10, which holds the storage until nobody else does.

    There Python must not let go of a storage while a thread of gloo's uses it: where both let go at once, the rank
    crashes (pytorch pull request 167564 ended that).
    """

    __slots__ = ("number", "nbytes", "address", "met", "storage")
    number: int
    nbytes: int
    address: int
    met: dict

    def __init__(self, storage, forget):
        self.storage = storage

    def alive(self):
        shared = self.storage is not None and torch._C._storage_Use_Count(self.address) > 1
        return self.storage if shared and self.storage.nbytes() == self.nbytes else None

    def let_go(self) -> None:
        """Does so if nobody else holds the storage."""
        if torch._C._storage_Use_Count(self.address) == 1:
            self.storage = None
            del self.met[self.address]


def _forget(known: Known) -> None:
    """The storage is being destroyed. No closure: the garbage collector may have cleared one by then."""
    if known.met.get(known.address) is known:
        known.met.pop(known.address, None)


_meeting = Known if TORCH >= (2, 10) else Held


class Storages:
    """A number for each storage that a recording meets, which no other storage of the run ever gets; and one for each
    place in them. The op log names memory by these numbers.

    A storage is held weakly, by the Python object that torch keeps for it as long as it lives. When it goes, its
    address is forgotten before a later storage can have it.
    """

    def __init__(self):
        self.met: dict[int, Any] = {}  # `Known` or `Held`, of living ones, by the address of the C++ object
        self.count = 0
        self.places: list[tuple] = []  # by number: storage, offset, shape, strides, dtype, lazy
        self._numbers: dict[tuple, int] = {}  # of the places

    def of(self, tensor):
        """RuntimeError for a tensor without storage (sparse, or fake)."""
        storage = tensor.untyped_storage()
        known = self.met.get(storage._cdata)
        if known is None or known.nbytes != storage.nbytes():
            known = self._meet(storage)
        return known

    def _meet(self, storage):
        known = _meeting(storage, _forget)
        known.number, known.nbytes, known.address, known.met = self.count, storage.nbytes(), storage._cdata, self.met
        self.met[known.address] = known
        self.count += 1
        if _meeting is Held and self.count % SWEEP == 0:
            for held in list(self.met.values()):
                held.let_go()
        return known

    def place(self, tensor) -> int:
        """The number of the tensor's place: storage, offset, shape, strides and dtype; -1 if it has no memory."""
        # Called about three times for every op of a recorded cell; `of` is inlined for speed.
        try:
            storage = tensor.untyped_storage()
            known = self.met.get(storage._cdata)
            if known is None or known.nbytes != storage.nbytes():
                known = self._meet(storage)
            lazy = tensor.is_conj() or tensor.is_neg()  # the numbers are not those in memory
            seen = known.number, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype, lazy
            number = self._numbers.get(seen)
            if number is None:
                number = self._numbers[seen] = len(self.places)
                self.places.append(seen)
        except (RuntimeError, NotImplementedError):
            return -1
        return number

    def dump(self) -> list[list]:
        """The places by number, for JSON: [storage, offset, shape, strides, dtype, whether its numbers are conjugated
        or negated when they are read], offset and strides in elements."""
        return [
            [s, offset, [*shape], [*stride], dtype_name(dtype), lazy]
            for s, offset, shape, stride, dtype, lazy in self.places
        ]


class _Part:
    """A byte range of a storage, and what it held when it was looked at last."""

    def __init__(self, number: int, lo: int, nbytes: int, itemsize: int, whole: bool):
        self.number, self.lo, self.nbytes = number, lo, nbytes
        self.last: bytes | None = None
        self.kept = nbytes if whole else min(nbytes, FIRST * itemsize)
        self.mark = 0
        self.samples: np.ndarray | None = None
        if not whole:
            self.samples = np.linspace(0, nbytes - 1, min(SAMPLES, nbytes)).astype(np.int64)

    def read(self, storage, on_cpu: bool) -> tuple[bytes, int]:
        """The bytes that are kept, and what stands for the others."""
        if on_cpu:
            address = storage.data_ptr() + self.lo
            if self.samples is None:
                return ctypes.string_at(address, self.nbytes), 0
            raw = np.frombuffer((ctypes.c_char * self.nbytes).from_address(address), np.uint8)  # type: ignore
            return raw[: self.kept].tobytes(), zlib.crc32(raw[self.samples].tobytes())
        flat = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage, self.lo, (self.nbytes,), (1,))
        first = flat[: self.kept].cpu().numpy().tobytes()
        if self.samples is None:
            return first, 0
        return first, zlib.crc32(flat[torch.from_numpy(self.samples).to(storage.device)].cpu().numpy().tobytes())


class _Watched:
    """A storage that is looked at, in its parts."""

    def __init__(self, known: Known | Held, itemsize: int, on_cpu: bool):
        self.known, self.itemsize, self.on_cpu = known, itemsize, on_cpu
        self.parts: dict[tuple[int, int], _Part] = {}


class _Seen(NamedTuple):
    """A tensor as it was when it was placed last; most looks meet the same tensors again."""

    tensor: weakref.ref
    address: int
    shape: torch.Size
    place: list[int]

    def again(self, tensor: torch.Tensor) -> bool:
        return self.tensor is ref(tensor) and tensor.data_ptr() == self.address and tensor.shape == self.shape


class Snapshots:
    """Looks are numbered from 0. `dump` gives everything, in a form that JSON can carry but for the bytes."""

    def __init__(self, storages: Storages):
        self.storages = storages
        self.looks = 0
        self.kept_bytes = 0
        self.kept_until: int | None = None  # the look from which on changes were too many to keep
        self.watched: dict[int, _Watched] = {}  # by number of the storage
        self.known: dict[int, dict] = {}
        self.parts: list[dict] = []
        self.changes: list[tuple[int, int, int, bytes]] = []
        self.bindings: list[list] = []
        self._named: dict[str, tuple] = {}  # by path: what was kept last
        self._bound: dict[str, tuple] = {}  # by path: the tensor (weakly), its address, shape, and its list's length
        self.final: list[list] = []  # [path, *place, shape, strides] of the variables left when the cell has ended
        self._seen: dict[int, _Seen] = {}  # by id of the tensor
        self.due: set[int] = set()  # storages to look at next time: new ones, and what ops have written
        self.handed_out: set[int] = set()  # storages that numpy may write to: looked at every time
        self.looked: list[list[int]] = []  # by look: the storages that were looked at

    def place(self, tensor) -> list | None:
        """[storage, first byte, bytes] of the tensor's memory, which is watched from now on; None if it has none
        to look at."""
        seen = self._seen.get(id(tensor))
        if seen is None or not seen.again(tensor):
            if not has_memory(tensor):
                return None
            seen = self._see(tensor)
        return seen.place

    def _see(self, tensor) -> _Seen:
        known, itemsize = self.storages.of(tensor), tensor.element_size()
        place = [known.number, tensor.storage_offset() * itemsize, _extent(tensor) * itemsize]
        entry = self.watched.get(known.number)
        if entry is None:
            entry = self.watched[known.number] = _Watched(known, itemsize, tensor.is_cpu)
            self.known[known.number] = {"nbytes": known.nbytes, "dtype": dtype_name(tensor.dtype), "first": self.looks}
            if known.nbytes <= WHOLE_BYTES:
                self._watch(entry, 0, known.nbytes, True)
        if known.nbytes > WHOLE_BYTES:
            self._watch(entry, place[1], place[2], False)
        if len(self._seen) >= SEEN:
            self._seen.clear()
        seen = self._seen[id(tensor)] = _Seen(ref(tensor), tensor.data_ptr(), tensor.shape, place)
        return seen

    def _watch(self, entry: _Watched, lo: int, nbytes: int, whole: bool) -> None:
        if (lo, nbytes) not in entry.parts and len(entry.parts) < PARTS and nbytes > 0:
            self.due.add(entry.known.number)
            entry.parts[lo, nbytes] = _Part(len(self.parts), lo, nbytes, entry.itemsize, whole)
            self.parts.append({"storage": entry.known.number, "lo": lo, "nbytes": nbytes, "whole": whole})

    def bind(self, scopes: list[tuple[str, dict]]) -> None:
        """Keeps which variable names which tensor, where that is new. `scopes` are (function, variables), the innermost
        first.

        `chunks[2]` is found in the list `chunks`. A function's own `x`, where the cell has another `x`, is "x in ring".
        This is most of what a recorded call costs, so what has not changed is skipped without calling a function.
        """
        bound = self._bound
        outer: dict[str, Any] = {}
        items: Iterable[tuple[str, Any]]
        for function, variables in reversed(scopes):
            for name, value in variables.items():
                kind = type(value)
                if kind not in _MAY_BE_BOUND:
                    continue
                if kind in PLAIN:
                    length, items = 0, ((name, value),)
                elif is_list_of_tensors(value):
                    length = len(value)
                    items = zip(paths(name, length), value, strict=True)
                else:
                    continue
                known = outer.setdefault(name, value)
                if known is not value:
                    name = f"{name} in {function}"
                    items = zip(paths(name, length), value, strict=True) if length else ((name, value),)
                for path, tensor in items:
                    weak, address, shape, was = bound.get(path, _NEVER)
                    if weak is ref(tensor) and tensor.data_ptr() == address and tensor.shape == shape and was == length:
                        continue
                    self._bind(path, tensor, name, length)

    def _bind(self, path: str, tensor, name: str, length: int) -> None:
        if name[0] == "_" or not has_memory(tensor):
            return
        seen = self._see(tensor)
        storage = self.known[seen.place[0]]
        if not storage.get("bound"):  # a variable's type, not that of a view which was only sent
            storage["dtype"], storage["bound"] = dtype_name(tensor.dtype), True
        index = paths(name, length).index(path) if length else None
        now = (*seen.place, index, length, *form(tensor))
        if now != self._named.get(path):
            self.bindings.append([self.looks, path, name, *now])
        self._named[path], self._bound[path] = now, (seen.tensor, seen.address, seen.shape, length)

    def take(self, *places: list | None) -> int:
        """Keep what has changed in the storages of these places and in what is due; the number of this look."""
        for place in places:
            if place is not None:
                self.due.add(place[0])
        self.due |= self.handed_out
        looked = sorted(self.due)
        self.due.clear()
        return self._look(looked)

    def take_all(self) -> int:
        """The same for all storages that are known."""
        self.due.clear()
        return self._look(sorted(self.watched))

    def _look(self, numbers: list[int]) -> int:
        seen = []
        for number in numbers:
            entry = self.watched[number]
            storage = entry.known.alive()
            if storage is None:
                self.handed_out.discard(number)
                continue
            seen.append(number)
            for part in entry.parts.values():
                now, mark = part.read(storage, entry.on_cpu)
                if now != part.last or mark != part.mark:
                    part.mark = mark
                    self._keep(part, now)
        self.looked.append(seen)
        self.looks += 1
        return self.looks - 1

    def skip(self) -> int:
        """Advances the number of snapshots and reads nothing; for a moment at which no data can have arrived."""
        return self._look([])

    def _keep(self, part: _Part, now: bytes) -> None:
        lo, changed = 0, now
        if part.samples is None and part.last is not None and len(now) > 64:
            differs = np.nonzero(np.frombuffer(now, np.uint8) != np.frombuffer(part.last, np.uint8))[0]
            lo, changed = int(differs[0]), now[differs[0] : differs[-1] + 1]
        if self.kept_bytes + len(changed) > BUDGET_BYTES:
            self.kept_until = self.looks if self.kept_until is None else self.kept_until
            return
        part.last = now
        self.kept_bytes += len(changed) + 64
        self.changes.append((self.looks, part.number, lo, changed))

    def dump(self) -> dict:
        return {
            "looks": self.looks,
            "looked": self.looked,
            "kept_until": self.kept_until,
            "storages": {str(number): known for number, known in self.known.items()},
            "parts": self.parts,
            "bindings": self.bindings,
            "final": self.final,
            "changes": self.changes,
        }


def form(tensor) -> tuple[list[int], list[int]]:
    """The shape, and the strides if the elements do not lie one after the other in memory."""
    return [*tensor.shape], [] if tensor.is_contiguous() else [*tensor.stride()]


def _extent(tensor) -> int:
    """Elements from the first to the last in memory: more than it has, if the tensor is not contiguous."""
    if tensor.is_contiguous():
        return tensor.numel()
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
