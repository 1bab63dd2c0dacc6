"""Nothing tells before it asks: every chapter is walked down to each of its questions, as a student walks it.

What stands above a question is what a student has seen when they come to it: the text and the code of the chapter, what
its cells have printed, and the cell of the question itself; and what is on the same screen below it, down to the first
text: a run that follows has printed nothing yet, and what is folded away (`<details>`) is not read. None of it may hold
the answer: a number with its unit ("6 messages"), an answer of several words, the reason letter for letter,
the lines in their order. Numbers below 3 are left out, since "1 step" says nothing by itself; so is a picture, which
the widget keeps closed (tests/widgets/test_question.py), unless an earlier cell has shown the same one openly.

In chapters 0 to 10 no sentence below a question has three quarters of its words from the verdict.

Left out: an answer in quite other words. A chapter without questions is not walked.
"""

import ast
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from course.questions import CHAPTERS, QUESTIONS
from course.questions.question import Answer, Choose, Click, FindLine, Number, Order, Question, Statement
from course.teach.amount import amount

COURSE = Path(__file__).parents[2] / "course"
ASKS = re.compile(r'\bask\(\s*"(\w+)"')
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
FEW = 3
PREFIXES = {
    "s": {"s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6},
    "bytes": {"bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9},
    "bytes/s": {"MB/s": 1e6, "GB/s": 1e9},
}
FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
MOST_CELLS, MOST_WORDS = 35, 2500


@dataclass(frozen=True)
class Chapter:
    """A chapter with questions; `asked` are the places of its cells that ask."""

    name: str
    cells: list
    asked: tuple[tuple[int, str], ...]


def chapter_of(path: Path) -> Chapter:
    cells = nbformat.read(path, as_version=4).cells
    code = [(at, cell.source) for at, cell in enumerate(cells) if cell.cell_type == "code"]
    return Chapter(path.stem, cells, tuple((at, name) for at, source in code for name in ASKS.findall(source)))


ALL = [chapter_of(path) for path in sorted(COURSE.glob("*.ipynb"))]
CONVERTED = [chapter for chapter in ALL if chapter.asked]
ASKED = [(chapter, at, name) for chapter in CONVERTED for at, name in chapter.asked]


def plain(text: str) -> str:
    """Without markup and line breaks, in small letters, so that the same words are the same text."""
    return " ".join(re.sub(r"[`*_“”\"]", "", text).lower().split())


def shown(output) -> str:
    """The words of an output; nothing of a picture."""
    return output.get("text", "") + output.get("data", {}).get("text/plain", "")


def seen(cells: list, at: int) -> str:
    """What can be read when the question in cell `at` is met."""
    above = [cell.source + "\n" + "\n".join(map(shown, cell.get("outputs", ()))) for cell in cells[:at]]
    text = next((below for below in range(at + 1, len(cells)) if cells[below].cell_type == "markdown"), at)
    return plain("\n".join(above + [FOLDED.sub("", cell.source) for cell in cells[at : text + 1]]))


def telling(question: Question) -> list[str]:
    """The texts, as `plain` has them, that would give the answer away."""
    told = [question.why] if isinstance(question, Statement | Click | Order | FindLine) else []
    if isinstance(question, Statement):
        told.append(question.text)
    if isinstance(question, Choose):
        right = question.answers[question.right]
        told += [right.why] + [right.text] * (len(right.text.split()) > 2 or quantity(right.text) >= FEW)
    if isinstance(question, Order):
        told.append(" ".join(question.lines))
    if isinstance(question, Number):
        told += [question.right.why, *written(question)]
    return [plain(text) for text in told if text]


def quantity(text: str) -> float:
    """The number of "6 messages"; 0 of other texts."""
    found = re.fullmatch(r"(\d[\d.]*) \w+", text)
    return float(found[1]) if found else 0


def written(question: Number) -> list[str]:
    """How the answer would be written: "6 messages", "six messages"; "3 ms" as it stands; "525 ms", "0.525 s"."""
    text, unit = question.right.text, question.unit
    if re.search(r"[a-zA-Z]$", text) and not re.search(r"[pN]$", text):
        return [text]  # "3 ms"
    value = amount(text, question.p or 4)
    if value is None or (value < FEW and unit not in PREFIXES):
        return []
    if unit in PREFIXES:
        return [f"{value / size:.4g} {prefix}" for prefix, size in PREFIXES[unit].items()]
    number = f"{value:.3f}".rstrip("0").rstrip(".")
    named = [NUMBERS[int(value)]] if value == int(value) < len(NUMBERS) else []
    return [f"{each} {unit}" for each in [number, *named]]


def leaks(chapter: Chapter, at: int, question: Question) -> list[str]:
    """What stands above or beside the question and tells."""
    text = seen(chapter.cells, at)
    found = [told for told in telling(question) if says(text, told)]
    if isinstance(question, Number) and "p" in question.right.text:
        formula = plain(f"{question.right.text} {question.unit}")  # of a check's output it is what another one costs
        prose = [cell.source for cell in chapter.cells[:at] if cell.cell_type == "markdown"]
        found += [formula] if says(plain("\n".join(prose)), formula) else []
    picture = pictured(chapter.cells[at].source)
    before = [normal(cell.source) for cell in chapter.cells[:at] if cell.cell_type == "code"]
    if isinstance(question, Number | Click) and picture and any(picture in plain(cell) for cell in before):
        found.append(f"the picture {picture}")
    return found


def says(text: str, words: str) -> bool:
    return bool(re.search(rf"(?<![\w.]){re.escape(words)}(?!\w)", text))


def pictured(source: str) -> str:
    """The picture that is handed to `ask`, as text; "" without one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ask" and len(node.args) > 1:
            return plain(ast.unparse(node.args[1]))
    return ""


def normal(source: str) -> str:
    """Code as `ast` writes it, if it is Python."""
    try:
        return ast.unparse(ast.parse(source))
    except SyntaxError:  # a cell with a magic
        return source


SIX = Number(name="n", topic="t", text="?", unit="messages", p=4, right=Answer("2*(p-1)", "In, out."), wrong=())
OLD = Choose(name="n", topic="t", text="?", right=0, answers=(Answer("the old value", "Sent."), Answer("no", "No.")))
LINES = Order(name="n", topic="t", text="?", lines=("a = 1", "b = 2"), why="First a.")
SHOWN = new_output("stream", text="6 messages\n")
PLAYED = new_code_cell("Player(all_reduce.ring(ranks=4))")


@pytest.mark.parametrize(
    "question, above, tells",
    [
        (SIX, [new_markdown_cell("It sends **6 messages**.")], True),
        (SIX, [new_markdown_cell("Six\nmessages are sent.")], True),
        (SIX, [new_markdown_cell("It sends 16 messages, and a ring of 6 ranks.")], False),
        (SIX, [new_code_cell("count()", outputs=[SHOWN])], True),
        (SIX, [new_markdown_cell("It sends `2*(p-1)` messages.")], True),
        (SIX, [PLAYED], True),
        (SIX, [new_code_cell('ask("other", Player(all_reduce.ring(ranks=8)))')], False),
        (OLD, [new_markdown_cell("It gets `the old value`.")], True),
        (OLD, [new_markdown_cell("It gets a value.")], False),
        (LINES, [new_code_cell("%%ranks\na = 1\nb = 2")], True),
        (LINES, [new_code_cell("%%ranks\nb = 2\na = 1")], False),
    ],
)
def test_what_tells_is_found(question, above, tells):
    asks = new_code_cell('ask("n", Player(all_reduce.ring(ranks=4)))')
    below = new_code_cell("print('below')")
    assert bool(leaks(Chapter("made", [*above, asks, below], ()), len(above), question)) == tells


def test_what_is_below_tells_too_but_for_what_a_run_will_print_and_what_is_folded():
    run, text = new_code_cell("count()", outputs=[SHOWN]), new_markdown_cell("It gets the old value.")
    folded = new_markdown_cell(f"<details><summary>After your run</summary>\n\n{text.source}\n\n</details>\n\nNext.")
    for below, number, value in (
        (run, False, False),
        (new_code_cell("count()  # 6 messages"), True, False),
        (text, False, True),
        (folded, False, False),
    ):
        made = Chapter("made", [new_code_cell('ask("n")'), run, below, folded], ())
        assert (bool(leaks(made, 0, SIX)), bool(leaks(made, 0, OLD))) == (number, value)


@pytest.mark.parametrize("chapter, at, name", ASKED, ids=[f"{chapter.name}-{name}" for chapter, _, name in ASKED])
def test_nothing_tells_before_it_asks(chapter, at, name):
    assert name in QUESTIONS, f'{chapter.name} asks "{name}", which course/questions does not have'
    found = leaks(chapter, at, QUESTIONS[name])
    assert not found, f'{chapter.name} tells the answer of "{name}" above or beside it: {found}'


@pytest.mark.parametrize("chapter", CONVERTED[:11], ids=lambda chapter: chapter.name)
def test_no_sentence_below_a_question_says_what_its_verdict_says(chapter):
    """The verdict says it, to a student who has answered or skipped. Left out: chapters from 11 on."""
    found = []
    for at, name in chapter.asked:
        below = next((cell.source for cell in chapter.cells[at:] if cell.cell_type == "markdown"), "")
        verdict = content(told_by(QUESTIONS[name]))
        for sentence in re.split(r"(?<=[.:?!])\s+|\n\n", FOLDED.sub("", below)):
            words = content(sentence)
            if len(words) >= 5 and len(words & verdict) >= 0.75 * len(words):
                found.append((name, sentence))
    assert not found


def content(text: str) -> set[str]:
    """The numbers in it, and the words of four letters or more."""
    return set(re.findall(r"[a-z_]{4,}|\d[\d.,]*\d|\d", plain(text)))


def told_by(question: Question) -> str:
    """What the verdict ends with, whatever was answered."""
    if isinstance(question, Choose):
        return f"{question.answers[question.right].text} {question.answers[question.right].why}"
    return f"{question.right.text} {question.right.why}" if isinstance(question, Number) else question.why


def test_every_question_is_asked_exactly_once():
    asked = Counter(name for _, _, name in ASKED)
    started = {chapter.name.split("_", 1)[-1] for chapter in CONVERTED}
    due = [q.name for name, module in CHAPTERS.items() if name in started for q in module.QUESTIONS]
    assert {name: asked[name] for name in due if asked[name] != 1} == {}
    assert max(asked.values(), default=1) == 1
    assert len(QUESTIONS) == sum(len(module.QUESTIONS) for module in CHAPTERS.values()), "two questions have one name"


def test_no_sentence_is_asked_twice():
    texts = Counter(plain(question.text) for question in QUESTIONS.values() if isinstance(question, Statement))
    assert [text for text, times in texts.items() if times > 1] == []


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_every_wrong_answer_has_its_own_reason(question):
    assert question.topic and question.text
    if isinstance(question, Choose):
        assert 0 <= question.right < len(question.answers) <= 9
        wrong = [answer for i, answer in enumerate(question.answers) if i != question.right]
        assert len({answer.text for answer in question.answers}) == len(question.answers)
    elif isinstance(question, Number):
        wrong = question.wrong
    elif isinstance(question, FindLine):
        wrong = question.wrong
        lines = range(1, len(question.source.strip("\n").splitlines()) + 1)
        assert {*question.right, *(int(answer.text) for answer in wrong)} <= set(lines)
        assert not {str(line) for line in question.right} & {answer.text for answer in wrong}
    else:
        assert question.why
        return
    whys = [plain(answer.why) for answer in wrong]
    assert len(whys) >= 2 and len(set(whys)) == len(whys) and all(whys)


def test_the_place_of_the_right_answer_is_no_help():
    """Each of the first three places has it in at least a fifth of the questions; not all have four."""
    places = Counter(question.right for question in QUESTIONS.values() if isinstance(question, Choose))
    assert min(places[place] for place in range(3)) >= places.total() / 5, places


@pytest.mark.parametrize("module", CHAPTERS.values(), ids=CHAPTERS)
def test_half_of_the_statements_are_true(module):
    """Of an odd number one more or less."""
    true = [question.true for question in module.QUESTIONS if isinstance(question, Statement)]
    assert abs(2 * sum(true) - len(true)) <= 1, f"{sum(true)} of {len(true)} are true"


@pytest.mark.parametrize("chapter", CONVERTED, ids=lambda chapter: chapter.name)
def test_a_chapter_is_read_in_an_hour(chapter):
    code = sum(cell.cell_type == "code" for cell in chapter.cells)
    words = sum(len(cell.source.split()) for cell in chapter.cells if cell.cell_type == "markdown")
    assert code <= MOST_CELLS and words <= MOST_WORDS, f"{chapter.name}: {code} code cells, {words} words"
