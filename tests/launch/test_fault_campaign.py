"""The fault campaign: what students do wrong, with 2, 4 and 8 ranks, one side early or late.

Every fault must end its cell with the right explanation; after it all ranks answer an all_reduce, every surviving rank
has its variables, and no process, socket or file descriptor is left over. The figures are printed with `-rP`.
"""

# ruff: noqa: E501  (a cell is not broken in the middle)

import gc
import json
import os
import re
import signal
import statistics
import threading
import time

import psutil
import pytest

from launch.doctor.snapshot import How
from launch.kernel import output
from launch.kernel.recovery import MOST_THREADS
from launch.ranks import Ranks
from launch.shared.errors import DeadlockError, RankError, RanksStopped
from tests.launch.faults import DEADLOCKS, DEATHS, ENDLESS, FAULTS, HEAD, MISMATCHES, TAKEN
from tests.launch.forked import HAS_ALL_TO_ALL
from tests.launch.mistakes import ALONE, MISTAKES, SIZE, VICTIM

SETUP = "import time, os\nsentinel = 7 * rank"
PROBE = f"""
probe = torch.ones(1)
dist.all_reduce(probe)
probe = probe.item(), globals().get('sentinel')
{SETUP}"""
set_up: set[str] = set()  # the names of the ranks that a test left with their variables set


@pytest.fixture(scope="module")
def ranks(warm):
    ranks = Ranks(fork_from=warm)
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


def run(ranks, code, only=None, viewer=None):
    """The answers, and what the notebook would raise (None if nothing)."""
    answers = ranks.execute(code, only, viewer=viewer)
    try:
        output.raise_failures(answers)
    except (RankError, RanksStopped) as error:
        return answers, error
    return answers, None


def of_size(ranks, size):
    """So many ranks with the sentinel set, whatever the last test has left."""
    if ranks.supervisor.cell:  # of a test that ran out of time
        ranks.restart()
    ranks.ensure(size)
    if sum(process.num_threads() for process in processes(ranks)) > MOST_THREADS / 2:
        ranks.restart()  # here, and not in the middle of a fault
    ranks.take_notices()
    if names(ranks) - set_up:
        assert run(ranks, SETUP)[1] is None


def names(ranks):
    """Of the processes: a new process has a new name."""
    return {worker.name for worker in ranks.supervisor.workers}


def usable(ranks, lost=()):
    """All ranks answer an all_reduce, and all but the lost ones know their variable, which is then set on all."""
    set_up.clear()
    assert run(ranks, PROBE)[1] is None
    assert ranks.pull("probe") == [(ranks.size, None if rank in lost else 7 * rank) for rank in range(ranks.size)]
    assert not ranks.take_notices()
    set_up.update(names(ranks))


def processes(ranks):
    """What runs: a child that has ended and that its rank has not asked about yet does not."""
    children = psutil.Process(ranks.supervisor.workers[0].pid).parent().children(recursive=True)
    return [child for child in children if runs(child)]


def runs(process):
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def descriptors(ranks):
    """Open files of the driver, and the most that a rank has."""
    return len(os.listdir("/proc/self/fd")), max(process.num_fds() for process in processes(ranks))


def inflict(ranks, fault, victim, late=""):
    """Runs the fault's cell and checks everything. Returns the seconds until the ranks were usable again."""
    began = time.monotonic()
    answers, error = run(ranks, fault.code(victim, late))
    seconds = time.monotonic() - began
    assert type(error).__name__ == fault.kind, "\n".join([str(error), *getattr(error, "report", ())])
    assert re.fullmatch(fault.pattern(victim, ranks.size), str(error)), str(error)
    assert "launch/" not in "".join(error.report)
    usable(ranks, (victim,) if fault.dies else ())
    assert len(processes(ranks)) == ranks.size
    return seconds


def in_words(ranks, code):
    """What the cell ends with, as the notebook shows it: "DeadlockError: rank 0 waits in ..."."""
    _, error = run(ranks, code)
    return f"{type(error).__name__}: {error}"


