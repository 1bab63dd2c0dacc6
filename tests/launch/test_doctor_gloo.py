"""What the doctor believes of gloo, asked of gloo: which ranks stay in a collective that one rank skips.

Ranks are forked by a process of their own and killed when those that get out have said so and the rest has been asleep.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from launch.doctor.proof import examine
from tests.launch.worlds import World, settle

CASES = [("broadcast", 4, 1), ("broadcast", 7, 2), ("gather", 4, 1), ("scatter", 4, 1)] + [
    (op, 4, 0) for op in ("all_reduce", "barrier", "all_gather", "reduce_scatter", "all_to_all", "reduce")
]  # down a tree with a gap, too


@pytest.fixture(scope="module")
def gloo():
    """(op, size, root, missing) -> the ranks that stay, for all cases at once: one process asks for them all."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.launch.test_doctor_gloo", json.dumps(CASES)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert run.returncode == 0, run.stderr
    said = run.stdout.splitlines()[-1]  # gloo before torch 2.13 prints lines of its own
    return {tuple(case): stay for case, stay in json.loads(said)}


@pytest.mark.parametrize("op, size, root", CASES)
def test_the_doctor_knows_who_stays(gloo, op, size, root):
    for missing in {0, root, size - 1}:
        rooted = (0, root) if op in ("broadcast", "gather", "scatter", "reduce") else (0,)
        programs = [[(op, *rooted)] if rank != missing else [] for rank in range(size)]
        diagnosis = examine(settle(World(programs, [list(range(size))])).views())
        assert list(diagnosis.stuck if diagnosis else ()) == gloo[op, size, root, missing], missing


def main():
    import os
    import signal
    import tempfile
    import time

    import torch
    import torch.distributed as dist

    from tests.launch.forked import would_run

    def call(op, rank, size, root):
        x, wide = torch.ones(64), [torch.ones(64) for _ in range(size)]
        if op in ("broadcast", "reduce"):
            getattr(dist, op)(x, root)
        elif op in ("gather", "scatter"):
            getattr(dist, op)(x, wide if rank == root else None, root)
        elif op == "all_gather":
            dist.all_gather(wide, x)
        elif op == "reduce_scatter":
            dist.reduce_scatter_tensor(x, torch.cat(wide))
        elif op == "all_to_all":
            dist.all_to_all_single(torch.cat(wide), torch.cat(wide))
        else:
            dist.barrier() if op == "barrier" else dist.all_reduce(x)

    def rank_of(op, size, root, missing, rank, folder, say):
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        dist.init_process_group("gloo", store=dist.FileStore(f"{folder}/store", size), rank=rank, world_size=size)
        dist.barrier()
        os.write(say, b"\xff")  # all connections stand
        if rank != missing:
            call(op, rank, size, root)
            os.write(say, bytes([rank]))
        signal.pause()

    found = []
    for op, size, root in json.loads(sys.argv[1]):
        for missing in sorted({0, root, size - 1}):
            hear, say = os.pipe()
            with tempfile.TemporaryDirectory() as folder:
                pids = []
                for rank in range(size):
                    pid = os.fork()
                    if not pid:
                        try:
                            rank_of(op, size, root, missing, rank, folder, say)
                        finally:
                            os._exit(1)
                    pids.append(pid)
                os.close(say)
                said, quiet = b"", 0
                while quiet < 6:  # nobody has said anything and nobody has used the processor, six times in a row
                    time.sleep(0.02)
                    os.set_blocking(hear, False)
                    try:
                        new = os.read(hear, 100)
                    except BlockingIOError:
                        new = b""
                    said += new
                    ready = said.count(b"\xff") == size and not new and not any(map(would_run, pids))
                    quiet = quiet + 1 if ready else 0
                for pid in pids:
                    os.kill(pid, signal.SIGKILL)
                for pid in pids:
                    os.waitpid(pid, 0)
            os.close(hear)
            stay = [rank for rank in range(size) if rank != missing and rank not in said]
            found.append(((op, size, root, missing), stay))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
