"""Who is whose child: how an agent is started, and the calls to Linux that make sure that no process is left behind.

Ranks die with the agent, the agent dies with the notebook's kernel, and what a rank has started dies with the rank.
Elsewhere than on Linux these calls do nothing or are absent; the agent then relies on the end of its socket alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


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
