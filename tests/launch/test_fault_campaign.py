"""The fault campaign: what students do wrong, with 2, 4 and 8 ranks, one side early or late.

Every fault must end its cell with the right explanation; after it all ranks answer an all_reduce, every surviving rank
has its variables, and no process, socket or file descriptor is left over. The figures are printed with `-rP`.
"""

# ruff: noqa: E501  (a cell is not broken in the middle)

import os
import re
import statistics
import threading
import time

import psutil
import pytest

from launch import output
from launch.errors import RankError, RanksStopped
from launch.ranks import Ranks
from tests.launch.faults import DEADLOCKS, DEATHS, FAULTS, MISMATCHES

PATIENCE = 15  # seconds; what is measured takes a fraction of one on an idle machine
SETUP = "import time, os\nsentinel = 7 * rank"


@pytest.fixture(scope="module")
def ranks():
    ranks = Ranks()
    yield ranks
    ranks.close()


@pytest.fixture(scope="module")
def figures():
    seconds = []
    yield seconds
    if seconds:
        print(
            f"\n{len(seconds)} faults, seconds until usable: median {statistics.median(seconds):.2f}, worst {max(seconds):.2f}"
        )


def run(ranks, code, only=None):
    """The answers, and what the notebook would raise (None if nothing)."""
    answers = ranks.execute(code, only)
    try:
        output.raise_failures(answers, stopped=any(answer.was_doing for answer in answers))
    except (RankError, RanksStopped) as error:
        return answers, error
    return answers, None


def of_size(ranks, size):
    """So many ranks with the sentinel set, whatever the last test has left."""
    ranks.ensure(size)
    ranks.take_notices()
    assert run(ranks, SETUP)[1] is None


def usable(ranks, lost=()):
    """All ranks answer an all_reduce, and all but the lost ones know their variable."""
    answers, error = run(ranks, "probe = torch.ones(1)\ndist.all_reduce(probe)\nknown = globals().get('sentinel')")
    assert error is None
    assert [probe.item() for probe in ranks.pull("probe")] == [ranks.size] * ranks.size
    assert ranks.pull("known") == [None if rank in lost else 7 * rank for rank in range(ranks.size)]
    assert not ranks.take_notices()


def processes(ranks):
    return psutil.Process(ranks.crew.agent.process.pid).children(recursive=True)


def descriptors(ranks):
    """Open files of the driver, and the most that a rank has."""
    return len(os.listdir("/proc/self/fd")), max(process.num_fds() for process in processes(ranks))


def inflict(ranks, fault, victim, late=""):
    """Runs the fault's cell and checks everything. Returns the seconds until the ranks were usable again."""
    began = time.monotonic()
    answers, error = run(ranks, fault.code(victim, late))
    seconds = time.monotonic() - began
    assert type(error).__name__ == fault.kind, error
    assert re.fullmatch(fault.pattern(victim, ranks.size), str(error)), str(error)
    assert "launch/" not in "".join(error.report)
    usable(ranks, (victim,) if fault.dies else ())
    assert len(processes(ranks)) == ranks.size
    return seconds


LATE = {
    "together": "",
    "victim_late": "if rank == victim: time.sleep(0.2)",
    "victim_early": "if rank != victim: time.sleep(0.2)",
    "staggered": "time.sleep(0.05 * rank)",
}
WHEN = {2: ["together"], 4: ["together", "victim_late", "victim_early"], 8: ["staggered"]}
CASES = [
    (size, name, when) for size in WHEN for name, fault in FAULTS.items() for when in WHEN[size] if size in fault.sizes
]


@pytest.mark.parametrize("size, name, when", CASES)
def test_a_fault(ranks, figures, size, name, when):
    of_size(ranks, size)
    fault = FAULTS[name]
    figures.append(
        inflict(
            ranks, fault, victim=size - 1 if when != "victim_early" else 0 if name != "root" else 1, late=LATE[when]
        )
    )


def test_there_are_enough_of_them():
    assert len(CASES) >= 60 and len(DEADLOCKS) + len(MISMATCHES) + len(DEATHS) >= 30


@pytest.mark.parametrize("when", LATE)
def test_the_sentence_does_not_depend_on_who_comes_first(ranks, when):
    of_size(ranks, 4)
    for name in ("skips", "raises", "other_collective", "size"):
        said = {str(run(ranks, FAULTS[name].code(2, late))[1]) for late in ("", LATE[when])}
        assert len(said) == 1, said


LEGAL = {
    "one rank sleeps": "if rank == 1: time.sleep(1.2)\ndist.all_reduce(x)",
    "one rank computes": "if rank == 1:\n    end = time.monotonic() + 1.2\n    while time.monotonic() < end: x @ x\ndist.barrier()",
    "asleep with a collective under way": "work = dist.all_reduce(x, async_op=True)\ntime.sleep(0.8)\nwork.wait()",
    "asleep while others wait for its message": "if rank == 0: time.sleep(1); dist.send(x, 1)\nelif rank == 1: dist.recv(x, 0)",
    "a pipeline of isends": "works = [dist.isend(x, (rank + 1) % world_size) for _ in range(3)]\ntime.sleep(0.1 * rank)\n"
    "for _ in range(3): dist.recv(x, (rank - 1) % world_size)\nfor work in works: work.wait()",
    "an isend that outlives its cell": "if rank == 0: keep = dist.isend(torch.ones(4), 1)\nif rank == 1: time.sleep(0.5); dist.recv(x, 0)",
    "a thread of the student": "import threading\ndef late(): time.sleep(1); dist.send(torch.ones(4), 1)\n"
    "if rank == 0: threading.Thread(target=late).start()\nif rank == 1: dist.recv(x, 0)",
    "a sub-group that works on": "half = dist.new_group([0, 1])\nif rank < 2:\n    for _ in range(300): dist.all_reduce(x, group=half)\ndist.barrier()",
    "a slow hook in backward": "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))\n"
    "model.module.weight.register_hook(lambda grad: time.sleep(0.8 * (rank == 1)) or grad)\nmodel(torch.ones(1, 2)).sum().backward()",
    "a reader of a pipe": "import subprocess\nif rank == 1: subprocess.run(['sleep', '1'])\ndist.all_gather_object([None] * world_size, rank)",
}


