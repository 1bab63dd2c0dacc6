"""Every exercise: its solution passes, differently written right answers pass, wrong ones fail for the right reason.

The attempts stand in `tests/course/attempts/NAME.py`. They are run by the real judge on real ranks.
"""

import ast
import importlib
import inspect
import re

import pytest

from course.chapters import FOLDER, notebooks
from course.exercises import EXERCISES
from course.exercises.draw import at_random, fixed
from course.exercises.exercise import MESSAGES_ONLY
from course.judge import carry, trial
from tests.course.attempts.families import family
from tests.course.cells import executed


@pytest.fixture(autouse=True)
def jax(request):
    """JAX is an extra, for one exercise."""
    if request.node.callspec.params.get("name") == "ring_sum":
        pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """On a busy machine a right answer may take longer than a student waits; no attempt runs into the limit."""
    monkeypatch.setattr(trial, "LIMIT", 200)


def verdict(exercise, source):
    """The first fault in any trial, as `check` prints it; "" for a right answer."""
    for tried in trial.trials(exercise, source):
        fault = tried.fault()
        if fault:
            return f"no  {tried.where}: {fault}"
    return ""


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
    for tried in trial.trials(EXERCISES[name], source):
        assert tried.fault() == ""
        varied = [x.size == 1 or len({*x.ravel().tolist()}) > 1 for x in tried.given]
        assert tried.draw.index != 0 or all(varied), "what is right only for constant data would pass"
    written = len(inspect.getsource(getattr(module, name)).splitlines())
    asked = EXERCISES[name].lines
    assert asked / 2 <= written <= 2 * asked, f"the exercise promises about {asked} lines, the solution has {written}"


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_the_solutions_of_a_chapter_explain_themselves(path):
    """The idea in a sentence, two mistakes that people make, another way to write it."""
    for name in re.findall(r'check\(\\"(\w+)\\"\)', path.read_text(encoding="utf-8")):
        tree = ast.parse((FOLDER / "solutions" / f"{name}.py").read_text(encoding="utf-8"))
        said = ast.get_docstring(tree, clean=False) or ""
        assert re.fullmatch(r".+\n\nTwo mistakes: .+\band\b.+\nAnother way: .+\n", said, re.DOTALL), name


@pytest.mark.parametrize("name, source", attempts("RIGHT"))
def test_a_right_answer_passes(name, source):
    """On the numbers of which most is asked, and on a few ranks with lengths and signs at random; the solution is
    tried on all sizes."""
    exercise = EXERCISES[name]
    few = (exercise.world_sizes[1:2] or exercise.more)[0]
    for draw in (fixed(0, exercise.world_sizes[0], exercise.dtypes[0]), at_random(few, exercise.dtypes[-1])):
        assert trial.Trial(exercise, source, draw).fault() == ""


@pytest.mark.parametrize("name, attempt", attempts("WRONG"))
def test_a_wrong_answer_fails_for_the_right_reason(name, attempt):
    source, words = attempt
    assert words in verdict(EXERCISES[name], source)


@pytest.mark.parametrize("name", EXERCISES)
def test_an_exercise_is_tried_in_enough_ways(name):
    module = importlib.import_module(f"tests.course.attempts.{name}")
    assert len(module.RIGHT) >= 3 and len(module.WRONG) >= 6
    exercise = EXERCISES[name]
    assert exercise.hints
    drawn = {*exercise.more}
    assert drawn and not drawn & {*exercise.world_sizes} or drawn == {2}, "no size that no verdict names"
    assert len({*exercise.world_sizes}) > 1 or exercise.world_sizes[0] == 2, "what is right only for 4 ranks would pass"
    by_messages = exercise.allowed == MESSAGES_ONLY and "x" in exercise.call
    assert not by_messages or len({*exercise.dtypes}) > 1, "who takes float32 for granted would pass"
