"""A question to a room: what is asked, what the phones have said, and the two pages, one for phones, one for the wall.

A question goes through three stages: the room answers, the wall shows bars, the wall shows what is right. Answers are
kept in memory until the next question, one a phone, and nowhere else.

Left out: how pages travel (server.py); questions that need a picture or lines in order, which phones are
too small for; and a proof that a person answers once: somebody with a script can be several phones.
"""

import math
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, select_autoescape
from markupsafe import Markup

from course.pack.paper import right
from course.questions.question import Choose, FindLine, Number, Question, Statement
from course.teach.quantity import quantity
from widgets.question import rich

MOST_ANSWERS = 500
MOST_BARS = 8
NEXT = ("show the answers", "show what is right", "")
"""What the lecturer can do next, by stage."""

_templates = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=select_autoescape(default=True))
_templates.filters["rich"] = lambda text: Markup(rich(text))


def can_be_asked(question: Question) -> bool:
    return isinstance(question, Choose | Statement | Number | FindLine)


class Room:
    """The questions of one chapter, one of them asked."""

    def __init__(self, questions: list[Question], first: str = ""):
        self.questions = {each.name: each for each in questions if can_be_asked(each)}
        self.round = 0
        self.ask(first if first in self.questions else next(iter(self.questions)))

    def ask(self, name: str) -> None:
        """Ask another question; what was said to the last one is forgotten. KeyError if there is none of that name."""
        self.asked, self.stage, self.round = self.questions[name], 0, self.round + 1
        self.said: dict[str, str] = {}

    def go_on(self) -> None:
        self.stage = min(self.stage + 1, len(NEXT) - 1)

    @property
    def choices(self) -> list[str]:
        """What can be chosen; [] where a number is written."""
        match self.asked:
            case Choose(answers=answers):
                return [each.text for each in answers]
            case Statement():
                return ["true", "false"]
            case FindLine(source=source):
                lines = source.strip("\n").splitlines()
                return [f"{number:2}  {line}" for number, line in enumerate(lines, start=1) if line.strip()]
        return []

    def answer(self, phone: str, text: str) -> str:
        """Take a phone's answer, in place of an earlier one; why not, if it is none."""
        if self.stage:
            return "The room has answered: wait for the next question."
        if isinstance(self.asked, Number):
            number = quantity(text, self.asked.unit, self.asked.p)
            if number is None or not math.isfinite(number):
                return "Write a number, such as 1.5 or 3e-6."
            text = f"{number:.6g}"
        elif text.isascii() and text.isdigit() and int(text) < len(self.choices):
            text = str(int(text))
        else:
            return "Choose one of the answers."
        if phone not in self.said and len(self.said) >= MOST_ANSWERS:
            return f"There are {MOST_ANSWERS} answers already."
        self.said[phone] = text
        return ""

    def bars(self) -> list[tuple[str, int]]:
        """What was said and how often: every choice, or the commonest numbers and the rest together."""
        counts = Counter(self.said.values())
        if self.choices:
            return [(choice, counts[str(number)]) for number, choice in enumerate(self.choices)]
        bars = sorted(counts.most_common(MOST_BARS), key=lambda bar: float(bar[0]))
        rest = counts.total() - sum(count for _, count in bars)
        return [*bars, *[("other numbers", rest)] * (rest > 0)]

    def phone(self, phone: str, why: str = "") -> str:
        """The page of one phone."""
        said = self.said.get(phone)
        return _page("phone.html.j2", room=self, said=said, why=why, code=isinstance(self.asked, FindLine))

    def wall(self, secret: str, address: str) -> str:
        """The lecturer's page."""
        return _page(
            "wall.html.j2",
            room=self,
            next=NEXT[self.stage],
            secret=secret,
            address=address,
            qr=qr(f"http://{address}/"),
        )

    def result(self) -> str:
        """The part of it that changes while answers come."""
        values = {"bars": self.bars(), "right": right(self.asked), "code": isinstance(self.asked, FindLine)}
        return _page("result.html.j2", room=self, **values)


def _page(template: str, **values) -> str:
    return _templates.get_template(template).render(**values)


def qr(link: str) -> str:
    """The link as a picture; "" without segno."""
    if find_spec("segno") is None:
        return ""
    import segno

    return Markup(segno.make(link, micro=False).svg_inline(border=2, light="#fff", omitsize=True))
