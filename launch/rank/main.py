"""A rank: an IPython kernel that dials in at the notebook's kernel instead of waiting to be found.

`serve` turns this process into the rank: it sets the environment, meets the other ranks, and executes what arrives. It
runs after a fork by the agent, or in a fresh process (`python -m launch.rank.main RANK CONFIG_FILE`).

Standard output and error are pipes that the notebook's kernel drains. Python's print, C's printf and child processes
write there in order, and the last words of a dying rank are kept. Values, figures and errors are Jupyter messages.

Left out: requests that are not cells (rank/requests.py), freeing a stuck rank (rank/_regroup.py), tracebacks
(rank/_output.py).
"""

from __future__ import annotations

import contextlib
import faulthandler
import hashlib
import hmac
import json
import logging
import os
import random
import resource
import signal
import sys
import threading
import traceback
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
import torch.distributed as dist
import zmq
from ipykernel import ipkernel
from ipykernel.control import ControlThread
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from IPython.core.autocall import IPyAutocall
from IPython.core.error import StdinNotImplementedError, UsageError
from traitlets import Any, Type
from traitlets.config import Config

from launch.backends import BACKENDS
from launch.backends.gloo import is_lost
from launch.hints import Hint, explain
from launch.hints.leftovers import notes
from launch.hints.place import line_of
from launch.rank._output import AttentiveIOPub, BoundedSession, Streams, shorten_tracebacks
from launch.rank._regroup import Regrouper
from launch.rank._stores import PollStore, listen_at_loopback
from launch.rank.network import Network
from launch.rank.patches import complaint, replace
from launch.rank.requests import Requests
from launch.rank.tap import Tap
from launch.shared.capture import packed
from launch.shared.flight_recorder import Slot
from launch.shared.processes import NO_WIDGETS

NO_INPUT = (
    'ranks cannot ask: in a cell without %%ranks, launch.push(answer=input("...")) gives every rank what you type'
)


def identity(key: bytes, name: str) -> bytes:
    """The address of a socket on the wire. Without the key it cannot be guessed, so no other process takes it."""
    return hmac.new(key, name.encode(), hashlib.sha256).digest()[:16]


class NoThread:
    """In place of the thread through which ipykernel passes every message for the sake of subshells. Ranks have none,
    and it costs a seventh of a short cell."""

    def __init__(self):
        self.parent_thread = threading.current_thread()  # where cells run; an awaiting cell asks for it

    def __bool__(self):
        return False  # ipykernel then reads the socket on the main thread


