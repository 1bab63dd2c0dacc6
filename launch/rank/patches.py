"""What ranks replace in torch, IPython and ipykernel (`REPLACED`), and what else of torch's private parts they use.

| used, not replaced | why | versions |
|---|---|---|
| c10d's dispatcher ops | the tap sees every call there | the same in torch 2.8 to 2.15, which adds gather_single |
| the ReduceOp that they get | a recording says whether it was a sum | torch 2.8, 2.9: the caller's frames show it |
| storages as Python objects | snapshots know memory by its storage | held weakly from torch 2.10 on (_snapshots.py) |
| `torch._C._dynamo.eval_frame` | the tap is not compiled, without importing torch._dynamo | the same in 2.8 to 2.15 |
| `TorchDispatchMode` | a recording sees every op of a cell | the same in 2.8 to 2.15 |
| `c10d._world` | a stuck group is freed and made again | the same in 2.8 to 2.15 |
| methods of IPKernelApp and IPythonKernel | a rank dials in and does without much (main.py) | ipykernel 6 and 7 |

`dist.all_gather_single` and its like, which the chapters call, came with torch 2.13 and are given to older ones. On an
untested torch the ranks run, and `complaint` is the sentence below the first cell.

Left out: the public names of torch, which do not change without a warning.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache, partial
from types import FrameType

import torch
import torch.distributed as dist
from torch.distributed import ProcessGroup, ReduceOp
from torch.nn.parallel import distributed

REPLACED = {  # what `replace` may set, and why; in torch 2.8 to 2.15, IPython 8 and 9, ipykernel 6 and 7
    "Work.wait": "what is waited for, recorded and interruptible (tap.py)",
    "Work.is_completed": "False while the played network has not delivered (tap.py)",
    "Work.get_future": "hooks on DDP's buckets wait for the played network (tap.py)",
    "distributed.isend": "from then on only the caller keeps the Work (tap.py)",
    "distributed.irecv": "the same",
    "distributed_c10d.isend": "the same",
    "distributed_c10d.irecv": "the same",
    "distributed_c10d._new_process_group_helper": "who makes which group (tap.py), on which sockets (_regroup.py)",
    "ProcessGroupGloo.__init__": "connecting can be interrupted, on few threads (_regroup.py)",
    "distributed.Reducer": "a DDP module whose backward was cut short gets a new one (_reducer.py)",
    "distributed.TCPStore": "it listens at its host name only (_stores.py)",
    "rendezvous.TCPStore": "the same",
    "Tensor.numpy": "memory that numpy may write to is looked at; in a recorded cell (_op_log.py)",
    "ProcessGroup.*": "calls that the tap sees anyway skip the op log; in a recorded cell (_op_log.py)",
    "ipkernel.sys": "ipykernel reads all modules for a debugger, which unshares 16 MB of memory (main.py)",
    "ZMQInteractiveShell.showtraceback": "tracebacks end at the student's line (_output.py)",
    "ZMQInteractiveShell._format_exception_for_storage": "a history of tracebacks that no rank writes (_output.py)",
}


def replace(owner, name: str, new) -> Callable[[], None]:
    """Sets an attribute that is in `REPLACED`; what puts the old one back."""
    kind = owner if hasattr(owner, "__name__") else type(owner)
    known = kind.__name__.rpartition(".")[2]
    if not {f"{known}.{name}", f"{known}.*"} & REPLACED.keys():
        raise ValueError(f"{known}.{name} is not in patches.REPLACED: say there why it is replaced")
    own = name in vars(owner)  # else it is inherited, and comes back when ours is gone; getattr would unbind a method
    put_back = partial(setattr, owner, name, vars(owner)[name]) if own else partial(delattr, owner, name)
    setattr(owner, name, new)
    return put_back


_DDP = distributed.__file__
OLDEST, NEWEST = (2, 8), (2, 15)  # tested, see docs/versions.md
TORCH = tuple(map(int, re.findall(r"\d+", torch.__version__)[:2]))

# The methods of a group that end in ops which the tap sees. Some have two names: up to 2.12, and from 2.13.
_GROUP_CALLS = """allgather allgather_coalesced allreduce allreduce_coalesced alltoall barrier broadcast gather recv
recv_anysource reduce reduce_scatter scatter send
_allgather_base all_gather_single  allgather_into_tensor_coalesced all_gather_single_coalesced
alltoall_base all_to_all_single  _reduce_scatter_base reduce_scatter_single
reduce_scatter_tensor_coalesced reduce_scatter_single_coalesced  gather_into_tensor gather_single""".split()


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
            return ReduceOp.SUM  # a rank that DDP's Join has stand in for the reducer
        frame = frame.f_back
    in_backward = torch._C._current_graph_task_id() >= 0
    return ReduceOp.SUM if in_backward else None  # what the reducer sums in C++


def complaint(version: str = torch.__version__) -> str:
    """A sentence for a torch that was not tested; "" for one that was."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and OLDEST <= (int(found[1]), int(found[2])) <= NEWEST:
        return ""
    tested = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
    return f"Ringside was tested with torch {tested}, not with {version}: the ranks run, recordings may be wrong"
