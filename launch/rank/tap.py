"""The tap: sees every collective and every message of this process, and how each one ends.

It registers kernels for torch's `c10d` ops at the dispatch key BackendSelect. All callers pass there: the student's
`dist.*` (also under names imported before), DDP's C++ reducer, FSDP2, DTensor and functional collectives. Ordinary
torch ops do not, and cost nothing extra. `Work.wait` is wrapped, because a call is complete only after its wait; and
so is the creation of groups, which all ranks must do in the same order.

A rank makes one `Tap` after the fork. From then on the flight recorder says what the rank is doing, and mismatched
calls raise MismatchError.
"""

import sys
import time
from collections.abc import Callable
from functools import wraps
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Work, _create_work_from_future  # type: ignore[attr-defined]
from torch.distributed import distributed_c10d as c10d

from launch.backends import gloo
from launch.rank import _reducer, callsite, interruptible
from launch.rank._op_log import LIMIT, Event, Recorder
from launch.rank._ops import OPS, Call, Group, Parser
from launch.rank.network import Network
from launch.rank.patches import give_new_names, has_op, replace
from launch.rank.pending import PendingCalls
from launch.shared.wires import name_of

_BELOW = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
_plain_wait, _plain_future, _plain_completed = Work.wait, Work.get_future, Work.is_completed
OFTEN = 1000  # times that a loop asks whether a message is completed
TOLD = 2  # seconds of a network; that the call will take so long is told while it does
LONG = 1 << 18  # bytes; shorter messages arrive as a whole


def _not_compiled(function):
    """torch.compile traces neither the function nor what it calls: as torch.compiler.disable, without the seconds that
    importing torch._dynamo takes."""
    frames = torch._C._dynamo.eval_frame
    skip = frames._FrameAction.SKIP
    frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, skip))
    function._torchdynamo_disable = True  # where a compiled function calls it by name
    function._torchdynamo_disable_msg = None
    return function


