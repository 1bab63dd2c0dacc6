"""`ringside homework CLASS FOLDER [CHAPTER ...]`: for each student a notebook of exercises, neighbours with others.

CLASS is a text file with a line for each student: a name, and behind it 1, 2 or 3 if you want to say which variant of
each exercise it shall be. Without a number variants are dealt in turn, down the list. Variant 1 is the chapter's own
exercise; 2 and 3 ask for something else of the same kind (course/exercises/variants.py). An exercise that has no such
variant is given as the chapter has it.

FOLDER then has a notebook for each student, which hands in NAME.json at its end, and the solutions of all variants
for you. `ringside handed-in FOLDER --judge --class CLASS` reads the same list.

Left out: deadlines and marks.
"""

import ast
import json
import sys
from functools import cache
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course import chapters
from course.exercises import EXERCISES, TASKS, Exercise
from course.teach import solved
from course.teach.variants import MOST

TITLE = """# Homework of {who}

Read what is asked: it may differ from the chapter, and from your neighbours'. Your function from the chapter is a good
place to begin. `from course.yours import NAME` gives you what you have solved there. Run the first cell now, and the
last one at the end: it writes the file that you hand in."""


class Unreadable(ValueError):
    """A line of the class's list says neither a name nor a name and a number."""


def numbers(listed: Path) -> dict[str, int]:
    """By student the number of the variant. OSError if there is no such file."""
    found: dict[str, int] = {}
    for line in filter(None, map(str.strip, listed.read_text(encoding="utf-8").splitlines())):
        name, _, last = line.rpartition(" ")
        said = bool(name) and last.isdigit()
        who, number = (name.strip(), int(last)) if said else (line, len(found) % MOST + 1)
        if who in found or not 1 <= number <= MOST or not who.isprintable() or {*who} & {*"/\\"}:
            raise Unreadable(f"{listed}: {line!r} is no line for a student: a new name, and 1 to {MOST} if you like")
        found[who] = number
    return found


def task(name: str, number: int) -> Exercise:
    """The exercise in that variant; as the chapter has it if there is none."""
    return TASKS.get(f"{name}-{number}", EXERCISES[name])


def solution(exercise: Exercise) -> str:
    """Ours, as a cell."""
    if exercise.variant > 1:
        return solved.solution(exercise.key)
    return (chapters.FOLDER / "solutions" / f"{exercise.name}.py").read_text(encoding="utf-8")


def stub(name: str) -> str:
    """The first lines of the function: what the chapter has in it may be for the chapter's variant alone."""
    for text in (*_cells(), solution(EXERCISES[name])):
        if f"\ndef {name}(" in text:
            nodes = ast.parse(text.partition("\n")[2] if text.startswith("%%") else text).body
            made = next(node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == name)
            made.body = [ast.Expr(ast.Constant(...))]
            imports = [ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
            return "\n".join(["%%ranks 4", *imports, *[""] * bool(imports), ast.unparse(made)])
    raise LookupError(name)


@cache
def _cells() -> list[str]:
    """The cells of all chapters that run on the ranks."""
    cells = [cell for path in chapters.notebooks() for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    return [text for cell in cells if (text := "".join(cell["source"])).startswith("%%ranks")]


def sheet(who: str, exercises: list[Exercise]) -> nbformat.NotebookNode:
    """The notebook of a student."""
    cells = [
        new_markdown_cell(TITLE.format(who=who)),
        new_code_cell("%load_ext launch\nfrom course import check"),
    ]
    for place, each in enumerate(exercises, start=1):
        cells += [new_markdown_cell(f"## {place}\n\nWrite `{each.name}`: {each.asks}.")]
        cells += [new_code_cell(stub(each.name)), new_code_cell(f'check("{each.key}")')]
    cells += [new_markdown_cell("## Hand in"), new_code_cell(f"check.export({f'{who}.json'!r})")]
    for place, cell in enumerate(cells):
        cell.id = f"homework-{place:02}"
    return new_notebook(cells=cells)


def key(names: list[str]) -> str:
    """All variants of these exercises with their solutions, in Markdown."""
    parts = ["# Solutions"]
    for name in names:
        for each in dict.fromkeys(task(name, number).key for number in range(1, MOST + 1)):
            text = solution(TASKS[each]).strip()
            parts.append(f"## {each}\n\nWrite `{name}`: {TASKS[each].asks}.\n\n```python\n{text}\n```")
    return "\n\n".join(parts) + "\n"


def main(listed: Path, folder: Path, wanted: list[str]) -> int:
    """Write the notebooks and the solutions."""
    try:
        dealt = numbers(listed)
        stems = [chapters.name_of(path.stem) for path in chapters.chosen(wanted)]
        exercises = chapters.modules("course.exercises")
        names = [each.name for stem in stems if stem in exercises for each in exercises[stem].EXERCISES]
        folder.mkdir(parents=True, exist_ok=True)
        for who, number in dealt.items():
            given = sheet(who, [task(name, number) for name in names])
            (folder / f"{who}.ipynb").write_text(nbformat.writes(given) + "\n", encoding="utf-8")
        (folder / "solutions.md").write_text(key(names), encoding="utf-8")
    except LookupError as error:
        print(f"there is no chapter {error}; say 05 or 05_all_reduce", file=sys.stderr)
        return 2
    except (Unreadable, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"for students: {len(dealt)} notebooks in {folder}\nfor you:      {folder / 'solutions.md'}; keep {listed}")
    return 0