LATE = {
    "together": "",
    "victim_late": "if rank == victim: time.sleep(0.2)",
    "victim_early": "if rank != victim: time.sleep(0.2)",
    "staggered": "time.sleep(0.05 * rank)",
}
WHEN = {2: ["together"], 4: ["victim_late", "victim_early"], 8: ["staggered"]}
ONE_OF_A_KIND = (
    "skips",
    "ring_of_recvs",
    "in_a_thread",
    "three_groups",
    "other_order",
    "kill_in_ring",
    "dropped_irecv",
)
CASES = [
    (size, name, when)
    for size in WHEN
    for name, fault in FAULTS.items()
    for when in WHEN[size]
    if size in fault.sizes and (size < 8 or name in ONE_OF_A_KIND)
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


@pytest.mark.parametrize("name", ["skips", "raises", "other_collective", "size"])
def test_the_sentence_does_not_depend_on_who_comes_first(ranks, name):
    of_size(ranks, 4)
    said = {str(run(ranks, FAULTS[name].code(2, late))[1]) for late in LATE.values()}
    assert len(said) == 1, said


LEGAL = {
    "one rank sleeps": "if rank == 1: time.sleep(1.2)\ndist.all_reduce(x)",
    "one rank computes": "if rank == 1:\n    end = time.monotonic() + 1.2\n    while time.monotonic() < end: x @ x\ndist.barrier()",
    "asleep with a collective under way": "work = dist.all_reduce(x, async_op=True)\ntime.sleep(0.8)\nwork.wait()",
    "asleep while others wait for its message": "if rank == 0: time.sleep(1); dist.send(x, 1)\nelif rank == 1: dist.recv(x, 0)",
    "a pipeline of isends": "works = [dist.isend(x, (rank + 1) % world_size) for _ in range(3)]\ntime.sleep(0.1 * rank)\n"
    "for _ in range(3): dist.recv(x, (rank - 1) % world_size)\nfor work in works: work.wait()",
    "an isend that outlives its cell": "if rank == 0: keep = dist.isend(torch.ones(4), 1)\nif rank == 1: time.sleep(0.5); dist.recv(x, 0)",
    "a handle let go of after the wait": "work = dist.isend(x, (rank + 1) % world_size)\ndist.recv(torch.empty(4), (rank - 1) % world_size)\n"
    "work.wait(); work = None\ndist.barrier()",
    "a handle let go of after the message": "work = dist.irecv(torch.empty(4), 0) if rank == 1 else None\nif rank == 0: dist.send(x, 1)\n"
    "dist.barrier()\nwork = None\ndist.barrier()",
    "an isend that is dropped while its receiver waits": "if rank == 0: time.sleep(0.5); dist.isend(x, 1)\nif rank == 1: dist.recv(x, 0)\ndist.barrier()",
    "dropped messages that nobody wants": "dist.isend(x, (rank + 1) % world_size, tag=5)\ndist.irecv(x, (rank + 1) % world_size, tag=3)\ndist.barrier()",
    "a collective whose handle is dropped": "for _ in range(100): dist.all_reduce(x, async_op=True)\ndist.barrier()",
    "a batch that is waited for": "ops = [dist.P2POp(dist.isend, x, (rank + 1) % world_size), dist.P2POp(dist.irecv, torch.empty(4), (rank - 1) % world_size)]\n"
    "for _ in range(70):\n    for work in dist.batch_isend_irecv(ops): work.wait()",
    "a thread that is waited for with a limit": "import threading\nthread = threading.Thread(target=dist.recv, args=(x, 0))\n"
    "if rank == 1: thread.start(); thread.join(timeout=1.5); dist.send(x, 0); thread.join()\nif rank == 0: dist.recv(x, 1); dist.send(x, 1)",
    "splits that fit": "dist.all_to_all_single(torch.empty(sum(range(world_size))), torch.ones(rank * world_size), list(range(world_size)), [rank] * world_size)",
    "any source beside a named one": "if rank == 0:\n    works = [dist.irecv(torch.empty(4), 1), dist.irecv(torch.empty(4))]\n    dist.recv(x); [w.wait() for w in works]\n"
    "else: time.sleep(0.2 * rank); dist.send(x, 0)",
    "a thread of the student": "import threading\ndef late(): time.sleep(1); dist.send(torch.ones(4), 1)\n"
    "if rank == 0: threading.Thread(target=late).start()\nif rank == 1: dist.recv(x, 0)",
    "a sub-group that works on": "half = dist.new_group([0, 1])\nif rank < 2:\n    for _ in range(300): dist.all_reduce(x, group=half)\ndist.barrier()",
    "a slow hook in backward": "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))\n"
    "model.module.weight.register_hook(lambda grad: time.sleep(0.8 * (rank == 1)) or grad)\nmodel(torch.ones(1, 2)).sum().backward()",
    "collectives that are waited for twice": "work = dist.all_reduce(x, async_op=True)\nwork.wait(); work.wait()\n"
    "work = dist.all_gather([torch.empty(4) for _ in range(4)], x, async_op=True)\nwork.wait(); work.wait()",
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


LEFT_BEHIND = {
    "irecv": (
        "if rank == 1: keep = dist.irecv(torch.empty(4), 0)",
        "if rank == 0: dist.send(x, 1)\nif rank == 1: dist.recv(x, 0)",
        "rank 1's irecv of line 2 of cell In[7], never waited for, took its message",
    ),
    "collective": (
        "if rank == 1: keep = dist.all_reduce(x, async_op=True)",
        "dist.all_reduce(x)",
        "rank 1's all_reduce of line 2 of cell In[7], never waited for, took its place",
    ),
    "other collective": (
        "if rank == 1: keep = dist.all_reduce(x, async_op=True)",
        "dist.broadcast(x, 0)",
        "rank 1 began all_reduce in line 2 of cell In[7], never waited for",
    ),
}


@pytest.mark.parametrize("what", LEFT_BEHIND)
def test_a_call_that_an_earlier_cell_left_behind(ranks, what):
    of_size(ranks, 4)
    earlier, later, said = LEFT_BEHIND[what]
    assert all(a.how is How.LEFT for a in ranks.execute("x = torch.ones(4)\n" + earlier, count=7))
    assert str(run(ranks, later)[1]).endswith(said)
    usable(ranks)


THREAD = (
    "import threading\nx = torch.ones(4)\nthread = threading.Thread(target=dist.{0}, args={1})\nif {2}: thread.start()"
)
IN_A_THREAD = {  # of an earlier cell: (that cell, this one, what is said)
    "took the place": (
        THREAD.format("all_reduce", "(x,)", "rank"),
        "dist.all_reduce(torch.ones(4))",
        "ranks 1-3 wait in all_reduce #1 (line 1, float32[4]); rank 0 left the cell after 1 collective; what ranks 1-3 "
        "began in an earlier cell has met the first collective of rank 0 in this one",
    ),
    "still waits": (
        THREAD.format("all_reduce", "(x,)", "rank"),
        "if rank: dist.all_reduce(torch.ones(4))",
        "ranks 1-3 wait in all_reduce (a thread of cell In[7], float32[4]); rank 0 left the cell after 0 collectives",
    ),
    "waits for this cell": (
        THREAD.format("recv", "(x, 0)", "rank == 1"),
        "if rank == 0: dist.recv(torch.ones(4), 1)",
        "rank 0 waits in recv from rank 1 (line 1, float32[4]); rank 1 waits in recv from rank 0 (a thread of cell In[7], "
        "float32[4])",
    ),
}


@pytest.mark.parametrize("what", IN_A_THREAD)
def test_a_thread_that_an_earlier_cell_left_in_a_call(ranks, what):
    of_size(ranks, 4)
    earlier, later, said = IN_A_THREAD[what]
    assert all(a.how is How.LEFT for a in ranks.execute(earlier, count=7))
    assert str(run(ranks, later)[1]) == said
    run(ranks, "thread.join() if thread.ident else None")  # it says on standard error how it has ended
    usable(ranks)


def test_what_is_left_behind_by_all_explains_nothing(ranks):
    of_size(ranks, 4)
    earlier = "x = torch.ones(4)\nkeep = dist.all_reduce(x, async_op=True)\ngot = dist.irecv(torch.empty(4), 0) if rank == 1 else None\nif rank == 0: dist.send(x, 1)"
    assert run(ranks, earlier)[1] is None
    _, error = run(ranks, "if rank != 3: dist.all_reduce(x)")
    assert (
        str(error) == "ranks 0-2 wait in all_reduce #1 (line 1, float32[4]); rank 3 left the cell after 0 collectives"
    )
    assert run(ranks, earlier)[1] is None
    _, error = run(ranks, "if rank == 1: dist.recv(x, 0)")
    assert str(error).endswith("rank 0 left the cell without the matching send")
    usable(ranks)


def test_a_rank_that_came_back_says_why_it_knows_nothing(ranks):
    of_size(ranks, 4)
    assert run(ranks, "a = 5\nif rank == 1: os._exit(3)")[1]
    told = "rank 1: NameError: name 'a' is not defined (rank 1 died (exited with code 3) and came back without its variables)"
    assert str(run(ranks, "a")[1]) == told
    assert str(run(ranks, "nobody")[1]) == "ranks 0-3: NameError: name 'nobody' is not defined"


def test_without_a_process_group_it_says_how_to_make_one(ranks):
    of_size(ranks, 2)
    assert run(ranks, "dist.destroy_process_group()")[1] is None
    answers, error = run(ranks, "dist.barrier()")
    assert "process group has not been initialized" in str(error)
    makes_one = 'there is no process group: dist.init_process_group("gloo") on every rank makes one'
    assert [answer.hint.text for answer in answers] == [makes_one] * 2
    assert run(ranks, "dist.init_process_group('gloo')\ndist.barrier()")[1] is None
    ranks.restart()


def test_groups_are_not_renewed_until_the_machine_has_no_threads_left(ranks, monkeypatch):
    of_size(ranks, 2)
    monkeypatch.setattr("launch.kernel.recovery.MOST_THREADS", 1)
    assert str(run(ranks, "if rank: dist.barrier()")[1]).startswith("rank 1 waits in barrier #1")
    (said,) = ranks.take_notices()
    assert said.startswith("all ranks were restarted and lost their variables (their process groups have been")
    usable(ranks, (0, 1))


def test_a_rank_that_never_meets_the_others_again_does_not_keep_the_notebook_waiting(ranks, monkeypatch):
    of_size(ranks, 2)
    monkeypatch.setattr("launch.kernel.recovery.MEETING", 2)
    stuck = (
        "from launch.rank._regroup import Regrouper\nRegrouper.regroup = lambda *_, **__: __import__('time').sleep(1e6)"
    )
    assert run(ranks, f"if rank == 1: exec({stuck!r})")[1] is None
    assert str(run(ranks, "if rank: dist.barrier()")[1]).startswith("rank 1 waits in barrier #1")
    assert ranks.take_notices() == [
        "all ranks were restarted and lost their variables (they did not form a new process group within 2 seconds)"
    ]
    usable(ranks, (0, 1))


def on_dialling_in(ranks, monkeypatch, do):
    """Calls do(worker) in the hub's thread when a new rank has dialled in."""
    on_iopub = ranks.hub.on_iopub

    def also(name, message):
        on_iopub(name, message)
        if message["header"]["msg_type"] == "iopub_welcome":
            do(ranks.supervisor._coming[name])

    monkeypatch.setattr(ranks.hub, "on_iopub", also)


def rank_0_dies(ranks):
    """Returns what is said of the others."""
    _, error = run(ranks, "if rank == 0: os._exit(3)\ndist.barrier()")
    assert str(error) == "rank 0 died (exited with code 3)"
    return "\n".join(error.report)


def test_a_rank_that_is_up_before_its_agent_has_told_of_it_is_kept(ranks, monkeypatch):
    """On a busy machine the agent may come to speak of a rank that it has forked when that has long dialled in."""
    of_size(ranks, 2)
    agent, held = ranks.supervisor.agent, []
    on_agent = agent.on_event

    def agent_is_late(event, fds):
        held.append((event, fds)) if event["event"] == "started" else on_agent(event, fds)

    monkeypatch.setattr(agent, "on_event", agent_is_late)
    on_dialling_in(ranks, monkeypatch, lambda _: ranks.hub.loop.call_later(0.2, lambda: on_agent(*held[0])))
    assert "the variables are still there" in rank_0_dies(ranks)
    assert held and not ranks.take_notices()
    monkeypatch.undo()
    usable(ranks, (0,))


MEETS_SLOWLY = """
import os, time
from launch.rank._regroup import Regrouper
def regroup(*args, meet=Regrouper.regroup, **kwargs):
    meet(*args, **kwargs)
    while not os.path.exists(FILE): time.sleep(0.01)
    THEN
if rank: Regrouper.regroup = regroup
"""


def test_a_rank_that_dies_when_it_is_up_and_the_others_are_not_yet_through(ranks, monkeypatch, tmp_path):
    of_size(ranks, 2)
    agent, told = ranks.supervisor.agent, tmp_path / "told"
    on_agent = agent.on_event

    def go_on_when_told(event, fds):
        on_agent(event, fds)
        if event["event"] == "exited" and event["status"] == -signal.SIGKILL:
            told.touch()

    def killed_when_up(worker):
        worker.up.add_done_callback(lambda _: ranks.hub.loop.call_soon(os.kill, worker.pid, signal.SIGKILL))

    run(ranks, MEETS_SLOWLY.replace("FILE", repr(str(told))).replace("THEN", ""))
    monkeypatch.setattr(agent, "on_event", go_on_when_told)
    on_dialling_in(ranks, monkeypatch, killed_when_up)
    rank_0_dies(ranks)
    monkeypatch.undo()
    assert run(ranks, "1")[1] is None
    assert ranks.take_notices() == ["rank 0 died between two cells (killed by SIGKILL) and starts anew"]
    usable(ranks, (0,))


def test_a_rank_that_is_up_when_another_fails_to_meet_it_is_ended(ranks, monkeypatch, tmp_path):
    of_size(ranks, 2)
    up = tmp_path / "up"
    run(ranks, MEETS_SLOWLY.replace("FILE", repr(str(up))).replace("THEN", "raise RuntimeError('no more')"))
    on_dialling_in(ranks, monkeypatch, lambda worker: worker.up.add_done_callback(lambda _: up.touch()))
    assert "variables" not in rank_0_dies(ranks)
    assert ranks.take_notices() == ["all ranks were restarted and lost their variables (rank 1: no more)"]
    assert len(processes(ranks)) == 2
    usable(ranks, (0, 1))


@pytest.mark.parametrize("fault", ["if rank: dist.barrier()", "if rank == 0: os._exit(3)"])
def test_a_rank_whose_groups_cannot_be_renewed_does_not_keep_the_others_waiting(ranks, caplog, fault):
    """One that has come later has more renewals left, and would wait for it to meet; so would one that comes."""
    of_size(ranks, 3)
    assert run(ranks, "from launch.rank import _regroup\nif rank == 1: _regroup.LAST_TYPE = 8")[1] is None
    for _ in range(2):
        assert not ranks.take_notices()
        assert run(ranks, f"import os\n{fault}")[1]
    assert ranks.take_notices() == [
        "all ranks were restarted and lost their variables (rank 1: torch lets a process group be renewed 1 times, "
        "and that is used up)"
    ]
    usable(ranks, (0, 1, 2))
    gc.collect()
    assert not caplog.records  # asyncio complains when the last of what nobody has waited for is thrown away


DEAF = """
import ctypes, os, pathlib, time
from launch.rank import tap
lock, libc, deaf = (ctypes.c_char * 64)(), ctypes.CDLL(None), pathlib.Path(DEAF)
if rank: tap._plain_wait = lambda *_: [deaf.touch()] + [libc.pthread_mutex_lock(lock) for _ in range(2)]
"""


def test_a_rank_that_gloo_lets_not_out_of_its_wait_is_ended(ranks, monkeypatch, tmp_path):
    """As it is when gloo has forgotten what was under way; here by a lock in C that nobody opens."""
    deaf = tmp_path / "deaf"
    deafen = DEAF.replace("DEAF", repr(str(deaf)))
    of_size(ranks, 2)
    monkeypatch.setattr("launch.kernel.cell.LOST_AFTER", 1)
    run(ranks, deafen)
    _, error = run(ranks, "if rank: dist.recv(torch.ones(2), 0)")
    assert isinstance(error, DeadlockError) and str(error).startswith("rank 1 waits in recv from rank 0")
    assert ranks.take_notices() == ["rank 1 had to be restarted, the variables there are lost"]
    usable(ranks, (1,))
    deaf.unlink()
    run(ranks, deafen)
    wait_and_die = "while not deaf.exists(): time.sleep(0.01)\n    os._exit(3)"  # earlier, gloo would let rank 1 out
    _, error = run(ranks, f"if rank: dist.recv(torch.ones(2), 0)\nelse:\n    {wait_and_die}")
    assert "rank 0 died (exited with code 3)" in str(error)
    assert "variables are still there" not in "\n".join(error._render_traceback_())
    assert "rank 1 had to be restarted, the variables there are lost" in ranks.take_notices()


def test_a_partner_that_has_destroyed_its_group_is_named(ranks):
    of_size(ranks, 3)
    for call in ("dist.recv(x, 1)", "dist.irecv(x, 1).wait()"):
        _, error = run(ranks, f"x = torch.ones(4)\nif rank == 1: dist.destroy_process_group()\nelse: {call}")
        assert str(error).startswith(
            "ranks 0,2: RuntimeError: the connection to rank 1 has ended: it has destroyed its"
        )
        ranks.restart()


def test_a_group_that_some_ranks_have_destroyed_is_left_by_all(ranks):
    of_size(ranks, 4)
    answers, error = run(ranks, "if rank in (0, 3): dist.destroy_process_group()\nelse: dist.barrier()")
    assert error and [answers[rank].how for rank in (0, 3)] == [How.LEFT, How.LEFT]
    assert "/pytorch/" not in "\n".join(error._render_traceback_()) and "peer" not in str(error)
    assert str(error) == (
        "ranks 1-2: RuntimeError: the connection to another rank has ended: it has destroyed its process group, or its "
        "process is gone"
    )
    assert error.hints == [
        "ranks 0,3: there is no process group any more, and others waited for it: call dist.destroy_process_group() on "
        "every rank, after the last message"
    ]
    assert ranks.take_notices() == [
        "ranks 0,3 had destroyed the process group, so that it is gone on every rank: make it again with "
        "dist.init_process_group('gloo')"
    ]
    assert run(ranks, "dist.init_process_group('gloo')\ndist.barrier()")[1] is None
    assert run(ranks, "if rank == 0: dist.destroy_process_group()")[1] is None
    _, error = run(ranks, "if rank == 1: os._exit(0)\nif rank: dist.barrier()")
    assert "rank 1 died" in str(error)
    (said,) = ranks.take_notices()
    assert said.startswith("all ranks were restarted and lost their variables (a rank has died, and others had")
    assert run(ranks, "dist.barrier()")[1] is None
    ranks.restart()


def test_a_group_that_the_student_has_made_anew(ranks):
    of_size(ranks, 4)
    assert run(ranks, "dist.destroy_process_group()\ndist.init_process_group('gloo')")[1] is None
    _, error = run(ranks, "if rank != 1: dist.new_group([0, 1])")
    assert str(error) == "rank 0 waits in new_group (line 1) for the other ranks; ranks 1-3 left the cell"
    usable(ranks)
    _, error = run(ranks, "if rank != 1: dist.barrier()")
    assert str(error).endswith("rank 1 left the cell after 0 collectives")
    usable(ranks)
    ranks.restart()


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_in_these_words(ranks, name):
    cell, words = MISTAKES[name]
    if "dist.all_to_all(" in cell and not HAS_ALL_TO_ALL:
        pytest.skip("gloo has no all_to_all before torch 2.13")
    of_size(ranks, SIZE)
    assert in_words(ranks, HEAD.format(victim=VICTIM, late="pass") + cell) == words
    usable(ranks, (VICTIM,) if " died (" in words else ())


@pytest.mark.parametrize("name", ALONE)
def test_a_mistake_on_one_rank_is_told_in_these_words(ranks, name):
    of_size(ranks, 1)
    cell, words = ALONE[name]
    assert in_words(ranks, HEAD.format(victim=0, late="pass") + cell) == words
    ranks.take_notices()
    usable(ranks, (0,) if " died (" in words else ())


@pytest.mark.parametrize(
    "name", ["raises_and_tidies_up", "raises_between_collectives", "caught_when_freed", "and_tidies_up"]
)
def test_what_ranks_do_after_they_were_freed_is_no_evidence(ranks, name):
    of_size(ranks, 4)
    said = {str(run(ranks, FAULTS[name].code(2))[1]) for _ in range(8)}
    assert len(said) == 1, said


def test_the_first_exception_is_shown(ranks):
    of_size(ranks, 4)
    for late in ("if rank == 2: time.sleep(0.3)", "if rank != 2: time.sleep(0.3)"):
        _, error = run(ranks, FAULTS["raises_and_tidies_up"].code(2, late))
        report = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.report))
        assert report.startswith("rank 2:\n") and report.strip().endswith("ValueError: no such data")
        assert "Mismatch" not in report and "torch" not in report


