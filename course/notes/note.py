"""What an instructor's notes on a chapter are: a plan for 50 minutes and one for 90, a question to the room, mistakes.

Nothing of a chapter is typed again here. A part of a plan names a heading of the chapter, a question stands here by its
name, and a wrong answer by its question and its number; the words come from the chapter and from course/questions.

Left out: how it looks on a page (course/pack).
"""

from dataclasses import dataclass

from course.questions.question import Answer, Choose, Click, Question, Statement


@dataclass(frozen=True)
class Part:
    """So many minutes on the section under `heading`; `do` is what you do with the room, in Markdown."""

    minutes: int
    heading: str
    do: str


@dataclass(frozen=True)
class Again:
    """The short plan's part under `heading`, in the long plan; `also` is what you do besides."""

    minutes: int
    heading: str
    also: str = ""


@dataclass(frozen=True)
class Mistake:
    """What they will get wrong: an answer to `question`, and what to `say` to the room beyond the answer's own why.

    `answer` counts from 0: in `answers` of a Choose, in `wrong` of other kinds; a Statement has one wrong answer only.
    """

    question: str
    say: str
    answer: int = 0


@dataclass(frozen=True)
class Reply:
    """A model answer to a question that a plan has you ask, in its words there, or that a student asks; without "?"."""

    question: str
    answer: str


@dataclass(frozen=True, kw_only=True)
class Notes:
    """The notes of one chapter; all text is Markdown.

    fifty     the plan for 50 minutes; its minutes add up to 50
    ninety    the plan for 90 minutes; `plans` writes out what it takes from the short one
    home      what the 50 minutes leave to be read or solved at home
    room      the name of the question to ask the room
    ask       how to ask it: what to draw, what the hands will say, when to open the answer
    wrong     what they will get wrong
    sheet     names of the questions on the handout, those first that come first in the chapter
    replies   model answers to what the plans ask besides
    thrown_in what students ask in between, found in a rehearsal on paper, and an answer
    """

    fifty: tuple[Part, ...]
    ninety: tuple[Part | Again, ...]
    home: str
    room: str
    ask: str
    wrong: tuple[Mistake, ...]
    sheet: tuple[str, ...]
    replies: tuple[Reply, ...]
    thrown_in: tuple[Reply, ...] = ()

    @property
    def plans(self) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
        """Both plans; what the long one takes from the short one is written out."""
        short = {part.heading: part.do for part in self.fifty}
        ninety = (
            part if isinstance(part, Part) else Part(part.minutes, part.heading, f"{short[part.heading]} {part.also}")
            for part in self.ninety
        )
        return self.fifty, tuple(ninety)


def mistaken(question: Question, answer: int) -> Answer:
    """The wrong answer with that number; ValueError where there is none or where it is right."""
    match question:
        case Statement():
            return Answer(str(not question.true).lower(), question.why)
        case Choose() if answer != question.right and 0 <= answer < len(question.answers):
            return question.answers[answer]
        case Choose() | Click():
            raise ValueError(f"{question.name} has no wrong answer {answer}")
    wrong: tuple[Answer, ...] = getattr(question, "wrong", ())
    if not 0 <= answer < len(wrong):
        raise ValueError(f"{question.name} has no wrong answer {answer}")
    return wrong[answer]
