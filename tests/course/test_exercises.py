"""Every exercise: its solution passes, differently written right answers pass, wrong ones fail for the right reason.

The attempts stand in `tests/course/attempts/NAME.py`. They are run by the real judge on real ranks.
"""

import importlib
import inspect
import re

import pytest

from course.chapters import notebooks
from course.exercises import EXERCISES
from course.judge import carry, trial
from tests.course.attempts.families import family
from tests.course.cells import executed

BEFORE_RUNNING = ("not written yet", "that is made outside")
"""Verdicts that are given without running the function."""


@pytest.fixture(autouse=True)
def jax(request):
    """JAX is an extra, for one exercise."""
    if request.node.callspec.params.get("name") == "ring_sum":
        pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """On a busy machine a right answer may take longer than a student waits; no attempt runs into the limit."""
    monkeypatch.setattr(trial, "LIMIT", 200)


def verdict(name, source):
    """The first fault in any trial, as `check` prints it; "" for a right answer."""
    exercise = EXERCISES[name]
    for tried in trial.trials(exercise, source):
        fault = tried.fault()
        if fault:
            return f"no  {tried.where}: {fault}"
    return ""


def verdict_unrun(name, source):
    """What is said about a cell before anything runs: a blank in it, or something that cannot travel."""
    try:
        return "not written yet" if carry.blanks(carry.carry(name, executed(source))) else ""
    except carry.CannotCarry as error:
        return str(error)


def attempts(kind):
    """A parameter for every attempt."""
    found = []
    for name in EXERCISES:
        module = importlib.import_module(f"tests.course.attempts.{name}")
        tried = getattr(module, kind) | (family(name) if kind == "WRONG" else {})
        found += [pytest.param(name, attempt, id=f"{name}: {title}") for title, attempt in tried.items()]
    return found


@pytest.mark.parametrize("name", EXERCISES)
def test_the_solution_passes(name):
    module = importlib.import_module(f"course.solutions.{name}")
    source = carry.carry(name, executed(inspect.getsource(module)))  # in a cell, where `check.solution` puts it
    assert verdict(name, source) == ""
    written = len(inspect.getsource(getattr(module, name)).splitlines())
    asked = EXERCISES[name].lines
    assert asked / 2 <= written <= 2 * asked, f"the exercise promises about {asked} lines, the solution has {written}"


@pytest.mark.parametrize("path", notebooks()[:11], ids=lambda path: path.stem)
def test_the_solutions_of_a_chapter_explain_themselves(path):
    """The idea in a sentence, two mistakes that people make, another way to write it. Left out: chapters from 11 on."""
    for name in re.findall(r'check\(\\"(\w+)\\"\)', path.read_text(encoding="utf-8")):
        said = importlib.import_module(f"course.solutions.{name}").__doc__ or ""
        assert re.fullmatch(r".+\n\nTwo mistakes: .+\band\b.+\nAnother way: .+\n", said, re.DOTALL), name


@pytest.mark.parametrize("name, source", attempts("RIGHT"))
def test_a_right_answer_passes(name, source):
    assert verdict(name, source) == ""


@pytest.mark.parametrize("name, attempt", attempts("WRONG"))
def test_a_wrong_answer_fails_for_the_right_reason(name, attempt):
    source, words = attempt
    unrun = any(early in words for early in BEFORE_RUNNING)
    assert words in (verdict_unrun if unrun else verdict)(name, source)


@pytest.mark.parametrize("name", EXERCISES)
def test_there_are_enough_attempts(name):
    module = importlib.import_module(f"tests.course.attempts.{name}")
    assert len(module.RIGHT) >= 3 and len(module.WRONG) >= 6
    exercise = EXERCISES[name]
    assert exercise.hints
    drawn = {*exercise.more}
    assert drawn and not drawn & {*exercise.world_sizes} or drawn == {2}, "no size that no verdict names"
