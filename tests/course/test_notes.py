"""The instructor's notes hold to their chapters: timings, headings, questions and wrong answers are there."""

import nbformat
import pytest

from course.chapters import name_of, notebooks
from course.notes import NOTES
from course.notes.note import mistaken
from course.pack.paper import headings
from course.questions import QUESTIONS

CHAPTER = {name_of(path.stem): path for path in notebooks()}


def asked(chapter) -> list[str]:
    """The names of its questions, in order."""
    sources = "\n".join(cell.source for cell in chapter.cells if cell.cell_type == "code")
    places = {name: sources.find(f'ask("{name}"') for name in QUESTIONS}
    return sorted((name for name in places if places[name] >= 0), key=places.__getitem__)


@pytest.fixture(params=NOTES)
def name(request):
    return request.param


@pytest.fixture
def chapter(name):
    return nbformat.read(CHAPTER[name], as_version=4)


def test_the_minutes_add_up(name):
    assert [sum(part.minutes for part in plan) for plan in NOTES[name].plans] == [50, 90]


def test_the_long_plan_says_all_that_it_takes_from_the_short_one():
    short, long = NOTES["experts"].plans
    both = next(part for part in long if part.heading == "A transpose")
    assert both.do.startswith(short[0].do) and both.do.endswith("does it still undo itself?")


def test_a_plan_goes_through_the_sections_of_its_chapter_in_their_order(name, chapter):
    there = headings(chapter)
    for plan in NOTES[name].plans:
        places = [there.index(part.heading) for part in plan]
        assert places == sorted(places)


def test_the_questions_are_those_of_the_chapter(name, chapter):
    notes, there = NOTES[name], asked(chapter)
    assert notes.room in there
    assert [there.index(each) for each in notes.sheet] == sorted(there.index(each) for each in notes.sheet)
    assert {mistake.question for mistake in notes.wrong} <= set(there)


def test_what_they_will_get_wrong_is_a_wrong_answer(name):
    """`mistaken` raises for one that is right, or is none."""
    said = {(mistake.question, mistaken(QUESTIONS[mistake.question], mistake.answer)) for mistake in NOTES[name].wrong}
    assert len(said) == len(NOTES[name].wrong) >= 4


def test_a_right_answer_is_no_mistake():
    with pytest.raises(ValueError, match="drift has no wrong answer 2"):
        mistaken(QUESTIONS["drift"], 2)
    with pytest.raises(ValueError, match="no wrong answer 9"):
        mistaken(QUESTIONS["messages_in_all"], 9)


def test_every_question_that_a_plan_asks_besides_has_an_answer(name):
    notes = NOTES[name]
    plans = "\n".join(
        [*(part.do for plan in notes.plans for part in plan), notes.ask, *(each.say for each in notes.wrong)]
    )
    assert notes.replies
    for reply in notes.replies:
        assert f"{reply.question}?" in plans and len(reply.answer.split()) > 4
        plans = plans.replace(f"{reply.question}?", "")
    assert "?" not in plans, plans[max(plans.find("?") - 80, 0) : plans.find("?") + 1]
