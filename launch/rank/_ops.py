"""The ops of torch's `c10d` library: what each is called in Python and which of its arguments means what.

All of torch.distributed ends in these two dozen dispatcher ops: `dist.*`, DDP's C++ reducer, FSDP2, DTensor, functional
collectives. `parse` turns one call of one op into a `Call`, which is all that the tap, the guard and the recorder know.

Left out: `check_for_nan` (sends nothing) and the functional ops, which end in these.
"""

import math
from functools import cache
from typing import NamedTuple

import torch
import torch.distributed as dist

from launch.rank.patches import reduce_op


class Spelling(NamedTuple):
    """One op: its name in torch.distributed, and the arguments that hold what is read and what is written."""

    name: str
    ins: str | None
    outs: str | None
    peer: str | None = None  # group rank of the root or of the other side
    compared: str = "ins"  # the side whose number of elements must be the same on every rank; "" if neither


OPS = {
    "allreduce_": Spelling("all_reduce", "tensors", "tensors"),
    "allreduce_coalesced_": Spelling("all_reduce_coalesced", "tensors", "tensors"),
    "broadcast_": Spelling("broadcast", "tensors", "tensors", "root_rank"),
    "reduce_": Spelling("reduce", "tensors", "tensors", "root_rank"),
    "allgather_": Spelling("all_gather", "input_tensors", "output_tensors"),
    "_allgather_base_": Spelling("all_gather_single", "input_tensor", "output_tensor"),
    "allgather_coalesced_": Spelling("all_gather_coalesced", "input_list", "output_lists"),
    "allgather_into_tensor_coalesced_": Spelling("all_gather_single_coalesced", "inputs", "outputs"),
    "gather_": Spelling("gather", "input_tensors", "output_tensors", "root_rank"),
    "gather_into_tensor_": Spelling("gather_single", "input_tensor", "output_tensor", "root_rank"),
    "scatter_": Spelling("scatter", "input_tensors", "output_tensors", "root_rank", "outs"),
    "reduce_scatter_": Spelling("reduce_scatter", "input_tensors", "output_tensors", None, "outs"),
    "_reduce_scatter_base_": Spelling("reduce_scatter_single", "input_tensor", "output_tensor", None, "outs"),
    "reduce_scatter_tensor_coalesced_": Spelling("reduce_scatter_single_coalesced", "inputs", "outputs", None, "outs"),
    "alltoall_": Spelling("all_to_all", "input_tensors", "output_tensors", None, ""),
    "alltoall_base_": Spelling("all_to_all_single", "input", "output", None, ""),
    "barrier": Spelling("barrier", None, None, None, ""),
    "monitored_barrier_": Spelling("monitored_barrier", None, None, None, ""),
    "send": Spelling("send", "tensors", None, "dst"),
    "recv_": Spelling("recv", None, "tensors", "src", "outs"),
    "recv_any_source_": Spelling("recv", None, "tensors", None, "outs"),
}


