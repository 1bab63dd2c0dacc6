"""The rank's front desk: answers the requests of the notebook's kernel that are not cells.

They come as Jupyter messages of type `rank_request` on two channels. On the shell channel the main thread answers,
between cells: variables out and in, a new process group, recording. On the control channel a thread of its own
answers, also while a cell runs or is stuck: interrupt, free. Both carry out only what concerns the cell that they
name, since the cell may have ended while the request was under way.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from contextlib import contextmanager

from launch import codec
from launch.blackbox import Slot
from launch.lineage import descendants
from launch.rank import aside, selfie, tap
from launch.rank.rescue import Rescue


class Desk:
    """Answers for one rank."""

    def __init__(self, kernel, slot: Slot, rescue: Rescue):
        self.kernel, self.slot, self.rescue = kernel, slot, rescue
        self.running: str | None = None  # msg_id of the cell under way
        self._stopped: str | None = None  # of a cell that is to end before it has begun
        self._beginning = threading.Lock()
        self.recording = False
        on_main_thread = {"regroup": self.regroup, "leave": self.leave, "renumber": tap.reset}
        on_main_thread |= {"record": self.record, "tape": self.tape}
        at_any_time = {"interrupt": self.interrupt, "free": self.free, "groups": rescue.groups, "look": self.look}
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
        with self._beginning:
            self.running, stopped = msg_id, self._stopped == msg_id
        self.rescue.has_freed = False
        self.slot.cell("running")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            if stopped:
                raise KeyboardInterrupt
            yield
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            self.running = None
            self.slot.cell("idle")
            sys.stdout.flush()
            sys.stderr.flush()

    def pull(self, _, name: str):
        """The variable in the form of `launch.codec`."""
        namespace = self.kernel.shell.user_ns
        if name not in namespace:
            raise NameError(f"there is no variable {name!r}")
        out: list[bytes] = []
        return codec.encode(namespace[name], out, name), out

    def push(self, buffers: list[bytes], values: dict):
        decoded = {name: codec.decode(value, buffers) for name, value in values.items()}
        self.kernel.shell.push(decoded, interactive=False)
        return None, []

    def regroup(self, environ: dict[str, str], **how) -> None:
        """`environ` is where ranks meet from now on that make a group themselves."""
        self.rescue.regroup(**how)
        os.environ.update(environ)
        tap.reset()

    def leave(self, environ: dict[str, str]) -> None:
        """The groups that this rank has made itself have lost a member."""
        self.rescue.leave()
        os.environ.update(environ)
        tap.reset()

    def record(self) -> None:
        """From now on the tap keeps what this rank sends."""
        self.recording = True
        tap.start()

    def tape(self) -> dict | None:
        """What was kept since `record`; None in a rank that has taken the place of a dead one."""
        if not self.recording:
            return None
        self.recording = False
        return tap.stop()

    def interrupt(self, cell: str) -> None:
        """What Ctrl-C does in a terminal: KeyboardInterrupt in the cell, and SIGINT to what it has started.

        Not to the process group as a whole: a signal to this process may strike any of its threads, and only the main
        thread raises.
        """
        with self._beginning:
            if self.running != cell:
                self._stopped = cell  # it has ended, or it is still on its way to the main thread
                return
        for child in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                if os.getpgid(child) == os.getpgrp():
                    os.kill(child, signal.SIGINT)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        # An awaiting cell is cancelled by a callback that ipykernel's handler queues without waking the event loop.
        self.kernel.io_loop.add_callback(lambda: None)

    def look(self) -> dict:
        """What the main thread is in, for `doctor.attendant`."""
        return selfie.look(self.rescue.store)

    def free(self, cell: str) -> bool:
        """Ends the waits in gloo and in the store, if this cell is still under way. Says whether it was."""
        if self.running != cell:
            return False
        self.rescue.free()
        aside.let_go()
        return True
