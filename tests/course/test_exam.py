"""The exam: 60 minutes whatever the seed, one exam a seed, no answers in it, and a notebook that runs."""

import re

import nbformat
import pytest

from course import ringside
from course.chapters import notebooks
from course.exercises import EXERCISES
from course.pack import run
from course.pack.paper import right
from course.questions import QUESTIONS
from course.questions.question import Choose, Number, Statement
from course.teach import exam

SEEDS = [f"a lecture in spring {number}" for number in range(40)]
CLAIM = re.compile(r"\*(?:Easy|Medium|Hard), (\d+) minutes\.\*")


@pytest.mark.parametrize("seed", SEEDS)
def test_every_exam_has_60_points_and_no_two_questions_of_one_chapter(seed):
    names, written = exam.chosen(seed)
    assert sum(exam.points(QUESTIONS[name]) for name in names) + exam.WRITTEN_POINTS * len(written) == 60
    assert len({exam._chapter(name) for name in names}) == len(names) == exam.CHOSEN + exam.COMPUTED
    text = nbformat.writes(exam.exam(seed))
    assert sum(map(int, re.findall(r"\((\d+) points\)", text))) == 60


def test_a_seed_is_one_exam_and_another_text_another():
    assert exam.exam(SEEDS[0]) == exam.exam(SEEDS[0]) and exam.key(SEEDS[0]) == exam.key(SEEDS[0])
    assert len({str(exam.chosen(seed)) for seed in SEEDS}) == len(SEEDS)


def test_what_is_chosen_from_is_of_its_kind():
    assert all(isinstance(QUESTIONS[name], Choose | Statement) for name in exam.TO_CHOOSE)
    assert all(isinstance(QUESTIONS[name], Number) for name in exam.TO_COMPUTE)
    assert len({*exam.TO_CHOOSE, *exam.TO_COMPUTE}) == len(exam.TO_CHOOSE) + len(exam.TO_COMPUTE)


def test_no_exercise_of_it_takes_longer_than_its_points():
    cells = [cell for path in notebooks() for cell in nbformat.read(path, as_version=4).cells]
    for name in sum(exam.TO_WRITE, ()):
        at = next(place for place, cell in enumerate(cells) if cell.source == f'check("{name}")')
        text = next(cell.source for cell in reversed(cells[:at]) if CLAIM.search(cell.source))
        assert int(CLAIM.search(text)[1]) <= exam.WRITTEN_POINTS
        assert exam.MILESTONE * len(EXERCISES[name].hints) < exam.WRITTEN_POINTS


@pytest.mark.parametrize("seed", SEEDS[:5])
def test_the_key_tells_what_the_notebook_does_not(seed):
    names, written = exam.chosen(seed)
    given, key = nbformat.writes(exam.exam(seed)), exam.key(seed)
    for name in names:
        assert right(QUESTIONS[name])[1] in key and right(QUESTIONS[name])[1] not in given
    for name in written:
        assert EXERCISES[name].hints[-1] in key and EXERCISES[name].hints[-1] not in given


def test_a_number_without_a_unit_is_asked_without_one():
    asked = [exam._asked(1, QUESTIONS[name]) for name in exam.TO_COMPUTE]
    assert not [text for text in asked if re.search(r"^In [.,]", text, re.MULTILINE)]


def test_the_key_has_the_number_beside_its_formula():
    marked = exam._marked(1, QUESTIONS["dp_per_parameter"])
    assert f"= {16 * (6 * 4e-3 + 1.5 * 262144 / 16e6):.6g}" in marked
    assert "**`2*(p-1)` = 6** messages" in exam._marked(1, QUESTIONS["messages_in_all"])


def test_the_key_says_which_version_of_a_function_is_marked():
    assert "Mark the functions in the notebook" in exam.key(SEEDS[0])


def test_both_are_written_and_every_cell_runs(tmp_path, capsys):
    assert ringside.main(["exam", SEEDS[1], str(tmp_path)]) == 0
    assert SEEDS[1] in capsys.readouterr().out and "Key to the exam" in (tmp_path / "key.html").read_text()
    notebook = nbformat.read(tmp_path / "exam.ipynb", as_version=4)
    nbformat.validate(notebook)
    assert run.fill(notebook) == []
    run.execute(notebook, "exam", "0")
    said = "".join(str(cell.outputs) for cell in notebook.cells if cell.cell_type == "code")
    assert said.count("Solved.") == 2 and "not written" not in said


@pytest.mark.parametrize("seed", ["7", "2026-12"])
def test_a_seed_that_can_be_guessed_is_refused(seed, tmp_path, capsys):
    assert exam.main(seed, tmp_path / "exam") == 2 and not (tmp_path / "exam").exists()
    assert "too easy to guess" in capsys.readouterr().err


def test_no_drawn_seed_looks_like_an_option(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("secrets.token_bytes", lambda count: b"\xfb" * count)  # "-" as base64
    assert exam.main(None, tmp_path) == 0
    assert ringside.main(["exam", capsys.readouterr().out.split()[-1], str(tmp_path)]) == 0


def test_without_a_seed_one_is_drawn_and_said(tmp_path, capsys):
    assert exam.main(None, tmp_path) == 0
    assert exam.key(capsys.readouterr().out.split()[-1]).startswith("# Key")
