"""docs/courses.md holds to the chapters: what needs what, minutes that have a plan, no chapter before what it needs."""

import re
from itertools import chain

import nbformat
import pytest

from course.chapters import FOLDER, name_of, notebooks
from course.notes import NOTES
from course.pack.paper import headings

TEXT = (FOLDER.parent / "docs" / "courses.md").read_text(encoding="utf-8")
LINK = re.compile(r"\]\((?:\.\./course/)?(\w+)\.ipynb\)")
ROW = re.compile(r"^\| \d+ \| (.*) \| (\d+) \| (.*) \| (.*) \|$", re.MULTILINE)
COURSES = re.findall(r"^## (One day|Three sessions|Twelve weeks)\n(.*?)(?=^## )", TEXT, re.MULTILINE | re.DOTALL)


def first_cell(path) -> str:
    return nbformat.read(path, as_version=4).cells[0].source


def needed() -> dict[str, list[str]]:
    """By chapter the chapters that it says it needs."""
    found = {}
    for path in notebooks():
        said = re.search(r"\*\*You need\*\*(.*?)(?:\n\n|\Z)", first_cell(path), re.DOTALL)
        found[path.stem] = list(dict.fromkeys(LINK.findall(said[1]))) if said else []
    return found


def test_the_graph_is_what_the_chapters_say_they_need():
    number = {path.stem: f"c{path.stem[:2]}" if path.stem[0].isdigit() else path.stem for path in notebooks()}
    wanted = {(number[each], number[stem]) for stem, needs in needed().items() for each in needs}
    assert set(re.findall(r"^    (\w+) --> (\w+)$", TEXT, re.MULTILINE)) == wanted
    titles = {number[path.stem]: re.search(r"^# (.*)$", first_cell(path), re.MULTILINE)[1] for path in notebooks()}
    drawn = dict(re.findall(r'^    (\w+)\["(.*)"\]$', TEXT, re.MULTILINE))
    assert drawn == {name: title.split(":")[0] for name, title in titles.items()}


@pytest.mark.parametrize(("course", "table"), COURSES)
def test_no_chapter_comes_before_what_it_needs_and_the_minutes_add_up(course, table):
    needs, taught = needed(), []
    for chapters, total, goal, late in ROW.findall(table):
        minutes = [int(each) for each in re.findall(r"ipynb\) (\d+)", chapters)]
        assert sum(minutes) == int(total) and set(minutes) <= {50, 90} and goal
        for stem in LINK.findall(chapters):
            assert set(needs[stem]) <= {*taught}, f"{course}: {stem} needs {needs[stem]}"
            taught.append(stem)
        parts = chain(*([part.heading for part in plan(stem)] for stem in LINK.findall(chapters)))
        there = {
            *parts,
            *chain(*(headings(nbformat.read(FOLDER / f"{stem}.ipynb", 4)) for stem in LINK.findall(chapters))),
        }
        for cut in re.findall(r"\*([^*]+)\*", late):
            assert any(heading.startswith(cut) for heading in there), f"{course}: no part {cut!r}"
    assert len(taught) == len(set(taught)) >= 6


def plan(stem):
    notes = NOTES[name_of(stem)]
    return [part for plan in notes.plans for part in plan]


def test_the_long_course_has_every_chapter():
    assert [course for course, _ in COURSES] == ["One day", "Three sessions", "Twelve weeks"]
    assert set(LINK.findall(COURSES[-1][1])) == {path.stem for path in notebooks()}
