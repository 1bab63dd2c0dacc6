"""The tap: sees every collective and every message of this process, whoever makes it, and what becomes of it.

Kernels at the dispatch key BackendSelect of torch's `c10d` ops stand below the student's `dist.*`, below names imported
before, DDP's C++ reducer, FSDP2, DTensor and functional collectives; ordinary torch ops do not pass there and cost
nothing more. `Work.wait` is wrapped as well, because a call has happened only when somebody has waited for it.

    install(slot, guard=True)   in the rank, after the fork and before the first cell: from then on the black box and
                                the ledger say what the rank is doing, and mismatched calls raise MismatchError
    start(), stop()             around a recorded cell; stop() returns what happened as a dict for JSON
                                (`replay.recording`)
    reset()                     after stuck ranks were freed: calls are counted from 0 again
    refresh()                   from any thread: forget open calls that finished unseen (DDP waits for its own in C++)

Left out: what the calls of different ranks mean together; that is the driver's (`replay.recording`, `launch.doctor`).
"""

from weakref import WeakKeyDictionary

import torch
from torch._C._distributed_c10d import Work

from launch.rank import aside, callsite
from launch.rank.events import LIMIT, Recorder
from launch.rank.ops import OPS, Call, Group, Parser
from launch.rank.postings import Postings

_BELOW = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
_plain_wait = Work.wait

_library: torch.library.Library | None = None
_functional: torch.library.Library | None = None
_postings: Postings | None = None
_recorder: Recorder | None = None
_groups: WeakKeyDictionary = WeakKeyDictionary()  # weak: a destroyed group must give back its store's port
_futureless: set[tuple[str, str]] = set()  # (name, device) of calls whose Work has no future


def install(slot, guard: bool = True) -> None:
    """Begin to watch this process; `slot` is this rank's `launch.blackbox.Slot`. Call it once, after the fork."""
    global _library, _functional, _postings
    if _library is not None:
        raise RuntimeError("the tap is installed already; call remove() first")
    _postings = Postings(slot, guard)
    _library = torch.library.Library("c10d", "IMPL")
    for op in OPS:
        _library.impl(op, _kernel(op), "BackendSelect", with_keyset=True)
    _functional = torch.library.Library("_c10d_functional", "IMPL")
    _functional.impl("wait_tensor", _wait_tensor, "BackendSelect", with_keyset=True)
    Work.wait = _wait


def remove() -> None:
    """Undo `install`. Tests use it; a rank keeps its tap for life."""
    global _library, _functional, _postings, _recorder
    if _recorder is not None:
        _recorder.account.__exit__(None, None, None)
    if _library is not None:
        _library._destroy()
        _functional._destroy()
        Work.wait = _plain_wait
    _library = _functional = _postings = _recorder = None
    _groups.clear()


def start(limit: int = LIMIT) -> None:
    """Begin to record, on the thread that will run the cell; at most `limit` calls are kept, the rest are counted. A
    recording that was going on is dropped."""
    global _recorder
    if _recorder is not None:
        _recorder.account.__exit__(None, None, None)
    _recorder = Recorder(limit)
    _recorder.account.__enter__()


def stop() -> dict:
    """End the recording: {"rank", "events", "dropped", "groups", "sites", "film", "account"}, see
    `replay.recording.Recording`."""
    global _recorder
    if _recorder is None:
        raise RuntimeError(
            f"rank {_postings.slot.rank if _postings else '?'}: nothing is being recorded; call tap.start() first"
        )
    recorder, _recorder = _recorder, None
    recorder.account.__exit__(None, None, None)
    return {"rank": _postings.slot.rank, **recorder.stop()}


def reset() -> None:
    """Count calls from 0 again, in the epoch that the driver has begun (`launch.ledger.begin_epoch`)."""
    _postings.reset()
    _groups.clear()


def refresh() -> None:
    """Take calls that have finished, though nobody waited for them in Python, off the list of open calls."""
    _postings.sweep()


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
    parse = Parser(op)

    @_not_compiled
    def kernel(keyset, *args, **kwargs):
        call: Call = parse(args, _group_of)
        line, file = callsite.line_and_file()
        posting = _postings.post(call, line, file)
        recorder = _recorder
        event = recorder.begin(call, posting.seq) if recorder is not None else None
        try:
            result = below(keyset & _BELOW, *args, **kwargs)
        except BaseException:
            _postings.refused(posting)
            raise
        work = _work_of(result)
        _postings.issued(posting, work)
        if event is not None:
            event.issued()
            posting.event = (recorder, event)
            if work is None:  # monitored_barrier: over when it returns
                recorder.end(event, recorder.waits(event))
            else:
                _note_completion(call, work, event)
        return result

    return kernel


def _work_of(result) -> Work | None:
    """The Work in what an op returned: the same Python object that the caller will get."""
    boxed = result[-1] if isinstance(result, tuple) else result
    return Work.unbox(boxed) if isinstance(boxed, torch.ScriptObject) else None


def _note_completion(call: Call, work, event) -> None:
    """Lets the library say when it is done; where gloo has no future (messages, reduce_scatter) the wait tells."""
    kind = (call.name, call.ins[0].device.type if call.ins else "")
    if call.kind != "collective" or kind in _futureless:
        return  # asking in vain costs as much as sending
    try:
        work.get_future().add_done_callback(event.finished)
    except RuntimeError:
        _futureless.add(kind)


def _recorded(posting):
    """The event of a posting, if it belongs to the recording that is going on."""
    recorder, event = (posting and posting.event) or (None, None)
    return event if recorder is not None and recorder is _recorder else None


@_not_compiled
def _wait(work, *args, **kwargs):
    """Instead of Work.wait: the black box says what is waited for, and the recording when it came."""
    postings, recorder = _postings, _recorder
    posting = postings.waits(work)
    event = _recorded(posting)
    frames = recorder.waits(event) if event is not None else None
    from_any = posting is not None and posting.kind == "recv" and posting.peer is None
    try:
        result = aside.wait(_plain_wait, work, *args, **kwargs) if from_any else _plain_wait(work, *args, **kwargs)
    except BaseException:
        postings.stopped(posting)
        raise
    postings.waited(posting, work)
    if event is not None:
        event.peer = posting.peer  # known only now, if it received from any source
        recorder.end(event, frames)
    return result


@_not_compiled
def _wait_tensor(keyset, tensor):
    """Functional collectives and DTensor wait in C++: here, by the memory they wait for."""
    postings, recorder = _postings, _recorder
    posting = postings.waits_for_memory(tensor)
    event = _recorded(posting)
    frames = recorder.waits(event) if event is not None else None
    try:
        result = torch.ops._c10d_functional.wait_tensor.default.redispatch(keyset & _BELOW, tensor)
    except BaseException:
        postings.stopped(posting)
        raise
    postings.memory_arrived(posting)
    if event is not None:
        recorder.end(event, frames)
    return result
