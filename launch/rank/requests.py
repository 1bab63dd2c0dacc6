"""What the notebook's kernel asks of a rank beside cells, and the answers; and the stop button.

They come as Jupyter messages of type `rank_request` on two channels. On the shell channel the main thread answers,
between cells: variables out and in, a new process group. On the control channel a thread of its own answers, also while
a cell runs or is stuck: interrupt, free, and what the main thread is in. What concerns one cell names it, since the
cell may have ended while the request was under way.

`look` reports what the flight recorder cannot know. Two kinds of waits do not pass through Python: torch's C++ code
(DDP) waits for its collectives itself, and `new_group` waits in a store. A main thread that sleeps there uses no
processor time and is in torch's distributed or autograd code; a `time.sleep`, a read from disk or a computation looks
different. One look proves nothing: the driver compares two (`kernel.watchdog`).
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import sysconfig
import threading
import traceback
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import torch

from launch.backends import gloo
from launch.hints.leftovers import brings_back, is_still
from launch.hints.names import spelt_like
from launch.rank import callsite, interruptible
from launch.rank._output import Streams
from launch.rank._regroup import Regrouper
from launch.rank.network import Network
from launch.rank.tap import Tap
from launch.shared import codec
from launch.shared.flight_recorder import Slot
from launch.shared.processes import descendants

_TORCH = str(Path(torch.__file__).parent)
_WAITING_CODE = tuple(f"{_TORCH}/{part}" for part in ("distributed/", "nn/parallel/", "autograd/"))
_TAP = str(Path(__file__).with_name("tap.py"))
_MAKERS = (*(str(Path(__file__).with_name(name)) for name in ("interruptible.py", "_regroup.py")), gloo.__file__)
_WRAPPERS = ("wrapper", "wrapped", "inner", "decorate_context")  # functions of decorators, which say nothing
_BLOCKING = tuple(sysconfig.get_path("stdlib") + name for name in ("/threading.py", "/selectors.py", "/queue.py"))


class Requests:
    """Answers for one rank."""

    def __init__(self, kernel, slot: Slot, regrouper: Regrouper, streams: Streams, tap: Tap):
        self.kernel, self.slot, self.regrouper, self.streams, self.tap = kernel, slot, regrouper, streams, tap
        self._pid = os.getpid()
        self.running: str | None = None  # msg_id of the cell under way
        self._stopped: str | None = None  # of a cell that is to end before it has begun
        self._beginning = threading.Lock()
        self._signalled: set[int] | None = None  # children that the stop button reached; None if it was not pressed
        self._interrupted = False  # the cell has ended or was interrupted
        self._forking = threading.Lock()  # held while Python forks
        over = self._forking.release
        os.register_at_fork(before=self._forking.acquire, after_in_parent=over, after_in_child=over)
        on_main_thread = {"regroup": self.regroup, "leave": self.leave, "renumber": tap.reset}
        on_main_thread |= {"has": self.has, "changed": self.changed, "network": self.play}
        at_any_time = {"interrupt": self.interrupt, "deaf": self.why_deaf, "free": self.free}
        at_any_time |= {"groups": regrouper.groups, "look": lambda: look(regrouper, tap)}
        kernel.shell_handlers["rank_request"] = self.answer(on_main_thread, {"pull": self.pull, "push": self.push})
        kernel.control_handlers["rank_request"] = self.answer(at_any_time, {})

    def answer(self, functions: dict, with_bytes: dict):
        """A message handler that calls the function a request names, and sends back what it returns.

        The functions in `with_bytes` also take the raw buffers of the request and return (value, raw buffers).
        """

        def handle(stream, ident, request):
            content, out = dict(request["content"]), []
            name = content.pop("do")
            try:
                if name in with_bytes:
                    value, out = with_bytes[name]([bytes(buffer) for buffer in request["buffers"]], **content)
                else:
                    value = functions[name](**content)
                reply = {"status": "ok", "value": value}
            except Exception as error:
                reply = {"status": "error", "ename": type(error).__name__, "message": str(error)}
            self.kernel.session.send(stream, "rank_reply", reply, request, ident=ident, buffers=out)

        return handle

    @contextmanager
    def cell(self, msg_id: str):
        """Around every cell: only inside it does SIGINT mean anything."""
        interruptible.begin()
        self.regrouper.stores.clear()
        if self.tap.network is not None:
            self.tap.network.begin_cell()
        callsite.cell_begins(self.kernel.shell.execution_count, self.kernel.shell.compile.format_code_name)
        self.slot.cell("running", self.kernel.shell.execution_count)
        try:
            with self._beginning:  # `interrupt` looks under the same lock: SIGINT comes once it has a handler
                self._interrupted, self._signalled = False, None
                signal.signal(signal.SIGINT, self._on_signal)
                self.running, stopped = msg_id, self._stopped == msg_id
            if stopped:
                raise KeyboardInterrupt
            yield
        finally:
            if __name__ not in sys.modules:
                os.write(2, b"the cell emptied sys.modules: the rank cannot go on without it\n")
                os._exit(1)
            if self.forked:
                self.end_forked()
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            if self._signalled is not None:
                _interrupt_children(self._signalled)  # one may have been forked after they were listed
            with self._beginning:  # being freed does not go on after the cell, into a group that is made anew
                self.running = None
            self.streams.restore()
            self.slot.cell("idle")

    @property
    def forked(self) -> bool:
        """Whether this process is a child that a cell has forked; its copy of this object answers no requests."""
        return os.getpid() != self._pid

    def end_forked(self, code: int = 0) -> None:
        """The child has run off the end of the cell: it ends, as a program would there."""
        self.streams.restore()
        os._exit(code)

    def pull(self, _, name: str):
        """The variable in the form of `launch.shared.codec`."""
        namespace = self.kernel.shell.user_ns
        if name not in namespace:
            close = spelt_like(name, [other for other in namespace if not other.startswith("_")])
            raise NameError(f"there is no variable {name!r}{close and f'; did you mean {close!r}?'}")
        out: list[bytes] = []
        return codec.encode(namespace[name], out, name), out

    def has(self, name: str) -> str:
        """What the variable is: "module", "code" (a function, a class), "value"; "" if there is none."""
        namespace = self.kernel.shell.user_ns
        if name not in namespace:
            return ""
        value = namespace[name]
        return "module" if isinstance(value, ModuleType) else "code" if callable(value) else "value"

    def changed(self) -> dict[str, str]:
        """Those of the names a rank begins with that a cell has given another meaning, and what brings them back."""
        given, namespace = self.kernel.given, self.kernel.shell.user_ns
        return {name: brings_back(name) for name in given if not is_still(name, namespace, given)}

    def push(self, buffers: list[bytes], values: dict):
        decoded = {name: codec.decode(value, buffers) for name, value in values.items()}
        self.kernel.shell.push(decoded, interactive=False)
        return None, []

    def regroup(self, environ: dict[str, str], **how) -> None:
        """`environ` says where ranks meet from now on that make a group themselves."""
        interruptible.begin()  # a group is made in an interruptible wait, and the last cell may have ended those
        self.regrouper.regroup(**how)
        os.environ.update(environ)
        self.tap.reset()

    def leave(self, environ: dict[str, str]) -> None:
        """Gives up all groups: they have lost a member, and the student has to make them again."""
        self.regrouper.leave()
        os.environ.update(environ)
        self.tap.reset()

    def play(self, table: dict | None) -> None:
        """From now on cells run on that network; on none if there is no table."""
        if self.tap.network is not None:
            self.tap.network.close()
        self.tap.network = None if table is None else Network(self.slot.rank, table)

    def interrupt(self, cell: str) -> str:
        """What Ctrl-C does in a terminal: KeyboardInterrupt in the cell, and SIGINT to what it has started; the main
        thread gets it, since no other raises. Returns the line that the cell was at."""
        with self._beginning:
            if self.running != cell:
                self._stopped = cell  # it has ended, or it is still on its way to the main thread
                return ""
            signalled = self._signalled = set()
        where = callsite.where(callsite.frames_of_main_thread())
        _interrupt_children(signalled)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # type: ignore[arg-type]  # it has begun
        # An awaiting cell is cancelled by a callback that ipykernel's handler queues without waking the event loop.
        self.kernel.io_loop.add_callback(lambda: None)
        return where

    def _on_signal(self, signum, frame) -> None:
        """KeyboardInterrupt, once for each SIGINT. ipykernel cancels coroutines."""
        if self._forking.locked():  # Python forgets what is raised in the functions that it calls then
            _thread.start_new_thread(self._interrupt_when_forked, ())
        elif not self._interrupted or self._in_cell(frame):
            self._interrupted = True
            raise KeyboardInterrupt

    def _interrupt_when_forked(self) -> None:
        """SIGINT again, once fork() has returned. On a thread that `threading` does not know: in a child it may not be
        ready for threads yet."""
        with self._forking:
            main = threading.main_thread().ident
        signal.pthread_kill(main, signal.SIGINT)  # type: ignore[arg-type]

    def cell_has_ended(self) -> None:
        """Only IPython's own work is left, such as showing a traceback; it is not interrupted."""
        self._interrupted = True

    def why_deaf(self) -> str:
        """Why the cell goes on after an interrupt, for which the kernel then ends the process; "" if its code has
        ended."""
        if not self._in_cell(callsite.frame_of(threading.main_thread())):
            return ""
        handler = signal.getsignal(signal.SIGINT)
        if handler != self._on_signal:
            return "SIGINT is ignored there" if handler is signal.SIG_IGN else "the cell handles SIGINT itself"
        where = callsite.where(callsite.frames_of_main_thread())
        if self._interrupted:
            return f"{where} went on after KeyboardInterrupt"
        return f"no interrupt ends the C code of {where}"

    def _in_cell(self, frame) -> bool:
        namespace = self.kernel.shell.user_ns
        while frame is not None and frame.f_globals is not namespace:
            frame = frame.f_back
        return frame is not None

    def free(self, cell: str) -> bool:
        """Ends the waits in gloo and in the store, if this cell is still under way. Says whether it was."""
        with self._beginning:
            if self.running != cell:
                return False
            # First: calls that the cell makes from now on are refused, so none meets half-closed connections.
            interruptible.let_go()
            self.regrouper.free()
            return True


def _interrupt_children(signalled: set[int]) -> None:
    """SIGINT to what the cell has started, but for the `signalled`, to which those that get it now are added."""
    for child in set(descendants(os.getpid())) - signalled:
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(child) == os.getpgrp():
                os.kill(child, signal.SIGINT)
                signalled.add(child)


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
    threads  whether something else may get it on: the network that is played, or other threads of the student, which
             may do anything. A thread that waits in a call does not count while the main thread waits for it, or in a
             call itself.
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
        "threads": _threads_act(main) or (tap.network is not None and tap.network.holds()),
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
    # The thread that asks is skipped: its frame in a variable of that frame would be a cycle, which keeps the main
    # thread's frames, and so a student's group and its port, until the next collection.
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
