"""Numbers for memory: each storage that a recording meets gets one, which no other storage of the run ever gets.

The account of torch's ops (`rank.account`) and the film (`rank.film`) both speak of memory by these numbers. A storage
is held weakly: its bytes are freed when they would be, but the small C++ object that stood for them stays while we
hold the weak reference, so that no later storage can have its address and be taken for it.

Left out: what is in the memory.
"""

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from launch.rank.ops import dtype_name


class Known:
    """One storage: its number, how large it is, and a weak reference."""

    __slots__ = ("number", "nbytes", "weak", "on_cpu")

    def __init__(self, number: int, storage):
        self.number, self.nbytes = number, storage.nbytes()
        self.weak, self.on_cpu = StorageWeakRef(storage), storage.device.type == "cpu"

    def alive(self):
        """The storage itself, None if its memory is gone or was resized (FSDP does that) since it was met."""
        storage = torch.UntypedStorage._new_with_weak_ptr(self.weak.cdata)
        return storage if storage is not None and storage.nbytes() == self.nbytes else None


class Storages:
    """All storages of one recording."""

    def __init__(self):
        self.met: dict[int, Known] = {}  # by the address of the C++ object
        self.retired: list[Known] = []  # resized since: the weak references are held for the run all the same
        self.count = 0
        self.places: dict[tuple, int] = {}

    def of(self, tensor) -> Known:
        """RuntimeError for a tensor without storage (sparse, or fake)."""
        storage = tensor.untyped_storage()
        known = self.met.get(storage._cdata)
        if known is None or known.nbytes != storage.nbytes():
            if known is not None:
                self.retired.append(known)
            known = self.met[storage._cdata] = Known(self.count, storage)
            self.count += 1
        return known

    def place(self, tensor) -> int:
        """The number of the tensor's place: storage, offset, shape, strides and dtype; -1 if it has no memory."""
        try:
            number = self.of(tensor).number
            place = (number, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype)
        except (RuntimeError, NotImplementedError):
            return -1
        return self.places.setdefault(place, len(self.places))

    def dump(self) -> list[list]:
        """The places by number, for JSON: [storage, offset, shape, strides, dtype], offset and strides in elements."""
        return [[s, offset, [*shape], [*stride], dtype_name(dtype)] for s, offset, shape, stride, dtype in self.places]