def test_a_handle_that_a_later_cell_lets_go_of(ranks):
    of_size(ranks, 4)
    assert ranks.execute("if rank == 0:\n    keep = dist.isend(torch.ones(4), 1)", count=7)[0].how is How.LEFT
    _, error = run(ranks, "keep = None\ndist.barrier()\nif rank == 1: dist.recv(torch.ones(4), 0)")
    assert str(error).startswith("rank 0 did not wait for its isend (line 2 of cell In[7]), so its message to rank 1")
    usable(ranks)


def test_a_loop_that_waits_for_a_message_to_be_completed_is_told_that_it_never_is(ranks):
    of_size(ranks, 2)
    message = "x = torch.ones(1)\nwork = dist.isend(x, 1) if rank == 0 else dist.irecv(x, 0)\n"
    answers, _ = run(ranks, f"{message}for _ in range(2000): work.is_completed()\nwork.wait()")
    said = "line 3 keeps calling is_completed() on an i{}: gloo completes it only in wait(), so call wait()\n"
    assert [str(answer.err) for answer in answers] == [said.format("send"), said.format("recv")]
    answers, error = run(ranks, "work = dist.all_reduce(x, async_op=True)\nwhile not work.is_completed(): pass")
    assert error is None and not any(answer.err for answer in answers)


