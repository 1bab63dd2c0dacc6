"""DDP's reducer, which calls and waits in C++: which bucket a call carries, when the rank waited for it, a later end
for a network that is played, and which modules have a reducer.

A backward pass calls all_reduce for each bucket as soon as all of its gradients are there. When there is no more to
compute the reducer waits for the buckets, one after the other. Callbacks of autograd's see both moments, since they run
in the order in which they are queued: ours, queued with the first bucket, runs before the reducer's wait, and the one
that it queues runs after it. So what the backward pass hides is measured, not inferred.

The reducer and hooks on its buckets take a future (`late`) instead of Work.wait. Other C++ code of torch's waits for
its call at once.

Left out: when a static graph's first pass waits, which sends all buckets at its end. Two DDP modules in one backward
pass share one count of buckets.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from types import FrameType
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch.distributed import GradBucket

from launch.rank import _op_log, callsite, interruptible
from launch.rank._ops import Call
from launch.rank.patches import replace


def _file(*path: str) -> str:
    return os.path.join(os.path.dirname(torch.__file__), *path)


_ENGINE = _file("autograd", "graph.py")
_DDP = _file("nn", "parallel", "distributed.py")
# The files of the frame right above a call if C++ makes it: backward's, and DDP's own
_CALLERS = {_ENGINE, _DDP, _file("distributed", "utils.py")}
_BETWEEN = {_file("_ops.py"), _op_log.__file__}  # an op that is recorded goes on from there
UNUSED = "Expected to have finished reduction in the prior iteration"
_HOOK = 8  # frames from a call up to the hook that makes it

_modules: WeakKeyDictionary = WeakKeyDictionary()  # that have a reducer, in the order in which they got it


def in_our_words(error: BaseException) -> None:
    """Rewords the error of a reducer that lacked gradients: torch's own fills half a page, different on every rank."""
    if isinstance(error, RuntimeError) and str(error).startswith(UNUSED):
        found = re.search(r"did not receive grad for rank \d+: ([\d ]+)", str(error))
        which = ", ".join(found[1].split()) if found else "some"
        error.args = (
            f"parameters of this module got no gradient in the last backward pass (of module.parameters(): {which}): "
            "use all outputs of forward in the loss, or pass find_unused_parameters=True to DistributedDataParallel",
        )


def note_modules() -> None:
    """From now on `modules` knows them. To look for one among all objects takes a rank a tenth of a second."""
    plain = dist.Reducer

    def making(*args, **kwargs):
        made, frame = plain(*args, **kwargs), sys._getframe(1)
        if frame.f_code.co_filename == _DDP:
            _modules[frame.f_locals["self"]] = None
        return made

    replace(dist, "Reducer", making)


def modules() -> list:
    """All living DistributedDataParallel modules of this process."""
    return list(_modules)


class Buckets:
    """The buckets of this process. `of` is asked once for each call that a backward pass makes, in order."""

    def __init__(self):
        self._pass, self._count = -1, 0

    def of(self, call: Call, frame) -> int | None:
        """The number of the bucket that the call in that frame carries; None for any other call."""
        if call.name != "all_reduce" or (now := torch._C._current_graph_task_id()) < 0:
            return None
        if is_native(frame):
            if not call.ins[0].dtype.is_floating_point:
                return None  # which parameters were used
            if now != self._pass:
                self._pass, self._count = now, 0
            self._count += 1
            return self._count - 1
        for _ in range(_HOOK):
            if frame is None or frame.f_code.co_filename == _ENGINE:
                return None
            for value in frame.f_locals.values():
                if type(value) is GradBucket:
                    return value.index()
            frame = frame.f_back
        return None


class Waits:
    """When the reducer waited for the buckets of a backward pass that is recorded."""

    def __init__(self):
        self._pass = -1
        self._events: list = []

    def add(self, event) -> None:
        """The event of a bucket's call, from inside of the backward pass."""
        now = torch._C._current_graph_task_id()
        if torch._C._current_autograd_node() is None:
            return  # nothing is computed any more: the reducer has begun to wait
        if now != self._pass:
            self._pass, self._events = now, []
            _afterwards(self._begun)
        self._events.append(event)

    def _begun(self) -> None:
        began, line, events = time.perf_counter_ns(), callsite.line_and_file()[0], self._events

        def over():
            ended = time.perf_counter_ns()
            until = began
            for event in events:  # it waits for one after the other
                until = max(until, min(event.times[4] or ended, ended))
                if event.times[2] is None:  # else a hook has waited for it
                    event.waited_in_cpp(began, until, line)

        _afterwards(over)


def caller():
    """The Python frame that made the call which the tap's kernel sees now; None if there is none above C++."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename in _BETWEEN:
        frame = frame.f_back
    return frame


def is_native(frame) -> bool:
    """Whether C++ has made the call below this frame."""
    return frame is None or frame.f_code.co_filename in _CALLERS


def late(done: torch.futures.Future, hold) -> torch.futures.Future:
    """A future with the value or the error of `done`, when it is done and `hold()` has returned; on an error at
    once."""
    moment: torch.futures.Future = torch.futures.Future()
    errors: list[BaseException] = []

    def run():
        try:
            interruptible.wait(done.wait)  # gloo may lose a send, and never end what it belongs to
            hold()
        except BaseException as error:
            errors.append(error)
        moment.set_result(None)

    def value(_):
        if errors:
            raise errors[0]
        return done.value()

    threading.Thread(target=run, name="ringside-late", daemon=True).start()
    return moment.then(value)


def _afterwards(function) -> None:
    """Has autograd call it when the backward pass under way has computed everything."""
    torch.autograd.Variable._execution_engine.queue_callback(function)
