"""`%ranks attach` with a real Slurm, whose nodes are hosts of tests/launch/hosts.py: the line that it shows works in a
batch job.
"""

import contextlib
import re
import tempfile
import time
from pathlib import Path

import pytest

from tests.launch.hosts import LIMIT, Hosts, needs_root
from tests.launch.notebook import Notebook
from tests.launch.slurm import Slurm, needs_slurm

ROOT = Path(__file__).parents[2]


@pytest.fixture
def cluster():
    needs_root()
    needs_slurm()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-")))  # short: it holds sockets
        stack.callback((hosts := Hosts(2)).close)
        slurm = Slurm(hosts, folder)
        stack.callback(slurm.close)
        slurm.environ |= {"HOME": str(folder), "PYTHONPATH": str(ROOT)}
        yield slurm


@pytest.fixture
def notebook(cluster):
    found = Notebook(cluster.environ)
    yield found
    found.close()


def test_slurm_starts_the_machines_and_ends_them(cluster, notebook):
    notebook.run("%load_ext launch\nimport launch.magics")
    waiting = notebook.send(f"%ranks attach {cluster.hosts.outside}")
    shown = notebook.collect(waiting, lambda output, _: "no machine is here yet" in output.stdout).stdout
    (line,) = re.findall("srun .*", shown)
    log = f"--output={cluster.folder}/job.out"
    job = cluster.run("sbatch", "--parsable", "--nodes=2", "--ntasks-per-node=1", log, "--wrap", line)
    attached = notebook.collect(waiting)
    assert "2 machines are attached" in attached.stdout, (attached.error, cluster.logs())
    nodes = [f"{name} ({where})" for name, where in zip(cluster.names, cluster.hosts.addresses, strict=True)]
    assert all(node in attached.stdout for node in nodes)
    cell = "%%ranks 4\nimport os\nx = torch.tensor([10 * rank])\ndist.all_reduce(x)\nx, 'SLURM_PROCID' in os.environ"
    assert notebook.run(cell).stdout == "ranks 0-3: (tensor([60]), False)\n"
    rows = notebook.run("%ranks").stdout.splitlines()[1:]
    assert [row.split("  ")[-1] for row in rows] == [nodes[0], nodes[0], nodes[1], nodes[1]]
    cluster.run("scancel", job.strip())
    until = time.monotonic() + LIMIT
    while notebook.value("len(launch.magics.session().supervisor.site.machines())"):
        assert time.monotonic() < until, cluster.logs()
    ended = r"LaunchError: node[01] \(.*\) was ended by its engine, and no other is left: %ranks attach off, then .*"
    assert re.fullmatch(ended, notebook.run("%%ranks 4\nx").error)
    assert notebook.run("%ranks attach off").stdout == "ranks are on this machine again\n"
