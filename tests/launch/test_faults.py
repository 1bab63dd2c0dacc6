"""Stop button, dead ranks, dead kernels: the others keep their variables, and nothing is left behind."""

import os
import signal
import time

import psutil
import pytest

from launch.kernel.host import has_ended

PATIENCE = 60  # seconds; bounds for things that take a fraction of one


@pytest.fixture(scope="module")
def four(notebook, imported):
    assert not notebook.run("%%ranks 4\nimport os, time\nkept = rank * 10").error
    return notebook


def pids(notebook) -> list[int]:
    return [int(line.split()[1]) for line in notebook.run("%ranks").stdout.splitlines() if line[0].isdecimal()]


def usable(notebook) -> None:
    output = notebook.run("%%ranks\nx = torch.ones(1)\ndist.all_reduce(x)\nx")
    assert (output.stdout, output.error) == ("ranks 0-3: tensor([4.])\n", "")


STUCK = {  # more of them in ENDLESS of faults.py
    "python": "while True: pass",
    "barrier": "dist.barrier() if rank != 2 else time.sleep(1000)",
    "backward": "(model(torch.ones(1, 2)).sum().backward() if rank != 1 else time.sleep(1000))",
    "child": "os.system('sleep 1000'); None",
    "async": "import asyncio; await asyncio.sleep(1000)",
}


@pytest.mark.parametrize("what", STUCK)
def test_the_stop_button(four, what):
    four.run("%%ranks\nmodel = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))")
    msg_id = four.send(f"%%ranks\nprint('here', flush=True)\n{STUCK[what]}")
    four.collect(msg_id, until=lambda _, live: sum("here" in line for line in live) == 4)
    four.interrupt()
    output = four.collect(msg_id)
    assert output.ename == "RanksStopped" and "launch/" not in output.traceback
    assert output.stdout == "[ranks 0-3] here\n"
    usable(four)
    assert four.value("launch.pull('kept')") == [0, 10, 20, 30]


def test_a_rank_that_does_not_listen_is_ended_and_no_press_ends_another(four):
    deaf = "import signal\nif rank == 1: signal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('here', flush=True)\n"
    msg_id = four.send(f"%%ranks\n{deaf}while True: pass")
    four.collect(msg_id, until=lambda _, live: sum("here" in line for line in live) == 4)
    four.interrupt()
    four.collect(msg_id, until=lambda *_: "stopping; this takes three seconds" in four.states)
    four.interrupt()
    assert four.collect(msg_id).error == (
        "RanksStopped: ranks 0-3 were running Python code at line 5; rank 1 had to be restarted, the variables there "
        "are lost (SIGINT is ignored there)"
    )
    usable(four)
    assert four.run("%%ranks\n'kept' in globals()").stdout == "ranks 0,2-3: True\nrank 1: False\n"
    four.run("%%ranks --only 1\nkept = rank * 10\nimport os, time")


def test_the_stop_button_reaches_a_rank_that_has_not_begun_the_cell(four):
    late = pids(four)[3]
    for _ in range(5):  # what comes first after that, the cell or the stop, is chance
        os.kill(late, signal.SIGSTOP)
        msg_id = four.send("%%ranks\nprint('here', flush=True)\nwhile True: pass")
        four.collect(msg_id, until=lambda _, live: sum("here" in line for line in live) == 3)
        four.interrupt()
        assert four.collect(msg_id).ename == "RanksStopped"  # the stop wakes it
    usable(four)
    assert four.value("launch.pull('kept')") == [0, 10, 20, 30]


HELD_BACK = """
import os, signal
from launch.kernel.supervisor import Worker
began = Worker.started
def held_back(worker, pid, *more):
    os.kill(pid, signal.SIGSTOP)
    began(worker, pid, *more)
Worker.started = held_back
"""


def test_stopping_while_ranks_start(four):
    """Ranks that are held back as they begin: else they may be up before the button is pressed."""
    four.run("%ranks stop")
    four.run(HELD_BACK)
    msg_id = four.send("%%ranks 4\n1")
    four.collect(msg_id, until=lambda output, _: output.displays)
    four.interrupt()
    output = four.collect(msg_id)
    assert output.error in (
        "LaunchError: stopped while the ranks were starting; none runs",
        "RanksStopped: stopped; no rank was running a cell",  # while the log was being displayed
    )
    four.run("Worker.started = began")
    assert four.run("%%ranks 4\nimport os, time\nkept = rank * 10\n'here'").stdout == "ranks 0-3: 'here'\n"