@pytest.mark.parametrize("what", LEGAL)
def test_no_false_alarm(ranks, what):
    of_size(ranks, 4)
    _, error = run(
        ranks, "x = torch.ones(4, 4)[0]\n" + LEGAL[what].replace("x @ x", "torch.ones(64, 64) @ torch.ones(64, 64)")
    )
    assert error is None
    usable(ranks)


def test_ranks_outside_the_cell_are_named(ranks):
    of_size(ranks, 4)
    _, error = run(ranks, "dist.barrier()", only=[0, 2])
    assert str(error) == "ranks 0, 2 wait in barrier #1 (line 1); ranks 1, 3 do not run this cell"
    usable(ranks)


def test_swapped_calls_that_look_alike_are_suspected(ranks):
    of_size(ranks, 4)
    cell = "x, y = torch.ones(2), torch.zeros(2)\nif rank == 1:\n    dist.all_reduce(x)\n    dist.all_reduce(y)\nelse:\n    dist.all_reduce(y)\n    dist.all_reduce(x)"
    assert run(ranks, cell)[1] is None
    (warning,) = ranks.take_notices()
    assert warning.startswith("warning: as collective #1 rank 0 makes the call of line 6, rank 1 that of line 3;")
    run(ranks, "for _ in range(2):\n    if rank: dist.all_reduce(x)\n    else: dist.all_reduce(x)")
    assert not ranks.take_notices()


OBJECTS = "half = dist.new_group([0, 1])\nmodel = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))"


@pytest.mark.parametrize("name", ["skips", "backward", "dtype"])
def test_old_groups_and_modules_work_after_a_fault(ranks, name):
    of_size(ranks, 4)
    assert run(ranks, OBJECTS)[1] is None
    _, error = run(ranks, FAULTS[name].code(2).replace("model = ", "other = ") if name != "backward" else
                   "x = torch.ones(1, 2)\nif rank != 2: model(x).sum().backward()")  # fmt: skip
    assert type(error).__name__ == FAULTS[name].kind
    _, error = run(
        ranks, "if rank < 2: dist.all_reduce(torch.ones(2), group=half)\nmodel(torch.ones(1, 2)).sum().backward()"
    )
    assert error is None
    usable(ranks)


STUCK = {
    "python": "while True: pass",
    "sleep": "time.sleep(100)",
    "matmul": "a = torch.ones(300, 300)\nwhile True: a @ a",
    "gloo": "dist.recv(torch.ones(1), 0) if rank else time.sleep(100)",
    "store": "dist.new_group([0, 1]) if rank else time.sleep(100)",
    "full pipe": "import sys\nwhile True: sys.stdout.write('x' * 100000)",
}


@pytest.mark.parametrize("what", STUCK)
def test_stop(ranks, what):
    of_size(ranks, 4)
    threading.Timer(0.5, ranks.interrupt).start()
    began = time.monotonic()
    _, error = run(ranks, STUCK[what])
    assert type(error) is RanksStopped and time.monotonic() - began < PATIENCE
    usable(ranks)


FLOODS = {
    "100 MB": ("import sys\nfor _ in range(1000): sys.stdout.write('y' * 99999 + '\\n')", "left out"),
    "short lines": ("for i in range(300_000): print(i)", "299999"),
    "one long line": ("print('z' * 10_000_000)", "left out"),
    "garbage": ("os.write(1, bytes(range(256)) * 100)", "ABC"),
    "half a character": (
        "os.write(1, b'half \\xe2\\x82'); time.sleep(0.1); os.write(1, b'\\xac whole')",
        "half € whole",
    ),
    "from C": ("import ctypes; libc = ctypes.CDLL(None); libc.puts(b'from C'); libc.fflush(None)", "from C"),
}


@pytest.mark.parametrize("what", FLOODS)
def test_floods(ranks, what):
    of_size(ranks, 2)
    code, part = FLOODS[what]
    answers, error = run(ranks, "if rank == 0:\n    " + code.replace("\n", "\n    "))
    assert error is None
    text = str(answers[0].out)
    assert part in text and len(text) < 3_000_000
    usable(ranks)


def test_faults_leave_nothing_open(ranks):
    of_size(ranks, 4)
    inflict(ranks, FAULTS["skips"], 2)
    before = descriptors(ranks)
    for name in ("skips", "raises", "ring_of_sends", "size", "three_groups", "kill"):
        inflict(ranks, FAULTS[name], 2)
        run(ranks, SETUP)
    run(ranks, "import gc; gc.collect()")
    after = descriptors(ranks)
    assert after[0] <= before[0] + 2 and after[1] <= before[1] + 12, (before, after)