def test_a_wait_for_what_an_earlier_cell_lost_says_so(ranks):
    of_size(ranks, 2)
    run(ranks, "got = torch.ones(4)\nif rank == 0: work = dist.irecv(got, 1)\nif rank == 0: work.wait()")
    _, error = run(ranks, "if rank == 0: work.wait()")
    said = "what this waits for was lost when an earlier cell was ended: make the call again"
    assert str(error) == f"rank 0: RuntimeError: {said}"
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


def test_a_line_of_a_function_from_another_cell_names_that_cell(ranks):
    of_size(ranks, 4)
    ranks.execute("def add(x):\n    dist.all_reduce(x)", count=3)
    trouble = ranks.execute("if rank: add(torch.ones(2))", count=4)[0].trouble
    assert trouble.sentence.startswith(
        "ranks 1-3 wait in all_reduce #1 (line 2 of cell In[3], float32[2]); rank 0 left"
    )
    trouble = ranks.execute("if rank: add(torch.ones(2))\nelse:\n    dist.barrier()", count=5)[0].trouble
    assert trouble.sentence == "rank 0 calls barrier #1 (line 3); ranks 1-3 call all_reduce #1 (line 2 of cell In[3])"


def test_what_is_explained_is_not_in_a_log_too(ranks):
    of_size(ranks, 4)
    answers, error = run(ranks, "if rank != 2: dist.monitored_barrier()")
    assert str(error).startswith("ranks 0, 1, 3 wait in monitored_barrier #1") and not any(a.err for a in answers)


