"""The messages of a step as a network sees them: who sends how much to whom, and how much each rank has to add.

Sizes are in units: chunks where all chunks are alike, else bytes. To the network most steps of a schedule look the
same (all p-1 steps of a ring's phase do), so what has been worked out for one step is kept for its lookalikes.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from collectives.columns import NEW, REDUCE, Columns, where
from collectives.errors import ScheduleError


class Traffic(NamedTuple):
    """The messages of one step: rank src[i] sends rank dst[i] units[i]; rank adder[j] adds reduced[j] units."""

    src: np.ndarray
    dst: np.ndarray
    units: np.ndarray
    adder: np.ndarray
    reduced: np.ndarray


class Scale(NamedTuple):
    """A buffer of `nbytes` bytes is `units` units."""

    nbytes: int | float
    units: int

    def to_bytes(self, units: int) -> int | float:
        """An int where that is exact, else a float."""
        product = units * self.nbytes
        return int(product // self.units) if product % self.units == 0 else product / self.units

    def of_ranks(self, units: np.ndarray) -> tuple[int | float, ...]:
        """`to_bytes` of every rank's units; ranks that carry the same are worked out once."""
        values = units.tolist()
        known = {value: self.to_bytes(value) for value in set(values)}
        return tuple(known[value] for value in values)

    @property
    def unit_bytes(self) -> float:
        return self.nbytes / self.units


def scale(schedule, nbytes) -> Scale:
    """`nbytes` may be left out where the schedule knows the bytes of its chunks (recordings), and for a barrier."""
    name = f"{schedule.collective}.{schedule.algorithm}"
    if schedule.collective == "barrier":  # news only: no bytes, whatever N
        nbytes = 0 if nbytes is None else nbytes * 0
    elif nbytes is None and schedule.chunk_bytes is None:
        raise ScheduleError(f"{name}: say how many bytes one rank's vector has, for example nbytes=1000000")
    elif nbytes is not None and not np.all(np.asarray(nbytes) >= 0):
        raise ScheduleError(f"{name}: nbytes must not be negative, got {nbytes}")
    if schedule.chunk_bytes is None:
        return Scale(nbytes, schedule.chunks)
    total = int(schedule.chunk_bytes.sum())
    return Scale(total if nbytes is None else nbytes, max(total, 1))


def of_steps(schedule) -> Iterator[Traffic]:
    """The Traffic of every step in turn; the same object again for a step with the same messages as one before."""
    ends = None if schedule.chunk_bytes is None else np.concatenate([[0], np.cumsum(schedule.chunk_bytes)])
    known: dict[tuple, tuple[Columns, Traffic]] = {}
    for step in schedule.steps:
        moves = step.moves
        # Arrays are compared by identity, for speed: algorithms share them between steps, and `known` keeps them alive.
        fields = (moves.src, moves.dst, moves.count, moves.op) + (() if ends is None else (moves.chunk,))
        key = tuple(id(field) if isinstance(field, np.ndarray) else field for field in fields)
        if key not in known:
            known[key] = (moves, _traffic(moves, schedule.ranks, ends))
        yield known[key][1]


def per_rank(rank: np.ndarray, units: np.ndarray, ranks: int) -> np.ndarray:
    """The units of every rank added up, an int64 array [ranks]; exact up to 2**53."""
    return np.bincount(rank, units, ranks).astype(np.int64)


def _traffic(moves: Columns, ranks: int, ends) -> Traffic:
    op = np.broadcast_to(moves.op, moves.src.shape)
    if (made := op == NEW).any():  # a rank's own business, and its `chunk` is a number and no place
        return _traffic(where(~made, moves), ranks, ends)
    units = moves.count if ends is None else ends[moves.chunk + moves.count] - ends[moves.chunk]
    units = np.broadcast_to(units, moves.src.shape)
    remote, adds = moves.src != moves.dst, op == REDUCE
    return Traffic(*_messages(moves.src[remote], moves.dst[remote], units[remote], ranks), moves.dst[adds], units[adds])


def _messages(src, dst, units, ranks: int):
    """All transfers of a step between the same two ranks are one message."""
    pair = src * ranks + dst
    if (pair[1:] > pair[:-1]).all():  # every pair once: nothing to put together, and no need to sort
        return src, dst, units
    pair, message = np.unique(pair, return_inverse=True)
    return pair // ranks, pair % ranks, per_rank(message, units, len(pair))
