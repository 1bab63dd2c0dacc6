"""`course.again()`: asks again what you answered wrong, in the order of the course, a few at a time.

    course.again()          what is open and settled in each chapter, and the first open questions to answer again
    course.again("DDP")     only those of a topic, as progress() prints it, or of a chapter: "all_reduce"

A question is open if its last answer was wrong, and settled if it was wrong once and is right now. It is asked as in
its chapter: below the same text and in front of the same picture. Both are read from the chapter's own cells, so
nothing is written twice.

Left out: skipped questions (for progress() they are no answers either), and what a cell above the question printed:
the link leads there.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from course import chapters, memory
from course.ask import ask
from course.questions import CHAPTERS, QUESTIONS

FEW = 5
"""Questions at a time: more widgets under one cell are scrolled past, not answered."""


@dataclass(frozen=True)
class Place:
    """Where a chapter asks a question: below which words, and in front of which picture (Python, "" for none)."""

    above: str
    picture: str


def again(about: str = "") -> None:
    """Show how each chapter stands, and ask the first open questions."""
    names = _about(about)
    if names is None:
        return
    now = {name: right for name, right in _standing().items() if name in names}
    missed = [name for name, right in now.items() if not right]
    if not now:
        print(_nothing_missed(about))
        return
    for file, title, places in _chapters(now):
        here = [name for name in missed if name in places]
        _say(f"**[{title}]({file})**: {len(here)} open, {len(places) - len(here)} settled")
        for name in [name for name in here if name in missed[:FEW]]:
            _ask(name, places[name])
    if len(missed) > FEW:
        print(f"{len(missed) - FEW} more are open: answer these, then run the cell again.")
    elif not missed:
        print("Nothing is open: what you had wrong is right now.")


def _about(about: Any) -> set[str] | None:
    """The questions of a topic or a chapter, all for ""; None, after saying so, if there is no such thing."""
    by_word: dict[str, set[str]] = {"": set(QUESTIONS)}
    for chapter, module in CHAPTERS.items():
        for question in module.QUESTIONS:
            for word in (chapter, question.topic):
                by_word.setdefault(word.lower(), set()).add(question.name)
    word = str(about).lower()
    if word in by_word:
        return by_word[word]
    close = get_close_matches(word, filter(None, by_word), n=3)
    meant = (
        f"Did you mean {' or '.join(map(repr, close))}?"
        if close
        else "progress() prints the topics: from course import progress."
    )
    print(f"There is no topic or chapter {about!r}. {meant}")
    return None


def _standing() -> dict[str, bool]:
    """For each question ever answered wrong, whether the last answer is right; in the order of the course. A question
    answered while its solution was withheld is open once the solution is released."""
    found, kept = {}, memory.answers()
    for name in QUESTIONS:
        right = [each["right"] for each in kept.get(name, []) if each["said"] is not None]
        if not all(right) and not QUESTIONS[name].sealed:
            found[name] = bool(right[-1])
    return found


def _nothing_missed(about: str) -> str:
    where = f' about "{about}"' if about else ""
    if memory.answers():
        return f"You have no wrong answer{where}, so there is nothing to ask again."
    return "No answer of yours is kept yet: answer questions in the chapters, then run this cell again."


def _chapters(names: Iterable[str]) -> Iterator[tuple[str, str, dict[str, Place]]]:
    """For each chapter that asks one of the questions: file, title, and the place of each question."""
    for path in chapters.notebooks():
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        title = re.search(r"^# (.*)$", "".join(cells[0]["source"]), re.MULTILINE)
        places = {name: place for name, place in _places(cells) if name in names}
        if places:
            yield path.name, title[1] if title else path.stem, places


def _places(cells: list[dict[str, Any]]) -> Iterator[tuple[str, Place]]:
    above = ""
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            above = re.split(r"^#+ .*$", source, flags=re.MULTILINE)[-1].strip()  # what is below its last heading
        elif "ask(" in source and not source.startswith("%"):
            yield from ((name, Place(above, picture)) for name, picture in _asked(source))


def _asked(source: str) -> Iterator[tuple[str, str]]:
    """The names that a cell asks, each with the text of its picture."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ask" and node.args:
            name, *picture = map(ast.unparse, node.args)
            yield ast.literal_eval(name), "".join(picture)


def _say(words: str) -> None:
    from IPython.display import Markdown, display

    display(Markdown(words))


def _ask(name: str, place: Place) -> None:
    from IPython.display import display  # imported here: no wait if nothing is asked again

    import collectives
    import widgets

    # Safe to eval: a chapter's picture calls these two packages, Player(all_reduce.ring(4)), not a student's text.
    names = {**vars(collectives), **vars(widgets)}
    # A picture of the chapter's own run, or of what it compiled, cannot be drawn here: ask without it.
    used = {node.id for node in ast.walk(ast.parse(place.picture)) if isinstance(node, ast.Name)}
    picture = eval(place.picture, names) if place.picture and used <= names.keys() else None
    _say(place.above)
    display(ask(name, picture))
