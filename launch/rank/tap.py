"""The tap: sees every collective and every message of this process, whoever makes it, and what becomes of it.

Kernels at the dispatch key BackendSelect of torch's `c10d` ops stand below the student's `dist.*`, below names imported
before, DDP's C++ reducer, FSDP2, DTensor and functional collectives; ordinary torch ops do not pass there and cost
nothing more. `Work.wait` is wrapped as well, because a call has happened only when somebody has waited for it; and
the making of a group, which all ranks have to do in the same order.

    install(slot, guard=True)   in the rank, after the fork and before the first cell: from then on the flight recorder
                                says what the rank is doing, and mismatched calls raise MismatchError
    start(), stop()             around a recorded cell; stop() returns what happened as a dict for JSON
                                (`replay.recording`)
    reset()                     after stuck ranks were freed: calls are counted from 0 again
    refresh()                   from any thread: forget open calls that finished unseen (DDP waits for its own in C++)

Left out: what the calls of different ranks mean together; that is the driver's (`replay.recording`, `launch.doctor`).
"""

import sys
import time
from functools import wraps
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Work, _create_work_from_future  # type: ignore[attr-defined]
from torch.distributed import distributed_c10d as c10d

from launch.backends import gloo
from launch.rank import _reducer, callsite, interruptible
from launch.rank._events import LIMIT, Recorder
from launch.rank._ops import OPS, Call, Group, Parser
from launch.rank.network import Network
from launch.rank.pending import PendingCalls
from launch.rank.torch_internals import give_new_names, has_op
from launch.shared.wires import name_of

_BELOW = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
_plain_wait, _plain_future, _plain_completed = Work.wait, Work.get_future, Work.is_completed
_plain_messages = {name: getattr(c10d, name) for name in ("isend", "irecv")}
_plain_make = c10d._new_process_group_helper
OFTEN = 1000  # times that a loop asks whether a message is completed
LONG = 1 << 18  # bytes; shorter messages arrive as a whole

_library: torch.library.Library | None = None
_functional: torch.library.Library | None = None
_calls: PendingCalls | None = None
_recorder: Recorder | None = None
_network: Network | None = None
_groups: WeakKeyDictionary = WeakKeyDictionary()  # weak: a destroyed group must give back its store's port
_futureless: set[tuple[str, str]] = set()  # (name, device) of calls whose Work has no future
_buckets, _waits = _reducer.Buckets(), _reducer.Waits()


def install(slot, guard: bool = True) -> None:
    """Begin to watch this process; `slot` is this rank's `launch.shared.flight_recorder.Slot`. Call it once, after
    the fork."""
    global _library, _functional, _calls
    if _library is not None:
        raise RuntimeError("the tap is installed already; call remove() first")
    give_new_names()
    _calls = PendingCalls(slot, guard)
    _library = torch.library.Library("c10d", "IMPL")
    for op in filter(has_op, OPS):
        _library.impl(op, _kernel(op), "BackendSelect", with_keyset=True)
    _functional = torch.library.Library("_c10d_functional", "IMPL")
    _functional.impl("wait_tensor", _wait_tensor, "BackendSelect", with_keyset=True)
    Work.wait, Work.get_future, Work.is_completed = _wait, _get_future, _is_completed
    c10d._new_process_group_helper = _making_groups(_plain_make)
    for name, function in _plain_messages.items():
        setattr(dist, name, _handing_over(function))
        setattr(c10d, name, getattr(dist, name))


def remove() -> None:
    """Undo `install`. Tests use it; a rank keeps its tap for life."""
    global _library, _functional, _calls, _recorder
    if _recorder is not None:
        _recorder.account.__exit__(None, None, None)
    if _library is not None:
        _library._destroy()
        _functional._destroy()
        Work.wait, Work.get_future, Work.is_completed = _plain_wait, _plain_future, _plain_completed
        c10d._new_process_group_helper = _plain_make
    for name, function in _plain_messages.items():
        setattr(dist, name, function)
        setattr(c10d, name, function)
    _library = _functional = _calls = _recorder = None
    _groups.clear()


def start(limit: int = LIMIT) -> None:
    """Begin to record, on the thread that will run the cell; at most `limit` calls are kept, the rest are counted. A
    recording that was going on is dropped."""
    global _recorder
    if _recorder is not None:
        _recorder.account.__exit__(None, None, None)
    _recorder = Recorder(limit)
    _recorder.account.__enter__()


def is_recording() -> bool:
    return _recorder is not None