class Tap:
    """Watches this process. `slot` is its part of the flight recorder; without `guard` calls of different ranks are not
    compared."""

    def __init__(self, slot, guard: bool = True):
        give_new_names()
        self.calls = PendingCalls(slot, guard)
        self.recorder: Recorder | None = None
        self.network: Network | None = None
        self._groups: WeakKeyDictionary = WeakKeyDictionary()  # weak: a destroyed group must give back its store's port
        self._futureless: set[tuple[str, str]] = set()  # (name, device) of calls whose Work has no future
        self._buckets, self._waits = _reducer.Buckets(), _reducer.Waits()
        self._c10d = torch.library.Library("c10d", "IMPL")
        for op in filter(has_op, OPS):
            self._c10d.impl(op, self._kernel(op), "BackendSelect", with_keyset=True)
        self._functional = torch.library.Library("_c10d_functional", "IMPL")
        self._functional.impl("wait_tensor", self._wait_tensor(), "BackendSelect", with_keyset=True)
        self._put_back = replace_waits(self) + replace_messages(self) + replace_making(self)

    def remove(self) -> None:
        """Stops watching. Tests use it; a rank keeps its tap for life."""
        self._end_recording()
        self._c10d._destroy()
        self._functional._destroy()
        for put_back in reversed(self._put_back):
            put_back()

    def start(self, limit: int = LIMIT) -> None:
        """Begins to record, on the thread that will run the cell; drops a recording that is going on. Calls beyond
        `limit` are only counted."""
        self._end_recording()
        self.recorder = Recorder(limit)
        self.recorder.op_log.__enter__()

    def stop(self) -> dict:
        """Ends the recording; `replay.recording.Recording` reads what this returns."""
        recorder = self._end_recording()
        if recorder is None:
            raise RuntimeError(f"rank {self.calls.slot.rank}: nothing is being recorded; call tap.start() first")
        return {"rank": self.calls.slot.rank, **recorder.stop()}

    def _end_recording(self) -> Recorder | None:
        recorder, self.recorder = self.recorder, None
        self.calls.swept.clear()
        if recorder is not None:
            recorder.op_log.__exit__(None, None, None)
        return recorder

    def reset(self) -> None:
        """Counts calls from 0 again, in the epoch that the driver has begun."""
        self.calls.reset()
        self._groups.clear()

    def refresh(self) -> None:
        """Closes calls that have ended without a wait in Python (DDP waits for its own in C++). From any thread."""
        self.calls.sweep()

    def _group_of(self, process_group) -> Group:
        group = self._groups.get(process_group)
        if group is None:
            group = self._groups[process_group] = Group(process_group)
        return group

    def _kernel(self, op: str):
        """The kernel of one c10d op: posts the call, records it, calls the real op, remembers its Work."""
        below = getattr(torch.ops.c10d, op).default.redispatch
        if op == "monitored_barrier_":
            below = gloo.quietly(below)
        parse = Parser(op)

        @_not_compiled
        def kernel(keyset, *args, **kwargs):
            call: Call = parse(args, self._group_of)
            recorder, network = self.recorder, self.network
            if recorder is None:
                pending, event = self.calls.post(call, *callsite.line_and_file()), None
            else:
                frames = callsite.frames()
                pending = self.calls.post(call, *callsite.line_and_file_of(frames))
                event = recorder.begin(call, pending.seq, frames)
            if network is not None:
                pending.begun = network.begin(call, self._name_of(pending), pending.open.nbytes)
            try:
                result = below(keyset & _BELOW, *args, **kwargs)
            except BaseException as error:
                self.calls.refused(pending, error)
                raise
            work = _work_of(result)
            self.calls.issued(pending, work)
            if recorder is not None and event is not None:
                event.issued()
                pending.event = (recorder, event)
                if work is None:  # monitored_barrier: over when it returns
                    recorder.waits(event)
                    recorder.end(event)
                else:
                    self._note_completion(call, work, event, pending)
            if call.kind == "collective" and (event is not None or network is not None) and work is not None:
                return self._from_cpp(call, pending, result, work, event, _reducer.caller())
            return result

        return kernel

    def _from_cpp(self, call: Call, pending, result, work, event, caller):
        """The result of a collective. Of DDP's the bucket is noted, and its Work is done only when the network is."""
        bucket, network = self._buckets.of(call, caller), self.network
        if event is not None and bucket is not None:
            event.bucket = bucket
            self._waits.add(event)
        if network is None or not _reducer.is_native(caller):
            return result
        if bucket is None:  # as far as can be seen, C++ waits for it at once
            work.wait()
            return result
        future = _reducer.late(_plain_future(work), lambda: network.hold(self.over(pending)))
        return (*result[:-1], _create_work_from_future(future).boxed())

    def _note_completion(self, call: Call, work, event, pending) -> None:
        """Has the library report when it is done. Where gloo has no future (messages, reduce_scatter) the end of the
        wait counts; for a blocking call, too, where gloo's thread would have to wait for the GIL."""
        kind = (call.name, call.ins[0].device.type if call.ins else "")
        if call.kind != "collective" or kind in self._futureless or callsite.is_blocking():
            return  # a future that gloo refuses costs as much as a send

        def finished(_):
            event.finished(self.over(pending))  # by now all ranks that it needs have begun it

        try:
            _plain_future(work).add_done_callback(finished)
        except RuntimeError:
            self._futureless.add(kind)

    def recorded(self, pending) -> tuple[Recorder, Event] | None:
        """The recording that is going on and the call's event in it, if it has one."""
        found = pending and pending.event
        return found if found and found[0] is self.recorder else None

    def over(self, pending, work=None) -> float:
        """When the network ends the wait for a call that the library is done with; 0.0: at once."""
        network = self.network
        if network is None or pending is None or pending.begun is None:
            return 0.0
        if pending.kind == "collective":
            return network.end(pending.begun)
        if pending.kind == "send":
            return network.departure(pending.peer, self._name_of(pending))
        src = pending.group.ranks[work._source_rank()] if pending.peer is None else pending.peer
        return network.arrival(src, self._name_of(pending), pending.begun.at)

    def hold(self, pending, work=None) -> None:
        """The library is done; waits until the network is, too."""
        if self.network is not None and pending is not None:
            over = self.over(pending, work)
            if (left := over - time.monotonic()) > TOLD:
                self.calls.held(pending, left)
            self.network.hold(over)

    def _name_of(self, pending) -> int:
        """What a message is called on the network."""
        return name_of(pending.open.key, pending.open.tag, pending.seq, self.calls.counters.epoch)

    def deaf(self, pending) -> bool:
        """Whether this wait in gloo may never return, not even when every connection is closed."""
        if pending is None or pending.in_turns:
            return False
        from_any = pending.kind == "recv" and pending.peer is None
        return from_any or pending.open.nbytes >= LONG or self.calls.torn or bool(self.calls.dropped)

    def _wait_tensor(self):
        """Functional collectives and DTensor wait in C++: here, by the memory they wait for."""
        calls = self.calls

        @_not_compiled
        def wait_tensor(keyset, tensor):
            pending = calls.waits_for_memory(tensor)
            recorded = self.recorded(pending) if pending else calls.event_of_swept(tensor=tensor)
            if recorded:
                recorded[0].waits(recorded[1])
            try:
                if pending is not None and pending.in_turns:
                    interruptible.in_turns(_plain_wait, pending.held)
                result = torch.ops._c10d_functional.wait_tensor.default.redispatch(keyset & _BELOW, tensor)
                self.hold(pending)
            except BaseException as error:
                if (first := calls.stopped(pending, error)) is not error:
                    raise first  # noqa: B904
                raise
            calls.memory_arrived(pending)
            if recorded:
                recorded[0].end(recorded[1])
            return result

        return wait_tensor