def test_a_group_that_its_members_alone_have_made_is_warned_of(ranks):
    of_size(ranks, 4)
    x = "x = torch.ones(2)\n"
    own = "dist.new_group([0, 1], use_local_synchronization=True)"
    assert run(ranks, f"{x}all = dist.new_group()\nif rank < 2: own = {own}\ndist.all_reduce(x, group=all)")[1] is None
    assert not ranks.take_notices()
    cell = (
        "pair = dist.new_group([2, 3])\nif rank < 2:\n    pair = dist.new_group([0, 1])\n    dist.barrier(group=pair)"
    )
    output.raise_failures(ranks.execute(cell, count=7))
    assert ranks.take_notices() == [
        "warning: ranks 0, 1 called new_group([0,1]) (line 3), ranks 2, 3 did not: every rank has to call it, also those "
        "that are not in the group, or later groups will not fit"
    ]
    assert run(ranks, x + "dist.all_reduce(x)")[1] is None and not ranks.take_notices()
    answers = ranks.execute("dist.barrier(group=dist.new_group())", count=8)
    with pytest.raises(RankError, match=GROUP_OF_AN_EARLIER_CELL):
        output.raise_failures(answers)
    ranks.restart()


def test_a_group_that_ranks_make_one_after_the_other_is_missing_nowhere(ranks):
    of_size(ranks, 4)
    ranks.execute("def make(members):\n    return dist.new_group(members)", count=3)
    made = " called new_group([0,1]) (line 2 of cell In[3]), "
    for who, warned in (
        ([0, 1], [f"warning: ranks 0, 1{made}ranks 2, 3"]),
        ([2], [f"warning: rank 2{made}rank 3"]),
        ([3], []),
    ):
        output.raise_failures(ranks.execute("pair = make([0, 1])", only=who))
        assert [said.partition(" did not")[0] for said in ranks.take_notices()] == warned
    assert run(ranks, "dist.barrier(group=dist.new_group())")[1] is None and not ranks.take_notices()


