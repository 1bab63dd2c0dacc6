"""The lines that chapter 12 prints of a recording: calls and bytes of rank 0, part by part."""

from types import SimpleNamespace

import pytest

from course.sent import MODEL, sent

ALL = (0, 1, 2, 3)


def recorded(*calls):
    """A recording of four ranks with these calls, (op, group, bytes), on rank 0, and another one on rank 1."""
    events = [SimpleNamespace(rank=0, op=op, group=group, bytes=nbytes) for op, group, nbytes in calls]
    return SimpleNamespace(ranks=4, events=[*events, SimpleNamespace(rank=1, op="send", group=ALL, bytes=1)])


def test_calls_are_counted_and_their_bytes_are_those_of_models(capsys):
    gather, barrier = ("all_gather_single", ALL, MODEL // 4), ("barrier", ALL, 0)
    sent(recorded(gather, gather, ("all_reduce", (0, 2), MODEL), barrier, gather, barrier), "first", "second")
    first, second = capsys.readouterr().out.splitlines()
    assert first.split(maxsplit=1) == ["first", "2 all_gather 0.50 Ψ; 1 all_reduce of ranks 0,2 1.00 Ψ"]
    assert second.split(maxsplit=1) == ["second", "1 all_gather 0.25 Ψ"]


def test_a_part_of_several_steps_is_told_for_one(capsys):
    gather, barrier = ("all_gather_single", ALL, MODEL // 4), ("barrier", ALL, 0)
    sent(recorded(*[gather] * 6, barrier, gather), "three", "one", steps=(3, 1))
    assert [line.split(maxsplit=1)[1] for line in capsys.readouterr().out.splitlines()] == [
        "2 all_gather 0.50 Ψ",
        "1 all_gather 0.25 Ψ",
    ]


def test_each_part_has_its_name():
    with pytest.raises(ValueError):
        sent(recorded(("all_gather", ALL, 4)), "first", "second")
