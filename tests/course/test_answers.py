"""The right answers of chapters 5 and 6, held against schedules and their cost."""

import pytest

from collectives import Network, all_gather, all_reduce, presets
from course.amount import amount
from course.questions import QUESTIONS
from course.questions import all_reduce as chapter_5
from course.questions import cost as chapter_6

PLAYED = presets.played("infiniband", 4)


def counts(algorithm, ranks=4):
    return getattr(all_reduce, algorithm)(ranks).counts(nbytes=1)


def seconds(schedule, nbytes, network):
    return schedule.cost(nbytes=nbytes, network=network).seconds


def ratio(network, one, other):
    return seconds(*one, network) / seconds(*other, network)


def crossing():
    """Two costs are straight lines in N: where one shot stops being the quicker."""
    gap = [seconds(all_reduce.exchange(4), n, PLAYED) - seconds(all_reduce.two_shot(4), n, PLAYED) for n in (1e6, 2e6)]
    return 1e6 * (1 - gap[0] / (gap[1] - gap[0]))


CARD, NVLINK = Network(0, 1 / 50e9), Network(3.4e-6, 1 / 450e9)
FOUND = {
    "naive_messages": lambda: counts("naive").messages,
    "naive_busiest": lambda: counts("naive").busiest,
    "exchange_busiest": lambda: counts("exchange").busiest,
    "ring_many_ranks": lambda: counts("ring", 64).busiest,
    "naive_over_ring": lambda: ratio(
        presets.played("ethernet", 4), (all_reduce.naive(4), 1e6), (all_reduce.ring(4), 1e6)
    ),
    "one_two_crossing": crossing,
    "bucket_times": lambda: 20 * ratio(PLAYED, (all_reduce.ring(4), 20e3), (all_reduce.ring(4), 400e3)),
    "estimate_gradients": lambda: seconds(all_reduce.ring(16), 14e9, CARD),
    "estimate_token": lambda: seconds(all_reduce.ring(8), 64e3, NVLINK),
    "estimate_gather": lambda: seconds(all_gather.ring(32), 1e9, CARD),
    "estimate_busbw": lambda: 1e9 / 2.6e-3 * 7 / 8,
    "long_message": lambda: 20e-6 + 4e6 / 2e9,
    "half_latency": lambda: 20e-6 * 2e9,
    "estimate_overlap": lambda: max(80e-3 / 6 * ready + 10e-3 * (7 - ready) for ready in range(1, 7)),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_right_answer_is_what_is_counted(name):
    question = QUESTIONS[name]
    right = amount(question.right.text, question.p)
    assert right == pytest.approx(float(FOUND[name]()), rel=1e-6)


def test_every_number_is_held_against_something():
    numbers = [
        question for module in (chapter_5, chapter_6) for question in module.QUESTIONS if hasattr(question, "unit")
    ]
    assert {question.name for question in numbers} == set(FOUND)


def test_no_wrong_answer_would_count_as_right_and_no_two_are_alike():
    for module in (chapter_5, chapter_6):
        for question in module.QUESTIONS:
            if hasattr(question, "unit"):
                said = [amount(answer.text, question.p) for answer in (question.right, *question.wrong)]
                assert None not in said, question.name
                for one in range(len(said)):
                    for other in said[:one]:
                        assert abs(said[one] - other) > question.within * abs(other), (question.name, said)
