"""What is drawn on the board: a plan asks for each drawing, and each that a plan asks for is there."""

import re
from base64 import b64decode
from xml.etree import ElementTree

import nbformat
import pytest

from collectives import all_reduce
from course.chapters import name_of, notebooks
from course.notes import NOTES
from course.pack import board, paper

CHAPTER = {name_of(path.stem): path for path in notebooks()}


@pytest.mark.parametrize("name", NOTES)
def test_a_plan_asks_for_each_drawing_and_has_each_that_it_asks_for(name):
    notes, there = NOTES[name], paper.headings(nbformat.read(CHAPTER[name], as_version=4))
    parts = [*(part.do for plan in notes.plans for part in plan), notes.ask, *(each.say for each in notes.wrong)]
    plans = "\n".join(parts)
    for drawing in board.BOARD.get(name, ()):
        assert drawing.heading in there
        for words in drawing.words:
            assert words in plans
            plans = plans.replace(words, "")
    assert not re.search(r"\bdraw\b", plans, re.IGNORECASE)


@pytest.mark.parametrize(
    "drawing", [each for drawings in board.BOARD.values() for each in drawings], ids=lambda each: each.heading
)
def test_each_step_adds_strokes_and_leaves_those_of_before(drawing):
    marks = [ElementTree.fromstring(drawing.svg(upto)) for upto in range(1, len(drawing.steps) + 1)]
    counts = [len(list(picture.iter())) for picture in marks]
    assert counts == sorted(set(counts)) and counts[0] > 2
    for node in marks[-1].iter("text"):
        assert 0 <= float(node.get("x")) <= board.UNIT * drawing.size[0]
        assert 0 <= float(node.get("y")) <= board.UNIT * drawing.size[1]


def test_the_two_trees_are_those_of_the_schedule():
    sent = {(each.src, each.dst) for step in all_reduce.double_tree(8).steps for each in step.transfers}
    both = {pair for a, b in board.TREE for pair in ((a, b), (7 - a, 7 - b))}
    assert sent == both | {(b, a) for a, b in both}


def test_chapter_13_shows_its_drawing_without_what_comes_after_its_question():
    """A still image with the colours in it: each rank's piece of A and y, then of A and x."""
    still = board.CUTS.until(5)._repr_html_()
    svg = b64decode(re.search(r"base64,([^\"]+)", still)[1]).decode()
    ElementTree.fromstring(svg)
    assert [svg.count(f'class="rank{rank}"') for rank in range(4)] == [4] * 4
    assert ".rank3{fill:#" in svg and "y0+y1" not in svg + still
    assert "y0+y1" in b64decode(re.search(r"base64,([^\"]+)", board.CUTS._repr_html_())[1]).decode()
