"""Guesses beside what happened."""

import pytest

from course import screen
from course.predict import reveal


@pytest.fixture(autouse=True)
def nothing_has_run(monkeypatch):
    monkeypatch.setattr(screen, "_log", {})
    monkeypatch.setattr("course.predict._revealed", 0)


def told(capsys, guess, **actual):
    reveal(guess, **actual)
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "guess, words",
    [
        ({"messages": 6}, "messages 6     (as you said)"),
        ({"messages": "6"}, "messages 6     (as you said)"),
        ({"messages": "6 N"}, "messages 6     (as you said)"),
        ({"messages": "2(p-1)"}, "messages 6     (as you said: 2(p-1), 6 for p = 4)"),
        ({"messages": "p"}, "messages 6     (you said p, 4 for p = 4)"),
        ({"messages": 12}, "messages 6     (you said 12)"),
        ({"messages": 6.2}, "messages 6     (close: you said 6.2)"),
        ({"messages": 0}, "messages 6     (you said 0)"),
        ({"messages": None}, "messages 6     (not guessed)"),
        ({"messages": ...}, "messages 6     (not guessed)"),
        ({}, "messages 6     (not guessed)"),
        (None, "messages 6     (not guessed)"),
        (6, "messages 6     (as you said)"),
        ("6", "messages 6     (as you said)"),
        ({"messages": "six"}, "messages 6     ('six' is no number; write one, as in 6 or '2(p - 1)')"),
        ({"messages": [6]}, "messages 6     ([6] is no number; write one"),
        ({"naive": {"messages": 6}}, "messages 6     (as you said)"),
        ({"naive": 6}, "messages 6     (as you said)"),
    ],
)
def test_a_guess_is_understood_in_every_form(capsys, guess, words):
    assert words in told(capsys, guess, title="naive", p=4, messages=6)


def test_nothing_is_as_you_said_too(capsys):
    assert "(as you said)" in told(capsys, {"x": "0"}, x=0)


def test_one_number_for_several_is_asked_about(capsys):
    said = told(capsys, 6, messages=6, steps=1)
    assert said.startswith('6 is one guess and 2 are asked for: guess = {"messages": ..., "steps": ...}\n')
    assert said.count("not guessed") == 2
    assert told(capsys, (6, 2), messages=6, steps=1).count("as you said") == 1


def test_without_ranks_p_is_asked_for(capsys):
    assert "(you said 2(p-1); put a number in for p)" in told(capsys, {"messages": "2(p-1)"}, messages=6)


def run(number, source, error=""):
    screen._log[number] = screen.Ran(number, source, None, error)


def test_a_right_guess_is_not_made_wrong_by_a_second_run_without_a_word(capsys):
    run(4, "%%ranks 4\nx = torch.ones(1)")
    run(5, "%%ranks\n\ndist.all_reduce(x)\nx")
    assert "more than once" not in told(capsys, {"sum": 4}, sum=16)
    run(8, "%%ranks\n\ndist.all_reduce(x)\nx")
    assert "cell [8] (dist.all_reduce(x)) was run more than once" in told(capsys, {"sum": 4}, sum=16)
    assert "more than once" in told(capsys, {"sum": 4}, sum=16), "and again, as long as it was not settled"
    assert "more than once" not in told(capsys, {"sum": 16}, sum=16), "a guess that is right needs no words"


def test_a_run_that_failed_does_not_count(capsys):
    run(4, "%%ranks\ndist.all_reduce(x)", "NameError: x")
    run(5, "%%ranks\ndist.all_reduce(x)")
    assert "more than once" not in told(capsys, {"sum": 4}, sum=16)