GROUP_OF_AN_EARLIER_CELL = re.escape(
    "ranks 0, 1 called new_group([0,1]) (line 3 of cell In[7]); ranks 2, 3 call new_group([0,1,2,3]) (line 1); "
)


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


class StopsWhenAllAreThere:
    """A viewer that presses the stop button once, a moment after every rank has printed "there"."""

    def __init__(self, ranks):
        self.ranks, self.coming = ranks, set(range(ranks.size))

    def write(self, rank, stream, text):
        if rank in self.coming and "there" in text:
            self.coming.discard(rank)
            if not self.coming:
                threading.Timer(0.2, self.ranks.interrupt).start()

    def __getattr__(self, name):
        return lambda *args: None


THERE = "print('there', flush=True)\n"


@pytest.mark.parametrize("what", ENDLESS)
def test_one_stop(ranks, what):
    of_size(ranks, 4)
    _, error = run(ranks, THERE + ENDLESS[what], viewer=StopsWhenAllAreThere(ranks))
    assert type(error) is RanksStopped
    usable(ranks)
    limit = time.monotonic() + 60
    while len(processes(ranks)) > ranks.size:  # a child is interrupted like its rank, and may end after it
        assert time.monotonic() < limit, processes(ranks)
        time.sleep(0.01)


FORKS_LATE = """
import threading
from launch.rank import requests
listed, forked, plain = threading.Event(), threading.Event(), requests.descendants
def late(pid):
    requests.descendants, children = plain, plain(pid)
    listed.set()
    forked.wait(10)
    return children
requests.descendants = late
listed.wait(60)
pid = os.fork()
if not pid:
    while True: time.sleep(0.1)
forked.set()
os.waitpid(pid, 0)
"""


def test_a_child_that_is_forked_while_the_stop_button_looks_for_children_ends_too(ranks):
    of_size(ranks, 2)
    _, error = run(ranks, THERE + FORKS_LATE, viewer=StopsWhenAllAreThere(ranks))
    assert type(error) is RanksStopped
    usable(ranks)
    limit = time.monotonic() + 60
    while len(processes(ranks)) > ranks.size:
        assert time.monotonic() < limit, processes(ranks)
        time.sleep(0.01)


FORKS_SLOWLY = """
import logging, signal
parent, limit = os.getpid(), time.monotonic() + 30
class Slow(logging.Handler):
    def _at_fork_reinit(self):  # Python calls it in the child before fork() returns there
        if os.getpid() != parent: os.kill(os.getpid(), signal.SIGINT)
        super()._at_fork_reinit()
slow = Slow()
pid = os.fork()
if not pid:
    while True: time.sleep(0.1)
del slow
while not (ended := os.waitpid(pid, os.WNOHANG)[0]) and time.monotonic() < limit: time.sleep(0.01)
if not ended: os.kill(pid, signal.SIGKILL)
ended == pid
"""


def test_an_interrupt_that_comes_while_python_forks_is_heard(ranks):
    of_size(ranks, 2)
    answers, error = run(ranks, THERE + FORKS_SLOWLY)
    assert error is None and [answer.value["data"]["text/plain"] for answer in answers] == ["True"] * 2


