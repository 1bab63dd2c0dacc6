"""`ask("name")`: put a question of the course in place, alone or in front of a picture that opens after it.

    ask("messages")                              the question by itself
    ask("messages", Player(all_reduce.ring(4)))  the picture under it tells nothing before an answer, or a skip

The browser judges the answer (widgets/question.py) and the kernel only keeps it (course/memory.py), so nothing waits
here. Whoever runs the cell again is asked again.

Left out: the questions themselves (course/questions), which stand nowhere in a chapter.
"""

from __future__ import annotations

import sys
from difflib import get_close_matches
from random import Random
from typing import TYPE_CHECKING, Any

from course import memory
from course.chapters import LATE_IMPORTS
from course.questions import CHAPTERS, QUESTIONS
from course.questions.question import Answer, Choose, Click, FindLine, Number, Order, Question, Statement

if TYPE_CHECKING:
    from widgets.question import Asked


def ask(name: str = "", picture: Any = None) -> Asked | None:
    """Ask the question `name`. With a picture (a Player, Race, Timeline ...) that opens once it was answered."""
    from widgets import question as asked  # here, because a chapter that only imports `check` need not load widgets

    found = _called(name)
    if found is None:
        return picture if isinstance(picture, asked.Asked) else None
    _get_ahead(found)
    if picture is not None and not isinstance(picture, asked.Asked):
        print(f"ask puts a question before a picture such as Player(...); {picture!r:.60} is none.")
    shown = picture if isinstance(picture, asked.Asked) else asked.Question()
    schedule = getattr(shown, "schedule", None)
    if isinstance(found, Click) and schedule is None:
        print(f'The question {name!r} is answered in a Player: ask("{name}", Player(...)).')
        return picture
    shown.ask(for_browser(found, getattr(schedule, "ranks", None), len(schedule.steps) if schedule else None))
    shown.unobserve_all("predicted")  # a picture that an earlier question stood before
    shown.observe(lambda change: _keep(found.name, change["new"]), "predicted")
    return shown


def for_browser(question: Question, ranks: int | None = None, steps: int | None = None) -> dict[str, Any]:
    """What js/grade.js calls Question. `ranks` is p where the question does not say it."""
    sealed = {"sealed": True, "right": -1} if question.sealed else {}
    return {"name": question.name, "text": question.text} | _kind(question, ranks, steps) | sealed


def _kind(question: Question, ranks: int | None, steps: int | None) -> dict[str, Any]:
    match question:
        case Choose():
            return {"kind": "choose", "answers": [_answer(each) for each in question.answers], "right": question.right}
        case Statement():
            answers = [{"text": text, "why": question.why} for text in ("true", "false")]
            answers[question.true]["why"] = ""  # it is said once, after what is so
            return {"kind": "statement", "answers": answers, "right": int(not question.true)}
        case Number():
            return {
                "kind": "number",
                "is": _answer(question.right),
                "wrong": [_answer(each) for each in question.wrong],
                "unit": question.unit,
                "p": question.p or ranks,
                "within": question.within,
            }
        case Click():
            return {"kind": "cells", "step": min(question.step, steps or 1), "why": question.why}
        case Order():
            return {"kind": "order", "why": question.why} | _mixed(question)
        case FindLine():
            return {"kind": "line", "answers": _lines(question), "right": [line - 1 for line in question.right]}
    raise TypeError(f"{question.name} is of no kind that can be asked")


def _answer(answer: Answer) -> dict[str, Any]:
    return {"text": answer.text, "why": answer.why, "step": answer.step}


def _mixed(question: Order) -> dict[str, Any]:
    """The lines in an order that is not theirs, the same on every run; places in it stand for the lines."""
    count = len(question.lines)
    order = list(range(count))
    seeds = (f"{question.name} {number}" for number in range(99))
    while order in (list(range(count)), list(range(count))[::-1]) and count > 2:
        Random(next(seeds)).shuffle(order)
    order = order[::-1] if count == 2 else order
    place = {line: at for at, line in enumerate(order)}
    wrong = [
        _answer(each) | {"text": ",".join(str(place[int(line)]) for line in each.text.split(","))}
        for each in question.wrong
    ]
    return {
        "lines": [question.lines[line] for line in order],
        "order": [place[i] for i in sorted(place)],
        "wrong": wrong,
    }


def _lines(question: FindLine) -> list[dict[str, Any]]:
    """Each line of the program as an answer."""
    known = {int(answer.text): answer.why for answer in question.wrong}
    return [
        {"text": line, "why": question.why if number in question.right else known.get(number, "That line is fine.")}
        for number, line in enumerate(question.source.strip("\n").splitlines(), start=1)
    ]


def _called(name: Any) -> Question | None:
    """The question of that name; None if there is none, which is said."""
    question = QUESTIONS.get(name) if isinstance(name, str) else None
    if question is None:
        close = get_close_matches(str(name), QUESTIONS, n=3)
        meant = f"Did you mean {' or '.join(map(repr, close))}?" if close else 'Write its name in quotes: ask("name").'
        print(f"There is no question {name!r}. {meant}")
    return question


def _get_ahead(question: Question) -> None:
    """While the question is read, the ranks' agent imports what the ranks of its chapter will need."""
    launched = sys.modules.get("launch.magics")
    ranks = launched.loaded() if launched else None
    chapter = next((name for name, module in CHAPTERS.items() if question in module.QUESTIONS), "")
    if ranks and chapter in LATE_IMPORTS:
        ranks.will_import(LATE_IMPORTS[chapter])


def _keep(name: str, predicted: dict[str, Any] | None) -> None:
    """What one person said; the hands of a room are nobody's."""
    if predicted and predicted.get("said") is None:
        memory.answered(name, None, False)
    elif predicted and predicted.get("right") is not None:
        memory.answered(name, predicted.get("text") or "", bool(predicted["right"]))
    elif predicted and predicted.get("text") and QUESTIONS[name].sealed:
        memory.answered(name, predicted["text"], None)
