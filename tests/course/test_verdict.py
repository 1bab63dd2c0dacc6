"""What is said of a trial: each fault alone, in trials that are made by hand. test_exercises.py has real ones.

The trial is a ring of three ranks, and what its messages should cost is counted here by hand.
"""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from course.exercises import EXERCISES
from course.exercises.exercise import right_neighbour
from course.judge import verdict

P, RING = 3, EXERCISES["ring_all_reduce"]


def ring_events(dtype="float32"):
    """Everybody to the right-hand neighbour, 2(p - 1) times, all awaited."""
    events = []
    for step in range(2 * (P - 1)):
        for rank in range(P):
            common = {"group": (0, 1, 2), "seq": step, "dtype": dtype, "line": 7 + step, "bytes": 8}
            common |= {"start": float(step), "end": step + 0.5}
            out, into = (SimpleNamespace(number=(step, src)) for src in (rank, (rank - 1) % P))
            events.append(SimpleNamespace(op="send", rank=rank, peer=(rank + 1) % P, match=out, **common))
            events.append(SimpleNamespace(op="recv", rank=rank, peer=(rank - 1) % P, match=into, **common))
    return events


def all_reduce_events(calls=1, nbytes=8):
    """Everybody in so many calls of all_reduce."""
    common = {"op": "all_reduce", "peer": None, "group": (0, 1, 2), "dtype": "float32", "line": 3, "bytes": nbytes}
    times = {"start": 0.0, "end": 1.0, "match": None}
    return [SimpleNamespace(rank=rank, seq=seq, **common, **times) for seq in range(calls) for rank in range(P)]


def seen(values, **more):
    return {"is": "Tensor", "dtype": str(values.dtype), "device": "cpu", "values": values} | more


def trial(exercise=RING, events=None, busiest=32, messages=12, steps=4, answers=None, after=None, **more):
    """A right answer, unless told otherwise: x of rank r is six times r + 1, the sum is six times 6."""
    given = [np.full(6, rank + 1, np.float32) for rank in range(P)]
    expected = [np.full(6, 6, np.float32)] * P
    in_place = exercise.in_place
    answers = [seen(each) for each in expected] if answers is None else answers
    counts = SimpleNamespace(busiest=busiest, messages=messages, steps=steps)
    events = ring_events() if events is None else events
    recording = SimpleNamespace(
        ranks=P, events=events, counts=lambda: counts, changed=[], used_before_wait=[], steps=()
    )
    recording.made_of = lambda rank, name, of: []  # nobody has seen it being made: the sentences have numbers only
    after = (answers if in_place else [seen(each) for each in given]) if after is None else after
    parts = {"exercise": exercise, "p": P, "dtype": "float32", "given": given, "source": ""}
    parts |= {"recording": recording, "calls": recording}
    return SimpleNamespace(**parts | {"expected": expected, "answers": answers, "after": after} | more)


RETURNS = replace(RING, in_place=False)
MEAN = EXERCISES["distributed_mean"]


def test_a_right_trial_has_no_fault_and_is_praised():
    assert verdict.fault(trial()) == ""
    # 4 of 3 chunks of 8 bytes are 32 bytes, N is 24 bytes
    assert verdict.praise(trial()) == "right on every rank; 12 messages in 4 steps, the busiest rank sent 1.333 N"
    one = trial(EXERCISES["dissemination_barrier"], messages=1, steps=1)
    assert verdict.praise(one) == "right on every rank; 1 message in 1 step"
    assert verdict.praise(trial(MEAN, events=all_reduce_events(), messages=0)) == "right on every rank"


def test_a_built_in_is_named_before_anything_else():
    wrong = trial(events=all_reduce_events(), answers=[seen(np.zeros(6))] * P)
    assert verdict.fault(wrong) == "it uses the built-in all_reduce; use only send, isend, recv, irecv"
    several = all_reduce_events() + [SimpleNamespace(op="barrier", dtype="", rank=0)]
    assert verdict.fault(trial(events=several)).startswith("it uses the built-in all_reduce; "), "the first by name"
    assert verdict.fault(trial(EXERCISES["my_share"], events=several)).startswith("it calls all_reduce, ")
    mean = replace(MEAN, allowed=frozenset({"all_gather", "recv", "send", "all_reduce"}))
    gather = trial(mean, events=[SimpleNamespace(op="barrier", dtype="", rank=0)])
    assert verdict.fault(gather).endswith("use only send, isend, recv, irecv, all_gather, all_reduce")
    alone = verdict.fault(trial(EXERCISES["my_share"], events=all_reduce_events()))
    assert alone == "it calls all_reduce, but every rank can know this without a word from the others"


def test_another_dtype_on_the_way_is_named():
    told = verdict.fault(trial(events=ring_events("float64")))
    assert told == "it sends float64, but x is float32: make buffers with torch.empty_like"
    told = verdict.fault(trial(events=ring_events("float64") + ring_events("int8")))
    assert told.startswith("it sends float64, but"), "the first by name"
    assert (
        verdict.fault(trial(EXERCISES["dissemination_barrier"], events=ring_events("int64"), steps=2, messages=6)) == ""
    )


