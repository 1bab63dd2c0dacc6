"""What `ask` puts into a chapter: the same on every run, never what is right, and one sentence where it cannot ask."""

from types import SimpleNamespace

import pytest

from collectives import all_reduce
from course import ask as put
from course import memory
from course.ask import for_browser
from course.chapters import COMPILER
from course.questions import QUESTIONS
from course.questions.question import Answer, Choose, Click, FindLine, Number, Order
from widgets import Player

LINES = ("a = 1", "b = 2", "c = 3", "d = 4")
ASKED = [
    Choose(name="gets", topic="send", text="What?", answers=(Answer("old", "Sent."), Answer("`new`", "No.")), right=0),
    Number(name="sent", topic="cost", text="How many?", right=Answer("2*(p-1)", "In, out."), wrong=(), unit="messages"),
    Click(name="cells", topic="ring", text="Which cells?", step=2, why="The next chunk."),
    Order(name="lines", topic="ring", text="Order?", lines=LINES, why="So.", wrong=(Answer("2, 1", "No."),)),
    FindLine(name="bug", topic="send", text="Line?", source="a\nb < c\n", right=(2,), why="So.", wrong=()),
]


@pytest.fixture(autouse=True)
def questions(monkeypatch, tmp_path):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    for question in ASKED:
        monkeypatch.setitem(QUESTIONS, question.name, question)


def saved(widget) -> dict:
    return {name: text for name, text in widget._repr_mimebundle_()[0].items() if name.startswith("text/")}


def test_while_a_question_is_read_the_agent_imports_what_its_chapter_needs(monkeypatch):
    told = []
    monkeypatch.setattr("launch.magics.loaded", lambda: SimpleNamespace(will_import=told.append))
    put("ring_same_bits")
    put("gets")
    assert told == []
    put("tp_row")
    assert told == [COMPILER]


@pytest.mark.parametrize("name", ["gets", "sent", "lines", "bug"])
def test_what_is_saved_is_the_same_on_every_run_and_has_no_answer(name):
    once, again = saved(put(name)), saved(put(name))
    assert once == again and QUESTIONS[name].text in once["text/html"] and QUESTIONS[name].text in once["text/plain"]
    assert "In, out" not in str(once) and "So." not in str(once) and "Sent" not in str(once)


def test_the_choices_can_be_read_where_no_browser_runs():
    assert "<li>old</li><li><code>new</code></li>" in saved(put("gets"))["text/html"]
    assert "<li><code>b&nbsp;&lt;&nbsp;c</code></li>" in saved(put("bug"))["text/html"]


def test_a_picture_behind_a_question_does_not_tell_its_name_or_steps():
    told = str(saved(put("sent", Player(all_reduce.ring(4), step=3))))
    assert "ring" not in told and "steps" not in told and "reduce-scatter" not in told and "4 ranks" in told
    assert put("sent", Player(all_reduce.ring(4))).question["p"] == 4


def test_lines_are_shown_in_another_order():
    asked = for_browser(ASKED[3])
    assert [asked["lines"][place] for place in asked["order"]] == list(LINES) and tuple(asked["lines"]) != LINES
    later, earlier = map(int, asked["wrong"][0]["text"].split(","))
    assert (asked["lines"][later], asked["lines"][earlier]) == ("c = 3", "b = 2")
    two = for_browser(Order(name="two", topic="", text="", lines=LINES[:2], why=""))
    assert two["lines"] == ["b = 2", "a = 1"] and two["order"] == [1, 0]


def test_answers_are_kept_and_whoever_asks_again_is_asked_afresh():
    player = Player(all_reduce.ring(4))
    for said, text, right in [(0, "4", False), (None, None, None), ([1, 2], None, None)]:  # the last one by a room
        put("sent", player).predicted = {"said": said, "text": text, "right": right, "words": ""}
    assert memory.answers() == {"sent": [{"said": "4", "right": False}, {"said": None, "right": False}]}
    assert put("sent", player).predicted is None


@pytest.mark.parametrize(
    "given, words",
    [
        (("snet",), "There is no question 'snet'. Did you mean 'sent'"),
        ((3,), "There is no question 3. Write its name in quotes"),
        (("cells",), 'is answered in a Player: ask("cells", Player(...))'),
        (("sent", 4), "ask puts a question before a picture such as Player(...); 4 is none."),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(given, words, capsys):
    put(*given)
    out = capsys.readouterr().out
    assert words in out and out.count("\n") == 1