@pytest.mark.parametrize(
    "victim, how, means",
    [(0, "os.kill(os.getpid(), 9)", "killed by SIGKILL"), (1, "os._exit(3)", "exited with code 3")],
)
def test_a_rank_that_dies_in_a_cell(four, victim, how, means):
    output = four.run(
        f"%%ranks\nprint('before', flush=True)\nif rank == {victim}: {how}\ndist.all_reduce(torch.ones(1))"
    )
    assert output.error == f"RankError: rank {victim} died ({means})"
    assert output.stdout == "[ranks 0-3] before\n"
    usable(four)
    kept = ["rank 0: False\nranks 1-3: True\n", "ranks 0,2-3: True\nrank 1: False\n"][victim]
    assert four.run("%%ranks\n'kept' in globals()").stdout == kept
    four.run("%%ranks\nimport os, time\nkept = rank * 10")


def test_a_rank_that_is_killed_between_two_cells(four):
    victim = pids(four)[2]
    os.kill(victim, signal.SIGKILL)
    limit = time.monotonic() + PATIENCE
    while not has_ended(victim) and time.monotonic() < limit:
        pass  # the next cell is to come before the agent has told of it
    output = four.run("%%ranks\nx = torch.ones(1)\ndist.all_reduce(x)\nx")
    assert output.stdout == (
        "rank 2 died between two cells (killed by SIGKILL) and starts anew\nranks 0-3: tensor([4.])\n"
    )
    four.run("%%ranks\nimport os, time\nkept = rank * 10")


def family(notebook) -> tuple[list[psutil.Process], str]:
    """The agent, the ranks and what they have started; and the session's private folder."""
    agent = next(
        child for child in psutil.Process(notebook.pid).children() if "launch.agent" in " ".join(child.cmdline())
    )
    return [agent, *agent.children(recursive=True)], agent.cmdline()[-1]


def everything_is_gone(processes: list[psutil.Process], folder: str) -> bool:
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while os.path.exists(folder) and time.monotonic() < deadline:
        time.sleep(0.01)  # the agent removes it after its last child
    return not alive and not os.path.exists(folder)


def test_a_killed_kernel_leaves_nothing_behind(new_notebook):
    """Whatever a rank does: one has nothing to do, one computes, one waits in gloo, one for a child."""
    doing = "if rank == 1:\n    while True: pass\nif rank == 2: dist.barrier()\nif rank == 3: os.system('sleep 1000')"
    notebook = new_notebook()
    start = "import os, time, subprocess\nchild = subprocess.Popen(['sleep', '1000'], start_new_session=True)"
    notebook.run(f"%%ranks 4\n{start}")
    msg_id = notebook.send(f"%%ranks\nprint('here', flush=True)\n{doing}")
    notebook.collect(msg_id, until=lambda _, live: sum("here" in line for line in live) == 4)
    processes, folder = family(notebook)
    assert len(processes) >= 9 and os.stat(folder).st_mode & 0o777 == 0o700
    os.kill(notebook.pid, signal.SIGKILL)
    assert everything_is_gone(processes, folder)


def test_a_kernel_that_shuts_down_leaves_nothing_behind(new_notebook):
    notebook = new_notebook()
    notebook.run("%%ranks 4\nimport os\nos.system('sleep 1000 &')")
    processes, folder = family(notebook)
    notebook.client.shutdown()
    assert everything_is_gone(processes, folder)


def test_nothing_listens_for_strangers(four):
    """Private Unix sockets, and loopback at most."""
    processes, folder = family(four)
    for process in [psutil.Process(four.pid), *processes]:
        for connection in process.net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                assert connection.laddr.ip in ("127.0.0.1", "::1"), (process, connection)
    key_length = 64
    for process in processes:
        assert all(len(word) < key_length for word in process.cmdline())
    for name in os.listdir(folder):
        assert os.stat(os.path.join(folder, name)).st_mode & 0o777 <= 0o755


def test_an_agent_that_is_killed(four):
    assert not four.run("%%ranks 2\n1").error
    ranks = [psutil.Process(pid) for pid in pids(four)]
    os.kill(ranks[0].ppid(), signal.SIGKILL)
    _, alive = psutil.wait_procs(ranks, timeout=PATIENCE)
    assert not alive
    output = four.run("%%ranks 2\nx = torch.ones(1)\ndist.all_reduce(x)\nx")
    assert output.stdout.endswith("ranks 0-1: tensor([2.])\n") and not output.error