@pytest.mark.parametrize("number, what", [(0, "isend to rank 1"), (1, "irecv from rank 2")])
def test_who_does_not_wait_is_named_before_a_wrong_result(number, what):
    events = ring_events()
    events[number].end = None
    told = verdict.fault(trial(events=events, answers=[seen(np.zeros(6, np.float32))] * P))
    assert told == f"rank 0 never waits for its {what} (line 7): keep what it returns, and wait()"


def test_an_all_reduce_that_is_not_waited_for_is_named():
    events = all_reduce_events()
    events[1].end = None
    told = verdict.fault(trial(replace(MEAN, in_place=True), events=events))
    assert told == "rank 1 never waits for its all_reduce with async_op (line 3): keep what it returns, and wait()"


RIGHT = np.full(6, 6, np.float32)
BAD_ANSWERS = {
    "None": ({"is": "NoneType"}, "the answer should be a tensor and is None: the function must return it"),
    "a list": ({"is": "list"}, "the answer should be a tensor and is a list"),
    "elsewhere": (seen(RIGHT, device="cuda"), "the answer is on the device cuda and should be on cpu, as x is"),
    "another dtype": (seen(RIGHT.astype("float64")), "the answer is float64 and should be float32, as x is"),
    "sparse": (
        {"is": "Tensor", "dtype": "float32", "device": "cpu"},
        "the answer should be an ordinary tensor of real numbers",
    ),
    "short": (seen(RIGHT[:2]), "the answer has shape [2] and should have [6]"),
}


@pytest.mark.parametrize("kind", BAD_ANSWERS)
def test_an_answer_of_another_kind_is_described(kind):
    bad, words = BAD_ANSWERS[kind]
    assert verdict.fault(trial(RETURNS, answers=[seen(RIGHT), bad, seen(RIGHT)])) == f"rank 1: {words}"


def test_truth_values_are_no_numbers_even_where_the_dtype_is_free():
    told = verdict.fault(trial(MEAN, events=all_reduce_events(), answers=[seen(RIGHT.astype(bool))] * P))
    assert told == "rank 0: the answer should be an ordinary tensor of real numbers"


@pytest.mark.filterwarnings("error")
def test_wrong_numbers_are_laid_to_their_ranks():
    off = RIGHT + np.eye(6, dtype=np.float32)[3]
    assert verdict.fault(trial(RETURNS, answers=[seen(RIGHT), seen(off), seen(off)])) == (
        "rank 1, chunk 1 should hold a1 + b1 + c1: the recording has not seen what is in it; in numbers 7 6 ... "
        "where 6 "
        "6 ... should be; rank 2 is wrong too"
    )
    nan = seen(np.full(6, 0x7FA00000, np.uint32).view(np.float32))  # a signalling one, as unfilled memory has them
    assert verdict.fault(trial(RETURNS, answers=[seen(RIGHT), seen(RIGHT), nan])).endswith(
        "in numbers nan nan ... where 6 6 ... should be"
    )


def test_where_the_answer_does_not_matter_it_is_not_looked_at():
    answers, expected = [seen(RIGHT), {"is": "NoneType"}, seen(RIGHT - 1)], [RIGHT, None, None]
    assert verdict.fault(trial(RETURNS, answers=answers, expected=expected)) == ""


def test_rounding_is_forgiven_only_where_it_is_allowed():
    near = [seen(RIGHT + np.float32(0.0005))] * P  # 0.00008 of the largest; 0.0001 is allowed
    assert verdict.fault(trial(MEAN, events=all_reduce_events(), answers=near)) == ""
    assert verdict.fault(trial(RETURNS, answers=near)).startswith("rank 0, chunk 0 should hold a0 + b0 + c0")
    uneven = np.array([0, 1, 2, 3, 4, 6], np.float32)
    off = trial(
        MEAN, events=all_reduce_events(), expected=[uneven] * P, answers=[seen(uneven + np.float32(0.0005))] * P
    )
    assert verdict.fault(off) == "", "it is the largest number that counts"
    far = [seen(RIGHT + np.float32(0.0007))] * P
    assert verdict.fault(trial(MEAN, events=all_reduce_events(), answers=far)) == (
        "rank 0: the answer is 6.0007 6.0007 ... and should be 6 6 ...; ranks 1-2 are wrong too"
    )


def test_an_x_that_nobody_touched_is_told_apart_from_a_wrong_one():
    untouched = [seen(np.full(6, rank + 1, np.float32)) for rank in range(P)]
    told = verdict.fault(trial(answers=untouched))
    assert told.startswith("ranks 0-2: x is as it was; the answer must be in x")
    told = verdict.fault(trial(answers=[untouched[0], seen(RIGHT - 1), seen(RIGHT)]))
    assert told.startswith("rank 0, chunk 0 should hold a0 + b0 + c0: ") and told.endswith("; rank 1 is wrong too")


def test_a_part_of_x_is_in_x():
    assert verdict.fault(trial(replace(RING, part="x.chunk(world_size)[rank]"))) == ""


