"""What a rank says about itself when the driver asks why nothing moves: a look at its threads from the control thread.

The black box knows of every wait that passes through Python. Two kinds do not: DDP and other C++ code of torch wait for
their collectives themselves, and `new_group` waits in a store. A main thread that sleeps there uses no processor time
and stands in torch's distributed or autograd code; a `time.sleep`, a read from disk or a computation looks different.

Left out: judging; one look proves nothing, the driver compares two (`doctor.attendant`).
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
import traceback
from pathlib import Path

import torch

from launch.rank import callsite, tap

_TORCH = str(Path(torch.__file__).parent)
_WAITING_CODE = tuple(f"{_TORCH}/{part}" for part in ("distributed/", "nn/parallel/", "autograd/"))
_WRAPPERS = ("wrapper", "wrapped", "inner", "decorate_context")  # functions of decorators, which say nothing
_NOT_THE_STUDENTS = (*sysconfig.get_paths().values(), str(Path(__file__).parent))


def look(store) -> dict:
    """The rank as it is now, as a dict for JSON; `store` is the rank's PollStore or None.

    place    the function of torch that the student's code called last ("backward", "new_group"); "" if none
    line     the line of the student's code that runs, and "file" the name of its file; "" for a cell
    asleep   the main thread sleeps in torch's distributed or autograd code, not in Python
    meeting  it waits in the store for something that is not there
    cpu      nanoseconds of processor time that the main thread has used
    threads  whether the student has threads of his own, which may do anything
    """
    tap.refresh()
    stack = traceback.extract_stack(sys._current_frames()[threading.main_thread().ident])
    students = [place for place, frame in enumerate(stack) if not _foreign(frame.filename)]
    calls = stack[students[-1] + 1 :] if students else []
    return {
        "place": next((call.name for call in calls if call.name not in _WRAPPERS and call.name[0] != "_"), ""),
        "line": stack[students[-1]].lineno if students else 0,
        "file": callsite.short(stack[students[-1]].filename) if students else "",
        "asleep": stack[-1].filename.startswith(_WAITING_CODE) and _sleeps() and not torch.cuda.is_initialized(),
        "meeting": store is not None and store.missing(),
        "cpu": _processor_time(),
        "threads": any(_acts(thread) for thread in threading.enumerate() if thread is not threading.main_thread()),
    }


def _foreign(file: str) -> bool:
    """Whether a file belongs to Python, to what is installed or to this package; a cell's does not."""
    return file.startswith(_NOT_THE_STUDENTS) or file.startswith("<frozen")


def _acts(thread: threading.Thread) -> bool:
    """Whether the thread runs code of the student or of torch.distributed; Jupyter's own and idle workers do not."""
    if thread.name == "ringside-wait":  # waits for the main thread, see launch.rank.aside
        return False
    frame = sys._current_frames().get(thread.ident)
    files = [entry.filename for entry in traceback.extract_stack(frame)] if frame else []
    return thread is not threading.current_thread() and any(
        not _foreign(file) or file.startswith(_WAITING_CODE[0]) for file in files
    )


def _sleeps() -> bool:
    return _of_main_thread("stat").rpartition(")")[2].split()[0] == "S"


def _processor_time() -> int:
    return int(_of_main_thread("schedstat").split()[0])


def _of_main_thread(file: str) -> str:
    return Path(f"/proc/self/task/{os.getpid()}/{file}").read_text()
