"""The ops of torch's `c10d` library: what each is called in Python and which of its arguments means what.

All of torch.distributed ends in these two dozen dispatcher ops: `dist.*`, DDP's C++ reducer, FSDP2, DTensor, functional
collectives. `parse` turns one call of one op into a `Call`, which is all that the tap, the guard and the recorder know.

Left out: `check_for_nan` (sends nothing) and the functional ops, which end in these.
"""

from typing import NamedTuple

import torch
import torch.distributed as dist


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
    count: int  # elements that every rank of the group must agree on; for a message its elements
    splits: tuple  # (output sizes, input sizes) of all_to_all_single, rows; () if even


class Group:
    """A process group as this rank knows it: its global ranks, in group order, and a key that is the same on all of
    them."""

    def __init__(self, process_group):
        self.process_group = process_group  # keeps it alive: groups are told apart by identity
        self.ranks = tuple(dist.get_process_group_ranks(process_group))
        self.world = process_group is dist.group.WORLD
        self.label = "world" if self.world else "ranks " + ",".join(map(str, self.ranks))
        self.key = _key(f"{process_group.group_name}:{self.ranks}")


class Parser:
    """Reads the arguments of one op by their names in its schema; made once per op."""

    def __init__(self, op: str):
        self.spelling = OPS[op]
        self.kind = {"send": "send", "recv_": "recv", "recv_any_source_": "recv"}.get(op, "collective")
        names = [argument.name for argument in getattr(torch.ops.c10d, op).default._schema.arguments]
        self.at = {name: i for i, name in enumerate(names)}

    def _get(self, args, name):
        position = self.at.get(name, len(args)) if name else len(args)
        return args[position] if position < len(args) else None  # arguments at their default are not passed on

    def __call__(self, args, group_of) -> Call:
        """`group_of` maps a ProcessGroup to its Group."""
        spelling = self.spelling
        group = group_of(dist.ProcessGroup.unbox(args[self.at["process_group"]]))
        ins, outs = _flat(self._get(args, spelling.ins)), _flat(self._get(args, spelling.outs))
        peer = self._get(args, spelling.peer)
        reduce = self._get(args, "reduce_op")
        splits = tuple(tuple(self._get(args, name) or ()) for name in ("output_split_sizes", "input_split_sizes"))
        compared = ins if spelling.compared == "ins" else outs if spelling.compared else ()
        name = spelling.name
        if name.endswith("_coalesced") and len(compared) == 1:
            name = name.removesuffix("_coalesced")  # functional collectives take this door for one tensor too
        return Call(
            name,
            self.kind,
            group,
            None if peer is None else group.ranks[peer],
            self._get(args, "tag") or 0,
            _reduce_name(reduce),
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
    return "" if boxed is None else _REDUCE_NAMES.get(boxed.op(), str(boxed.op()))


def _flat(value) -> tuple[torch.Tensor, ...]:
    """A tensor, a list or a list of lists as one flat tuple of dense tensors with memory of their own."""
    if value is None:
        return ()
    if isinstance(value, torch.Tensor):
        return (value,)
    return tuple(tensor for item in value for tensor in _flat(item))


def _key(text: str) -> int:
    """64 bits that are the same in every process (`hash` is not)."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value


def has_memory(tensor: torch.Tensor) -> bool:
    """Whether its bytes can be looked at: not sparse, not meta, not fake, not empty."""
    return (
        tensor.layout is torch.strided
        and tensor.device.type != "meta"
        and type(tensor) in _PLAIN
        and tensor.numel() > 0
    )


_PLAIN = (torch.Tensor, torch.nn.Parameter)