def stop() -> dict:
    """End the recording: {"rank", "events", "dropped", "groups", "sites", "film", "account"}, see
    `replay.recording.Recording`."""
    global _recorder
    if _recorder is None:
        raise RuntimeError(
            f"rank {_calls.slot.rank if _calls else '?'}: nothing is being recorded; call tap.start() first"
        )
    recorder, _recorder = _recorder, None
    recorder.account.__exit__(None, None, None)
    return {"rank": _calls.slot.rank, **recorder.stop()}


def play(network: Network | None) -> None:
    """From the next call on the network says when a wait may be over; None: whenever the library is done."""
    global _network
    _network = network


def groups_made() -> list[tuple[str, int, str]]:
    """See `PendingCalls.made_here`."""
    return _calls.made_here()


def reset() -> None:
    """Count calls from 0 again, in the epoch that the driver has begun
    (`launch.shared.flight_recorder.begin_epoch`)."""
    _calls.reset()
    _groups.clear()


def refresh() -> None:
    """Take calls that have finished, though nobody waited for them in Python, off the list of open calls."""
    _calls.sweep()


def _not_compiled(function):
    """torch.compile looks neither into the function nor into what it calls: it runs as it stands, as if it were in C.

    What torch.compiler.disable does, without the seconds that importing torch._dynamo takes.
    """
    frames = torch._C._dynamo.eval_frame
    skip = frames._FrameAction.SKIP
    frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, skip))
    function._torchdynamo_disable = True  # where a compiled function calls it by name
    function._torchdynamo_disable_msg = None
    return function


def _group_of(process_group) -> Group:
    group = _groups.get(process_group)
    if group is None:
        group = _groups[process_group] = Group(process_group)
    return group


def _kernel(op: str):
    """What stands before one c10d op: post it, record it, call the real one, remember its Work."""
    below = getattr(torch.ops.c10d, op).default.redispatch
    if op == "monitored_barrier_":
        below = gloo.quietly(below)
    parse = Parser(op)

    @_not_compiled
    def kernel(keyset, *args, **kwargs):
        call: Call = parse(args, _group_of)
        recorder = _recorder
        if recorder is None:
            pending, event = _calls.post(call, *callsite.line_and_file()), None
        else:
            frames, via = callsite.frames()
            pending = _calls.post(call, *callsite.line_and_file_of(frames))
            event = recorder.begin(call, pending.seq, frames, via)
        if _network is not None:
            pending.due = _network.begin(call, _name_of(pending), pending.open.nbytes)
        try:
            result = below(keyset & _BELOW, *args, **kwargs)
        except BaseException as error:
            _calls.refused(pending, error)
            raise
        work = _work_of(result)
        _calls.issued(pending, work)
        if event is not None:
            event.issued(pending.due)
            pending.event = (recorder, event)
            if work is None:  # monitored_barrier: over when it returns
                recorder.waits(event)
                recorder.end(event)
            else:
                _note_completion(call, work, event)
        if call.kind == "collective" and (event is not None or _network is not None) and work is not None:
            return _from_cpp(call, pending, result, work, event, _reducer.caller())
        return result

    return kernel


def _from_cpp(call: Call, pending, result, work, event, caller):
    """The result of a collective: of DDP's with the bucket noted, and with a Work that is done when the network is."""
    bucket = _buckets.of(call, caller)
    if event is not None and bucket is not None:
        event.bucket = bucket
        _waits.add(event)
    network = _network
    if network is None or not _reducer.is_native(caller):
        return result
    if bucket is None:  # C++ waits for it at once, as far as anybody could tell
        _wait(work)
        return result
    future = _reducer.late(_plain_future(work), lambda: network.hold(pending.due))
    return (*result[:-1], _create_work_from_future(future).boxed())


def _work_of(result) -> Work | None:
    """The Work in what an op returned: the same Python object that the caller will get."""
    boxed = result[-1] if isinstance(result, tuple) else result
    return Work.unbox(boxed) if isinstance(boxed, torch.ScriptObject) else None


def _note_completion(call: Call, work, event) -> None:
    """Lets the library say when it is done; where gloo has no future (messages, reduce_scatter) the wait tells, and of
    a blocking call too: gloo's thread would have to wait for Python's lock, which costs more than all the rest."""
    kind = (call.name, call.ins[0].device.type if call.ins else "")
    if call.kind != "collective" or kind in _futureless or callsite.is_blocking():
        return  # asking in vain costs as much as sending
    try:
        _plain_future(work).add_done_callback(event.finished)
    except RuntimeError:
        _futureless.add(kind)


def _recorded(pending):
    """The event of a pending, if it belongs to the recording that is going on."""
    recorder, event = (pending and pending.event) or (None, None)
    return event if recorder is not None and recorder is _recorder else None


