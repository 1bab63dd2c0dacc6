"""A trial on real ranks: what the function is given, what it cannot see, and that it leaves nothing behind."""

import os
from types import SimpleNamespace

import numpy as np
import pytest

from course.exercises import EXERCISES
from course.exercises.draw import at_random, fixed
from course.judge import playback, trial
from course.judge.holding import X
from launch.kernel.supervisor import Supervisor
from tests.course.attempts import survive

SHIFT = """
def shift(x):
    arriving = torch.empty_like(x)
    sending = dist.isend(x, (rank + 1) % world_size)
    dist.recv(arriving, (rank - 1) % world_size)
    sending.wait()
    return arriving
"""


def tried(source, name="shift", p=3, dtype="float32"):
    return trial.Trial(EXERCISES[name], source, fixed(0, p, dtype))


def test_every_rank_has_fresh_numbers_of_its_own():
    first, second = tried(SHIFT), tried(SHIFT, dtype="int64")
    assert first.fault() == second.fault() == ""
    assert [x.dtype.name for x in first.given + second.given] == 3 * ["float32"] + 3 * ["int64"]
    assert {x.shape for x in first.given} == {(12,)}, "four times p numbers: no size of a chunk is p"
    assert len({tuple(map(int, x)) for x in first.given + second.given}) == 6
    assert np.array_equal(first.expected[0], first.given[2])


def test_a_right_answer_is_judged_without_a_replay():
    right = tried(SHIFT)
    assert right.fault() == "" and "replay" not in vars(right.calls), "a student waits for it"
    assert right.recording.counts() == right.calls.counts()


def test_a_checkpoint_that_a_failed_trial_left_behind_is_not_loaded():
    assert tried(survive.WRONG["every rank saves"][0], "survive", 4).fault()
    assert tried(survive.RIGHT["one tensor"], "survive", 4).fault() == ""


def test_what_was_given_is_known_although_the_function_writes_over_it():
    spoilt = tried("def shift(x):\n    x.zero_()\n    return x\n")
    assert spoilt.fault().startswith(
        "rank 0: the answer should hold c0: no rank has sent anything, so rank 2's numbers are not in it; send them; "
        "in "
        "numbers 0 0 ... where "
    )
    assert all(x.any() for x in spoilt.given) and not any(seen["values"].any() for seen in spoilt.after)


PEEPS = {
    "its globals": "globals().values()",
    "the frames above it": "[v for frame in inspect.stack() for v in frame[0].f_locals.values()]",
    "everything there is": "gc.get_objects()",
}


@pytest.mark.parametrize("where", PEEPS)
def test_what_is_expected_cannot_be_found_on_the_ranks(where):
    """The numbers that should come out are known to another process when the function runs."""
    peep = f"""
import gc, inspect, numpy

def shift(x):
    flat = [v for v in {PEEPS[where]} if isinstance(v, (list, tuple, torch.Tensor, numpy.ndarray))]
    flat += [w for v in flat if isinstance(v, (list, tuple)) for w in v]
    arrays = [numpy.asarray(v) for v in flat if isinstance(v, (torch.Tensor, numpy.ndarray)) and v.shape == x.shape]
    others = [a for a in arrays if not (a == x.numpy()).all()]
    return torch.tensor(others[0]) if others else None
"""
    trial.end_ranks()  # on Python 3.13 the frames that one peep has seen stay until they are collected, and with them x
    assert tried(peep).fault() == "rank 0: the answer should be a tensor and is None: the function must return it"


POISONS = {
    "a message that nobody receives": "dist.isend(7 * x, (rank + 1) % world_size)",
    "no process group": "dist.destroy_process_group()",
    "another torch": "dist.isend = torch.empty_like = torch.equal = lambda *_: True",
    "another default": "torch.set_default_dtype(torch.float64)",
    "dead ranks": "os._exit(3)",
}


@pytest.mark.parametrize("poison", POISONS)
def test_a_bad_try_does_not_spoil_the_next(poison):
    assert tried(f"import os\n\ndef shift(x):\n    {POISONS[poison]}\n    return x\n").fault()
    assert tried(SHIFT).fault() == ""


def pids():
    return [worker.pid for worker in trial.grader_ranks(3).supervisor.workers]


def test_a_try_that_leaves_nothing_but_names_leaves_its_ranks_and_no_names():
    """Whether it is right or wrong, or raises an error."""
    assert tried(SHIFT).fault() == ""
    before = pids()
    wrong = "arriving = torch.empty(12)\n" + SHIFT.replace("return arriving", "return 2 * arriving")
    assert tried(wrong).fault().startswith("rank 0: the answer holds c0 + c0")
    assert pids() == before
    failing = tried(SHIFT.replace("return arriving", "return arrived"))
    assert failing.fault().startswith("ranks 0-2: NameError: name 'arrived' is not defined")
    assert pids() == before
    assert (
        tried(SHIFT.replace("arriving = ", "", 1).replace("torch.empty_like(x)", ""))
        .fault()
        .startswith("ranks 0-2: NameError: name 'arriving' is not defined")
    )
    assert set(before).isdisjoint(pids()), "its messages are still under way"


