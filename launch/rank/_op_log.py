"""The op log: what torch's ops did to this rank's memory, in the order in which it happened.

A `TorchDispatchMode`, entered for a recorded cell alone, sees every op that reads or writes a tensor: `acc += buf` is
`aten.add_` of two places in memory, `torch.cat(parts)` a copy of several. Each becomes a row of a few numbers; views
and questions leave none. Begins and ends of collectives and messages stand among the rows, so that the driver knows
what was sent as it was then (`replay._replay`). Nothing is worked out here: a rank's cell should not wait for that.

What torch compiles is compiled as it would be without us: such code is seen op by op where it ends in torch's ops, and
not where it is machine code of its own; that memory is then found to have changed without an op.

Memory that was handed out to numpy is looked at before and after every op that touches it, because whoever has it may
write there without an op.

Left out: writes through raw pointers (`rank._snapshots` sees that bytes changed), and ops of the student's own threads,
for which the same holds. Beyond MOST ops the op log stops and says so; the recording goes on.
"""

from functools import wraps
from math import isfinite
from typing import Any

import torch
from torch._C import _DisableTorchDispatch, _len_torch_dispatch_stack
from torch._ops import OpOverload
from torch.distributed import ProcessGroup
from torch.utils._python_dispatch import TorchDispatchMode

from launch.rank import callsite
from launch.rank._ops import PLAIN, has_memory
from launch.rank._snapshots import Snapshots
from launch.rank.patches import group_calls, replace
from launch.shared.capture import BEGIN, BLIND, END, LOOK

MOST = 100_000
MOST_ROWS = 64  # that an op's index names and that are noted
_plain_numpy = torch.Tensor.numpy
# What torch.distributed calls of a group's: ops that the tap sees below. To come by here as well would cost each of
# them as much as all the rest of what is recorded of it.
_plain_calls = group_calls()
_PASSED_ON = ("all_reduce", "all_reduce_coalesced", "broadcast")  # functional collectives that work on a copy


class _Plan:
    """What is to be noted of one op: its number, and which of its arguments it writes. `call` carries it out."""

    __slots__ = (
        "func",
        "call",
        "number",
        "writes",
        "written_names",
        "in_place",
        "makes",
        "functional",
        "silent",
        "index",
    )

    def __init__(self, func, number: int):
        schema: Any = getattr(func, "_schema", None)
        arguments = schema.arguments if schema else ()
        written = [(i, each) for i, each in enumerate(arguments) if each.alias_info and each.alias_info.is_write]
        self.func = func  # kept, so that its id stays its own
        self.call = func._op if type(func) is OpOverload else func  # torch's C++ itself: a frame of Python less
        self.number = number
        self.writes = [i for i, each in written if not each.kwarg_only]
        self.in_place = self.writes == [0]
        self.written_names = {each.name for _, each in written}
        self.index = next(
            (i for i, each in enumerate(arguments) if each.name in ("index", "indices", "condition")), None
        )
        self.makes = bool(schema) and any("Tensor" in str(r.type) and not r.alias_info for r in schema.returns)
        space = getattr(func, "namespace", "")
        self.functional = space == "_c10d_functional" and schema.name.split("::")[1] in _PASSED_ON
        # Nothing is noted of views, of questions such as `item`, and of the wrapping of a functional collective's
        # result, since no memory changes; of calls of c10d, which the tap sees; and of higher-order operators, whose
        # parts come by here.
        self.silent = space == "c10d" or not (self.makes or written) or "_wrap_tensor_autograd" in str(func)