def _work_of(result) -> Work | None:
    """The Work in what an op returned: the same Python object that the caller will get."""
    boxed = result[-1] if isinstance(result, tuple) else result
    return Work.unbox(boxed) if isinstance(boxed, torch.ScriptObject) else None


def replace_waits(tap: Tap) -> list[Callable[[], None]]:
    """Work.wait, is_completed and get_future of `tap`; what puts torch's own back."""
    calls = tap.calls

    @_not_compiled
    def _wait(work, *args, **kwargs):
        """The flight recorder says what is waited for, and the recording when it came."""
        pending = calls.waits(work)
        recorded = tap.recorded(pending) if pending else calls.event_of_swept(work)
        if recorded:
            recorded[0].waits(recorded[1])
        try:
            if pending is not None and pending.in_turns and not args and not kwargs:
                result = interruptible.in_turns(_plain_wait, work)
            elif tap.deaf(pending):
                result = interruptible.wait(_plain_wait, work, *args, **kwargs)
            else:
                result = _plain_wait(work, *args, **kwargs)
            tap.hold(pending, work)
        except BaseException as error:
            if (first := calls.stopped(pending, error)) is not error:
                raise first  # noqa: B904
            raise
        calls.waited(pending, work)
        if recorded:
            if pending is not None:
                recorded[1].peer = pending.peer  # known only now, if it received from any source
            recorded[0].end(recorded[1])
        return result

    def _is_completed(work):
        """torch's own says of a message of gloo's that it is over only when it was waited for."""
        done, pending = _plain_completed(work), calls.posting_of(work)
        if done and pending is not None and pending.kind == "collective" and tap.over(pending) > time.monotonic():
            return False  # the network has not delivered it yet
        if not done and pending is not None and pending.kind != "collective" and not pending.on_gpu:
            pending.asked += 1
            if pending.asked == OFTEN:
                print(
                    f"line {callsite.line()} keeps calling is_completed() on an i{pending.kind}: gloo completes it "
                    "only in wait(), so call wait()",
                    file=sys.stderr,
                )
        return done

    @_not_compiled
    def _get_future(work):
        """Hooks on DDP's buckets use it: done when the network is, too."""
        network, future = tap.network, _plain_future(work)
        pending = calls.posting_of(work) if network is not None else None
        if network is None or pending is None or pending.begun is None or not pending.begun.needs:
            return future
        return _reducer.late(future, lambda: network.hold(tap.over(pending)))

    return [
        replace(Work, "wait", _wait),
        replace(Work, "is_completed", _is_completed),
        replace(Work, "get_future", _get_future),
    ]


def replace_messages(tap: Tap) -> list[Callable[[], None]]:
    """`isend` and `irecv`, which return their Work: from then on only the caller keeps it alive."""

    def handing_over(function):
        @wraps(function)
        def wrapper(*args, **kwargs):
            work = function(*args, **kwargs)
            if work is not None:
                tap.calls.handed_over(work)
            return work

        return _not_compiled(wrapper)

    # The same in both modules, since P2POp compares what it is given.
    wrappers = {name: handing_over(getattr(c10d, name)) for name in ("isend", "irecv")}
    return [replace(module, name, wrapper) for module in (dist, c10d) for name, wrapper in wrappers.items()]


def replace_making(tap: Tap) -> list[Callable[[], None]]:
    """The function of torch that makes every process group. Not compared are the default group, when no rank knows the
    others yet, and a group named by its members (`use_local_synchronization`), which they alone make."""
    make = c10d._new_process_group_helper

    @wraps(make)
    def _new_process_group_helper(group_size, group_rank, members, backend, store, group_name, *args, **kwargs):
        if members and str(group_name).isdigit() and c10d.is_initialized():
            tap.calls.new_group(members, dist.get_world_size(), *callsite.line_and_file())
        return make(group_size, group_rank, members, backend, store, group_name, *args, **kwargs)

    return [replace(c10d, "_new_process_group_helper", _new_process_group_helper)]
