"""`again()`: what was predicted wrong is asked afresh, as its chapter asks it; one sentence where nothing is open."""

import importlib

import IPython.display
import pytest

from course import again, memory
from course.questions import CHAPTERS, QUESTIONS
from course.questions.question import Click
from widgets.question import Asked

module = importlib.import_module("course.again")  # `course.again` is the function


@pytest.fixture
def shown(tmp_path, monkeypatch):
    """What is displayed; the answers are kept in an empty folder."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    displayed = []
    monkeypatch.setattr(IPython.display, "display", displayed.append)
    return displayed


def answer(**given):
    for name, rights in given.items():
        for right in rights:
            memory.answered(name, None if right is None else "said", bool(right))


def asked(shown) -> list[str]:
    return [each.question["name"] for each in shown if isinstance(each, Asked)]


def test_without_a_file_it_is_one_sentence(shown, capsys):
    again()
    assert "No answer of yours is kept yet" in (out := capsys.readouterr().out) and out.count("\n") == 1
    assert shown == []


def test_without_a_wrong_answer_it_is_one_sentence(shown, capsys):
    answer(naive_busiest=[None, True], busbw_measured=[None])
    again()
    assert capsys.readouterr().out == "You have no wrong answer, so there is nothing to ask again.\n" and shown == []


def test_the_last_answer_says_what_is_open_and_what_is_settled(shown, capsys):
    answer(busbw_measured=[True, False, None], naive_busiest=[False, True])
    answer(ring_first_step=[False], ring_same_bits=[True])
    again()
    assert asked(shown) == ["ring_first_step", "busbw_measured"], "in the order of the course"
    five, _, _, six, _, _ = shown
    assert five.data == "**[5 · All-reduce from first principles](05_all_reduce.ipynb)**: 1 open, 1 settled"
    assert six.data == "**[6 · What a message costs](06_cost.ipynb)**: 1 open, 0 settled"
    assert capsys.readouterr().out == ""


def test_it_is_asked_as_its_chapter_asks_it_and_the_answer_is_kept(shown, capsys):
    answer(ring_first_step=[False])
    again()
    _, words, player = shown
    assert len(words.data.split()) > 20 and "\n#" not in words.data, "what is below the last heading"
    assert player.schedule.algorithm == "ring" and player.predicted is None
    player.predicted = {"said": [1], "text": "1", "right": True, "words": ""}
    shown.clear()
    again()
    assert len(shown) == 1 and shown[0].data.endswith(": 0 open, 1 settled")
    assert capsys.readouterr().out == "Nothing is open: what you had wrong is right now.\n"


def test_a_few_at_a_time(shown, capsys):
    names = list(QUESTIONS)[:7]
    answer(**{name: [False] for name in names})
    again()
    assert asked(shown) == names[: module.FEW]
    assert capsys.readouterr().out == "2 more are open: answer these, then run the cell again.\n"


@pytest.mark.parametrize("about", ["ZeRO", "zero", "sharding"])
def test_one_topic_or_one_chapter(shown, about):
    answer(forgotten=[False], sharding_zero3_calls=[False])
    again(about)
    assert asked(shown) == ["sharding_zero3_calls"]


@pytest.mark.parametrize("about, words", [("zeros", "'zero'"), ("xyz", "prints the topics"), (5, "prints the topics")])
def test_an_unknown_topic_is_one_sentence(shown, capsys, about, words):
    again(about)
    assert words in (out := capsys.readouterr().out) and out.count("\n") == 1 and shown == []


def test_every_question_of_the_course_can_be_asked_again(shown):
    """In its own chapter's file, and what is answered in a picture has one."""
    there = {file: places for file, _, places in module._chapters(QUESTIONS)}
    for places in there.values():
        for name, place in places.items():
            module._ask(name, place)
    started = [each for each in CHAPTERS.values() if any(each.QUESTIONS[0].name in places for places in there.values())]
    names = [question.name for chapter in started for question in chapter.QUESTIONS]
    assert len(started) > 10 and asked(shown) == list(dict.fromkeys(asked(shown))) and set(asked(shown)) == set(names)
    clicked = [name for name in names if isinstance(QUESTIONS[name], Click)]
    assert clicked and all(there[file][name].picture for file in there for name in clicked if name in there[file])
