"""Ringside beside what else runs cells on many processes: ipyparallel, nbdistributed, jupyter-distributed, Accelerate
and torchrun.

Each peer is installed into an environment of its own that shares our torch, and drives a plain ipykernel with the cells
that its documentation shows. Ways take turns in one run, RUNS times, so that a busy machine is busy for all of them; a
figure is the median, with the smallest and the largest. One that fails says so in its row. What is found is printed,
and written to docs/peers.md.

Left out: peers without a notebook or a launcher (courses, animators, msccl-tools), and GPUs.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil
from jupyter_client import KernelManager
from jupyter_client.kernelspec import KernelSpec

ROOT = Path(__file__).parents[2]
RUNS, LIMIT = 3, 60  # LIMIT in seconds, for one cell
SUM = "x = torch.arange(4.0) + 10 * rank\ndist.all_reduce(x)\nprint(x)"
LINES = "for i in range(10_000):\n    print(rank, i)"
SLEEP = "import time\ntime.sleep(100)"
TEXT = "print((str(rank).rjust(99, '.') + '\\n') * 500_000)"
DEATH = "import os\nif rank == 1:\n    os.kill(os.getpid(), 9)"
STUCK = "if rank == 0:\n    dist.recv(torch.zeros(1), 1)\nelse:\n    dist.barrier()"
SCRIPT = f"""import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
{SUM}
dist.destroy_process_group()
"""


@dataclass(frozen=True)
class Way:
    """One way to run a cell on ranks. `load` runs once, with {n} ranks; `cell` turns code for a rank into a cell.

    `revive` runs before `load` does once more after a rank has died; None: the next cell is enough.
    """

    name: str
    package: str  # for pip; "" where it is here
    load: str
    cell: Callable[[str, int], str]
    stops: bool = True  # whether its cells are worth stopping: not where each starts new processes
    revive: str | None = None
    kernel: str = "ipykernel_launcher"


def _accelerate(code: str, n: int) -> str:
    body = "\n".join(f"    {line}" for line in code.splitlines())
    head = "    import torch, torch.distributed as dist\n    from accelerate import PartialState\n    PartialState()\n"
    return f"def job():\n{head}    rank = dist.get_rank()\n{body}\ndebug_launcher(job, num_processes={n})"


WAYS = [
    Way("Ringside", "", "%load_ext launch", lambda code, n: f"%%ranks {n}\n{code}"),
    Way(
        "ipyparallel",
        "ipyparallel",
        """import ipyparallel, tempfile
