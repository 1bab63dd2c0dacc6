"""The agent: a process that has imported torch once and forks the ranks, so that four of them are there in 0.1 s.

`python -m launch.agent FD PARENT FOLDER` is started by the notebook's kernel (launch/kernel/site.py, which speaks
the other end of the socket FD: one JSON object per packet). It watches three things: requests, the deaths of its ranks,
and the death of the kernel, which ends everything and removes the session's private folder.

A notebook that needs a second set of ranks, as `check` does, has the agent fork itself: "fork" comes with a socket, and
at its other end is an agent that has imported all that this one has, and imports nothing ahead.

Forking is safe only from a process with exactly one thread and without a CUDA context: OMP_NUM_THREADS is 1, nothing
is computed here, and the thread count is looked at before every fork. Where fork is unsafe the same worker is
spawned, which takes a second or two longer. While it has no ranks and no requests, it makes the slow imports of later
chapters ahead; those that the notebook knows it will need, when the notebook says so.

Left out: talking to ranks. They dial in at the kernel's own sockets; the agent knows their process ids and no more.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import shutil
import socket
import sys
import traceback
from collections.abc import Callable
from functools import partial

from launch.shared.processes import adopt_orphans, agent_command, descendants, die_with_parent, end, wake

# What a rank imports in its first moments.
FIRST_IMPORTS = (
    "launch.rank.main",
    "numpy.random",
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.logger",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "tornado.platform.asyncio",
    "torch._subclasses.schema_check_mode",  # the first time that a tensor is shown
)

# Made while idle, the likeliest first. In pieces of half a second at most, since a request that comes in the middle of
# one has to wait for its end.
SLOW_IMPORTS = (
    "tqdm.auto",
    "plotly.graph_objects",
    "nbformat.v4",  # for plotly; its own module of renderers looks around where it is imported, and must not be here
    "plotly.io._base_renderers",
    "sympy",  # from here on: what DDP, FSDP and DTensor import at their first use
    "networkx",
    "torch.fx.experimental.symbolic_shapes",
    "torch.distributed._functional_collectives",
    "torch.distributed.tensor",
    "torch.distributed.fsdp",
    "torch._dynamo",
    "torch._functorch.partitioners",
    "torch._functorch.aot_autograd",
)

AT_REST = 500  # milliseconds without a request until the first is begun: a restart asks once the last rank has ended


def import_first() -> None:
    """What every rank needs, without two packages that cost time and are not used."""
    sys.modules["debugpy"] = None  # type: ignore[assignment]  # 63 ms of a kernel's start, and ranks offer no debugger
    import ipykernel.debugger  # noqa: F401

    del sys.modules["debugpy"]
    # jsonschema, which plotly imports to show a figure, would compile a grammar for 1.5 s to check a kind of address.
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
    for name in FIRST_IMPORTS:
        importlib.import_module(name)


def warm_tracebacks() -> None:
    """Renders a traceback through torch once; all ranks then share IPython's parsed copies of its long files."""
    import torch
    from IPython.core.ultratb import AutoFormattedTB

    try:
        torch.distributed.all_reduce(torch.empty(0))  # raises: there is no process group here
    except ValueError as error:
        AutoFormattedTB(mode="Context", theme_name="linux").text(type(error), error, error.__traceback__)


def threads() -> int:
    """Of this process."""
    return len(os.listdir("/proc/self/task"))


