"""Answers with units: the browser and course/teach/quantity.py read the same, and agree about every number."""

import math
import random
from dataclasses import replace

import pytest

from course.ask import for_browser
from course.questions import QUESTIONS
from course.questions.question import Answer, Number
from course.teach.quantity import is_right, quantity
from tests.widgets.conftest import ask

NUMBERS = {name: question for name, question in QUESTIONS.items() if isinstance(question, Number)}
UNITS = ["s", "bytes", "bytes/s", "GB", "N", "%", "messages"]
NAMES = "s ms us µs ns sec seconds milliseconds minutes min MB mb Mb kB KB kb MiB Mbit megabytes gigabits GB/s GB p N %"
READ = """async (asked) => {
    const { readQuantity } = await import("/js/quantity.js");
    return asked.map(([said, unit]) => readQuantity(said, unit, 4)?.value ?? null);
}"""
JUDGE = """async (asked) => {
    const { judgeNumber } = await import("/js/grade.js");
    return asked.map(([question, said]) => judgeNumber(question, said)?.right ?? false);
}"""


def test_both_read_the_same(modules):
    rng = random.Random(3)
    said = [
        f"{number}{gap}{name}"
        for number in ("3", "1.5", "12e6", "2(p-1)")
        for gap in ("", " ")
        for name in NAMES.split()
    ]
    said += ["half", "a quarter GB", "1e6", "", "3 ms per s", "50 GB per second", "7 7", "0x10 s", "3 Ks", "1,000 MB"]
    said += [f"{rng.random():.4g} {rng.choice(NAMES.split())}{rng.choice(['', '/s', ' s'])}" for _ in range(500)]
    asked = [[text, unit] for text in said for unit in UNITS]
    for (text, unit), there in zip(asked, ask(modules, READ, asked), strict=True):
        here = quantity(text, unit, 4)
        assert (here is None) == (there is None), (text, unit, here, there)
        assert here is None or math.isclose(here, there, rel_tol=1e-9), (text, unit, here, there)


def test_both_judge_the_same(modules):
    asked, here = [], []
    for question in NUMBERS.values():
        question = replace(question, p=question.p or 4)
        for text in (question.right.text, *(each.text for each in question.wrong), "7", "3 ms", "1 GB", "none"):
            asked.append([for_browser(question), text])
            here.append(is_right(question, text))
    assert ask(modules, JUDGE, asked) == here and 0.1 < sum(here) / len(here) < 0.5


def test_a_number_that_needs_the_p_of_a_picture_is_not_judged():
    question = Number(name="a", topic="", text="", right=Answer("p", ""), wrong=(), unit="messages")
    assert is_right(question, "4") is None


@pytest.mark.parametrize("name", NUMBERS)
def test_what_is_right_is_right(name):
    assert is_right(NUMBERS[name], NUMBERS[name].right.text) is not False
