"""A rank's report when the driver asks why nothing moves: what its threads are doing, seen from the control thread.

The flight recorder knows every wait that passes through Python. Two kinds do not: torch's C++ code (DDP) waits for its
collectives itself, and `new_group` waits in a store. A main thread that sleeps there uses no processor time and is in
torch's distributed or autograd code; a `time.sleep`, a read from disk or a computation looks different.

Left out: judging; one look proves nothing, the driver compares two (`kernel.watchdog`).
"""

from __future__ import annotations

import os
import sysconfig
import threading
import traceback
from pathlib import Path

import torch

from launch.backends import gloo
from launch.rank import callsite

_TORCH = str(Path(torch.__file__).parent)
_WAITING_CODE = tuple(f"{_TORCH}/{part}" for part in ("distributed/", "nn/parallel/", "autograd/"))
_TAP = str(Path(__file__).with_name("tap.py"))
_MAKERS = (*(str(Path(__file__).with_name(name)) for name in ("interruptible.py", "_regroup.py")), gloo.__file__)
_WRAPPERS = ("wrapper", "wrapped", "inner", "decorate_context")  # functions of decorators, which say nothing
_BLOCKING = tuple(sysconfig.get_path("stdlib") + name for name in ("/threading.py", "/selectors.py", "/queue.py"))


def look(regrouper, tap) -> dict:
    """The rank as it is now, as a dict for JSON; `regrouper` knows its groups and their store.

    place    the function of torch that the student's code called last ("backward", "new_group"); "" if none
    line     the line of the student's code that runs, and "file" of what, if not of the cell under way
    asleep   the main thread sleeps in torch's distributed or autograd code, or where the tap hands a call to torch
    meeting  it waits in the store for something that is not there
    making   it makes a process group; where it sleeps in that, it waits in a store of the student's
    gathers  how many ranks have to come to the store of torch's that it makes, asleep; 0 if it makes none, or unknown
    stores   the same of every store of torch's that this cell has made
    cpu      nanoseconds of processor time that the main thread has used
    threads  whether the student has other threads, which may do anything. A thread that waits in a call does not
             count while the main thread waits for it, or in a call itself.
    """
    tap.refresh()
    main = callsite.frame_of(threading.main_thread())
    stack = traceback.extract_stack(main)
    students = [place for place, frame in enumerate(stack) if callsite.is_students(frame.filename)]
    calls = stack[students[-1] + 1 :] if students else []
    return {
        "place": next((call.name for call in calls if call.name not in _WRAPPERS and call.name[0] != "_"), ""),
        "line": stack[students[-1]].lineno if students else 0,
        "file": callsite.whereabouts(stack[students[-1]].filename) if students else "",
        "asleep": _in_torch(stack) and _sleeps() and not torch.cuda.is_initialized(),
        "meeting": regrouper.store is not None and regrouper.store.missing(),
        "making": regrouper.making,
        "gathers": regrouper.gathers if _sleeps() else 0,
        "stores": regrouper.stores,
        "cpu": _processor_time(),
        "threads": _threads_act(main),
    }


def _in_torch(stack: traceback.StackSummary) -> bool:
    handed_on = any(frame.filename == _TAP and frame.name == "kernel" for frame in stack[-2:])
    # Our frames above the creation of a group. A store does not count: its creation may sleep between two attempts.
    left = [frame.filename for frame in stack if frame.filename not in _MAKERS]
    return handed_on or left[-1].startswith(_WAITING_CODE)


def _threads_act(main) -> bool:
    """Whether threads of the student may do anything; `main` is the frame in which the main thread is."""
    acting = [thread for thread in threading.enumerate() if thread is not threading.main_thread() and _acts(thread)]
    waits = _waits_for_ever(main) or _in_a_call(main)
    return bool(acting) and not (waits and all(_in_a_call(callsite.frame_of(thread)) for thread in acting))


def _waits_for_ever(frame) -> bool:
    """Whether it is in `join`, `result`, `get` or an event loop, without a limit: only a thread will wake it."""
    if not frame.f_code.co_filename.startswith(_BLOCKING):
        return False
    while frame is not None and not callsite.is_students(frame.f_code.co_filename):
        if frame.f_locals.get("timeout") not in (None, -1):
            return False
        frame = frame.f_back
    return True


def _in_a_call(frame) -> bool:
    """Whether a thread that is there waits in a call of torch.distributed that the tap knows of."""
    while frame is not None and frame.f_code.co_filename != _TAP:
        if callsite.is_students(frame.f_code.co_filename):
            return False
        frame = frame.f_back
    return frame is not None and frame.f_code.co_name == "_wait"


def _acts(thread: threading.Thread) -> bool:
    """Whether the thread runs code of the student or of torch.distributed; Jupyter's own and idle workers do not."""
    # The thread that asks would keep its own frame in a variable of that frame, and through it the main thread's with
    # all that it holds, a student's group and its port among it, until the next collection.
    asks = thread is threading.current_thread()
    if asks or thread.name == "ringside-wait":  # which waits for the main thread, see launch.rank.interruptible
        return False
    frame = callsite.frame_of(thread)
    files = [entry.filename for entry in traceback.extract_stack(frame)] if frame else []
    return any(callsite.is_students(file) or file.startswith(_WAITING_CODE[0]) for file in files)


def _sleeps() -> bool:
    return _of_main_thread("stat").rpartition(")")[2].split()[0] == "S"


def _processor_time() -> int:
    return int(_of_main_thread("schedstat").split()[0])


def _of_main_thread(file: str) -> str:
    return Path(f"/proc/self/task/{os.getpid()}/{file}").read_text()