# One stop ends each of these on rank 1, and rank 1 with it: (cell, why, as a pattern).
DEAF_CELLS = {
    "ignores the signal": (
        "import signal\nif rank == 1: signal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(100)",
        "SIGINT is ignored there",
    ),
    "handles the signal": (
        "import signal\nif rank == 1: signal.signal(signal.SIGINT, lambda *_: None)\ntime.sleep(100)",
        "the cell handles SIGINT itself",
    ),
    "swallows it": (
        "while True:\n    try: time.sleep(0.2)\n    except BaseException:\n        if rank != 1: raise",
        r"line \d went on after KeyboardInterrupt",
    ),
    "holds Python's lock": (
        "sum(range(10**11)) if rank == 1 else time.sleep(100)",
        "it did not answer: C code holds .*",
    ),
    "a lock in C": (
        "import ctypes\nlibc, lock = ctypes.CDLL(None), (ctypes.c_char * 64)()\nlibc.pthread_mutex_lock(lock)\n"
        "libc.pthread_mutex_lock(lock) if rank == 1 else time.sleep(100)",
        "no interrupt ends the C code of line 5",
    ),
}


@pytest.mark.parametrize("what", DEAF_CELLS)
def test_a_rank_that_one_stop_does_not_reach_is_ended_alone(ranks, what, monkeypatch):
    of_size(ranks, 3)
    code, why = DEAF_CELLS[what]
    if what != "holds Python's lock":
        monkeypatch.setattr("launch.kernel.cell.ANSWER_WITHIN", 10)  # seconds: a busy machine answers late
    _, error = run(ranks, THERE + code, viewer=StopsWhenAllAreThere(ranks))
    assert type(error) is RanksStopped
    assert re.search(rf"; rank 1 had to be restarted, the variables there are lost \({why}\)$", str(error)), str(error)
    usable(ranks, (1,))


def test_a_rank_that_has_taken_all_its_memory_is_started_anew_and_no_other(ranks):
    """What it holds stays in its variables: without them it could not start the threads of its new group."""
    of_size(ranks, 3)
    take = """
if rank == 1:
    import resource
    used = int(open("/proc/self/statm").read().split()[0]) * 4096 + (100 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (used, used))
    held = []
    while True: held.append(bytearray(1 << 20))"""
    assert str(run(ranks, take)[1]) == "rank 1: MemoryError"
    assert ranks.take_notices() == [
        "rank 1 had no memory left to go on and had to be restarted, the variables there are lost"
    ]
    usable(ranks, (1,))


CLEANUPS = {
    "finally": "try: time.sleep(100)\nfinally:\n    time.sleep(1)\n    saved = 1",
    "except KeyboardInterrupt": "try: time.sleep(100)\nexcept KeyboardInterrupt:\n    time.sleep(1)\n    saved = 1",
    "an error inside": "try: time.sleep(100)\nfinally:\n    try: 1 / 0\n    except ZeroDivisionError: time.sleep(1)\n    saved = 1",
}


@pytest.mark.parametrize("what", CLEANUPS)
def test_what_a_cell_does_to_clean_up_is_not_stopped_again(ranks, what):
    of_size(ranks, 2)
    inside = "try:\n    " + THERE + "    time.sleep(100)"
    code = CLEANUPS[what].replace("try: time.sleep(100)", inside, 1)
    assert inside in code
    run(ranks, f"saved = 0\n{code}", viewer=StopsWhenAllAreThere(ranks))
    assert ranks.pull("saved") == [1, 1]
    usable(ranks)


@pytest.mark.parametrize("what", TAKEN)
def test_what_a_cell_takes_from_its_rank_is_put_back(ranks, what):
    of_size(ranks, 4)
    code, ename, said = TAKEN[what]
    answers, error = run(ranks, code)
    assert {answer.ename for answer in answers} == {ename}
    assert (error is None) == (ename == "") and (error is None or f"{code.count(chr(10)) + 1}" in "".join(error.report))
    assert {str(answer.err).strip() for answer in answers} == {f"this cell left {said}; the rank has restored it"}
    usable(ranks)
    answers, _ = run(ranks, "import sys\nprint('out')\nprint('err', file=sys.stderr)\nos.system('echo child')")
    assert {(str(answer.out), str(answer.err)) for answer in answers} == {("out\nchild\n", "err\n")}


CHILDREN = {  # what the child does -> its exit code
    "pass": 0,
    "1 / 0": 1,
    "import sys; sys.exit(3)": 3,
    "import sys; sys.exit()": 0,
    "os._exit(7)": 7,
}


@pytest.mark.parametrize("what", CHILDREN)
def test_a_child_that_a_cell_forks_ends_with_the_cell(ranks, what):
    of_size(ranks, 2)
    cell = (
        f"pid = os.fork()\nif not pid: {what}\nelse: code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\npid > 0"
    )
    answers, error = run(ranks, cell)
    assert error is None and ranks.pull("code") == [CHILDREN[what]] * 2
    assert [answer.value["data"]["text/plain"] for answer in answers] == ["True"] * 2
    assert all(("ZeroDivisionError" in str(answer.err)) == (what == "1 / 0") for answer in answers)
    usable(ranks)
    assert len(processes(ranks)) == ranks.size


FLOODS = {
    "20 MB": ("import sys\nfor _ in range(200): sys.stdout.write('y' * 99999 + '\\n')", "left out"),
    "short lines": ("for i in range(100_000): print(i)", "99999"),
    "one long line": ("print('z' * 10_000_000)", "left out"),
    "garbage": ("os.write(1, bytes(range(256)) * 100)", "ABC"),
    "half a character": (
        "os.write(1, b'half \\xe2\\x82'); time.sleep(0.1); os.write(1, b'\\xac whole')",
        "half € whole",
    ),
    "from C": ("import ctypes; libc = ctypes.CDLL(None); libc.puts(b'from C'); libc.fflush(None)", "from C"),
}


