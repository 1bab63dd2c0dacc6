"""A chapter takes about as long as it says: the minutes it claims against what its reader does.

The model, said here and nowhere else. A reader

    reads text at 120 words a minute, in his or her second language, some sentences twice;
    reads a line of code in 6 seconds, and spends 20 more on running the cell and on what it shows;
    thinks about a question for 70 seconds, feedback included, and steps through a picture in 60;
    writes a line of an exercise in 75 seconds, checks and hints included, and fills a blank in 5 minutes.

What the cells take to run is little beside that: 15 to 60 seconds a chapter.
Nobody was timed with a watch: the figures fit what an editor estimated for each chapter.
What is held is that no chapter, part or exercise is far off.
"""

import re
from collections.abc import Iterator

import nbformat
import pytest

from course.chapters import FOLDER
from course.exercises import EXERCISES
from tests.course.test_notebooks import CHAPTERS

CLAIM = re.compile(r"[Aa]bout (\d+) minutes")
PART = re.compile(r"^\| \[[^]]*\]\(#([^)]+)\).*\| (\d+) \|$", re.MULTILINE)
LEVEL = re.compile(r"\*(Easy|Medium|Hard), (\d+) minutes\.\*")
BLANK = "# <- your blank"
ASKS, CHECKS = re.compile(r"\bask\(\"(\w+)\""), re.compile(r"\bcheck\(\"(\w+)\"\)")
PICTURES = re.compile(
    r"--watch|\b(?:Butterfly|Memory|MemoryRun|Mesh|Player|Race|SlotGrid|Square|Timeline|Tokens|TopologyMap|Zoo|cost_explorer)\("
)
"""What is stepped through or played with."""


def costs(chapter) -> Iterator[tuple[str, float]]:
    """The minutes of each cell by the model above, beside the heading that it is below."""
    heading, blanks = "", 0
    for cell in chapter.cells:
        if cell.cell_type == "markdown":
            before, *pieces = re.split(r"^## (.*)$", cell.source, flags=re.MULTILINE)
            yield heading, len(before.split()) / 120
            for heading, text in zip(pieces[::2], pieces[1::2], strict=True):
                yield heading, len(text.split()) / 120
            continue
        seconds = 20 + 6 * len([line for line in cell.source.splitlines() if line.strip()])
        seconds += 70 * len(ASKS.findall(cell.source)) + 60 * len(PICTURES.findall(cell.source))
        blanks += cell.source.count(BLANK)
        for name in CHECKS.findall(cell.source):
            seconds += 300 * blanks or 75 * EXERCISES[name].lines
            blanks = 0
        yield heading, seconds / 60


def prose(chapter) -> str:
    return "\n".join(cell.source for cell in chapter.cells if cell.cell_type == "markdown")


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_takes_as_long_as_it_says(path):
    chapter = nbformat.read(path, as_version=4)
    claimed, found = int(CLAIM.search(prose(chapter))[1]), sum(minutes for _, minutes in costs(chapter))
    assert 2 / 3 < claimed / found < 4 / 3, f"{path.stem} claims {claimed} minutes, and by the model it is {found:.0f}"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_so_does_each_of_its_parts(path):
    """The table of parts adds up to the chapter, and no part is off by more than five minutes or a third."""
    chapter = nbformat.read(path, as_version=4)
    text = prose(chapter)
    parts = {anchor.replace("-", " "): int(minutes) for anchor, minutes in PART.findall(text)}
    assert sum(parts.values()) == int(CLAIM.search(text)[1])
    found = dict.fromkeys(parts, 0.0)
    part = next(iter(parts))  # what is above the first one is read, too
    for heading, minutes in costs(chapter):
        heading = heading.replace("-", " ")  # as the table's links have it
        part = heading if heading in parts else part
        found[part] += minutes
    off = {
        part: (parts[part], round(found[part]))
        for part in parts
        if abs(parts[part] - found[part]) > max(5, found[part] / 3)
    }
    assert all(found.values()) and not off, f"{path.stem}: claimed and by the model {off}"


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_each_exercise_says_how_hard_and_how_long_it_is(path):
    level, blanks = None, 0
    for cell in nbformat.read(path, as_version=4).cells:
        level, blanks = LEVEL.search(cell.source) or level, blanks + cell.source.count(BLANK)
        for name in CHECKS.findall(cell.source) if cell.cell_type == "code" else ():
            found = 5 * blanks or 1.25 * EXERCISES[name].lines
            assert level, f"{name} does not say how hard it is"
            assert 2 / 3 < int(level[2]) / found < 3 / 2, (
                f"{name} claims {level[2]} minutes, and by the model {found:.0f}"
            )
            level, blanks = None, 0


def test_the_readme_says_the_same_minutes():
    readme = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    told = {stem: int(minutes) for stem, minutes in re.findall(r"\(course/(\w+)\.ipynb\) (\d+)", readme)}
    assert told == {path.stem: int(CLAIM.search(prose(nbformat.read(path, as_version=4)))[1]) for path in CHAPTERS}
    hours = re.findall(r"^\|.*\.ipynb\).*\| (\d+) \|$", readme, re.MULTILINE)
    assert sum(map(int, hours)) == pytest.approx(sum(told.values()) / 60, abs=1)
