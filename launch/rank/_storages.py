"""Numbers for memory: each storage that a recording meets gets one, which no other storage of the run ever gets.

The op log (`rank._op_log`) and the snapshots (`rank._snapshots`) both name memory by these numbers. A storage is held
weakly, by the Python object that torch keeps for it as long as it lives. When it goes, its address is forgotten before
a later storage can have it.

torch's own weak references are not used: they keep the small C++ object of each storage. These pinned objects fragment
the heap; a training step then got new memory from the system for every op, which cost 12 microseconds and was never
given back.

Left out: what is in the memory.
"""

import weakref

from launch.rank._ops import dtype_name


class Known(weakref.ref):
    """A weak reference to a storage: its number, and how large it is."""

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


def _forget(known: Known) -> None:
    """The storage is being destroyed. No closure: the garbage collector may have cleared one by then."""
    if known.met.get(known.address) is known:
        known.met.pop(known.address, None)


class Storages:
    """All storages of one recording."""

    def __init__(self):
        self.met: dict[int, Known] = {}  # by the address of the C++ object; who is gone is not in it
        self.count = 0
        self.places: list[tuple] = []  # by number: storage, offset, shape, strides, dtype, lazy
        self._numbers: dict[tuple, int] = {}  # of the places

    def of(self, tensor) -> Known:
        """RuntimeError for a tensor without storage (sparse, or fake)."""
        storage = tensor.untyped_storage()
        known = self.met.get(storage._cdata)
        if known is None or known.nbytes != storage.nbytes():
            known = self._meet(storage)
        return known

    def _meet(self, storage) -> Known:
        known = Known(storage, _forget)
        known.number, known.nbytes, known.address, known.met = self.count, storage.nbytes(), storage._cdata, self.met
        self.met[known.address] = known
        self.count += 1
        return known

    def place(self, tensor) -> int:
        """The number of the tensor's place: storage, offset, shape, strides and dtype; -1 if it has no memory."""
        # Every op of a recorded cell comes by here, three times or so: that `of` stands here once more is on purpose.
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
