"""Copies of the course in which solutions and answers are withheld: `ringside withhold FOLDER`, for lecturers.

FOLDER is then a course to hand out: `make lab` in it, or `pip install FOLDER`, works as here, and every cell of every
chapter runs. It has no solutions, no instructor's notes and no tests; a question has its text and its choices. What was
taken out is in it once more, one encrypted file a chapter; the keys stay with you, in FOLDER.keys.json.

`ringside release FOLDER 05` opens a chapter: for all who use FOLDER itself, and for others by a line that it prints.

Left out: the hints, which students may read and which their progress counts; and what the check itself compares with,
which runs on the student's machine. Of `size_a_run` that is a formula, and so nearly the solution.
"""

import json
import shutil
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from random import Random

from course import chapters, instead, own, withheld
from course.questions import CHAPTERS
from course.questions.question import Answer, Choose, Click, FindLine, Number, Order, Question, Statement

GIVEN = (
    "pyproject.toml",
    "Makefile",
    "LICENSE",
    "README.md",
    "etc",
    "docs",
    "collectives",
    "widgets",
    "launch",
    "course",
)
KEPT = ("__pycache__", "*.pyc", "*.ipynb", "solutions", "questions", "notes", "pack", "teach")

OURS = '''"""Ours is withheld; see course/yours.py."""

from course.yours import ours

{name} = ours("{name}")
'''


def build(folder: Path) -> Path:
    """Make the copy, or make it anew with the same keys; the file with the keys.

    FileExistsError if something else is in the folder; FileNotFoundError if this course is installed without its
    checkout.
    """
    root = chapters.FOLDER.parent
    if folder.exists() and any(folder.iterdir()) and not (folder / "course" / withheld.SEALED.name).exists():
        raise FileExistsError(f"{folder} has other things in it: name a new folder")
    if withheld.SEALED.exists() or not (root / "pyproject.toml").exists():
        raise FileNotFoundError("copies are made from a whole checkout of the course: run this there")
    opened = folder / "course" / withheld.SEALED.name / withheld.RELEASED
    open_now = opened.read_bytes() if opened.exists() else b""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in GIVEN:
        if (root / name).is_dir():
            shutil.copytree(root / name, folder / name, ignore=shutil.ignore_patterns(*KEPT))
        else:
            shutil.copy(root / name, folder / name)
    course = folder / "course"
    for chapter in chapters.notebooks():
        (course / chapter.name).write_bytes(own.without_outputs(chapter))
    _write_stand_ins(course / "solutions")
    _write_questions(course / "questions")
    keys = _seal(course / withheld.SEALED.name, folder.with_name(f"{folder.name}.keys.json"))
    if open_now:
        opened.write_bytes(open_now)
    return keys


def _write_stand_ins(folder: Path) -> None:
    """For the cells that take a solution as it is, and not the student's."""
    folder.mkdir()
    shutil.copy(chapters.FOLDER / "solutions" / "__init__.py", folder)
    for path in (chapters.FOLDER / "solutions").glob("*.py"):
        if path.stem in vars(instead):
            (folder / path.name).write_text(OURS.format(name=path.stem), encoding="utf-8")


def _write_questions(folder: Path) -> None:
    folder.mkdir()
    for name in ("__init__.py", "question.py"):
        shutil.copy(chapters.FOLDER / "questions" / name, folder)
    for name, module in CHAPTERS.items():
        asked = "".join(f"    {without_answer(each)!r},\n" for each in module.QUESTIONS)
        text = f'"""What {name} asks; the answers are withheld."""\n\nfrom course.questions.question import *\n\n'
        (folder / f"{name}.py").write_text(f"{text}QUESTIONS = (\n{asked})\n", encoding="utf-8")


def without_answer(question: Question) -> Question:
    """The question as it is asked, without what is right, what is wrong, and why."""
    nothing = Answer("", "")
    match question:
        case Choose():
            answers = tuple(Answer(each.text, "") for each in question.answers)
            return replace(question, sealed=True, answers=answers, right=-1)
        case Statement():
            return replace(question, sealed=True, true=False, why="")
        case Number():
            return replace(question, sealed=True, right=nothing, wrong=(), within=0.0)
        case Click():
            return replace(question, why="")  # the picture shows which cells
        case Order():
            lines = Random(question.name).sample(question.lines, len(question.lines))
            return replace(question, sealed=True, lines=tuple(lines), why="", wrong=())
        case FindLine():
            return replace(question, sealed=True, right=(), why="", wrong=())
    raise TypeError(f"{question.name} is of no kind that can be asked")


def _seal(folder: Path, keys: Path) -> Path:
    """Encrypt what was taken out, by chapter; the keys, which are made once, go into the file `keys`."""
    from cryptography.fernet import Fernet

    known = json.loads(keys.read_text(encoding="utf-8")) if keys.exists() else {}
    folder.mkdir()
    for name, files in _withheld().items():
        key = known.setdefault(name, Fernet.generate_key().decode())
        texts = {path: (chapters.FOLDER / path).read_text(encoding="utf-8") for path in files}
        (folder / f"{name}.bin").write_bytes(Fernet(key).encrypt(json.dumps(texts).encode()))
    keys.touch(mode=0o600)
    keys.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    return keys


def _withheld() -> dict[str, list[str]]:
    """By chapter the files of the folder `course` that are taken out: its questions, and the solutions it asks for."""
    files: dict[str, list[str]] = {}
    exercises = chapters.modules("course.exercises")
    for name in map(chapters.name_of, (path.stem for path in chapters.notebooks())):
        solutions = [f"solutions/{each.name}.py" for each in getattr(exercises.get(name), "EXERCISES", ())]
        files[name] = [f"questions/{name}.py"] * (name in CHAPTERS) + solutions
    return files


def release(folder: Path, names: Iterable[str]) -> list[str]:
    """Open these chapters for all who use the copy in `folder`; for others the lines to hand out.

    OSError if it is no such copy; LookupError if there is no such chapter.
    """
    keys = json.loads(folder.with_name(f"{folder.name}.keys.json").read_text(encoding="utf-8"))
    opened = folder / "course" / withheld.SEALED.name / withheld.RELEASED
    known = json.loads(opened.read_text(encoding="utf-8")) if opened.exists() else {}
    new = {name: keys[name] for name in (chapters.name_of(path.stem) for path in chapters.chosen(names))}
    opened.write_text(json.dumps(known | new, indent=1) + "\n", encoding="utf-8")
    return [f'check.release("{name} {key}")' for name, key in new.items()]


def make(folder: Path) -> int:
    """The command `ringside withhold FOLDER`."""
    try:
        keys = build(folder)
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"The course for your students is in {folder}. Keep {keys}: it has the keys.")
    print(f"Open a chapter when you want: ringside release {folder} 05")
    return 0


def open_up(folder: Path, names: list[str]) -> int:
    """The command `ringside release FOLDER CHAPTER ...`."""
    try:
        lines = release(folder, names)
    except LookupError as error:
        print(f"there is no chapter {error}; say 05 or 05_all_reduce", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{folder} is no copy that ringside withhold has made: {error}", file=sys.stderr)
        return 1
    print("Open for all whose course is that folder. Others run this in a cell of any chapter:", *lines, sep="\n")
    return 0
