"""Process and memory queries on this host: memory for ranks, memory of a rank, why a process has ended.

All of it is read from Linux's /proc and cgroups. When memory runs out, Linux kills a process with SIGKILL, which looks
like any other `kill -9`. But it counts these kills, for each cgroup (so for a container) and for the host. The count is
read when a cell begins and when a rank has died by SIGKILL: if it has risen, that was the cause. Ranks are preferred as
victims over the notebook's kernel and the agent (rank/main.py).

Left out: on a host without cgroups, another process that is killed for memory in a cell in which a rank is killed with
SIGKILL is mistaken for it. Outside Linux nothing is counted.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path

from collectives.units import size
from launch.backends import BACKENDS, FORKED_RANK
from launch.shared.errors import UsageError


def available_memory() -> int:
    """Bytes that new processes can still take: what is free on the host, or in this container if that is less."""
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    room = int(fields["MemAvailable"].split()[0]) * 1024
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if limit != "max":
            used = int(Path("/sys/fs/cgroup/memory.current").read_text())
            stat = dict(line.split() for line in Path("/sys/fs/cgroup/memory.stat").read_text().splitlines())
            room = min(room, int(limit) - used + int(stat["inactive_file"]))  # the file cache is evicted first
    except (OSError, KeyError):
        pass  # no limit of this kind
    return room


def choose_backend(ranks: int, backend: str | None, gpus: int, running: int) -> str:
    """The backend for `ranks` ranks in place of the `running` ones; UsageError if they do not fit on this host.

    `backend` None means nccl if there are `gpus` for all ranks, else gloo.
    """
    backend = backend or ("nccl" if gpus >= ranks else "gloo")
    needed = BACKENDS[backend].gpus * ranks
    if needed > gpus:
        raise UsageError(
            f"{ranks} ranks with {backend} need {needed} GPUs, this machine has {gpus}: use --backend gloo"
        )
    check_room(ranks, running, BACKENDS[backend].memory)
    return backend


def check_room(ranks: int, running: int = 0, each: int = FORKED_RANK) -> None:
    """UsageError if `ranks` ranks of `each` bytes do not fit, once the `running` ones have ended."""
    room = available_memory() + running * each
    if ranks * each > room:
        raise UsageError(
            f"{ranks} ranks need about {size(ranks * each)} of memory and {size(room)} are free:"
            f" {max(0, room // each)} would fit"
        )


def proportional_memory(pid: int) -> int:
    """Bytes of the process (PSS): a page shared by n processes counts as 1/n. 0 if it is gone."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def has_ended(pid: int) -> bool:
    """Whether the process is gone, or dead and not yet reaped by its parent."""
    return _state(pid) in "ZX"


def is_suspended(pid: int) -> bool:
    """Whether SIGSTOP or the like keeps the process from running."""
    return _state(pid) in "Tt"


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


@dataclass(frozen=True)
class Death:
    """How a process has ended; as text 'killed by SIGKILL', 'exited with code 3'."""

    how: str
    signal: int = 0  # that killed it; 0: none, or unknown

    def __str__(self) -> str:
        return self.how


class Deaths:
    """Watches the count of kills for memory. `begin` before a cell, `how` for every process that ends."""

    def __init__(self):
        self.begin()

    def begin(self) -> None:
        """Kills up to now explain no later death."""
        self._known = oom_kills()

    def how(self, code: int) -> Death:
        """What the exit code of a process means, as in `subprocess`: a signal is negative."""
        if code >= 0:
            return Death(f"exited with code {code}")
        name = signal.Signals(-code).name
        if code == -signal.SIGKILL and oom_kills() > self._known:
            self._known += 1  # each kill explains one death
            return Death(f"out of memory: the system killed it with {name}", -code)
        return Death(f"killed by {name}", -code)


def oom_kills() -> int:
    """How many processes the system has killed for memory: in this process's cgroup, else on the host."""
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
    """The nearest first. In a container the cgroup's own path may be invisible; then the container's is the root."""
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