class OpLog(TorchDispatchMode):
    """Enter it around the cell. `rows` grows; `dump` gives everything in a form that JSON can carry."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler, which takes seconds

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True  # else torch.compile would not compile while we look

    def __init__(self, snapshots: Snapshots, most: int = MOST):
        super().__init__()
        self.snapshots, self.storages, self.most = snapshots, snapshots.storages, most
        self.rows: list = []
        self.ops: list[str] = []
        self._plans: dict = {}
        self._seen = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        plan = self._plans.get(id(func)) or self._plan(func)
        if types and not PLAIN.issuperset(types):
            # DTensor and its like: what they do with plain tensors inside comes by here. What is fake has no memory.
            return func(*args, **(kwargs or {})) if _fake(types) else NotImplemented
        if plan.silent or self._seen >= self.most:
            return plan.call(*args, **kwargs) if kwargs else plan.call(*args)
        watched = bool(self.snapshots.handed_out) and self._touches((*args, *(kwargs or {}).values()))
        if watched:
            self._look()
        at = len(self.rows)
        result = plan.call(*args, **kwargs) if kwargs else plan.call(*args)
        self._note(plan, args, kwargs, result, at)
        if watched:
            self._look()
        return result

    def __enter__(self):
        op_log = self

        def numpy(tensor, *args, **kwargs):
            op_log.hand_out(tensor)
            return _plain_numpy(tensor, *args, **kwargs)

        self._put_back = [replace(torch.Tensor, "numpy", numpy)]  # np.asarray(tensor) ends there too
        self._put_back += [replace(ProcessGroup, name, _passing_by(name)) for name in _plain_calls]
        return super().__enter__()

    def __exit__(self, *exception):
        for put_back in self._put_back:
            put_back()
        return super().__exit__(*exception)

    def hand_out(self, tensor) -> None:
        """numpy gets the tensor's memory now."""
        if type(tensor) in PLAIN and self._seen < self.most and (place := self.snapshots.place(tensor)):
            self.snapshots.handed_out.add(place[0])
            self._look()

    def _look(self) -> None:
        self.rows.append([LOOK, self.snapshots.take()])

    def _touches(self, values) -> bool:
        """Whether any of an op's arguments lies in memory that numpy may write to."""
        places: list[int] = []
        for value in values:
            _sort(value, self.storages.place, places, [])
        return any(place >= 0 and self.storages.places[place][0] in self.snapshots.handed_out for place in places)

    def _plan(self, func) -> _Plan:
        plan = self._plans[id(func)] = _Plan(func, len(self.ops))
        if not plan.silent:
            self.ops.append(str(func))
        return plan

    def _note(self, plan: _Plan, args, kwargs, result, at: int) -> None:
        # Each microsecond here is paid for by every op of a recorded cell. A plain tensor is what nearly all arguments
        # and results are.
        place = self.storages.place
        ins, numbers, outs, alpha = [], [], [], 1
        for value in args:
            ins.append(place(value)) if type(value) in PLAIN else _sort(value, place, ins, numbers)
        if plan.index is not None:
            numbers += _rows_of(args[plan.index : plan.index + 1])
        if plan.in_place and type(args[0]) in PLAIN:
            outs.append(ins[0])
        else:
            for i in plan.writes:
                if i < len(args):
                    _sort(args[i], place, outs, [])
        if kwargs:
            for name, value in kwargs.items():
                if name in ("alpha", "value"):  # a factor
                    alpha = value
                elif name in plan.written_names:
                    _sort(value, place, outs, [])
                elif isinstance(value, (torch.Tensor, list, tuple)):
                    _sort(value, place, ins, numbers)
        if plan.makes:
            outs.append(place(result)) if type(result) in PLAIN else _sort(result, place, outs, [])
        if outs:
            self._wrote(outs)
            row = (plan.number, outs, ins, numbers, alpha, callsite.line(2))
            self._seen += 1
            # A functional collective copies its input first, and then calls the library: the copy comes before the
            # call.
            self.rows.insert(at, row) if plan.functional else self.rows.append(row)
            if self._seen == self.most:
                self.rows.append([BLIND])

    def _wrote(self, outs: list[int]) -> None:
        places, watched, due = self.storages.places, self.snapshots.watched, self.snapshots.due
        for out in outs:
            if out >= 0 and (number := places[out][0]) in watched:
                due.add(number)

    def begin(self, event: int) -> None:
        """The call with that number begins here."""
        self.rows.append([BEGIN, event])

    def end(self, event: int) -> None:
        """The wait for the call with that number is over."""
        self.rows.append([END, event])

    def go_blind(self) -> None:
        """Calls are no longer recorded, so what comes in is not known any more."""
        if self._seen < self.most:
            self._seen = self.most
            self.rows.append([BLIND])

    def dump(self) -> dict:
        return {"ops": self.ops, "rows": self.rows, "places": self.storages.dump()}


def _sort(value, place, tensors: list, numbers: list) -> None:
    """Puts the places of the tensors in an argument into one list, and its numbers into another."""
    kind = type(value)
    if kind in PLAIN:
        tensors.append(place(value))
    elif kind is int or kind is float or kind is bool:
        numbers.append(value if isfinite(value) else str(value))
    elif kind is list or kind is tuple:
        if value and all([type(item) is int for item in value]):
            numbers.append(list(value))
        else:
            for item in value:
                _sort(item, place, tensors, numbers)
    elif isinstance(value, torch.Tensor):
        tensors.append(-1)


def _rows_of(index) -> list[list[int]]:
    """[which rows an op works on], if its index is one short vector; [] else."""
    while type(index) in (list, tuple) and len(index) == 1:
        index = index[0]
    if not has_memory(index) or index.dim() > 1 or index.numel() > MOST_ROWS:
        return []
    if index.dtype is torch.bool:
        index = index.flatten().nonzero().flatten()
    return [index.tolist()] if index.dtype is torch.int64 else []


def _passing_by(name: str):
    """The method of a group's, past an op log that is the only one who watches torch's ops."""
    plain = getattr(ProcessGroup, name)

    @wraps(plain)
    def call(group, *args, **kwargs):
        if _len_torch_dispatch_stack() != 1:
            return plain(group, *args, **kwargs)
        with _DisableTorchDispatch():
            return plain(group, *args, **kwargs)

    return call


def _fake(types) -> bool:
    return any(kind.__name__ in ("FakeTensor", "FunctionalTensor") for kind in types)
