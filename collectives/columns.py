"""The transfers of one step as columns: eight numbers per transfer, each column a numpy array or one number for all.

A ring of 4,096 ranks makes 33.5 million transfers. As Python objects they would fill the machine's memory, so an
algorithm describes a step with a handful of array expressions instead (`move`), and everything that only adds up
(counts, cost) works on the arrays. A column that is the same for all transfers stays a plain number, and an array that
several steps share stays one array: both are what keeps large schedules small.

Left out: what a transfer means. Ranks, chunks and buffers are only numbers here; see `collectives.schedule`.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

COPY, REDUCE, NEW = 0, 1, 2
OPS = ("copy", "reduce", "new")


Numbers = np.ndarray | int
"""One number for each transfer, or one for all."""


class Columns(NamedTuple):
    """One value per transfer in each field; `src` and `dst` are always arrays, the others may be one int for all."""

    src: np.ndarray
    dst: np.ndarray
    chunk: Numbers  # first chunk read at src; of a new: the number of its first symbol
    dst_chunk: Numbers  # first chunk written at dst
    count: Numbers  # type: ignore[assignment]  # consecutive chunks; hides tuple.count
    op: Numbers  # 0 copy, 1 reduce, 2 new
    src_buffer: Numbers  # index into the schedule's buffers
    dst_buffer: Numbers

    def full(self) -> "Columns":
        """The same columns with every field an int64 array of one length."""
        shape = self.src.shape
        if all([isinstance(field, np.ndarray) and field.shape == shape and field.dtype == np.int64 for field in self]):
            return self
        return Columns(*(np.broadcast_to(np.asarray(field, np.int64), shape) for field in self))

    def rows(self) -> Iterator[tuple[int, ...]]:
        """The fields of one transfer after the other, as plain numbers."""
        return zip(*(np.asarray(field).tolist() for field in self.full()), strict=True)


def move(
    src: ArrayLike,
    dst: ArrayLike,
    chunk: Numbers = 0,
    *,
    op: Numbers = COPY,
    count: Numbers = 1,
    dst_chunk: Numbers | None = None,
    src_buffer: Numbers = 0,
    dst_buffer: Numbers = 0,
) -> Columns:
    """Columns for transfers src[i] -> dst[i]; `chunk` is also where they land unless `dst_chunk` is given.

    >>> move([0, 1], [1, 0], chunk=np.array([5, 6]), op=REDUCE).full().dst_chunk.tolist()
    [5, 6]
    """
    source, target = np.atleast_1d(src), np.atleast_1d(dst)  # leaves arrays the objects they are
    if source.shape != target.shape:
        source, target = np.broadcast_arrays(source, target)
    dst_chunk = chunk if dst_chunk is None else dst_chunk
    return Columns(source, target, chunk, dst_chunk, count, op, src_buffer, dst_buffer)


def join(*parts: Columns) -> Columns:
    """The transfers of all parts, in order, as one Columns."""
    return Columns(*(np.concatenate(fields) for fields in zip(*(part.full() for part in parts), strict=True)))


def where(keep: np.ndarray, columns: Columns) -> Columns:
    """The transfers for which `keep` (a boolean per transfer) holds, or whose numbers it lists."""
    kept = (field[keep] if isinstance(field, np.ndarray) and field.ndim else field for field in columns)
    return Columns(*kept)  # type: ignore[arg-type]  # src and dst are always arrays


def split_at(limit: int, columns: Columns) -> Columns:
    """Chunk ranges that run past `limit` continue at chunk 0: each such transfer becomes two, of one message.

    Only for transfers that write the chunks they read (`dst_chunk` equal to `chunk`).
    """
    full = columns.full()
    chunk, count = np.asarray(full.chunk) % limit, np.asarray(full.count)
    head = np.minimum(count, limit - chunk)
    first = full._replace(chunk=chunk, dst_chunk=chunk, count=head)
    rest = full._replace(chunk=np.zeros_like(chunk), dst_chunk=np.zeros_like(chunk), count=count - head)
    return join(first, where(count > head, rest))
