"""Why a rank has died: exit codes, signals, and memory that really runs out, in a cgroup made for the test."""

import os
import re
import signal
import time
from pathlib import Path

import psutil
import pytest

from launch.kernel import host
from launch.kernel.host import Deaths
from launch.magics import numbers

LIMIT = 1200 << 20  # bytes for a notebook's kernel, its agent and four ranks, which take 300 MB
PATIENCE = 60  # seconds
HOG = "    hog = []\n    while True: hog.append(bytearray(b'x' * (16 << 20)))\n"


@pytest.fixture
def small():
    """The folder of a new memory cgroup with a limit, to which processes can be moved."""
    memory = {"": ("", "memory.max"), "memory": ("memory", "memory.limit_in_bytes")}  # versions 2 and 1
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in memory:
            mount, limit = memory[controllers]
            folder = Path(f"/sys/fs/cgroup/{mount}{path}/ringside-test-{os.getpid()}")
            try:
                folder.mkdir()
            except OSError:
                continue
            try:
                (folder / limit).write_text(str(LIMIT))
                yield folder
                return
            except OSError:
                continue
            finally:
                remove(folder)
    pytest.skip("this machine lets us make no cgroup with a memory limit: run as root, outside a container")


def remove(folder: Path) -> None:
    """A cgroup can be removed when its last process has gone."""
    deadline = time.monotonic() + PATIENCE
    while folder.exists():
        try:
            folder.rmdir()
        except OSError:
            assert time.monotonic() < deadline, f"{folder} is still in use"
            time.sleep(0.01)


@pytest.fixture
def counted(monkeypatch, tmp_path):
    """Two files instead of the system's counters, of which the first is not there at first."""
    near, far = tmp_path / "memory.events", tmp_path / "vmstat"
    far.write_text("nr_free_pages 17\noom_kill 5\noom_kill_other 9\n")
    monkeypatch.setattr(host, "_counters", lambda: [near, far])
    return near, far


def test_only_a_count_that_has_risen_names_memory_and_each_kill_explains_one_death(counted):
    _, far = counted
    watch = Deaths()
    assert str(watch.how(-9)) == "killed by SIGKILL"
    far.write_text("oom_kill 6\n")
    assert watch.how(-11) == host.Death("killed by SIGSEGV", 11) and watch.how(3) == host.Death("exited with code 3")
    assert watch.how(-9) == host.Death("out of memory: the system killed it with SIGKILL", 9)
    assert str(watch.how(-9)) == "killed by SIGKILL"
    far.write_text("oom_kill 8\n")
    watch.begin()
    assert str(watch.how(-9)) == "killed by SIGKILL"  # what was killed before the cell


def test_the_nearest_count_that_there_is_is_believed(counted):
    near, _ = counted
    assert host.oom_kills() == 5
    near.write_text("low 0\noom 2\noom_kill 1\n")
    assert host.oom_kills() == 1


def test_a_rank_that_takes_all_memory_is_named_and_the_others_keep_their_variables(small, new_notebook):
    notebook = new_notebook(load=False)
    (small / "cgroup.procs").write_text(str(notebook.pid))
    assert not notebook.run("%load_ext launch\nimport launch").error
    assert not notebook.run("%%ranks 4\nimport os\nkept = rank").error
    error = notebook.run(f"%%ranks\nif rank == 2:\n{HOG}dist.barrier()").error
    # Seldom the system kills others as well, before the memory of the first is free again; then that is so.
    told = re.fullmatch(r"RankError: ranks? ([\d,-]+) died \(out of memory: the system killed it with SIGKILL\)", error)
    assert told, error
    dead = numbers(told[1])
    assert 2 in dead
    assert not notebook.run(
        "%%ranks\nx = torch.ones(1)\ndist.all_reduce(x)\nkeeps = x.item(), 'kept' in globals()"
    ).error
    assert notebook.value("launch.pull('keeps')") == [(4.0, rank not in dead) for rank in range(4)]
    output = notebook.run("%%ranks\nimport os\nif rank == 1: os.kill(os.getpid(), 9)")
    assert output.error == "RankError: rank 1 died (killed by SIGKILL)"


def test_memory_that_is_refused_is_that_ranks_exception_and_no_death(notebook):
    assert not notebook.run("%%ranks 3\nkept = rank").error
    output = notebook.run("%%ranks\nif rank == 1: bytearray(1 << 60)\ndist.barrier()")
    assert output.error == "DeadlockError: ranks 0, 2 wait in barrier #1 (line 3); rank 1 raised MemoryError"
    output = notebook.run("%%ranks\nif rank == 1: torch.empty(1 << 50)\ndist.barrier()")
    assert "rank 1 raised RuntimeError" in output.error and "can't allocate memory" in output.error
    assert notebook.run("%%ranks\nkept == rank").stdout == "ranks 0-2: True\n"


def test_ranks_offer_themselves_to_be_killed_before_the_kernel_and_the_agent(notebook):
    assert not notebook.run("%%ranks 2\n1").error
    pids = [int(line.split()[1]) for line in notebook.run("%ranks").stdout.splitlines() if line[0].isdecimal()]
    order = [int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in pids]
    behind = [notebook.pid, psutil.Process(pids[0]).ppid()]
    assert min(order) > max(int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in behind)


def test_a_rank_that_is_killed_by_hand_is_not_said_to_have_taken_the_memory(notebook):
    assert not notebook.run("%%ranks 2\n1").error
    pids = [int(line.split()[1]) for line in notebook.run("%ranks").stdout.splitlines() if line[0].isdecimal()]
    os.kill(pids[1], signal.SIGKILL)
    output = notebook.run("%%ranks\n1")
    assert "rank 1 died between two cells (killed by SIGKILL) and starts anew" in output.stdout or (
        output.error == "RankError: rank 1 died (killed by SIGKILL)"
    )
