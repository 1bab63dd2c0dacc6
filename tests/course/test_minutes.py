"""A chapter takes about as long as it says: the minutes it claims against what its reader does.

The model, said here and nowhere else. A reader

    reads text at 120 words a minute, in his or her second language, some sentences twice;
    reads a line of code in 6 seconds, and spends 20 more on running the cell and on what it shows;
    thinks about a question for 70 seconds, feedback included, and steps through a picture in 60;
    writes a line of an exercise in 75 seconds, checks and hints included, and fills a blank in 5 minutes.

What the cells take to run is little beside that: 15 to 60 seconds a chapter.
Nobody was timed with a watch: the figures fit what an editor estimated for each chapter.
What is held is that no chapter is a third off.

Left out: chapters from 11 on.
"""

import re

import nbformat
import pytest

from course.exercises import EXERCISES
from tests.course.test_notebooks import CHAPTERS

CLAIM = re.compile(r"[Aa]bout (\d+) minutes")
ASKS, CHECKS = re.compile(r"\bask\(\"(\w+)\""), re.compile(r"\bcheck\(\"(\w+)\"\)")
PICTURES = re.compile(r"--watch|\b(?:Butterfly|Player|Race|Square|Timeline|TopologyMap|Zoo|cost_explorer)\(")
"""What is stepped through or played with."""


def minutes(chapter) -> float:
    """By the model above."""
    text = " ".join(cell.source for cell in chapter.cells if cell.cell_type == "markdown")
    seconds = len(text.split()) / 120 * 60
    blanks = 0
    for cell in chapter.cells:
        if cell.cell_type != "code":
            continue
        lines = [line for line in cell.source.splitlines() if line.strip()]
        seconds += 70 * len(ASKS.findall(cell.source)) + 60 * len(PICTURES.findall(cell.source))
        if "..." in cell.source and "# <- " in cell.source:
            blanks += 1
        for name in CHECKS.findall(cell.source):
            seconds += 300 if blanks else 75 * EXERCISES[name].lines
            blanks = 0
        seconds += 20 + 6 * len(lines)
    return seconds / 60


@pytest.mark.parametrize("path", CHAPTERS[:11], ids=lambda path: path.stem)
def test_a_chapter_takes_as_long_as_it_says(path):
    chapter = nbformat.read(path, as_version=4)
    text = " ".join(cell.source for cell in chapter.cells if cell.cell_type == "markdown")
    claimed, found = int(CLAIM.search(text)[1]), minutes(chapter)
    assert 2 / 3 < claimed / found < 4 / 3, f"{path.stem} claims {claimed} minutes, and by the model it is {found:.0f}"
