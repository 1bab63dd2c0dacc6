"""Mismatches are caught before they enter gloo, which answers half of them with wrong numbers and no error.

Every rank posts a fingerprint of each call (the n-th collective of a group, the n-th message of a pair of ranks) in its
part of the shared memory and compares it with what the others have posted. Of two ranks that disagree, the later one
sees the other's fingerprint and raises `MismatchError` before it enters the library; both may. A rank that is
already inside waits for a partner that will not come: the driver sees that this one raised, and frees it.

`new_group` is compared too: torch numbers groups as they are made, and ranks that make them in another order connect
crosswise, each under the name of the other's group.

Where one of the two only tidies up after an exception of its own (`finally: dist.barrier()`), that exception is what
went wrong. The other one hears of no mismatch: it waits, outside the library, until the driver frees it.

Calls of one rank alone are refused as well, for what gloo does with their tensors: `refuse_tensors`, `Call.cut`.

Left out: two equal calls in swapped order, which only their lines can show (`doctor.trouble`); messages received from
any source, whose partner is not known in advance.
"""

import threading

import torch

from launch.rank._ops import Call, Cut, has_memory
from launch.shared.flight_recorder import (
    COLLECTIVES,
    COMPARED,
    MESSAGES,
    REFUSED,
    SPLITS,
    Fingerprint,
    Splits,
    base_of,
    row_of,
    unfitting,
)

LONGEST_SPLITS = 240  # characters; of more ranks than that they are not compared


class MismatchError(RuntimeError):
    """Two ranks make calls that do not fit together. The notebook words it once every rank has made its call
    (doctor.trouble); the message here is for a cell that catches it."""


class Overtaken(Exception):
    """The other rank makes its call only because of an exception of its own: this one is to wait until it is freed."""


class Guard:
    """One rank's view: it writes its own fingerprints and reads those of the others."""

    def __init__(self, memory, rank: int):
        self.memory, self.rank = memory, rank
        self._fence = threading.Lock()
        self._refused_in = -1  # the cell of the call in REFUSED

    def collective(self, mark: Fingerprint, ranks) -> None:
        """Post this rank's n-th collective of a group of `ranks`; MismatchError if one of them posted another."""
        row = row_of(mark, COLLECTIVES)
        COLLECTIVES.write(self.memory, base_of(self.rank), row, mark)
        self._order()
        for rank in ranks:
            if rank != self.rank:
                other = COLLECTIVES.read(self.memory, base_of(rank), row)
                if other is not None and _same_call(mark, other):
                    self._compare(mark, rank, other)

    def splits(self, mark: Fingerprint, ranks: tuple[int, ...], cut: Cut) -> None:
        """Post how this rank cuts its tensors; MismatchError if another rank expects something else."""
        row = Splits(*mark[:3], *cut.rows, ",".join(map(str, cut.sent)), ",".join(map(str, cut.received)))
        if max(len(row.sent), len(row.received)) > LONGEST_SPLITS:
            return
        SPLITS.write(self.memory, base_of(self.rank), mark.seq % SPLITS.rows, row)
        self._order()
        if found := unfitting(self.memory, ranks, *mark[:3], own=self.rank):
            raise MismatchError(
                f"rank {found.src} sends {found.amount} to rank {found.dst} in {mark.op} #{mark.seq}, "
                f"but rank {found.dst} expects {found.expected}"
            )

    def message(self, mark: Fingerprint) -> None:
        """Post this rank's side of a message; MismatchError if the other side has posted another size or type."""
        MESSAGES.write(self.memory, base_of(self.rank), row_of(mark, MESSAGES), mark)
        self._order()
        rank, side = (mark.dst, "recv") if mark.side == "send" else (mark.src, "send")
        other = MESSAGES.read(self.memory, base_of(rank), row_of(mark._replace(side=side), MESSAGES))
        if other is not None and _same_call(mark._replace(side=side), other):
            self._compare(mark, rank, other)

    def retract(self, mark: Fingerprint) -> None:
        """The library has refused the call of this fingerprint: no other rank will make it either."""
        table = COLLECTIVES if mark.side == "collective" else MESSAGES
        if table.read(self.memory, base_of(self.rank), row_of(mark, table)) == mark:
            table.erase(self.memory, base_of(self.rank), row_of(mark, table))
            if mark.op == "all_to_all_single":  # the next call has its number, and must not meet these splits
                SPLITS.erase(self.memory, base_of(self.rank), mark.seq % SPLITS.rows)

    def refuse(self, mark: Fingerprint, cell: int) -> None:
        """Keep what this refused call looked like, if it is the first one in the cell."""
        if cell != self._refused_in:
            self._refused_in = cell
            REFUSED.write(self.memory, base_of(self.rank), 0, mark)

    def begin(self, cell: int) -> None:
        """What was refused in an earlier cell is no evidence any more."""
        if cell != self._refused_in:
            REFUSED.erase(self.memory, base_of(self.rank), 0)

    def _order(self) -> None:
        """Make sure the write is out before the reads, else two ranks could miss each other: a lock is a fence."""
        with self._fence:
            pass

    def _compare(self, mine: Fingerprint, rank: int, other: Fingerprint) -> None:
        compared = COMPARED if mine.side == "collective" else ("count", "dtype")
        fields = [field for field in compared if getattr(mine, field) != getattr(other, field)]
        if fields and other.failed and not mine.failed:
            raise Overtaken
        if fields:
            shown = [] if "op" in fields else fields  # other ops differ in everything
            raise MismatchError(
                f"rank {self.rank} calls {_call(mine, shown)}, but rank {rank} calls {_call(other, shown)}"
            )


