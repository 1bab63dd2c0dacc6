"""%%plain: plain processes, and what each of them said, in rank order."""

import os
import re

import pytest

from course import plain
from launch.shared.errors import UsageError

PROGRAM = """# line 1
import os, sys
if rank == 1:
    os.kill(os.getpid(), 9)
print("I am", rank, "of", world_size, os.environ["COLOUR"])
x = torch.tensor([10 * rank])
pair = dist.new_group([0, 2], use_local_synchronization=True)
dist.all_reduce(x, group=pair)
if rank == 2:
    raise ValueError(f"the sum is {x.item()}")
"""


@pytest.fixture(scope="module")
def said():
    told = plain.run(3, PROGRAM, {**os.environ, **plain.QUIET, "COLOUR": "blue"})
    return [re.sub(r"\[Gloo\].*\n", "", each) for each in told]  # a line for each group before torch 2.13


def test_each_rank_is_heard_the_killed_one_too(said):
    assert said[0] == "I am 0 of 3 blue\n"
    assert said[1] == "(was killed by SIGKILL)\n"
    assert said[2] == "I am 2 of 3 blue\nValueError (line 10): the sum is 20\n"


def test_what_ranks_said_alike_is_printed_once(monkeypatch, capsys):
    monkeypatch.setattr(plain, "run", lambda *_: ["a\nb\n", "c\n", "a\nb\n", ""])
    plain.plain("4", "pass")
    assert capsys.readouterr().out == "[ranks 0,2] a\n[ranks 0,2] b\n[rank 1] c\n"


def test_of_a_long_line_both_ends_are_shown():
    assert plain.shortened("x" * plain.LONG) == "x" * plain.LONG
    assert plain.shortened("begin" + "x" * plain.LONG + "the end").endswith("x" * 50 + "the end")


def test_variables_stand_behind_the_number():
    assert plain.parse("2 A=1 B='x y'") == (2, {"A": "1", "B": "x y"})
    assert plain.parse("") == (4, {})


@pytest.mark.parametrize(
    "line, said", [("many", "got many"), ("9", "got 9"), ("0", "got 0"), ("4 DETAIL", "got DETAIL")]
)
def test_a_line_that_means_nothing_is_refused(line, said):
    with pytest.raises(UsageError, match=said):
        plain.parse(line)