class RankKernel(IPythonKernel):
    """Runs cells so that an interrupt hits the cell and nothing else."""

    requests = Any()
    complaint = Any("")  # about this torch; said below the first cell
    given = Any()  # the names that a cell finds here, and their values
    _supports_kernel_subshells = False

    def __init__(self, **kwargs):
        # ipykernel lists the files of all modules, for a debugger. Touching every module would unshare 16 MB that the
        # ranks share with their agent.
        put_back = replace(ipkernel, "sys", SimpleNamespace(modules={}))
        try:
            super().__init__(**kwargs)
        finally:
            put_back()

    def pre_handler_hook(self):
        """ipykernel would let an interrupt strike anywhere in the handling of a message, and lose the reply."""

    def post_handler_hook(self):
        pass

    async def poll_stopped_queue(self):
        """There is no debugger."""

    def raw_input(self, prompt=""):
        raise StdinNotImplementedError(NO_INPUT)

    def getpass(self, prompt="", stream=None):
        raise StdinNotImplementedError(NO_INPUT)

    def _publish_execute_input(self, code, parent, execution_count):
        """The notebook's kernel knows what it has sent."""

    def _publish_status(self, status, channel, parent=None):
        """It waits for the end of a cell only; each status costs as much as a short cell."""
        if status == "idle" and (parent or self.get_parent(channel))["header"]["msg_type"] == "execute_request":
            super()._publish_status(status, channel, parent)

    async def process_control(self, msg):
        # ipykernel flushes the streams at the end of a cell, which may have closed them.
        with contextlib.suppress(AttributeError, OSError, ValueError):
            await super().process_control(msg)

    async def do_execute(self, code, silent, *args, **kwargs):
        """The request's metadata have the number of the cell, whether to record it, and whether the notebook's kernel
        has found something in its code that may leave a trap behind."""
        request = self.get_parent("shell")
        asked = {"execution_count": self.shell.execution_count, "record": False, "suspicious": False}
        asked |= request["metadata"]
        self.shell.execution_count = asked["execution_count"]
        try:
            with self.requests.cell(request["header"]["msg_id"]):
                before = {name: self.shell.user_ns.get(name) for name in self.given}
                if asked["record"]:
                    self.requests.tap.start()
                reply = await super().do_execute(code, silent, *args, **kwargs)
            # From here on no interrupt can take the reply away.
            return reply | self.capture() | self.hints(code, before, asked["suspicious"])
        except (KeyboardInterrupt, Exception) as error:  # in IPython's own code, before or after the cell's
            reply = {"status": "error", "ename": type(error).__name__, "evalue": str(error), "payload": []}
            return reply | {"traceback": traceback.format_exception_only(error)} | self.capture()

    def capture(self) -> dict:
        """Ends a recording; its bytes go beside the reply."""
        if self.requests.tap.recorder is None:
            return {}
        capture = self.requests.tap.stop()
        self.session.beside_reply = [packed(capture)]
        return {"capture": capture}

    def hints(self, code: str, before: dict, suspicious: bool) -> dict:
        """What may help with this cell: sentences, and the name that it has missed."""
        error = getattr(self.shell.last_execution_result, "error_in_exec", None)
        hint, line = (explain(error), line_of(error)) if error else (Hint(), 0)
        left: list[str] = []
        with contextlib.suppress(Exception):  # looking at the student's objects must not cost the reply
            left = notes(code, self.shell.user_ns, self.given, before, suspicious)
        if self.complaint:
            left, self.complaint = [self.complaint, *left], ""
        lost = error is not None and is_lost(error)
        group = {"has_group": dist.is_initialized(), "groups": self.requests.tap.calls.made_here()}
        network = self.requests.tap.network
        carried = network.carried() if network is not None else {}
        return {"hint": vars(hint), "notes": left, "line": line, "lost": lost, "carried": carried, **group}


def on_ranks_already(line: str, cell: str = "") -> None:
    """`%%ranks` or `%ranks` in a cell of the ranks."""
    raise UsageError("%%ranks and %ranks belong to the notebook: this cell is on the ranks already")


class Exit(IPyAutocall):
    """`exit` and `quit` on a rank: as `sys.exit`. IPython's own would have the kernel end one or two cells later."""

    rewrite = False

    def __call__(self, *code):
        raise SystemExit(*code)


class RankApp(IPKernelApp):
    """An IPython kernel application whose sockets connect to the notebook's kernel."""

    kernel_class = Type(RankKernel)
    config_of_session = Any()
    rank_name = Any()  # "2.1": rank 2 of the first start

    def _session_default(self):
        return BoundedSession(parent=self)

    def _dial(self, kind: int, channel: str) -> zmq.Socket:
        session = self.config_of_session
        dialled = self.context.socket(kind)
        dialled.linger = 1000
        dialled.sndhwm = 0  # nothing that a rank says is dropped because it says it fast
        dialled.identity = identity(bytes.fromhex(session["key"]), self.rank_name)
        dialled.connect(f"ipc://{session['folder']}/{channel}")
        return dialled

    def init_sockets(self):
        self.context = zmq.Context()
        self.shell_socket = self._dial(zmq.ROUTER, "shell")
        self.stdin_socket = None
        self.control_socket = self._dial(zmq.ROUTER, "control")
        self.debugpy_socket = self.context.socket(zmq.STREAM)  # IPKernelApp wants one; it is never connected
        self.control_thread = ControlThread(daemon=True)
        self.shell_channel_thread = NoThread()
        self.configure_tornado_logger()
        self.iopub_thread = AttentiveIOPub(self._dial(zmq.XPUB, "iopub"), self.session)
        self.iopub_thread.start()
        self.iopub_socket = self.iopub_thread.background_socket

    def load_config_file(self, *args, **kwargs):
        """The student's own IPython configuration is left out: ranks are the same everywhere."""

    def parse_command_line(self, argv=None):
        """There is none, and a parser for all the options is slow to make."""

    # There is no connection file, no port and no heartbeat: death is seen by the agent, at once.
    def init_connection_file(self): ...
    def write_connection_file(self, **kwargs): ...
    def log_connection_info(self): ...
    def init_heartbeat(self): ...
    def init_poller(self): ...
    def init_crash_handler(self): ...