class Agent:
    """The loop of the agent's process. `parent` is a pidfd of the notebook's kernel, `pending` what is still to be
    made ahead."""

    def __init__(self, control: socket.socket, parent: int, folder: str, pending: list[Callable[[], object]]):
        self.control, self.folder, self.parent, self.pending = control, folder, parent, pending
        self.ranks: dict[int, int] = {}  # pidfd of a rank -> its process id
        self.forks: dict[int, int] = {}  # the same of agents that this one has forked
        self.requested: list[tuple[int, dict, str]] = []  # ranks to start: number, config and its file
        self.poll = select.poll()
        self.poll.register(control, select.POLLIN)
        self.poll.register(self.parent, select.POLLIN)

    def tell(self, event: str, fds: tuple[int, ...] = (), **content) -> None:
        socket.send_fds(self.control, [json.dumps({"event": event, **content}).encode()], fds)

    def run(self) -> None:
        """Serves until the kernel is gone or has closed the socket, and ends its ranks."""
        try:
            import_first()
            from launch.backends import gpu_count

            self.tell("ready", gpus=gpu_count())
            self.serve()
        except (BrokenPipeError, ConnectionResetError):
            pass  # the kernel has gone in the middle of a message
        except ImportError as error:
            self.tell("failed", why=f"{error}")
        finally:
            self.close()

    def serve(self) -> None:
        rest = AT_REST
        while True:
            idle = self.pending and not self.ranks and not self.requested
            events = self.poll.poll(0 if self.requested else rest if idle else None)
            rest = AT_REST if events else 0
            if self.requested and not events:  # one at a time: the stop button ends a start of many in the middle
                self.start_next()
            for fd, _ in events:
                if fd == self.parent:
                    return
                if fd in self.ranks or fd in self.forks:
                    self.reap(fd)
                else:
                    packet, fds, _, _ = socket.recv_fds(self.control, 1 << 16, 1)
                    if not packet:
                        return
                    self.obey(json.loads(packet), fds)
            if idle and not events:
                self.get_ahead(self.pending.pop(0))
                if not self.pending:
                    self.tell("ahead")

    def get_ahead(self, piece: Callable[[], object]) -> None:
        """One piece of what ranks will need later."""
        # Only a head start: the rank that needs it says what is wrong. A student's own file may have the name of a
        # module, and do anything.
        with contextlib.suppress(Exception, SystemExit):
            piece()

    def obey(self, request: dict, fds: list[int]) -> None:
        if request["do"] == "fork":
            self.fork(socket.socket(fileno=fds[0]), request["folder"])
        elif request["do"] == "import":
            self.get_ahead(partial(importlib.import_module, request["module"]))
        elif request["do"] == "start":
            with contextlib.suppress(FileNotFoundError), open(request["config"]) as file:  # withdrawn meanwhile
                config = json.load(file) | {"spawn": request["spawn"]}
                self.requested += [(rank, config, request["config"]) for rank in request["ranks"]]
        else:
            act = {"kill": end, "wake": wake}[request["do"]]
            for pid in set(request["pids"]) & set(self.ranks.values()):
                act(pid)

    def fork(self, control: socket.socket, folder: str) -> None:
        """Another agent for the same kernel, which speaks at `control`."""
        agent, spawn = os.getpid(), threads() > 1
        pid = os.fork()
        if not pid:
            try:
                if spawn:
                    control.set_inheritable(True)
                    os.execv(sys.executable, agent_command(control.fileno(), agent, folder))
                for fd in (self.control.fileno(), *self.ranks, *self.forks):
                    os.close(fd)
                log = os.open(f"{folder}/agent.log", os.O_WRONLY | os.O_CREAT, 0o600)
                os.dup2(log, 1)
                os.dup2(log, 2)
                adopt_orphans()
                Agent(control, self.parent, folder, pending=[]).run()  # its ranks are wanted at once
            finally:
                os._exit(1)
        control.close()
        self.forks[handle := os.pidfd_open(pid)] = pid
        self.poll.register(handle, select.POLLIN)

    def start_next(self) -> None:
        rank, config, file = self.requested.pop(0)
        if os.path.exists(file):
            try:
                self.start(rank, config, config["spawn"] or threads() > 1)
            except OSError as error:
                self.tell("refused", name=f"{rank}.{config['serial']}", why=error.strerror)

    def start(self, rank: int, config: dict, spawn: bool) -> None:
        """Starts one rank; its standard output and error become pipes whose reading ends go to the kernel."""
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        agent = os.getpid()
        gc.freeze()  # the collector of the rank leaves these objects alone, so that their pages stay shared
        pid = os.fork()
        if not pid:
            try:
                gc.enable()
                os.setsid()
                os.dup2(out_end, 1)
                os.dup2(err_end, 2)
                die_with_parent(agent)
                for fd in (out, out_end, err, err_end, self.control.fileno(), self.parent, *self.ranks, *self.forks):
                    os.close(fd)
                become_rank(rank, config, spawn)
            finally:
                os._exit(1)
        self.tell("started", name=f"{rank}.{config['serial']}", pid=pid, spawned=spawn, fds=(out, err))
        for fd in (out, out_end, err, err_end):
            os.close(fd)
        handle = os.pidfd_open(pid)
        self.ranks[handle] = pid
        self.poll.register(handle, select.POLLIN)

    def reap(self, handle: int) -> None:
        """A rank has ended: what it started ends with it, and the kernel is told how it ended. Or an agent has."""
        is_rank = handle in self.ranks
        pid = (self.ranks if is_rank else self.forks).pop(handle)
        self.poll.unregister(handle)
        os.close(handle)
        _, status = os.waitpid(pid, 0)
        self.sweep()
        if is_rank:
            self.tell("exited", pid=pid, status=os.waitstatus_to_exitcode(status))

    def sweep(self) -> None:
        """Ends the processes that dead ranks have left: they are this process's children now."""
        living = {*self.ranks.values(), *self.forks.values()}
        while left := set(descendants(os.getpid(), deep=False)) - living:
            for pid in left:
                end(pid)
                os.waitpid(pid, 0)

    def close(self) -> None:
        for pid in self.ranks.values():
            end(pid)
            os.waitpid(pid, 0)
        self.ranks.clear()
        self.sweep()
        shutil.rmtree(self.folder, ignore_errors=True)


def become_rank(rank: int, config: dict, spawn: bool) -> None:
    """In the forked child: a rank from here on, in this interpreter or a new one."""
    if spawn:
        os.execv(sys.executable, [sys.executable, "-m", "launch.rank.main", str(rank), config["file"]])
    from launch.rank.main import serve

    try:
        serve(rank, config)
    except BaseException:
        traceback.print_exc()
        raise


def main() -> None:
    gc.disable()  # it would cost a quarter of the time of the imports, and what it finds in them is little
    fd, parent, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    control = socket.socket(fileno=fd)
    if os.getppid() != parent:
        shutil.rmtree(folder, ignore_errors=True)
        return
    adopt_orphans()
    ahead: list[Callable[[], object]] = [warm_tracebacks]
    ahead += [partial(importlib.import_module, name) for name in SLOW_IMPORTS]
    Agent(control, os.pidfd_open(parent), folder, ahead).run()
    sys.stderr.flush()
    os._exit(0)  # else Python takes apart all that torch has made, for a third of what importing it has cost


if __name__ == "__main__":
    main()
