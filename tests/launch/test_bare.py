"""`%%ranks --bare`: groups that the student makes himself outlive a fault as well, or it is said what to do."""

import threading

import pytest

from launch.doctor.snapshot import How
from launch.kernel.output import raise_failures
from launch.ranks import Ranks
from launch.shared.errors import DeadlockError, RankError

PATIENCE = 120  # seconds; a bound for cells that take a fraction of one
MAKE = "import os\ndist.init_process_group('gloo')\nkept = rank\n"
ADD = "x = torch.tensor([rank + 1.0])\ndist.all_reduce(x)\nx = x.item()"


@pytest.fixture
def groupless(warm):
    ranks = Ranks(fork_from=warm)
    ranks.ensure(3, bare=True)
    yield ranks
    ranks.close()


@pytest.fixture
def ranks(groupless):
    run(groupless, MAKE + "half = dist.new_group([0, 1])")
    return groupless


def run(ranks, code):
    bound = threading.Timer(PATIENCE, ranks.interrupt)
    bound.start()
    try:
        answers = ranks.execute(code)
    finally:
        bound.cancel()
    raise_failures(answers)


def test_groups_of_the_students_own_are_renewed_under_the_same_objects(ranks):
    for _ in range(2):
        with pytest.raises(DeadlockError, match="ranks 0, 2 wait in all_reduce #1"):
            run(ranks, "if rank != 1: dist.all_reduce(torch.ones(1))")
        run(ranks, ADD)
        assert ranks.pull("x") == [6.0] * 3 and ranks.pull("kept") == [0, 1, 2]
    run(ranks, "y = torch.ones(1)\nif rank < 2: dist.all_reduce(y, group=half)\ny = y.item()")
    assert ranks.pull("y") == [2.0, 2.0, 1.0]
    run(ranks, f"pair = dist.new_group([1, 2])\nif rank: dist.barrier(group=pair)\n{ADD}")
    assert not ranks.take_notices()


def test_the_student_can_also_make_the_group_again_after_a_fault(ranks):
    with pytest.raises(DeadlockError):
        run(ranks, "if rank != 1: dist.all_reduce(torch.ones(1))")
    run(ranks, f"dist.destroy_process_group()\n{MAKE}{ADD}")
    assert ranks.pull("x") == [6.0] * 3


def test_a_cell_that_makes_a_store_is_told_when_its_port_is_taken_by_its_last_run(groupless):
    make = 'import os\nif not rank: store = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), 1, True)'
    run(groupless, make)
    with pytest.raises(RankError, match="rank 0: OSError.* an earlier cell made here: run the cell again"):
        run(groupless, make)
    run(groupless, make)


STORE = """
import os, time
from types import SimpleNamespace
from launch.rank import _stores, interruptible

def late(*what):
    time.sleep(2)  # longer than the doctor waits before it looks, as connecting may take where much else goes on
    return interruptible.wait(*what)

if rank in slow: _stores.interruptible = SimpleNamespace(wait=late)
if rank in comes:
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), world_size, rank == 0)
"""


def test_a_rank_that_was_at_the_store_is_missed_by_nobody_there(groupless):
    with pytest.raises(DeadlockError, match="waits? in .* for the other ranks; ranks? 1.* left the cell"):
        run(groupless, f"comes, slow = [0, 2], []\n{STORE}")
    run(groupless, f"comes, slow = [0, 1, 2], [2]\n{STORE}")


@pytest.mark.parametrize("victim", [0, 2])
def test_a_group_that_has_lost_a_member_is_left_by_all_and_can_be_made_again(ranks, victim):
    with pytest.raises(RankError, match=f"rank {victim} died"):
        run(ranks, f"if rank == {victim}: os._exit(1)\ndist.barrier()")
    assert ranks.take_notices() == [
        "a member has died of the process group, so that it is gone on every rank: make it again with "
        "dist.init_process_group('gloo')"
    ]
    run(ranks, "known = globals().get('kept'), dist.is_initialized()")
    assert ranks.pull("known") == [(None if rank == victim else rank, False) for rank in range(3)]
    run(ranks, MAKE + ADD)
    assert ranks.pull("x") == [6.0] * 3


def test_before_there_is_a_group_a_fault_leaves_nothing_to_say(ranks):
    run(ranks, "dist.destroy_process_group()")
    with pytest.raises(RankError, match="rank 1: ValueError: no"):
        run(ranks, "if rank == 1: raise ValueError('no')")
    assert not ranks.take_notices()
    run(ranks, MAKE + ADD)
    assert ranks.pull("x") == [6.0] * 3


class StopsWhenAllWait:
    """A viewer that presses the stop button as soon as every rank of the cell has said that it waits."""

    def __init__(self, ranks, waiting):
        self.ranks, self.waiting = ranks, waiting

    def write(self, rank, stream, text):
        if "waits" in text:
            self.waiting -= 1
            if not self.waiting:
                self.ranks.interrupt()

    def __getattr__(self, name):
        return lambda *args: None


# Says so when the main thread has reached the call in which nothing more happens: rank 0 the making of the store, the
# others that of the group, or that of the store where rank 0 is the one that is missing.
TELL_AND_MEET = """
import sys, threading, time
def tell(goal):
    names = []
    while goal not in names:
        frame, names = sys._current_frames()[threading.main_thread().ident], []
        while frame:
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        time.sleep(0.01)
    print("waits", flush=True)
if rank != {missing}:
    goal = "_create_c10d_store" if 0 in (rank, {missing}) else "_new_process_group_helper"
    threading.Thread(target=tell, args=(goal,)).start()
    dist.init_process_group("gloo")
"""


def stopped(answer) -> bool:
    """By the interrupt, or by the end of its connections where that came first."""
    return answer.how is How.FREED or answer.ename == "KeyboardInterrupt"


@pytest.mark.parametrize("missing", [0, 1, 2])
def test_the_stop_button_frees_those_who_wait_for_one_that_makes_no_group(groupless, missing):
    ranks = groupless
    run(ranks, "kept = rank")
    viewer = StopsWhenAllWait(ranks, 2)
    bound = threading.Timer(PATIENCE, lambda: [ranks.interrupt(), ranks.interrupt()])
    bound.start()
    try:
        answers = ranks.execute(TELL_AND_MEET.format(missing=missing), viewer=viewer)
    finally:
        bound.cancel()
    assert [stopped(answer) for answer in answers] == [rank != missing for rank in range(3)]
    run(ranks, MAKE.replace("kept = rank", "again = kept") + ADD)
    assert ranks.pull("x") == [6.0] * 3 and ranks.pull("again") == [0, 1, 2]


def test_a_group_can_be_added_after_one_that_was_half_made(ranks):
    viewer = StopsWhenAllWait(ranks, 2)
    bound = threading.Timer(PATIENCE, lambda: [ranks.interrupt(), ranks.interrupt()])
    bound.start()
    code = TELL_AND_MEET.replace('dist.init_process_group("gloo")', "dist.new_group([0, 1, 2])")
    code = code.replace("_create_c10d_store", "_new_process_group_helper")
    try:
        answers = ranks.execute(code.format(missing=2), viewer=viewer)
    finally:
        bound.cancel()
    assert [stopped(answer) for answer in answers] == [True, True, False]
    run(ranks, f"pair = dist.new_group([0, 2])\nif rank != 1: dist.barrier(group=pair)\n{ADD}")
    assert ranks.pull("x") == [6.0] * 3
