"""The recorder of a cell: what torch's ops did to this rank's memory, and every call as an event, in order.

A `TorchDispatchMode`, entered for a recorded cell alone, sees every op that reads or writes a tensor: `acc += buf` is
`aten.add_` of two places in memory, `torch.cat(parts)` a copy of several. Each becomes a row of a few numbers in the
op log; views and questions leave none. Nothing is worked out here: a rank's cell should not wait for that.

The tap calls `Recorder.begin` when a call enters torch and `Recorder.end` when the student has waited for it. Both are
rows of the op log, so that the driver knows what was sent as it was then (`replay._replay`), and both take a snapshot
(`rank._snapshots`). Events are bounded: after `limit` calls the rest are only counted.

What torch compiles is compiled as it would be without us: such code is seen op by op where it ends in torch's ops, and
not where it is machine code of its own; that memory is then found to have changed without an op.

Memory that was handed out to numpy is looked at before and after every op that touches it, because whoever has it may
write there without an op.

Left out: writes through raw pointers (a snapshot sees that bytes changed), and ops of the student's own threads, for
which the same holds. Beyond MOST ops the op log stops and says so; the recording goes on. Matching the calls of
different ranks is the driver's (`replay.recording`).
"""

import sys
import threading
import time
from functools import wraps
from math import isfinite
from types import FrameType
from typing import Any

import torch
from torch._C import _DisableTorchDispatch, _len_torch_dispatch_stack
from torch._ops import OpOverload
from torch.distributed import ProcessGroup
from torch.utils._python_dispatch import TorchDispatchMode

from launch.rank import callsite
from launch.rank._ops import PLAIN, Call, Group, dtype_name, has_memory
from launch.rank._snapshots import Snapshots, Storages, form
from launch.rank.patches import group_calls, replace
from launch.shared.capture import BEGIN, BLIND, END, LOOK

LIMIT = 20_000  # calls
MOST = 100_000  # ops
MOST_ROWS = 64  # that an op's index names and that are noted
_plain_numpy = torch.Tensor.numpy
_plain_calls = group_calls()  # methods of a group: the tap sees their ops, so that they need not come by here
_PASSED_ON = ("all_reduce", "all_reduce_coalesced", "broadcast")  # functional collectives that work on a copy


class _Plan:
    """What is to be noted of one op: its number, and which of its arguments it writes. `call` carries it out."""

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
        # Not noted: what changes no memory (views, `item`, the wrapping of a functional collective's result), calls of
        # c10d, which the tap sees, and higher-order operators, whose parts come by here.
        self.silent = space == "c10d" or not (self.makes or written) or "_wrap_tensor_autograd" in str(func)


class OpLog(TorchDispatchMode):
    """Enter it around the cell. `rows` grows; `dump` gives everything in a form that JSON can carry."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler, which takes seconds

    @classmethod
    def is_infra_mode(cls) -> bool:
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
        # Fast for plain tensors, which nearly all arguments and results are: every op of a recorded cell comes by here.
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
                elif name == "beta":  # of what a product is added to
                    numbers.append(value)
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


class Event:
    """One call of this rank, while it is recorded. It holds no tensor: the student's memory is not kept alive by it."""

    def __init__(self, call: Call, number: int, seq: int, site: int, ins: list, outs: list):
        self.number = number
        tensors = call.ins or call.outs
        self.call, self.peer, self.seq, self.site = call._replace(ins=(), outs=()), call.peer, seq, site
        self.dtype = tensors[0].dtype if tensors else None
        self.shapes = [tensor.shape for tensor in tensors]
        self.nbytes = max(_nbytes(call.ins), _nbytes(call.outs))
        self.ins, self.outs = ins, outs  # places, see `snapshots.Snapshots.place`
        self.times = [0, None, None, None, None]  # perf_counter_ns: begun, issued, wait begun, wait ended, library done
        self.looks = [0, None]
        self.wait_line, self.blocking = 0, False
        self.wait_row: int | None = None  # how many rows the op log had when the wait began
        self.bucket: int | None = None  # that it carries for DDP
        self.native = False  # whether the wait was in C++, and what the rank did before and after it was not seen

    def issued(self) -> None:
        self.times[1] = time.perf_counter_ns()

    def finished(self, over: float) -> None:
        """From gloo's thread: the library is done, whether a rank waits or not; the network that is played at `over`,
        in seconds of the same clock."""
        self.times[4] = max(time.perf_counter_ns(), round(1e9 * over))

    def waited_in_cpp(self, began: int, ended: int, line: int) -> None:
        """DDP's reducer has waited for it, between these moments."""
        self.times[2:4], self.wait_line, self.native = [began, ended], line, True

    def plain(self, last_look: int) -> dict:
        """For JSON; a call that nobody waited for was over by the last look."""
        call, ended = self.call, self.times[3]
        if ended is not None and self.times[4] is not None:  # gloo's word may have to wait for Python's lock
            self.times[4] = min(self.times[4], ended)
        return {
            "op": call.name,
            "kind": call.kind,
            "group": str(call.group.key),
            "seq": self.seq,
            "peer": self.peer,
            "tag": call.tag,
            "reduce": call.reduce,
            "dtype": dtype_name(self.dtype) if self.dtype else "",
            "shape": [list(shape) for shape in self.shapes],
            "bytes": self.nbytes,
            "splits": [list(split) for split in call.splits],
            "site": self.site,
            "ins": self.ins,
            "outs": self.outs,
            "times": self.times,
            "looks": [self.looks[0], last_look if self.looks[1] is None else self.looks[1]],
            "wait_line": self.wait_line,
            "wait_row": self.wait_row,
            "bucket": self.bucket,
            "native": self.native,
        }


