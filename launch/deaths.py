"""Why a rank's process has ended, in words: its exit code, the signal, or that memory ran out.

When memory runs out Linux ends a process of its choice with SIGKILL, which looks like any other `kill -9`. But it
counts what it kills, for each cgroup (in a container: for the container) and for the machine. The count is read when a
cell begins and again when a rank has died by SIGKILL: where it has risen, that was the cause. Ranks offer themselves to
be chosen before the notebook's kernel and the agent (rank/worker.py).

Left out: a process that is not a rank and is killed during the cell, on a machine without cgroups; it would be taken
for the rank if that was killed with SIGKILL in the same cell. Elsewhere than on Linux nothing counts.
"""

from __future__ import annotations

import signal
from pathlib import Path


class Deaths:
    """Watches the count. `begin` before a cell, `how` for every process that ends."""

    def __init__(self):
        self.begin()

    def begin(self) -> None:
        """Only who dies from now on can have died of what happens from now on."""
        self._known = oom_kills()

    def how(self, code: int) -> str:
        """'killed by SIGKILL', 'exited with code 3', 'out of memory: the system killed it with SIGKILL'."""
        if code >= 0:
            return f"exited with code {code}"
        name = signal.Signals(-code).name
        if code == -signal.SIGKILL and oom_kills() > self._known:
            self._known += 1  # every kill that was counted explains one death
            return f"out of memory: the system killed it with {name}"
        return f"killed by {name}"


def oom_kills() -> int:
    """How many processes the system has killed for want of memory: in this process's cgroup, else on the machine."""
    for counter in _counters():
        try:
            lines = counter.read_text().splitlines()
        except OSError:
            continue  # the other version of cgroups, or none
        for line in lines:
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def _counters() -> list[Path]:
    """The nearest first. In a container the cgroup's own path may not be visible; the container's is the root then."""
    found = []
    try:
        cgroups = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        cgroups = []
    for _, controllers, path in (line.split(":", 2) for line in cgroups):
        if not controllers:  # version 2
            found += [Path(f"/sys/fs/cgroup{path}/memory.events"), Path("/sys/fs/cgroup/memory.events")]
        elif "memory" in controllers.split(","):
            found.append(Path(f"/sys/fs/cgroup/memory{path}/memory.oom_control"))
    return [*found, Path("/proc/vmstat")]