class Call(NamedTuple):
    """One call of one op on this rank. `peer` is a global rank: the other side, or the root of a collective, or
    None."""

    name: str
    kind: str  # "send", "recv" or "collective"
    group: "Group"
    peer: int | None
    tag: int
    reduce: str
    ins: tuple[torch.Tensor, ...]
    outs: tuple[torch.Tensor, ...]
    count: int  # type: ignore[assignment]  # elements that every rank of the group must agree on; for a message its elements
    splits: tuple  # (output sizes, input sizes) of all_to_all_single, rows; () if even

    def cut(self) -> "Cut":
        """How this all_to_all_single is cut.

        ValueError if a side without split sizes has no equal pieces: gloo cuts bytes, in the middle of an element too.
        """
        size, (received, sent) = len(self.group.ranks), self.splits or ((), ())
        widths = _width(self.ins[0]), _width(self.outs[0])
        pieces = _pieces("input", self.ins[0], sent, size), _pieces("output", self.outs[0], received, size)
        return Cut(*pieces, widths)

    def pieces(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Bytes that an uneven all_to_all_single sends to each rank of the group, and gets from each. ValueError as in
        `cut`."""
        if not self.splits:
            return None
        cut, element = self.cut(), self.ins[0].element_size()
        sent, received = (tuple(element * n for n in side) for side in (cut.sent, cut.received))
        return (sent, received) if len({*sent, *received}) > 1 else None


class Cut(NamedTuple):
    """Elements that an all_to_all_single sends to each rank of the group and gets from each, and how many of them are a
    row of its input and of its output: split sizes are counted in rows."""

    sent: tuple[int, ...]
    received: tuple[int, ...]
    rows: tuple[int, int]


def _pieces(name: str, tensor: torch.Tensor, given: tuple[int, ...], size: int) -> tuple[int, ...]:
    if given:
        return tuple(_width(tensor) * rows for rows in given)
    if (count := tensor.numel()) % size:
        raise ValueError(
            f"all_to_all_single cannot cut its {name} of {count} element{'s' * (count > 1)} into {size} equal pieces: "
            f"give {name}_split_sizes, or a multiple of {size}"
        )
    return (count // size,) * size


def _width(tensor: torch.Tensor) -> int:
    """Elements of a row."""
    return math.prod(tensor.shape[1:])


class Group:
    """A process group as this rank knows it: its global ranks, in group order, and a key that is the same on all of
    them."""

    def __init__(self, process_group):
        self.ranks = tuple(dist.get_process_group_ranks(process_group))
        self.own = dist.get_rank(process_group)  # in the group
        self.world = process_group is dist.group.WORLD
        self.label = "world" if self.world else "ranks " + ",".join(map(str, self.ranks))
        self.key = _key(f"{process_group.group_name}:{self.ranks}")

    def member(self, group_rank: int) -> int:
        """The global rank of a rank of the group. gloo would crash or hang on one that is not there: ValueError."""
        if not 0 <= group_rank < len(self.ranks):
            where = f"the ranks are 0 to {len(self.ranks) - 1}" if self.world else f"the group has {self.label}"
            raise ValueError(f"there is no rank {group_rank}: {where}")
        return self.ranks[group_rank]

    def other(self, group_rank: int) -> int:
        """The same, for the other side of a message: gloo has no connection to the rank itself."""
        if group_rank == self.own:
            raise ValueError("a rank cannot receive from itself")  # torch refuses such a send
        return self.member(group_rank)


class Parser:
    """Reads the arguments of one op by their names in its schema; made once per op, so that a call is cheap to read."""

    def __init__(self, op: str):
        self.spelling = OPS[op]
        self.kind = {"send": "send", "recv_": "recv", "recv_any_source_": "recv"}.get(op, "collective")
        names = [argument.name for argument in getattr(torch.ops.c10d, op).default._schema.arguments]
        at = {name: i for i, name in enumerate(names)}
        self.group = at["process_group"]
        self.ins, self.outs, self.peer = (at.get(name) for name in self.spelling[1:4])
        self.reduce, self.tag = at.get("reduce_op"), at.get("tag")
        self.splits = [at[name] for name in ("output_split_sizes", "input_split_sizes") if name in at]

    def __call__(self, args, group_of) -> Call:
        """`group_of` maps a ProcessGroup to its Group. Arguments that are at their default are not in `args`."""
        given = len(args)
        group = group_of(dist.ProcessGroup.unbox(args[self.group]))
        ins = () if self.ins is None else _flat(args[self.ins])
        outs = ins if self.outs == self.ins else () if self.outs is None else _flat(args[self.outs])
        splits = tuple(tuple(args[i]) for i in self.splits)
        compared = {"ins": ins, "outs": outs, "": ()}[self.spelling.compared]
        of_peer = group.member if self.kind == "collective" else group.other
        name = self.spelling.name
        if name.endswith("_coalesced") and len(compared) == 1:
            name = name.removesuffix("_coalesced")  # functional collectives take this door for one tensor too
        return Call(
            name,
            self.kind,
            group,
            None if self.peer is None else of_peer(args[self.peer]),
            0 if self.tag is None or self.tag >= given else args[self.tag],
            "" if self.reduce is None else _reduce_name(args[self.reduce]),
            ins,
            outs,
            sum(tensor.numel() for tensor in compared),
            splits if any(splits) else (),
        )


_REDUCE_NAMES = {
    getattr(dist.ReduceOp, name): name
    for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM")
}


def _reduce_name(boxed) -> str:
    op = None if boxed is None else reduce_op(boxed)
    return "" if op is None else _REDUCE_NAMES.get(op, str(op))


def _flat(value) -> tuple[torch.Tensor, ...]:
    """A tensor, a list or a list of lists as one flat tuple."""
    if isinstance(value, torch.Tensor):
        return (value,)
    if len(value) == 1 and isinstance(value[0], torch.Tensor):
        return (value[0],)
    return tuple(tensor for item in value for tensor in _flat(item))


@cache
def dtype_name(dtype: torch.dtype) -> str:
    """ "float32" for torch.float32."""
    return str(dtype).removeprefix("torch.")


def _key(text: str) -> int:
    """64 bits that are the same in every process (`hash` is not)."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


PLAIN = frozenset({torch.Tensor, torch.nn.Parameter})  # types whose memory is what it seems to be


def has_memory(tensor: torch.Tensor) -> bool:
    """Whether its bytes can be looked at: not sparse, not meta, not fake, not empty."""
    return type(tensor) in PLAIN and tensor.numel() > 0 and tensor.layout is torch.strided and not tensor.is_meta