def _nbytes(tensors) -> int:
    return sum([tensor.numel() * tensor.element_size() for tensor in tensors])


class Recorder:
    """What one rank did between `tap.start` and `tap.stop`."""

    def __init__(self, limit: int = LIMIT):
        self.limit, self.dropped = limit, 0
        self.began = time.perf_counter_ns()
        self.events: list[Event] = []
        self.snapshots = Snapshots(Storages())
        self.op_log = OpLog(self.snapshots)
        self.groups: dict[int, Group] = {}
        self.sites: dict[tuple, int] = {}  # (file, line) of the frames of a call, innermost first -> its number
        self.globals: dict = {}
        self.cell_file = ""
        self._lock = threading.Lock()  # the student's threads may call at the same time

    def begin(self, call: Call, seq: int, frames: list[FrameType]) -> Event | None:
        """A call enters torch from these frames of the student's. None when there is no room for it."""
        with self._lock:
            return self._begin(call, seq, frames)

    def _begin(self, call: Call, seq: int, frames: list[FrameType]) -> Event | None:
        if len(self.events) >= self.limit:
            self.dropped += 1
            self.op_log.go_blind()
            return None
        scopes = frames
        if threading.current_thread() is not threading.main_thread():  # in a pool's thread it may have none of its own
            main = callsite.frames_of_main_thread()
            scopes = frames if frames[-1:] == main[-1:] else frames + main
        if scopes:
            self.globals, self.cell_file = scopes[-1].f_globals, scopes[-1].f_code.co_filename
        self.groups[call.group.key] = call.group
        stack = tuple([(frame.f_code.co_filename, frame.f_lineno) for frame in frames])
        site = self.sites.setdefault(stack, len(self.sites))
        ins = [self.snapshots.place(tensor) for tensor in call.ins]
        outs = ins if call.outs is call.ins else [self.snapshots.place(tensor) for tensor in call.outs]
        event = Event(call, len(self.events), seq, site, ins, outs)
        self.snapshots.bind([(frame.f_code.co_name, callsite.variables_of(frame)) for frame in scopes])
        event.looks[0] = self.snapshots.take(*ins, *outs)
        self.op_log.begin(event.number)
        self.events.append(event)
        event.times[0] = time.perf_counter_ns()
        return event

    def waits(self, event: Event) -> None:
        """The student begins to wait for the call."""
        event.times[2], event.wait_row = time.perf_counter_ns(), len(self.op_log.rows)
        event.blocking = callsite.called_by_torch(sys._getframe(2))  # no line of theirs runs meanwhile
        frame = callsite.innermost()
        event.wait_line = frame.f_lineno if frame else 0

    def end(self, event: Event) -> None:
        """The wait for a call has returned: what it received is there."""
        event.times[3] = time.perf_counter_ns()
        nothing_new = event.call.kind == "send" and event.blocking
        with self._lock:
            event.looks[1] = self.snapshots.skip() if nothing_new else self.snapshots.take(*event.outs)
            self.op_log.end(event.number)

    def stop(self) -> dict:
        """Everything, as plain lists and dicts. The last look shows what the cell left behind."""
        names = callsite.mentioned(self.cell_file)
        variables = {name: self.globals[name] for name in names if name in self.globals}
        if "_" in self.globals:  # the value of the cell's last expression
            variables["the cell's value"] = self.globals["_"]
        reached = callsite.reached(variables)
        placed = [(path, self.snapshots.place(tensor), form(tensor)) for path, tensor in reached]
        self.snapshots.bind([("", variables)])
        self.snapshots.final = [[path, *place, *shape] for path, place, shape in placed if place]
        last = self.snapshots.take_all()
        return {
            "events": [event.plain(last) for event in self.events],
            "dropped": self.dropped,
            "began": self.began,
            "groups": {str(k): {"ranks": list(group.ranks), "label": group.label} for k, group in self.groups.items()},
            "sites": [[callsite.site(*place) for place in stack] for stack in self.sites],
            "snapshots": self.snapshots.dump(),
            "op_log": self.op_log.dump(),
        }