def test_a_large_recording_leaves_its_ranks():
    """pyzmq starts a thread of its own when the first large message leaves a process."""
    tried(SHIFT)
    before = pids()
    long = tried(SHIFT.replace("    return", "    for number in range(3000):\n        arriving + number\n    return"))
    assert long.fault() == "" and pids() == before


LEFT_OVER = {
    "a call": "if rank == 1: dist.all_reduce(x, async_op=True)",
    "a group": "dist.new_group([0, 1])",
    "a key": "dist.distributed_c10d._get_default_store().set(f'{rank}', 'seen')",
    "a thread": "threading.Thread(target=threading.Event().wait, daemon=True).start()",
}


@pytest.mark.parametrize("left", LEFT_OVER)
def test_what_an_error_leaves_over_ends_the_ranks(left):
    before = pids()
    failing = tried(f"import threading\n\ndef shift(x):\n    {LEFT_OVER[left]}\n    return rank + unknown\n")
    assert "NameError: name 'unknown' is not defined" in failing.failure
    assert set(before).isdisjoint(pids())
    assert tried(SHIFT).fault() == ""


def test_the_groups_of_an_exercise_are_made_once():
    source = (
        "def hierarchical_all_reduce(x, mesh):\n"
        "    for group in mesh.get_all_groups():\n        dist.all_reduce(x, group=group)\n"
    )
    known = []
    for _ in range(2):
        assert tried(source, "hierarchical_all_reduce", 4).fault()
        ranks = trial.grader_ranks(4)
        ranks.execute("known = [id(group) for group in dist.distributed_c10d._world.pg_map]")
        known.append(ranks.pull("known"))
    assert len(known[0][0]) == 3 and known[0] == known[1]


def test_the_students_names_are_the_students():
    """Helpers and constants may be called as things are called in here."""
    names = (
        "before, expected, returned, answer, facts, x = 1, 2, 3, 4, 5, 6\n\ndef seen(n):\n    return n % world_size\n"
    )
    changed = SHIFT.replace("(rank + 1) % world_size", "seen(rank + before)")
    assert changed != SHIFT and tried(names + changed).fault() == ""


def test_changing_torch_does_not_change_the_verdict():
    lie = "torch.equal = torch.allclose = torch.Tensor.equal = torch.Tensor.double = lambda *_, **__: True"
    told = tried(f"def shift(x):\n    {lie}\n    return 1 * x\n").fault()
    assert told.startswith("rank 0: the answer should hold c0: ") and told.endswith("; ranks 1-2 are wrong too")


def test_an_error_is_one_line_and_not_without_end():
    told = tried("def shift(x):\n    raise ValueError('one\\ntwo ' + 500 * 'x')\n").fault()
    assert told == "ranks 0-2: ValueError: one two " + (trial.LONGEST - 31) * "x" + " ... (line 2)"


def test_the_line_of_an_error_is_the_students_own():
    helped = "def helper(x):\n    return x[99]\n\ndef shift(x):\n    return helper(x)\n"
    assert tried(helped).fault().endswith("index 99 is out of bounds for dimension 0 with size 12 (line 2)")
    inside = "def shift(x):\n    y = 1\n    return torch.cat(y)\n"
    assert tried(inside).fault().endswith("(line 3)")
    two = "def shift(x):\n    if rank:\n        raise KeyError(1)\n    raise ValueError(2)\n"
    assert tried(two).fault() == (
        "rank 0: ValueError: 2; ranks 1-2: KeyError: 1 (raised in line 4 on rank 0, line 3 on ranks 1-2)"
    )
    waited = "def shift(x):\n    if rank == 1:\n        raise KeyError(1)\n    dist.recv(x, 1)\n"
    assert tried(waited).fault() == (
        "ranks 0, 2 wait in recv from rank 1 (line 4, float32[12]); rank 1 raised KeyError: 1 (line 3)"
    )


def test_whoever_catches_the_end_of_a_deadlock_has_still_hung():
    caught = "def shift(x):\n    try:\n        dist.send(x, (rank + 1) % 3)\n    except Exception:\n        return x\n"
    assert tried(caught).fault() == "ranks 0-2 wait in send to the next rank (line 3, float32[12])"


def test_where_there_is_no_front_end_nothing_is_shown(capsys):
    right, wrong = tried(SHIFT), tried(SHIFT.replace("return arriving", "return 2 * arriving"))
    assert right.fault() == "" and wrong.fault()
    playback.solved(right)
    playback.failed(wrong)
    assert capsys.readouterr().out == ""