_TAKES_MEMORY = {  # op -> tensors whose strides gloo ignores; all others are copied first, or refused by torch
    "all_reduce": ("outs",),
    "broadcast": ("outs",),
    "reduce": ("outs",),
    "scatter": ("outs", "ins"),
    "reduce_scatter": ("outs",),
    "all_to_all_single": ("outs",),
}


def refuse_tensors(call: Call) -> None:
    """ValueError for tensors with which gloo computes nonsense or crashes; short, since ranks that wait for this one
    quote its beginning.

    Of a view with gaps gloo takes consecutive memory from the first element on. A reduce_scatter_single of a tensor
    without dimensions is a SIGSEGV. An all_to_all_single receives into its output while its input is being sent; a
    reduce_scatter of a list, and a scatter, write their output before they have read the whole list.
    """
    if any(tensor.device.type != "cpu" for tensor in (*call.ins, *call.outs)):
        return
    name = call.name
    single = name in ("reduce_scatter_single", "all_gather_single")
    if single and any(tensor.dim() == 0 for tensor in (*call.ins, *call.outs)):
        raise ValueError(f"{name} needs tensors with a dimension: torch.zeros(1) for torch.tensor(0.), or x.reshape(1)")
    if call.reduce == "AVG" and any(not tensor.is_floating_point() and not tensor.is_complex() for tensor in call.ins):
        raise ValueError(
            f"{name} with AVG needs floating-point numbers, and this tensor has integers: give it x.float()"
        )
    size = len(call.group.ranks)
    if name == "reduce_scatter_single" and call.outs[0].shape[0] * size != call.ins[0].shape[0]:
        rows, there = call.outs[0].shape[0], call.ins[0].shape[0]
        raise ValueError(
            f"reduce_scatter_single cuts its input into {size} pieces of the output's length {rows}: that is "
            f"{size * rows}, and the input's is {there}"
        )
    if name == "all_gather_single":
        piece, whole = call.ins[0].shape, call.outs[0].shape
        if whole != (needed := (size * piece[0], *piece[1:])):
            raise ValueError(
                f"all_gather_single joins {size} inputs of shape {list(piece)}: its output needs the shape "
                f"{list(needed)}, and has {list(whole)}"
            )
    if name == "reduce_scatter" and any(piece.shape != call.outs[0].shape for piece in call.ins):
        raise ValueError("reduce_scatter needs pieces of the same shape as its output: torch.empty_like(pieces[0])")
    if name in ("all_gather", "gather", "scatter"):
        pieces, one = (call.ins, call.outs[0]) if name == "scatter" else (call.outs, call.ins[0])
        for number, piece in enumerate(pieces):
            if piece.shape != one.shape:
                raise ValueError(
                    f"{name} needs pieces of its tensor's shape {list(one.shape)}, and piece {number} of the list has "
                    f"{list(piece.shape)}"
                )
    if name == "all_to_all" and len({tensor.shape for tensor in (*call.ins, *call.outs)}) > 1:
        raise ValueError(
            "all_to_all needs tensors that all have the same shape: for others use all_to_all_single with split sizes"
        )
    alone = size == 1
    if alone and name not in ("scatter", "all_to_all_single"):
        return  # what a rank keeps to itself is right
    for side in _TAKES_MEMORY.get(name, ()):
        if any(map(_has_gaps, getattr(call, side))):
            back = "" if side == "ins" else ", then x.copy_(y)"
            raise ValueError(f"{name} needs a tensor in one piece of memory, not this view: y = x.contiguous(){back}")
    in_pieces = name in ("scatter", "reduce_scatter", "all_to_all_single")
    if in_pieces and len({*map(_order, (*call.ins, *call.outs))} - {None}) > 1:
        raise ValueError(
            f"{name} needs all its tensors in one memory layout, and some are transposed: give it x.contiguous()"
        )
    if name == "all_to_all_single" and not alone and _share(call.ins[0], call.outs[0]):
        raise ValueError(
            "all_to_all_single cannot write into its own input: give it an output of its own, torch.empty_like(input)"
        )
    if name in ("scatter", "reduce_scatter") and _overwrites(call):
        raise ValueError(
            f"{name} cannot write into a piece of its input that is for another rank: give it an output of its own"
        )


