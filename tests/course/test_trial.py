"""A trial on real ranks: what the function is given, what it cannot see, and that it leaves nothing behind."""

import numpy as np
import pytest

from course import playback, trial
from course.exercises import EXERCISES

SHIFT = """
def shift(x):
    arriving = torch.empty_like(x)
    sending = dist.isend(x, (rank + 1) % world_size)
    dist.recv(arriving, (rank - 1) % world_size)
    sending.wait()
    return arriving
"""


@pytest.fixture(scope="module", autouse=True)
def court():
    yield trial.court()
    trial.court().close()
    trial._court = None


def tried(source, name="shift", p=3, dtype="float32"):
    return trial.Trial(EXERCISES[name], source, p, dtype)


def test_every_rank_has_fresh_numbers_of_its_own():
    first, second = tried(SHIFT), tried(SHIFT, dtype="int64")
    assert first.fault() == second.fault() == ""
    assert [x.dtype.name for x in first.given + second.given] == 3 * ["float32"] + 3 * ["int64"]
    assert {x.shape for x in first.given} == {(12,)}, "four times p numbers: no size of a chunk is p"
    assert len({tuple(map(int, x)) for x in first.given + second.given}) == 6
    assert np.array_equal(first.expected[0], first.given[2])


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
    assert told == "ranks 0-2: ValueError: one two " + (trial.LONGEST - 31) * "x" + " ..."


def test_whoever_catches_the_end_of_a_deadlock_has_still_hung():
    caught = "def shift(x):\n    try:\n        dist.send(x, (rank + 1) % 3)\n    except Exception:\n        return x\n"
    assert tried(caught).fault() == "ranks 0-2 wait in send to the next rank (line 3, float32[12])"


def test_where_there_is_no_front_end_nothing_is_shown(capsys):
    right, wrong = tried(SHIFT), tried(SHIFT.replace("return arriving", "return 2 * arriving"))
    assert right.fault() == "" and wrong.fault()
    playback.solved(right)
    playback.failed(wrong)
    assert capsys.readouterr().out == ""