def kernel_config(session: dict, name: str) -> Config:
    config = Config()
    config.Session.key = bytes.fromhex(session["key"])
    config.Session.session = name  # how the notebook's kernel tells whose iopub message it is
    config.HistoryManager.enabled = False
    config.IPKernelApp.outstream_class = None
    config.IPKernelApp.log_level = "ERROR"
    config.Kernel._execute_sleep = 0.0
    return config


def settle(rank: int, session: dict) -> Streams:
    """Environment, folder, import path, seeds and streams of this process, as the notebook's kernel has them."""
    os.environ.clear()
    os.environ.update(session["environ"])
    size, here = session["world_size"], session.get("here") or list(range(session["world_size"]))
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(here.index(rank)))
    os.environ.update(WORLD_SIZE=str(size), LOCAL_WORLD_SIZE=str(len(here)))
    os.environ[NO_WIDGETS] = "1"
    os.chdir(session["cwd"])
    sys.path[:] = session["path"]
    sys.argv[:] = [""]
    random.seed()
    np.random.seed()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # every rank holds a connection to every other
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdin = open(0)
    streams = Streams()
    faulthandler.enable(2)
    with contextlib.suppress(OSError):  # Linux alone: when memory runs out a rank is to go, not the notebook's kernel
        Path("/proc/self/oom_score_adj").write_text("500")
    return streams


def meet(rank: int, session: dict, regrouper: Regrouper) -> None:
    """The process group of all ranks."""
    backend = BACKENDS[session["backend"]]
    if backend.gpus:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))  # for every tensor that names no other GPU
    regrouper.store = PollStore(session["store"], session["generation"])
    if session["bare"]:  # the student makes the group, wherever he wants to meet; it is renewed in our store
        regrouper.bare = (rank, session["world_size"])
        return
    dist.init_process_group(backend.in_torch, store=regrouper.store, rank=rank, world_size=session["world_size"])
    dist.distributed_c10d._world.group_count = session["group_count"]


def serve(rank: int, session: dict) -> None:
    """Is the rank until the process ends."""
    streams = settle(rank, session)
    slot = Slot(session["board"], rank, session.get("here"))
    tap = Tap(slot)
    regrouper = Regrouper()
    listen_at_loopback(regrouper)
    tap.network = None if session["network"] is None else Network(rank, session["network"])
    meet(rank, session, regrouper)
    name = f"{rank}.{session['serial']}"
    app = RankApp(config=kernel_config(session, name))
    app.config_of_session, app.rank_name = session, name
    app.user_ns = {}
    app.initialize([])
    app.kernel.requests = Requests(app.kernel, slot, regrouper, streams, tap)
    names = {"rank": rank, "world_size": session["world_size"], "torch": torch, "dist": dist}
    app.shell.push(names, interactive=False)
    app.shell.register_magic_function(on_ranks_already, "line_cell", "ranks")
    app.shell.register_magic_function(on_ranks_already, "line", "%ranks")  # a `%%ranks` below the first line
    app.shell.push(dict.fromkeys(("exit", "quit"), Exit()), interactive=False)
    warnings.filterwarnings("ignore", message="To exit: use")  # IPython's, of sys.exit()
    app.kernel.given = names
    app.kernel.complaint = "" if rank else complaint()
    app.log.setLevel(logging.ERROR)  # its handler alone has that level, and every message of a cell is put into words
    shorten_tracebacks(app.shell, app.kernel.requests)
    app.start()


def main() -> None:
    with open(sys.argv[2]) as file:
        session = json.load(file)
    serve(int(sys.argv[1]), session)


if __name__ == "__main__":
    main()