def _overwrites(call: Call) -> bool:
    """Whether the output of a scatter or reduce_scatter lies in a piece of its input that is for another rank and has
    not been read yet: a reduce_scatter adds up the pieces in turn. It may lie in this rank's own piece."""
    own, out = call.group.own, call.outs[0]
    if any(piece.data_ptr() == out.data_ptr() for piece in call.ins[own : own + 1]):
        return False
    unread = [piece for rank, piece in enumerate(call.ins) if rank > own or (rank < own and call.name == "scatter")]
    return any(_share(piece, out) for piece in unread)


def _has_gaps(tensor: torch.Tensor) -> bool:
    """Whether there are other elements between its own in memory, or the same ones twice."""
    if tensor.is_contiguous() or not has_memory(tensor):
        return False
    return not torch.ops.aten.is_non_overlapping_and_dense.default(tensor)


def order_in_memory(call: Call) -> str:
    """Of the dimensions of the tensors of this call, if all ranks must have the same (Fingerprint.order)."""
    compared = call.name in _TAKES_MEMORY and call.name != "all_to_all_single"  # which cuts on each rank as it likes
    return (_order(call.outs[0]) or "") if compared else ""


def _order(tensor: torch.Tensor) -> str | None:
    """ "1,0" of a transposed matrix, "" if it is contiguous; None if it has gaps."""
    if tensor.is_contiguous() or not has_memory(tensor):
        return ""
    if _has_gaps(tensor):
        return None
    dims = [dim for dim in range(tensor.dim()) if tensor.shape[dim] > 1]
    return ",".join(map(str, sorted(dims, key=tensor.stride, reverse=True)))


def _share(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether some byte belongs to both. Of tensors with gaps, as columns of a matrix, this is not said."""
    if not all(has_memory(tensor) and tensor.is_contiguous() for tensor in (one, other)):
        return False
    return one.data_ptr() < _end(other) and other.data_ptr() < _end(one)


def _end(tensor: torch.Tensor) -> int:
    return tensor.data_ptr() + tensor.nbytes


def _same_call(mine: Fingerprint, other: Fingerprint) -> bool:
    same = mine.key == other.key and mine.epoch == other.epoch and mine.seq == other.seq and mine.side == other.side
    return same and (mine.side == "collective" or (mine.src, mine.dst, mine.tag) == (other.src, other.dst, other.tag))


def _call(mark: Fingerprint, fields: list[str]) -> str:
    """ "all_reduce #2 (line 4; reduce MAX)"."""
    values = [(field, getattr(mark, field)) for field in fields]
    differ = ", ".join(f"{field} {'as usual' if value == '' else value}" for field, value in values)
    return f"{mark.call()} (line {mark.line}{mark.file and f' of {mark.file}'}{differ and f'; {differ}'})"
