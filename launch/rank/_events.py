"""The recorder: every call as an event, from when it began to when it was waited for, with the snapshots beside it.

The tap calls `begin` when a call enters torch and `end` when the student has waited for it; between them and after them
stand the ops of torch in the op log. Events are bounded: after `limit` calls the rest are only counted.

Left out: matching calls of different ranks and working out what they did; the driver does that (`replay.recording`).
"""

import sys
import threading
import time
from types import FrameType

from launch.rank import callsite
from launch.rank._op_log import OpLog
from launch.rank._ops import Call, Group, dtype_name
from launch.rank._snapshots import Snapshots
from launch.rank._storages import Storages

LIMIT = 20_000


class Event:
    """One call of this rank, while it is recorded. It holds no tensor: the student's memory is not kept alive by it."""

    __slots__ = (
        "call",
        "peer",
        "seq",
        "site",
        "dtype",
        "shapes",
        "nbytes",
        "ins",
        "outs",
        "times",
        "looks",
        "wait_line",
        "wait_row",
        "blocking",
        "number",
        "bucket",
        "native",
    )

    def __init__(self, call: Call, number: int, seq: int, site: int, ins: list, outs: list):
        self.number = number
        tensors = call.ins or call.outs
        self.call, self.peer, self.seq, self.site = call.without_tensors(), call.peer, seq, site
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
        self.events: list[Event] = []
        self.snapshots = Snapshots(Storages())
        self.op_log = OpLog(self.snapshots)
        self.groups: dict[int, Group] = {}
        self.sites: dict[callsite.Site, int] = {}
        self.globals: dict = {}
        self.cell_file = ""
        self._lock = threading.Lock()  # the student's threads may call at the same time

    def begin(self, call: Call, seq: int, frames: list[FrameType], via: tuple[str, ...]) -> Event | None:
        """A call enters torch, from where `callsite.frames` says. None when there is no room for it."""
        with self._lock:
            return self._begin(call, seq, frames, via)

    def _begin(self, call: Call, seq: int, frames: list[FrameType], via: tuple[str, ...]) -> Event | None:
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
        site = self.sites.setdefault(callsite.site(frames, via), len(self.sites))
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
        placed = [(path, self.snapshots.place(tensor)) for path, tensor in reached]
        self.snapshots.bind([("", variables)])
        self.snapshots.final = [[path, *place] for path, place in placed if place]
        last = self.snapshots.take_all()
        return {
            "events": [event.plain(last) for event in self.events],
            "dropped": self.dropped,
            "groups": {str(k): {"ranks": list(group.ranks), "label": group.label} for k, group in self.groups.items()},
            "sites": [_plain_site(site) for site in self.sites],
            "snapshots": self.snapshots.dump(),
            "op_log": self.op_log.dump(),
        }


def _plain_site(site: callsite.Site) -> dict:
    stack = [[callsite.short(file), line, callsite.code_of(file, line)] for file, line in site.stack]
    file, line = stack[0][:2] if stack else ("", 0)
    return {"file": file, "line": line, "function": site.function, "via": list(site.via), "stack": stack}
