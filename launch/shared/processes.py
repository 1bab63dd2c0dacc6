"""How agents and ranks are started, and the calls to Linux that make sure that no process is left behind.

Ranks die with the agent, the agent dies with the notebook's kernel, and what a rank has started dies with the rank.
Elsewhere than on Linux these calls do nothing or are absent; the agent then relies on the end of its socket alone.

What a rank has to know when it starts is one JSON file in the private folder, readable by this user only. It carries
the key that signs every message, which therefore is in no command line.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import random
import signal
import socket
import sys

from launch.shared.errors import LaunchError

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
NO_WIDGETS = "SPYDER_NO_WIDGETS"  # this prefix tells tqdm.auto to print bars as text
NOT_INHERITED = ("JPY_PARENT_PID", "JPY_SESSION_NAME", "PYTEST_CURRENT_TEST")


def agent_command(fd: int, parent: int, folder: str) -> list[str]:
    """What starts an agent in an interpreter of its own, as a child of `parent` spoken to at the socket `fd`."""
    return [sys.executable, "-m", "launch.agent", str(fd), str(parent), folder]


def die_with_parent(parent: int) -> None:
    """This process gets SIGKILL when the thread that started it ends; ends now if that has happened already."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """Descendants whose parent dies become children of this process, which can then find and end them."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def wake(pid: int) -> None:
    """SIGCONT to the process and all its descendants: one that SIGSTOP has suspended hears nothing else."""
    for each in (*descendants(pid), pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGCONT)


def end(pid: int) -> None:
    """SIGKILL to the process and all its descendants, unless they are gone."""
    for each in (*descendants(pid), pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def descendants(pid: int, deep: bool = True) -> list[int]:
    """Process ids of the children, and theirs; parents after their children."""
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                for child in map(int, file.read().split()):
                    found += [*(descendants(child) if deep else ()), child]
    except (FileNotFoundError, ProcessLookupError):
        pass  # gone in the meantime
    return found


def start_file(folder: str, serial: int) -> str:
    return f"{folder}/start-{serial}.json"


def write_start_file(folder: str, key: bytes, serial: int, **session) -> str:
    """Writes the file of the start `serial` and returns its path. `session` is what a rank reads beyond that."""
    path = start_file(folder, serial)
    content = {
        "folder": folder,
        "file": path,
        "serial": serial,
        "key": key.hex(),
        "store": f"{folder}/store",
        "cwd": os.getcwd(),
        "path": sys.path,
        **session,
    }
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(content, file)
    return path


def fresh_environ() -> dict[str, str]:
    """The notebook's environment for its ranks. RANK, MASTER_ADDR and so on come later."""
    environ = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    environ["GLOO_SOCKET_IFNAME"] = "lo"
    environ.setdefault("OMP_NUM_THREADS", "1")
    # torch's TCPStore looks up the name of 127.0.0.1; without an answer that would take five seconds per connection
    environ.setdefault("RES_OPTIONS", "timeout:1 attempts:1")
    return environ


def meeting_place() -> dict[str, str]:
    """The address for ranks that make a process group themselves."""
    return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}


def free_port() -> int:
    """A port that is free now. A rank may listen there much later, so it is below 32,768: Linux and macOS give higher
    ports to outgoing connections, of which gloo makes many."""
    for port in random.SystemRandom().sample(
        range(20_000, 32_768), 100
    ):  # a cell may have seeded Python's own generator
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise LaunchError("a hundred ports were tried at 127.0.0.1 and each is in use: does another program take them all?")
