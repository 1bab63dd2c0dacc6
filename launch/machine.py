"""What this machine has to offer: memory for ranks, and what a process takes of it (Linux's /proc and cgroups)."""

from __future__ import annotations

from pathlib import Path

from launch.errors import UsageError

FORKED_RANK = 60 << 20  # bytes; measured PSS of a rank that shares the agent's pages, after its first cells
SPAWNED_RANK = 300 << 20  # bytes; a rank with its own copy of everything


def available_memory() -> int:
    """Bytes that new processes can still take: what the machine has left, or this container if that is less."""
    fields = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    room = int(fields["MemAvailable"].split()[0]) * 1024
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if limit != "max":
            used = int(Path("/sys/fs/cgroup/memory.current").read_text())
            stat = dict(line.split() for line in Path("/sys/fs/cgroup/memory.stat").read_text().splitlines())
            room = min(room, int(limit) - used + int(stat["inactive_file"]))  # cached files give way
    except (OSError, KeyError):
        pass  # no limit of this kind
    return room


def choose_backend(size: int, backend: str | None, gpus: int, running: int) -> str:
    """The backend for `size` ranks in the place of the `running` ones; UsageError if the machine has no room for them.

    Without a wish it is nccl where every rank can have one of the `gpus`, else gloo.
    """
    backend = backend or ("nccl" if gpus >= size else "gloo")
    if backend == "nccl" and gpus < size:
        raise UsageError(f"{size} ranks with nccl need {size} GPUs, this machine has {gpus}: use --backend gloo")
    check_room(size, running, SPAWNED_RANK if backend == "nccl" else FORKED_RANK)
    return backend


def check_room(size: int, running: int = 0, each: int = FORKED_RANK) -> None:
    """UsageError if `size` ranks of `each` bytes do not fit, when the `running` ones have made way."""
    room = available_memory() + running * each
    if size * each > room:
        raise UsageError(
            f"{size} ranks need about {in_words(size * each)} of memory and {in_words(room)} are free:"
            f" {max(0, room // each)} would fit"
        )


def proportional_memory(pid: int) -> int:
    """Bytes of the process (PSS): pages that it shares with n processes count as 1/n. 0 if it is gone."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def has_ended(pid: int) -> bool:
    """Whether the process is gone, or dead and not yet buried by its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def in_words(nbytes: int) -> str:
    """'55 MB', '1.2 GB' (powers of 1000)."""
    return f"{nbytes / 1e9:.1f} GB" if nbytes >= 1e9 else f"{nbytes / 1e6:.0f} MB"
