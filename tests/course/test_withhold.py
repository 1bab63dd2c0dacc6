"""A copy for students has neither solutions nor answers in it, every cell of it runs, and a chapter can be released."""

import ast
import importlib
import inspect
import json
import os
import subprocess
import sys
from dataclasses import asdict

import nbformat
import pytest
from nbclient import NotebookClient

from course import chapters, instead
from course.exercises import EXERCISES
from course.questions import QUESTIONS
from course.questions.question import Order
from course.ringside import main
from course.teach import withhold

CODE = """
import json, sys
from course import questions, yours
from course.judge import check as judge
judge.get_ipython = lambda: type("Shell", (), {"set_next_input": lambda self, text: None})()
def look():
    judge.check.solution("shift")
    question = questions.QUESTIONS["shift_steps"]
    print(json.dumps([question.sealed, question.right.why, yours.shift.__module__]))
look()
for words in sys.argv[1:]:
    judge.check.release(words)
    look()
"""


@pytest.fixture(scope="module")
def students(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class") / "students"
    assert main(["withhold", str(folder)]) == 0
    return folder


def run_there(students, data, *words):
    """What a student sees in the copy of the exercise shift and of a question of its chapter, first and after each
    line that is to release something."""
    environ = os.environ | {"PYTHONPATH": str(students), "JUPYTER_DATA_DIR": str(data)}
    command = [sys.executable, "-c", CODE, *words]
    return subprocess.run(command, cwd=data, env=environ, capture_output=True, text=True, check=True).stdout


def texts(folder):
    """All that can be read in the folder, each file with one space wherever it has any."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.suffix == ".ipynb":
            notebook = nbformat.read(path, as_version=4)
            assert not any(cell.get("outputs") for cell in notebook.cells), path.name
            yield path.name, squeezed("\n".join(cell.source for cell in notebook.cells))
        else:
            yield path.name, squeezed(path.read_bytes().decode(errors="replace"))


def squeezed(text):
    return " ".join(text.split())


def body(path):
    """The lines of the longest function in a solution, without its docstring."""
    source = path.read_text()
    bodies = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            first = node.body[bool(ast.get_docstring(node))]
            bodies.append(squeezed("\n".join(source.splitlines()[first.lineno - 1 : node.end_lineno])))
    return max(bodies, key=len)


def test_what_is_withheld_cannot_be_read(students):
    secret = [body(chapters.FOLDER / "solutions" / f"{name}.py") for name in EXERCISES]
    for question in QUESTIONS.values():
        asked = set(words_of(question))
        secret += [squeezed(text) for text in strings(asdict(question)) if len(text) > 40 and text not in asked]
    found = dict(texts(students))
    assert not [(name, text) for text in secret for name, file in found.items() if text in file]
    assert len(secret) > 800, "else this test would show nothing"


def test_what_the_lecturer_alone_has_is_not_in_the_copy(students):
    for name in ("teach", "notes", "pack"):
        assert (chapters.FOLDER / name).exists() and not (students / "course" / name).exists()
    assert not (students / "tests").exists() and not list(students.rglob("*.keys.json"))


@pytest.mark.parametrize("command", ["pack pack", "exam autumn", "homework class.txt out", "handed-in ."])
def test_the_lecturers_commands_say_in_a_copy_that_it_is_one(students, tmp_path, command):
    environ = os.environ | {"PYTHONPATH": str(students)}
    words = [sys.executable, "-m", "course.ringside", *command.split()]
    done = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert done.returncode == 2 and "this is a copy for students" in done.stderr


def strings(data):
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        yield from strings([value for key, value in data.items() if key not in ("name", "topic")])
    elif isinstance(data, (list, tuple)):
        for each in data:
            yield from strings(each)


def words_of(question):
    """What may be read of a question: its text, its choices, its program."""
    yield question.text
    yield question.topic
    yield from (answer.text for answer in getattr(question, "answers", ()))
    yield from getattr(question, "lines", ())
    yield getattr(question, "source", "")


def test_a_question_is_asked_as_before_and_says_nothing_of_what_is_right():
    for question in QUESTIONS.values():
        asked = withhold.without_answer(question)
        assert list(words_of(asked)) == list(words_of(question)) or isinstance(question, Order)
        assert sorted(words_of(asked)) == sorted(words_of(question))
        other = withhold.without_answer(asked)
        assert other == asked or isinstance(question, Order)


def test_what_a_chapter_takes_from_an_exercise_has_something_in_its_place():
    for chapter in chapters.notebooks():
        for cell in nbformat.read(chapter, as_version=4).cells:
            if cell.cell_type == "code" and "from course." in cell.source:
                tree = ast.parse("\n".join(line for line in cell.source.splitlines() if not line.startswith("%")))
                for node in ast.walk(tree):
                    if isinstance(node, ast.ImportFrom) and node.module.startswith(
                        ("course.yours", "course.solutions")
                    ):
                        assert all(name.name in vars(instead) for name in node.names), chapter.name


@pytest.mark.parametrize("name", sorted({*EXERCISES} & {*vars(instead)}))
def test_it_is_called_as_the_solution_is(name):
    if name == "ring_sum":
        pytest.importorskip("jax")
    ours = inspect.signature(getattr(importlib.import_module(f"course.solutions.{name}"), name))
    theirs = inspect.signature(getattr(instead, name))
    assert list(theirs.parameters)[: len(ours.parameters)] == list(ours.parameters)


@pytest.mark.parametrize("stem", ["03_rooted", "15_experts"])
def test_every_cell_runs(students, tmp_path, stem):
    notebook = nbformat.read(students / "course" / f"{stem}.ipynb", as_version=4)
    saved = nbformat.read(chapters.FOLDER / f"{stem}.ipynb", as_version=4)
    environ = os.environ | {"PYTHONPATH": str(students), "JUPYTER_DATA_DIR": str(tmp_path)}
    here, quiet = {"metadata": {"path": str(tmp_path)}}, ["--log-level=CRITICAL"]
    client = NotebookClient(notebook, timeout=150, allow_errors=True, resources=here, extra_arguments=quiet)
    client.execute(env=environ)
    assert [errors(cell) for cell in notebook.cells] == [errors(cell) for cell in saved.cells]
    said = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
    assert "with a stand-in for" in said and "with our" not in said


def errors(cell):
    """Chapters break things on purpose: an error belongs there if it is in what is saved, too."""
    return [output.ename for output in cell.get("outputs", []) if output.output_type == "error"]


def test_a_chapter_is_released_to_all_or_by_a_line(students, tmp_path, capsys):
    opened = students / "course" / "sealed" / "released.json"
    assert main(["release", str(students), "02"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    now = [False, QUESTIONS["shift_steps"].right.why, "course.yours"]
    assert run_there(students, tmp_path).splitlines() == [
        "Our shift is in the cell below.",
        "with our shift: yours is not solved yet",
        json.dumps(now),
    ]
    opened.unlink()  # as in a copy that the lecturer cannot reach
    words = line.removeprefix('check.release("').removesuffix('")')
    closed = [
        "Our solution is withheld in this copy of the course, until your lecturer releases its chapter.",
        "with a stand-in for shift: yours is not solved yet, and ours is withheld",
        json.dumps([True, "", "course.instead"]),
    ]
    said = run_there(students, tmp_path, "messages no-key", words).splitlines()
    assert said[:3] == closed and said[3].startswith("That opens no chapter") and said[4:7] == closed
    assert said[7].startswith("messages is open") and said[8].startswith("Our shift") and said[-1] == json.dumps(now)


def test_a_copy_made_anew_keeps_its_keys_and_what_is_open(students, capsys):
    keys = students.with_name("students.keys.json")
    before = keys.read_text()
    assert keys.stat().st_mode & 0o077 == 0
    assert main(["release", str(students), "03"]) == main(["withhold", str(students)]) == 0
    assert keys.read_text() == before
    assert list(json.loads((students / "course" / "sealed" / "released.json").read_text())) == ["rooted"]


def test_only_a_new_folder_is_written_to_and_only_a_copy_released(tmp_path, capsys):
    (tmp_path / "mine").write_text("")
    assert main(["withhold", str(tmp_path)]) == 1 and "name a new folder" in capsys.readouterr().err
    assert main(["release", str(tmp_path), "02"]) == 1
