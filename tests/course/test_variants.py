"""The variants of exercises: each has a solution of its own, and the chapter's and the other's are refused."""

import json
import re

import nbformat
import pytest

from course import ringside
from course.exercises import EXERCISES, TASKS, VARIANTS, variants
from course.exercises.draw import fixed
from course.judge import carry, trial
from course.teach import handed_in, homework, regrade, solved
from tests.course.cells import executed

WITHOUT = {"bad_rank-3", "split_backward-3"}
"""docs/teaching.md says why."""


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """As in test_exercises.py."""
    monkeypatch.setattr(trial, "LIMIT", 200)


def cell(task):
    """Its solution as the text that is judged."""
    return carry.carry(task.name, executed(homework.solution(task)))


def test_each_exercise_has_three_but_for_what_is_said():
    assert {f"{name}-{number}" for name in EXERCISES for number in (2, 3)} - {*VARIANTS} == WITHOUT
    assert all(task.key == key and task.asks != EXERCISES[task.name].asks for key, task in VARIANTS.items())


@pytest.mark.parametrize("key", VARIANTS)
def test_only_its_own_solution_passes(key):
    """One trial for what is right; for what is wrong all, of which the first mostly finds it. Each pair is tried one
    way: with each other's numbers both are wrong."""
    task = VARIANTS[key]
    if task.name == "ring_sum":
        pytest.importorskip("jax")
    last = next(p for p in (task.world_sizes[-1], *task.world_sizes) if p <= 5)
    assert trial.Trial(task, cell(task), fixed(0, last, task.dtypes[0])).fault() == ""
    for other in TASKS.values():
        if other.name == task.name and (other.variant == 1 or other.variant > task.variant):
            assert any(tried.fault() for tried in trial.trials(task, cell(other))), f"it takes {other.key}, too"


def test_a_piece_that_is_not_in_the_chapters_text_is_an_error():
    with pytest.raises(LookupError, match="is there 0 times"):
        variants.edited("x += y", ("x -= y", "x = y"))
    with pytest.raises(LookupError, match="is there 2 times"):
        variants.edited("x += x", ("x", "y"))


def test_a_copied_answer_is_told_whose_it_is():
    assert regrade.fault("shift-3", cell(TASKS["shift-3"])) == ""
    assert regrade.fault("shift-2", cell(TASKS["shift-3"])).endswith(
        f"; it is right for shift-3; shift-2 asks: {TASKS['shift-2'].asks}"
    )


@pytest.fixture
def listed(tmp_path):
    file = tmp_path / "class.txt"
    file.write_text("anna\nben b.\n\ncarl 2\ndora\n")
    return file


def test_a_class_gets_notebooks_with_variants_in_turn(listed, tmp_path, capsys):
    assert homework.numbers(listed) == {"anna": 1, "ben b.": 2, "carl": 2, "dora": 1}
    assert ringside.main(["homework", str(listed), str(tmp_path / "out"), "02", "17"]) == 0
    assert "4 notebooks" in capsys.readouterr().out
    texts = {who: (tmp_path / "out" / f"{who}.ipynb").read_text() for who in homework.numbers(listed)}
    assert TASKS["shift-2"].asks in texts["carl"] and 'check(\\"shift-2\\")' in texts["carl"]
    assert EXERCISES["shift"].asks in texts["dora"] and "dora.json" in texts["dora"] and "shift-" not in texts["dora"]
    told = (tmp_path / "out" / "solutions.md").read_text()
    assert all(solved.solution(f"swap-{number}").strip() in told for number in (2, 3))
    assert not any(solved.solution("swap-2").splitlines()[-3] in text for text in texts.values())


def test_every_exercise_has_a_stub_that_is_not_written_yet():
    for name in EXERCISES:
        text = homework.stub(name)
        assert re.search(rf"^def {name}\(.*\):\n    \.\.\.$", text, re.MULTILINE), text


@pytest.mark.parametrize("line", ["anna 4", "anna 0", "a/b", "ben\nben"])
def test_a_line_that_is_none_is_said(listed, line, tmp_path, capsys):
    listed.write_text(line)
    assert (
        homework.main(listed, tmp_path / "out", ["02"]) == 1 and "is no line for a student" in capsys.readouterr().err
    )
    assert homework.main(listed.with_name("none"), tmp_path / "out", []) == 1


def test_what_was_handed_in_is_held_against_the_list(listed, tmp_path, capsys):
    folder = tmp_path / "handed"
    folder.mkdir()
    for who, names in {"carl": ["shift-2", "shift-3"], "anna": ["shift"], "eve": []}.items():
        works = {name: {"attempts": 1, "solved": "x" * (name != "shift-3")} for name in names}
        (folder / f"{who}.json").write_text(json.dumps({"exercises": works}))
    assert ringside.main(["handed-in", str(folder), "--class", str(listed)]) == 0
    out = capsys.readouterr().out
    assert "carl was given variant 2, and has tried shift-3\ncarl, variants: solved shift-2; open shift-3\n" in out
    assert "ben b. is in the class's list and has handed in nothing" in out and "eve is not in the class's list" in out
    assert "anna, " not in out and "anna was" not in out
    handed_in.main([str(folder), "--csv"])
    assert "carl,shift-2,1,1," in capsys.readouterr().out
    assert handed_in.main([str(folder), "--class=none.txt"]) == 2


def test_a_notebook_of_a_student_is_one(listed, tmp_path):
    homework.main(listed, tmp_path / "out", ["17"])
    nbformat.validate(nbformat.read(tmp_path / "out" / "ben b..ipynb", as_version=4))