HUGE = {  # what is too much for a notebook: (cell, what is said of it)
    "a value": ("'v' * 10_000_000", "9,475,714 characters left out here"),
    "a value in a list": ("['v' * 10_000_000]", "characters left out here"),
    "displayed": ("display('v' * 10_000_000)", "9,475,714 characters left out here"),
    "a page": (
        "from IPython.display import HTML\nHTML('v' * 20_000_000)",
        "(not shown: text/html of 20,000,000 characters)",
    ),
    "an error": ("raise ValueError('v' * 10_000_000)", "9,983,616 characters left out here"),
}


@pytest.mark.parametrize("what", HUGE)
def test_what_is_too_much_for_a_notebook_stays_on_the_rank(ranks, what):
    of_size(ranks, 2)
    code, said = HUGE[what]
    answers, _ = run(ranks, code)
    for answer in answers:
        sent = json.dumps([answer.value, answer.displays, answer.evalue, answer.traceback])
        assert said in sent and len(sent) < 600_000
    usable(ranks)


COUNTED = """
import builtins
render = get_ipython().InteractiveTB.structured_traceback
def counting(*args, **kwargs):
    builtins.rendered = getattr(builtins, "rendered", 0) + 1
    return render(*args, **kwargs)
get_ipython().InteractiveTB.structured_traceback = counting
"""


def test_a_traceback_is_rendered_once_and_only_where_it_is_seen(ranks):
    """IPython keeps one of its own of every exception, and that was most of what a cell cost that failed."""
    of_size(ranks, 4)
    run(ranks, COUNTED)
    run(ranks, "if rank == 1: raise ValueError(rank)\ndist.barrier()")
    run(ranks, "rendered = getattr(builtins, 'rendered', 0)")
    assert ranks.pull("rendered") == [0, 1, 0, 0]  # the others were freed, and nobody sees where they waited
    ranks.restart()


def test_ranks_say_what_somebody_waits_for_and_no_more(ranks):
    """A message costs both sides as much as a short cell, and the kernel of a notebook sends three more with each."""
    of_size(ranks, 2)
    hub, heard = ranks.hub, []
    hears = hub.on_iopub
    hub.on_iopub = lambda name, message: heard.append(message["msg_type"]) or hears(name, message)
    try:
        run(ranks, "print(rank)\nrank")
        assert ranks.pull("rank") == [0, 1]
    finally:
        hub.on_iopub = hears
    assert sorted(heard) == ["execute_result"] * 2 + ["status"] * 2


@pytest.mark.parametrize("cell", ["f(0)", "try: f(0)\nexcept RecursionError as e: raise ValueError('deep') from e"])
def test_a_recursion_without_an_end_is_its_first_and_last_calls(ranks, cell):
    of_size(ranks, 4)
    answers, error = run(ranks, f"def f(n): return f(n + 1)\n{cell}")
    report = "".join(error.report)
    assert "RecursionError" in report and re.search(
        r"9\d\d calls in the middle of this traceback are not shown", report
    )
    assert report.count("return f(n ") < 60 and len({str(answer.traceback) for answer in answers}) == 1
    usable(ranks)


@pytest.mark.parametrize("what", FLOODS)
def test_floods(ranks, what):
    of_size(ranks, 2)
    code, part = FLOODS[what]
    answers, error = run(ranks, "if rank == 0:\n    " + code.replace("\n", "\n    "))
    assert error is None
    text = str(answers[0].out)
    assert part in text and len(text) < 3_000_000
    usable(ranks)


def test_a_progress_bar_is_text_and_ends_at_the_end_whatever_the_agent_has_imported(ranks):
    of_size(ranks, 2)
    forget = "import sys\nfor name in [n for n in sys.modules if n.partition('.')[0] == 'tqdm']: del sys.modules[name]"
    answers, error = run(ranks, f"{forget}\nfrom tqdm.auto import tqdm\nfor _ in tqdm(range(50), desc='steps'): pass")
    assert error is None and all(re.match(r"steps: 100%.* 50/50 ", str(answer.err)) for answer in answers)
    assert all("0%|" not in str(answer.err).replace("100%|", "") and not answer.displays for answer in answers)
    usable(ranks)


def test_faults_leave_nothing_open(ranks):
    of_size(ranks, 4)
    inflict(ranks, FAULTS["skips"], 2)
    before = descriptors(ranks)
    for name in ("skips", "raises", "ring_of_sends", "size", "three_groups", "kill"):
        inflict(ranks, FAULTS[name], 2)
    run(ranks, "import gc; gc.collect()")
    after = descriptors(ranks)
    assert after[0] <= before[0] + 2 and after[1] <= before[1] + 12, (before, after)


@pytest.mark.parametrize("who", [0, 1], ids=["whom the others connect to", "who connects"])
def test_a_rank_that_makes_its_group_again_alone_is_told_so(ranks, who):
    of_size(ranks, 4)
    cell = f"if rank == {who}:\n    dist.destroy_process_group()\n    dist.init_process_group('gloo')"
    others = "ranks 1-3" if who == 0 else "ranks 0, 2, 3"
    assert in_words(ranks, cell) == (
        f"DeadlockError: rank {who} waits in init_process_group (line 3) for the other ranks; {others} left the cell"
    )
    ranks.restart()


@pytest.mark.parametrize("late", [0, 3])
def test_ranks_that_make_their_group_again_one_after_the_other_are_not_accused(ranks, late):
    """Longer than the doctor waits before he looks; who comes first tries to connect again and again."""
    of_size(ranks, 4)
    cell = f"dist.destroy_process_group()\nif rank == {late}: time.sleep(3)\ndist.init_process_group('gloo')\ndist.barrier()"
    assert run(ranks, "import time\n" + cell)[1] is None
    ranks.restart()
