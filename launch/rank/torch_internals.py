"""What Ringside takes from inside torch, why, and which versions differ.

| what | why | differs |
|---|---|---|
| `dist.all_gather_single` and its like | the chapters call them | 2.13 brought them: given to older ones |
| methods of ProcessGroup | torch.distributed calls them; a recorded cell passes them by | 2.13 has new names for five |
| c10d's dispatcher ops | the tap sees every call there | not between 2.8 and 2.13 |
| the ReduceOp that they get | a recording says whether it was a sum | 2.8 does not show it: the caller's frames do |
| `torch._C._dynamo.eval_frame` | the tap is not compiled, without importing torch._dynamo | not between 2.8 and 2.13 |
| `TorchDispatchMode` | a recording sees every op of a cell | not between 2.8 and 2.13 |
| `_new_process_group_helper`, `c10d._world` | a stuck group is freed and made again | not between 2.8 and 2.13 |

On another torch the ranks run, and `complaint` is the sentence below the first cell.

Left out: the public names of torch, which do not change without a warning.
"""

from __future__ import annotations

import re
import sys
from functools import cache
from types import FrameType

import torch
import torch.distributed as dist
from torch.distributed import ProcessGroup, ReduceOp
from torch.nn.parallel import distributed

_DDP = distributed.__file__
OLDEST, NEWEST = (2, 8), (2, 13)  # tested, see docs/versions.md

# The methods of a group that end in ops which the tap sees. Some have two names: up to 2.12, and from 2.13.
_GROUP_CALLS = """allgather allgather_coalesced allreduce allreduce_coalesced alltoall barrier broadcast gather recv
recv_anysource reduce reduce_scatter scatter send
_allgather_base all_gather_single  allgather_into_tensor_coalesced all_gather_single_coalesced
alltoall_base all_to_all_single  _reduce_scatter_base reduce_scatter_single
reduce_scatter_tensor_coalesced reduce_scatter_single_coalesced""".split()


@cache
def group_calls() -> dict:
    """name -> the plain method of ProcessGroup, not bound, for each that this torch has."""
    return {name: vars(ProcessGroup)[name] for name in _GROUP_CALLS if name in vars(ProcessGroup)}


_NEW_NAMES = {
    "all_gather_single": "all_gather_into_tensor",
    "reduce_scatter_single": "reduce_scatter_tensor",
}


def give_new_names() -> None:
    """The chapters call functions by the names of torch 2.13: an older torch gets these names, too."""
    for new, old in _NEW_NAMES.items():
        if not hasattr(dist, new):
            setattr(dist, new, getattr(dist, old))


def has_op(name: str) -> bool:
    """Whether this torch's c10d library has the op."""
    return hasattr(torch.ops.c10d, name)


def reduce_op(boxed: torch.ScriptObject):
    """The operation in what a c10d op gets; None if it cannot be known."""
    if boxed._has_method("op"):
        return boxed.op()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if (options := frame.f_locals.get("opts")) is not None and hasattr(options, "reduceOp"):
            return options.reduceOp.op
        if isinstance(name := frame.f_locals.get("reduceOp"), str):  # functional collectives
            return getattr(ReduceOp, name.upper(), None)
        if frame.f_code.co_filename == _DDP:
            return ReduceOp.SUM  # what the reducer sums in C++
        frame = frame.f_back
    return None


def complaint(version: str = torch.__version__) -> str:
    """A sentence for a torch that was not tested; "" for one that was."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and OLDEST <= (int(found[1]), int(found[2])) <= NEWEST:
        return ""
    tested = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
    return f"Ringside was tested with torch {tested}, not with {version}: the ranks run, recordings may be wrong"