def test_what_it_prints_is_kept_within_bounds_and_says_who():
    loud = tried(SHIFT.replace("arriving = ", "[print('line', i) for i in range(500)]; arriving = "))
    assert loud.fault() == ""
    assert loud.prints()[:2] == ["[ranks 0-2] line 0", "[ranks 0-2] line 1"]
    assert loud.prints()[-1] == f"[ranks 0-2] ... and {500 - trial.PRINTED} more lines" and len(loud.prints()) == 17
    each = tried(SHIFT.replace("arriving = ", "print('I am', rank); print('x' * 5000); arriving = ")).prints()
    assert [line[:20] for line in each[::2]] == [f"[rank {rank}] I am {rank}" for rank in range(3)]
    assert max(map(len, each)) == trial.LONGEST


def test_what_it_prints_before_it_fails_is_kept(monkeypatch):
    monkeypatch.setattr(trial, "LIMIT", 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (900, 0, 0))
    for end in ("1 / 0", "dist.recv(x, (rank + 1) % 3)", "while True: pass"):
        failing = tried(f"def shift(x):\n    print('so far')\n    {end}\n")
        assert failing.fault() and failing.prints() == ["[ranks 0-2] so far"], end
        assert ("is there a loop without an end? Or is it the machine?" in failing.fault()) == ("while" in end), end


def test_no_two_draws_at_random_are_alike_and_all_are_of_use():
    drawn = [at_random(p, dtype) for p in (2, 5, 8, 16) for dtype in ("float32", "float64", "int64") for _ in range(50)]
    assert len({(d.pieces, d.uneven, d.scale, d.lengths, d.owners, d.sizes, d.limit) for d in drawn}) == len(drawn)
    for d in drawn:
        assert sum(d.sizes) == d.pieces * d.p and min(d.sizes) > 0
        assert 0 < d.uneven < d.p and len(d.lengths) == d.p and d.owners and max(d.owners) < d.p
        largest = max(abs(d.low), abs(d.high)) * d.scale * d.p
        assert largest / d.scale < 2**24 and largest < 2**53, "sums are exact in every dtype and order"


def test_the_fixed_draws_differ_in_sign_in_number_and_in_size():
    drawn = [fixed(index, p, "float32") for index, p in enumerate((4, 2, 3))]
    assert [(d.low < 0, d.high > 1) for d in drawn] == [(True, True), (True, False), (False, True)]
    assert [len(d.sizes) for d in drawn] == [3, 1, 4]
    assert max(d.uneven for d in drawn) > 1
    shares = [d.limit / d.size for d in drawn]
    assert shares[0] < 1 < shares[2] < 3**0.5 and shares[1] > 2, "above the limit, below, and above it only together"


def test_a_result_that_came_in_messages_is_another_when_they_are_changed():
    """What proves that a result came in messages: an honest one does not survive other numbers in them."""
    honest = tried(SHIFT)
    assert not any(
        np.array_equal(seen["values"], honest.expected[r]) for r, seen in enumerate(honest.once_more("tampered"))
    )
    again = trial.grader_ranks(3).pull(X)
    assert all(np.array_equal(given, x.numpy()) for given, x in zip(honest.given, again, strict=True))


def in_a_thread(start, end):
    """SHIFT, whose send runs in a thread."""
    begin = f"box = []\n    sending = threading.Thread(target=lambda: box.append({start}))\n    sending.start()"
    parts = {"sending = dist.isend(x, (rank + 1) % world_size)": begin, "sending.wait()": end}
    source = SHIFT
    for old, new in parts.items():
        source = source.replace(old, new)
    return f"import threading\n{source}"


def test_what_a_thread_sends_is_changed_on_the_way_too():
    """Else a right result would seem to have come by a back door."""
    honest = tried(in_a_thread("dist.send(x, (rank + 1) % world_size)", "sending.join()"))
    assert not any(
        np.array_equal(seen["values"], honest.expected[r]) for r, seen in enumerate(honest.once_more("tampered"))
    )


def test_where_threads_send_and_it_cannot_be_seen_who_waits_the_judge_says_so():
    threaded = tried("import threading\n" + SHIFT.replace("sending.wait()", "threading.Thread(target=int).start()"))
    assert (threaded.fault(), threaded.verdict) == (trial.THREADED, "not judged")
    never_waits = tried(SHIFT.replace("sending.wait()", "pass"))
    assert "never waits for its isend" in never_waits.fault() and never_waits.verdict == "no"


def test_ranks_that_are_ended_are_not_mended_before(monkeypatch):
    """A new process group costs as much as new ranks."""
    mended = []
    monkeypatch.setattr(Supervisor, "recover", lambda supervisor: mended.append(supervisor))
    for end in ("1 / 0", "dist.recv(x, (rank + 1) % 3)", "__import__('os')._exit(3)"):
        assert tried(f"def shift(x):\n    {end}\n").fault() and not trial.grader_ranks(3).lost(), end
    assert not mended


@pytest.mark.parametrize("load, said", [(3.9, False), (40.0, True)])
def test_a_function_that_was_stopped_on_a_busy_machine_may_be_a_right_one(monkeypatch, load, said):
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0, 0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    words = trial._busy(SimpleNamespace(size=4))
    assert words == said * (
        " Or is it the machine? About 36 other tasks want its 2 processors, so a right answer may be as slow: check "
        "again when they are done"
    )
