"""What a question is: what it asks, what is right and why, and what people answer who are wrong, each with its reason.

A question stands in a chapter as `ask("its name")`; what is right stands here, so that no chapter holds an answer
beside its question. The kinds: Choose (one of several answers), Statement (true or false), Number (as a student writes
it, js/amount.js), Click (cells of a picture), Order (lines into their order) and FindLine (the line of a program
that is wrong). Text may hold `code` in backticks.

A sentence says why: what was counted, what the answer would have meant. `step` is the step of the picture that stands
under the question (counted from 1) that shows it.

Left out: the picture itself, which the chapter hands over (`ask("its name", Player(...))`).
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Answer:
    """One thing that can be said: for a Choose and an Order the text, for a Number a formula in p ("p*(p-1)")."""

    text: str
    why: str
    step: int | None = None


@dataclass(frozen=True, kw_only=True)
class Question:
    """What all kinds have. `topic` is a few words by which answers are counted: "all_reduce", "cost", "blocking".

    `sealed`: a copy in which answers are withheld; what is right and why is not in it (course/teach/withhold.py).
    """

    name: str
    topic: str
    text: str
    sealed: bool = False


@dataclass(frozen=True, kw_only=True)
class Choose(Question):
    """One of `answers` is `right`, by its number from 0; shown in the order in which they stand."""

    answers: tuple[Answer, ...]
    right: int


@dataclass(frozen=True, kw_only=True)
class Statement(Question):
    """A sentence that one meets, and whether it is so. `why` is said to either answer, after right or wrong."""

    true: bool
    why: str


@dataclass(frozen=True, kw_only=True)
class Number(Question):
    """A number in `unit` ("messages", "N", "s", "bytes"), where p is `p`; `within` of it, as a share, is right.

    `right.text` and those of `wrong` are formulas in p. What matches none is told how far off it is, and `right.why`.
    """

    right: Answer
    wrong: tuple[Answer, ...]
    unit: str
    p: int | None = None
    within: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Click(Question):
    """The cells that `step` of the picture under it writes are to be clicked."""

    step: int
    why: str


@dataclass(frozen=True, kw_only=True)
class Order(Question):
    """`lines` stand here as they should be, and are shown in another order; `wrong` by two lines the wrong way round.

    The text of a wrong Answer is "b, a": the numbers, from 0, of two lines of which a stands before b in `lines`.
    """

    lines: tuple[str, ...]
    why: str
    wrong: tuple[Answer, ...] = field(default=())


@dataclass(frozen=True, kw_only=True)
class FindLine(Question):
    """A program of somebody else: which line of `source` is wrong? `right` has its number, from 1, or those of several.

    The text of a wrong Answer is the number of a line that people suspect, and its why what that line does.
    """

    source: str
    right: tuple[int, ...]
    why: str
    wrong: tuple[Answer, ...]
