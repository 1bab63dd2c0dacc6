"""Who has heard of whom, in runs of which it can be said by hand."""

from types import SimpleNamespace

from course.judge.knowledge import knowledge


def message(src, dst, start, end, seq=0):
    """A message as its two calls: sent at `start`, waited for by the receiver until `end`."""
    group = (0, 1, 2)
    common = {"group": group, "match": SimpleNamespace(number=(src, dst, seq))}
    return [
        SimpleNamespace(op="send", rank=src, peer=dst, start=start, end=end, **common),
        SimpleNamespace(op="recv", rank=dst, peer=src, start=start, end=end, **common),
    ]


def run(*calls, ranks=3):
    return SimpleNamespace(ranks=ranks, events=[event for call in calls for event in call])


def test_news_travels_on():
    assert knowledge(run(message(0, 1, 0.0, 1.0), message(1, 2, 2.0, 3.0))) == [{0}, {0, 1}, {0, 1, 2}]


def test_what_was_sent_before_the_news_came_does_not_carry_it():
    assert knowledge(run(message(0, 1, 1.0, 2.0), message(1, 2, 0.0, 3.0))) == [{0}, {0, 1}, {1, 2}]


def test_what_nobody_waited_for_tells_nothing():
    send, receive = message(0, 1, 0.0, 1.0)
    receive.end = None
    assert knowledge(run([send, receive])) == [{0}, {1}, {2}]


def test_messages_of_one_pair_are_told_apart_by_their_number():
    late = message(0, 1, 5.0, 6.0, seq=1)
    assert knowledge(run(message(2, 0, 2.0, 3.0), message(0, 1, 0.0, 1.0), late))[1] == {0, 1, 2}
    late[1].match.number = (0, 1, 0)  # the first message again, which was sent before rank 0 had heard of rank 2
    assert knowledge(run(message(2, 0, 2.0, 3.0), message(0, 1, 0.0, 1.0), late[1:]))[1] == {0, 1}


def test_a_collective_tells_its_group_of_all_of_it():
    calls = [SimpleNamespace(op="all_reduce", rank=r, group=(0, 2), match=None, start=0.0, end=1.0) for r in (0, 2)]
    assert knowledge(run(calls)) == [{0, 2}, {1}, {0, 2}]