client = ipyparallel.Cluster(n={n}).start_and_connect_sync()
client.activate()
client[:].scatter("rank", range({n}), flatten=True)
client[:]["store"] = tempfile.mktemp()
client[:].execute('''import torch, torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size={n})''', block=True)""",
        lambda code, n: f"%%px\n{code}",
        revive="client.cluster.stop_cluster_sync()",
    ),
    Way("Accelerate", "accelerate", "from accelerate import debug_launcher", _accelerate, stops=False),
    Way(
        "nbdistributed",
        "nbdistributed",
        "%load_ext nbdistributed\n%dist_init -n {n}",
        lambda code, n: code,
        revive="%dist_reset",
    ),
    Way(
        "jupyter-distributed",
        "jupyter-distributed",
        "import torch, torch.distributed as dist\ndist.init_process_group('gloo')\nrank = dist.get_rank()",
        lambda code, n: code,
        revive="RESTART",  # of the kernel, by its menu
        kernel="jupyter_distributed.kernel",
    ),
]


class Kernel:
    """A plain ipykernel of one environment, or the kernel that the way brings along."""

    def __init__(self, way: Way, python: str, n: int) -> None:
        self.manager = KernelManager()
        argv = [python, "-m", way.kernel, "-f", "{connection_file}"]
        self.manager._kernel_spec = KernelSpec(argv=argv, display_name="peer", language="python")
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PATH": f"{Path(python).parent}:{os.environ['PATH']}"}
        environment["JUPYTER_DISTRIBUTED_WORLD_SIZE"] = str(n)
        self.manager.start_kernel(env=environment, cwd=tempfile.gettempdir(), stderr=subprocess.DEVNULL)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=LIMIT)

    def run(self, code: str, wants: str = "", stop_after: float | None = None) -> float:
        """Seconds until the cell has ended (from the press of Stop, if it is pressed). RuntimeError if it fails, if
        `wants` is not in what it printed, or if it has not ended after LIMIT seconds."""
        said: list[str] = []
        began = time.monotonic()
        asked = self.client.execute(code, allow_stdin=False)
        while True:
            pressed = stop_after is not None and time.monotonic() - began > stop_after
            if pressed:
                self.manager.interrupt_kernel()
                began, stop_after = time.monotonic(), None
            if time.monotonic() - began > LIMIT:
                raise RuntimeError(f"not ended after {LIMIT} s")
            try:
                message = self.client.get_iopub_msg(timeout=0.05)
            except Exception:  # queue.Empty
                continue
            if message["parent_header"].get("msg_id") != asked:
                continue
            content = message["content"]
            said.append(content.get("text") or "\n".join(content.get("traceback", ())) or str(content.get("data", "")))
            if content.get("execution_state") == "idle":
                break
        if wants and wants not in "".join(said):
            raise RuntimeError("".join(said).strip().splitlines()[-1][:90] if "".join(said).strip() else "no output")
        return time.monotonic() - began

    def insist(self, code: str, wants: str) -> float:
        """The same until it succeeds: some ways are not ready when they say so."""
        began = time.monotonic()
        while True:
            try:
                self.run(code, wants)
                return time.monotonic() - began
            except RuntimeError:
                if time.monotonic() - began > LIMIT:
                    raise

    def restart(self) -> None:
        self.manager.restart_kernel(now=True)
        self.client.wait_for_ready(timeout=LIMIT)

    def memory(self) -> float:
        """Bytes (PSS) of all processes below the kernel together."""
        kernel = psutil.Process(self.manager.provisioner.pid)
        return sum(child.memory_full_info().pss for child in kernel.children(True))

    def close(self) -> None:
        children = psutil.Process(self.manager.provisioner.pid).children(True)
        self.manager.shutdown_kernel(now=True)
        self.client.stop_channels()
        for child in children:
            if child.is_running():
                child.kill()


def environment(way: Way, folder: Path) -> str:
    """The Python of an environment with this peer, and with all that is installed here."""
    if not way.package:
        return sys.executable
    venv.create(folder / way.name, with_pip=True)
    python = folder / way.name / "bin" / "python"
    ours = next(path for path in sys.path if path.endswith("site-packages"))
    theirs = next((folder / way.name / "lib").glob("python*")) / "site-packages"
    (theirs / "ours.pth").write_text(ours)
    subprocess.run([python, "-m", "pip", "install", "-q", way.package], check=True, stderr=subprocess.DEVNULL)
    return str(python)


def measured(way: Way, python: str, n: int, short: bool = False) -> dict[str, float | str]:
    """Each row's figure, or the words of what went wrong, in one new kernel; `short`: the first three rows."""
    found: dict[str, float | str] = {}
    total = f"{sum(10 * rank for rank in range(n)):.0f}."

    def row(name: str, measure: Callable[[], float]) -> None:
        try:
            found[name] = measure()
        except Exception as error:
            found[name] = str(error) or type(error).__name__

    def usable() -> float:
        return kernel.insist(way.cell(SUM, n), total)

    def revived() -> float:
        began = time.monotonic()
        kernel.run(way.cell(DEATH, n))
        if way.revive:
            kernel.restart() if way.revive == "RESTART" else kernel.run(way.revive)
            kernel.run(way.load.format(n=n))
        usable()
        return time.monotonic() - began

    kernel = Kernel(way, python, n)
    try:
        row("first", lambda: kernel.run(way.load.format(n=n)) + usable())
        if isinstance(found["first"], str):
            return found
        row("memory", lambda: kernel.memory() / n)
        row("again", lambda: statistics.median(kernel.run(way.cell(SUM, n), total) for _ in range(9)))
        if short:
            return found
        row("lines", lambda: kernel.run(way.cell(LINES, n), "9999"))
        if way.stops:
            row("killed", revived)
            row("stop", lambda: kernel.run(way.cell(SLEEP, n), stop_after=1))
            row("after the stop", usable)
            row("stuck", lambda: kernel.run(way.cell(STUCK, n), stop_after=None if way.name == "Ringside" else 1))
            row("after that", usable)
        row("text", lambda: kernel.run(way.cell(TEXT, n), ".0"))
    finally:
        kernel.close()
    return found