def _handing_over(function):
    """`dist.isend` and `dist.irecv`, which give their Work to the caller: from then on only the caller keeps it."""

    @wraps(function)
    def wrapper(*args, **kwargs):
        work = function(*args, **kwargs)
        if work is not None and _calls is not None:
            _calls.handed_over(work)
        return work

    return _not_compiled(wrapper)


def _making_groups(function):
    """What makes a process group for torch. Of the default group nobody knows yet who the other ranks are, and a group
    named by its members (`use_local_synchronization`) is made by them alone."""

    @wraps(function)
    def wrapper(group_size, group_rank, members, backend, store, group_name, *args, **kwargs):
        if members and str(group_name).isdigit() and c10d.is_initialized():
            _calls.new_group(members, dist.get_world_size(), *callsite.line_and_file())
        return function(group_size, group_rank, members, backend, store, group_name, *args, **kwargs)

    return wrapper


@_not_compiled
def _wait(work, *args, **kwargs):
    """Instead of Work.wait: the flight recorder says what is waited for, and the recording when it came."""
    calls, recorder = _calls, _recorder
    pending = calls.waits(work)
    event = _recorded(pending)
    if event is not None:
        recorder.waits(event)
    try:
        if pending is not None and pending.in_turns and not args and not kwargs:
            result = interruptible.in_turns(_plain_wait, work)
        elif _deaf(pending):
            result = interruptible.wait(_plain_wait, work, *args, **kwargs)
        else:
            result = _plain_wait(work, *args, **kwargs)
        if _network is not None and pending is not None:
            _hold(pending, work)
    except BaseException as error:
        if (first := calls.stopped(pending, error)) is not error:
            raise first  # noqa: B904
        raise
    calls.waited(pending, work)
    if event is not None:
        event.peer = pending.peer  # known only now, if it received from any source
        recorder.end(event)
    return result


def _is_completed(work):
    """Instead of Work.is_completed, which says of a message of gloo's that it is over only when it was waited for."""
    done, pending = _plain_completed(work), _calls and _calls._posting_of(work)
    if done and pending is not None and pending.due > time.monotonic():  # the network has not delivered it yet
        return False
    if not done and pending is not None and pending.kind != "collective" and not pending.on_gpu:
        pending.asked += 1
        if pending.asked == OFTEN:
            print(
                f"line {callsite.line()} asks again and again whether an i{pending.kind} is completed: with gloo that "
                "is so only after its wait(), so call wait()",
                file=sys.stderr,
            )
    return done


@_not_compiled
def _get_future(work):
    """Instead of Work.get_future, which hooks on DDP's buckets use: done when the network is, too."""
    network, future = _network, _plain_future(work)
    pending = _calls._posting_of(work) if network is not None else None
    if pending is None or not pending.due:
        return future
    return _reducer.late(future, lambda: network.hold(pending.due))


def _hold(pending, work) -> None:
    """The library is done; the network may not be."""
    if pending.kind == "collective":
        over = pending.due
    elif pending.kind == "send":
        over = _network.departure(pending.peer, _name_of(pending))
    else:
        src = pending.ranks[work._source_rank()] if pending.peer is None else pending.peer
        over = _network.arrival(src, _name_of(pending), pending.due)
    _network.hold(over)


def _name_of(pending) -> int:
    """What a message is called on the network."""
    return name_of(pending.key, pending.open.tag, pending.seq, _calls.counters.epoch)


def _deaf(pending) -> bool:
    """Whether gloo may not let the main thread out of this wait, not even when every connection is gone."""
    if pending is None or pending.in_turns:
        return False
    if _network is not None:  # messages are long under way
        return True
    from_any = pending.kind == "recv" and pending.peer is None
    return from_any or pending.open.nbytes >= LONG or _calls.torn or bool(_calls.dropped)


@_not_compiled
def _wait_tensor(keyset, tensor):
    """Functional collectives and DTensor wait in C++: here, by the memory they wait for."""
    calls, recorder = _calls, _recorder
    pending = calls.waits_for_memory(tensor)
    event = _recorded(pending)
    if event is not None:
        recorder.waits(event)
    try:
        if pending is not None and pending.in_turns:
            interruptible.in_turns(_plain_wait, pending.held)
        result = torch.ops._c10d_functional.wait_tensor.default.redispatch(keyset & _BELOW, tensor)
        if _network is not None and pending is not None:
            _network.hold(pending.due)
    except BaseException as error:
        if (first := calls.stopped(pending, error)) is not error:
            raise first  # noqa: B904
        raise
    calls.memory_arrived(pending)
    if event is not None:
        recorder.end(event)
    return result
