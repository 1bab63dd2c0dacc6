"""The messages of a step as a network sees them: who sends how much to whom, and how much each rank has to add.

Sizes are in units: chunks if all chunks have one size, else bytes. To the network most steps of a schedule look the
same (all p-1 steps of a ring's phase do), so what was computed for one step is reused for those like it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from collectives.columns import NEW, REDUCE, Columns, where
from collectives.errors import ScheduleError

if TYPE_CHECKING:
    from collectives.schedule import Schedule


class Traffic(NamedTuple):
    """The messages of one step: rank src[i] sends rank dst[i] units[i]; rank adder[j] adds reduced[j] units.

    Where switches add on the way, messages with the same number in `copies` carry the same data from one rank, and
    those with the same number in `sums` are added up at one place; elsewhere both are None.
    """

    src: np.ndarray
    dst: np.ndarray
    units: np.ndarray
    adder: np.ndarray
    reduced: np.ndarray
    copies: np.ndarray | None = None
    sums: np.ndarray | None = None

    def leaving(self) -> np.ndarray:
        """The messages that ranks send themselves; of those that a switch copies from one, only that one."""
        return np.arange(len(self.src)) if self.copies is None else firsts(self.copies)

    def arriving(self) -> np.ndarray:
        """The messages that ranks receive; of those that a switch adds up, only one."""
        return np.arange(len(self.src)) if self.sums is None else firsts(self.sums)


class Scale(NamedTuple):
    """A buffer of `nbytes` bytes is `units` units."""

    nbytes: int | float
    units: int

    def to_bytes(self, units: int) -> int | float:
        """An int where that is exact, else a float."""
        product = units * self.nbytes
        return int(product // self.units) if product % self.units == 0 else product / self.units

    def of_ranks(self, units: np.ndarray) -> tuple[int | float, ...]:
        """`to_bytes` of every rank's units; equal amounts are computed once."""
        values = units.tolist()
        known = {value: self.to_bytes(value) for value in set(values)}
        return tuple(known[value] for value in values)

    @property
    def unit_bytes(self) -> float:
        return self.nbytes / self.units


def scale(schedule: "Schedule", nbytes: Any) -> Scale:
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


def of_steps(schedule: "Schedule") -> Iterator[Traffic]:
    """The Traffic of every step in turn; the same object again for a step with the same messages as one before."""
    ends = None if schedule.chunk_bytes is None else np.concatenate([[0], np.cumsum(schedule.chunk_bytes)])
    known: dict[tuple[object, ...], tuple[Columns, Traffic]] = {}
    for step in schedule.steps:
        moves = step.moves
        # Arrays are compared by identity, for speed: algorithms share them between steps, and `known` keeps them alive.
        fields = (moves.src, moves.dst, moves.count, moves.op) + (() if ends is None else (moves.chunk,))
        fields += (moves.chunk, moves.dst_chunk) if step.in_network else ()
        key = tuple(id(field) if isinstance(field, np.ndarray) else field for field in fields)
        if key not in known:
            made = _traffic(moves, schedule.ranks, ends)
            known[key] = (moves, _in_network(moves, made, ends) if step.in_network else made)
        yield known[key][1]


def per_rank(rank: np.ndarray, units: np.ndarray, ranks: int) -> np.ndarray:
    """The units of every rank added up, an int64 array [ranks]; exact up to 2**53."""
    return np.bincount(rank, units, ranks).astype(np.int64)


def of_pairs(traffic: Traffic, messages: np.ndarray, ranks: int) -> Traffic:
    """Only these messages, merged if between the same two ranks, and nothing added up on the way."""
    pairs = _messages(traffic.src[messages], traffic.dst[messages], traffic.units[messages], ranks)
    return Traffic(*pairs, traffic.adder, traffic.reduced)


def firsts(groups: np.ndarray) -> np.ndarray:
    """The index of the first member of every group; `groups` has each member's group number."""
    index: np.ndarray = np.unique(groups, return_index=True)[1]
    return index


def _in_network(moves: Columns, traffic: Traffic, ends: np.ndarray | None) -> Traffic:
    """The same messages piece by piece, with what a switch can copy and add."""
    full = moves.full()
    full = where(full.src != full.dst, full)
    units = np.asarray(full.count if ends is None else ends[full.chunk + full.count] - ends[full.chunk])
    alone = np.arange(len(full.src))
    sent = np.unique(np.stack([full.src, full.src_buffer, full.chunk, full.count]), axis=1, return_inverse=True)[1]
    places = np.unique(np.stack([full.dst, full.dst_buffer, full.dst_chunk, full.count]), axis=1, return_inverse=True)[
        1
    ]
    sums = np.where(full.op == REDUCE, places.ravel(), len(alone) + alone)  # what only replaces is not added up
    added = firsts(sums)
    added = added[np.asarray(full.op)[added] == REDUCE]
    return Traffic(full.src, full.dst, units, full.dst[added], units[added], sent.ravel(), sums)


def _traffic(moves: Columns, ranks: int, ends: np.ndarray | None) -> Traffic:
    op = np.broadcast_to(moves.op, moves.src.shape)
    if (made := op == NEW).any():  # not sent, and its `chunk` is a number, not a place
        return _traffic(where(~made, moves), ranks, ends)
    units = moves.count if ends is None else ends[moves.chunk + moves.count] - ends[moves.chunk]
    units = np.broadcast_to(units, moves.src.shape)
    remote, adds = moves.src != moves.dst, op == REDUCE
    src, dst, sizes = _messages(moves.src[remote], moves.dst[remote], units[remote], ranks)
    return Traffic(src, dst, sizes, moves.dst[adds], units[adds])


def _messages(
    src: np.ndarray, dst: np.ndarray, units: np.ndarray, ranks: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All transfers of a step between the same two ranks are one message."""
    pair = src * ranks + dst
    if (pair[1:] > pair[:-1]).all():  # every pair once: nothing to merge, no need to sort
        return src, dst, units
    pair, message = np.unique(pair, return_inverse=True)
    return pair // ranks, pair % ranks, per_rank(message, units, len(pair))