def torchrun(folder: Path, n: int) -> dict[str, float | str]:
    (folder / "job.py").write_text(SCRIPT)
    began = time.monotonic()
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={n}", str(folder / "job.py")]
    subprocess.run(command, check=True, capture_output=True)
    return {"first": time.monotonic() - began}


ROWS = {
    "first": "from nothing to the first all_reduce answered, s",
    "memory": "memory per rank, all processes (PSS), MB",
    "again": "the same cell again, ms",
    "lines": "10,000 lines from each rank, s",
    "killed": "a rank is killed: until all_reduce answers again, s",
    "stop": "Stop of a sleeping cell, s",
    "after the stop": "the all_reduce after it, s",
    "stuck": "a deadlock: until the cell has ended, s (Ringside: by itself; others: from the press of Stop)",
    "after that": "the all_reduce after it, s",
    "text": "50 MB of text from each rank, s",
}
SCALE = {"memory": 1e-6, "again": 1e3}


def cell(row: str, runs: list[dict[str, float | str]]) -> str:
    """ "1.2 (1.1 to 1.4)", or what went wrong the last time."""
    values = [run[row] for run in runs if row in run]
    numbers = sorted(value * SCALE.get(row, 1) for value in values if isinstance(value, float))
    if not numbers:
        return str(values[-1]).replace("|", "/") if values else "-"
    failed = f", {len(values) - len(numbers)} of {len(values)} failed" if len(numbers) < len(values) else ""
    return f"{statistics.median(numbers):.3g} ({numbers[0]:.3g} to {numbers[-1]:.3g}){failed}"


def main() -> None:
    tables = []
    with tempfile.TemporaryDirectory() as name:
        folder, pythons = Path(name), {}
        for way in WAYS:
            print(f"installing {way.name} ...", flush=True)
            pythons[way.name] = environment(way, folder)
        for n in (4, 8, 32):
            runs: dict[str, list] = {way.name: [] for way in WAYS} | {"torchrun": []}
            for number in range(RUNS):
                for way in WAYS:
                    print(f"{n} ranks, run {number + 1} of {RUNS}: {way.name} ...", flush=True)
                    runs[way.name].append(measured(way, pythons[way.name], n, short=n > 8))
                runs["torchrun"].append(torchrun(folder, n))
            head = [f"### {n} ranks", "", f"| measured | {' | '.join(runs)} |", "|---" * (len(runs) + 1) + "|"]
            rows = [
                f"| {ROWS[row]} | {' | '.join(cell(row, each) for each in runs.values())} |"
                for row in ROWS
                if any(row in run for each in runs.values() for run in each)
            ]
            tables += [*head, *rows, ""]
    print("\n".join(tables))
    load = f"{os.getloadavg()[2]:.1f}"
    top = f"""# Beside its peers

`python -m tests.benchmarks peers` wrote this file. Each way ran {RUNS} times, in turn, on {os.cpu_count()} cores with a
load of {load}. A figure is the median, with the smallest and the largest. Where a peer failed, the cell says how.

"""
    (ROOT / "docs" / "peers.md").write_text(top + "\n".join(tables), encoding="utf-8")


if __name__ == "__main__":
    main()