def test_an_x_that_must_stay_is_watched():
    after = [seen(np.full(6, rank + 1, np.float32)) for rank in range(P)]
    after[2] = seen(RIGHT)
    assert verdict.fault(trial(RETURNS, after=after)) == "rank 2: x was changed; it must stay as it was"
    after[2] = {"is": "Tensor", "dtype": "float32", "device": "cpu"}  # x.data is something sparse now
    assert verdict.fault(trial(RETURNS, after=after)) == "rank 2: x was changed; it must stay as it was"


def test_who_talks_to_a_stranger_is_named():
    events = ring_events()
    events[2].peer = 0
    right = replace(RING, peers=right_neighbour, talks="its right-hand neighbour")
    assert (
        verdict.fault(trial(right, events=events))
        == "rank 1 sent to rank 0; it may talk to only its right-hand neighbour"
    )


def test_what_no_message_has_told_is_named():
    events = [event for event in ring_events() if event.seq == 0]  # rank 1 hears of rank 0 only
    told = verdict.fault(trial(events=events))
    assert told.startswith("right result, but no message has told rank 0 what rank 1 had, not even by way of others: ")
    late = verdict.fault(trial(EXERCISES["dissemination_barrier"], events=events, messages=3, steps=1))
    assert late.startswith("rank 0 may leave before rank 1 has come: no message tells it that, not even by way of")
    assert verdict.fault(trial(replace(RING, needs=lambda rank, p: {(rank - 1) % p}), events=events)) == ""
    assert "told rank 0 what rank 1 had" in verdict.fault(trial(events=[])), "the first of those it lacks"
    last = replace(RING, needs=lambda rank, p: {0} if rank == 2 else set())
    assert "told rank 2 what rank 0 had" in verdict.fault(trial(last, events=[])), "whoever it is"


def test_bytes_are_counted_against_the_bound_and_explained_where_the_cause_is_known():
    assert (
        verdict.fault(trial(busiest=33)) == "right result, but the busiest rank sent 1.375 N where 1.333 N are enough"
    )
    told = verdict.fault(trial(busiest=48))  # 2 N, as whole vectors p - 1 times are
    assert told.startswith(
        "right result, but the busiest rank sent 2 N where 1.333 N are enough: that is the whole vec"
    )
    assert verdict.fault(trial(replace(RING, busiest=None), busiest=10**6)) == ""
    gathers = replace(RING, whole="expected", busiest=lambda p: Fraction(1))
    expected = [np.full(12, 6, np.float32)] * P
    bigger = trial(gathers, busiest=48, expected=expected, answers=[seen(each) for each in expected])
    assert verdict.fault(bigger) == "", "N is 48 bytes there"
    bigger.expected[1:] = [None, None]
    assert verdict.fault(bigger) == "", "and rank 0 alone may have it"


def test_messages_and_steps_are_counted():
    assert verdict.fault(trial(messages=13)) == "right result, but in 13 messages where 12 are enough"
    slow = trial(replace(RING, steps=lambda p: 3))
    assert verdict.fault(slow) == "right result, but in 4 steps, one after the other, where 3 are enough"
    slow = trial(replace(RING, steps=lambda p: 1, why_steps="a reason"))
    assert verdict.fault(slow) == "right result, but in 4 steps, one after the other, where 1 is enough: a reason"


def test_a_right_result_that_was_luck_is_none():
    lucky = trial()
    lucky.recording.changed = [(2, 9), (1, 8)]
    assert verdict.fault(lucky).startswith(
        "right result by luck: rank 1 wrote to the tensor of its send (line 8) before"
    )


def scaled(times):
    return trial(MEAN, events=all_reduce_events(), answers=[seen(RIGHT * np.float32(times))] * P)


@pytest.mark.parametrize(
    "times, words",
    [(3, "all of it is 3 times too large"), (1 / 3, "all of it is 3 times too small"), (2.5, None), (0, None)],
)
def test_numbers_that_are_all_wrong_by_one_factor_are_said_to_be(times, words):
    told = verdict.fault(scaled(times))
    assert words in told if words else "all of it" not in told


def test_calls_of_built_ins_are_counted_and_weighed():
    assert verdict.fault(trial(MEAN, events=all_reduce_events(calls=2))) == ""
    many = verdict.fault(trial(MEAN, events=all_reduce_events(calls=3)))
    assert many == "right result, but with 3 calls of built-ins where 2 will do"
    assert verdict.fault(trial(MEAN, events=all_reduce_events(nbytes=64))) == ""
    heavy = verdict.fault(trial(MEAN, events=all_reduce_events(nbytes=65)))
    assert heavy.startswith("right result, but one call moves 65 bytes: a few numbers per rank are enough")


@pytest.mark.parametrize("p", [2, 4, 8])
def test_two_numbers_of_every_rank_are_a_few_and_the_data_are_not(p):
    softmax = EXERCISES["distributed_softmax"]
    assert 2 * p * 8 <= softmax.call_bytes(p) < 100 * 4, "float64, of which one rank has 100; float32 is half"
