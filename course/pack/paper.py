"""The pages of the pack as HTML: the notes on a chapter, its handout, the list of all. Each stands alone.

What is said comes from the chapter (headings, take-aways, still pictures), from course/questions and course/notes.
The handout is one A4 sheet: what is to be predicted above, without answers; what is to be kept below a line on which it
is folded, because it would tell. Its rest is ruled.

Left out: the questions in the browser; those are among the pictures (course/pack/keep.py).
"""

import re
from pathlib import Path

import nbformat
from jinja2 import Environment, FileSystemLoader, select_autoescape
from markupsafe import Markup

from course.chapters import ASKED, name_of
from course.notes import NOTES
from course.notes.note import Mistake, Notes, mistaken
from course.pack.board import BOARD
from course.pack.run import Picture
from course.pages import to_html
from course.questions import QUESTIONS
from course.questions.question import Choose, FindLine, Number, Order, Question, Statement
from widgets.question import rich

HEADING = re.compile(r"^#{1,4} (.+)$", re.MULTILINE)
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
STILL = re.compile(r"<img\b[^>]*>")
MOST_STILLS = 2  # on a sheet
TAKE_AWAY = re.compile(r"^## (?:Take away|Key takeaways)\n(.*?)(?=^## |^\*\*|^\[|\Z)", re.MULTILINE | re.DOTALL)

_templates = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=select_autoescape(default=True))
_templates.filters["markdown"] = lambda text: Markup(to_html(text))
_templates.filters["rich"] = lambda text: Markup(rich(text))


def title(notebook: nbformat.NotebookNode) -> str:
    return headings(notebook)[0]


def headings(notebook: nbformat.NotebookNode) -> list[str]:
    return HEADING.findall(BLOCK.sub("", text(notebook)))


def notes_page(notebook: nbformat.NotebookNode, stem: str, pictures: list[Picture]) -> str:
    """The page of notes; of a chapter without notes it lists the pictures and says so."""
    notes = NOTES.get(name_of(stem))
    html = _templates.get_template("notes.html.j2").render(
        title=title(notebook),
        stem=stem,
        notes=notes,
        plans=zip(("50 minutes", "90 minutes"), notes.plans, strict=True) if notes else [],
        room=_asked(QUESTIONS[notes.room]) if notes else None,
        wrong=[mistake(each) for each in notes.wrong] if notes else [],
        asked=[(name, QUESTIONS[name], *right(QUESTIONS[name])) for name in asked_in(notes)] if notes else [],
        board=BOARD.get(name_of(stem), ()),
        pictures=[(picture, *_named(picture)) for picture in pictures],
    )
    return _linked(html, notebook, stem, pictures)


def asked_in(notes: Notes) -> list[str]:
    """The names of the questions that its plans ask, in their order."""
    plans = " ".join(part.do for plan in notes.plans for part in plan)
    return [name for name in dict.fromkeys(re.findall(r"`(\w+)`", plans)) if name in QUESTIONS]


def handout(notebook: nbformat.NotebookNode, stem: str) -> str | None:
    """The sheet; None for a chapter without notes, for which nobody has chosen questions."""
    notes = NOTES.get(name_of(stem))
    if notes is None:
        return None
    return _templates.get_template("handout.html.j2").render(
        title=title(notebook),
        questions=_printed(notes.sheet, notebook),
        keep="".join(TAKE_AWAY.findall(text(notebook))).strip(),
    )


def index(chapters: list[dict]) -> str:
    """The list of all that is in the pack."""
    return _templates.get_template("index.html.j2").render(chapters=chapters)


def text(notebook: nbformat.NotebookNode) -> str:
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def _named(picture: Picture) -> tuple[str, str]:
    """ "Player" and what it plays or asks."""
    kind, _, what = picture.title.partition("(")
    return kind, what.removesuffix(")").removeprefix("question: ")


def _linked(html: str, notebook: nbformat.NotebookNode, stem: str, pictures: list[Picture]) -> str:
    """With every question's name a link to the page that asks it."""
    pages = {picture.cell: picture.page for picture in reversed(pictures)}  # the first of a cell
    for cell in notebook.cells:
        for name in ASKED.findall(cell.source):
            if cell.id in pages:
                link = f'<a href="../pictures/{stem}/{pages[cell.id]}"><code>{name}</code></a>'
                html = html.replace(f"<code>{name}</code>", link)
    return html


def _asked(question: Question) -> dict:
    """The question to the room: its words, and what is right."""
    return {"question": question, "choices": _choices(question), "right": right(question)}


def _choices(question: Question) -> list[str]:
    match question:
        case Choose():
            return [answer.text for answer in question.answers]
        case Statement():
            return ["true", "false"]
    return []


def right(question: Question) -> tuple[str, str]:
    """What is right, and why."""
    match question:
        case Choose():
            right = question.answers[question.right]
            return right.text.rstrip("."), right.why
        case Statement():
            return str(question.true).lower(), question.why
        case Number():
            return f"`{question.right.text}` {question.unit}{_p(question)}", question.right.why
        case FindLine():
            lines = question.source.strip("\n").splitlines()
            return ", ".join(f"line {line}, `{lines[line - 1].strip()}`" for line in question.right), question.why
        case Order():
            return "`" + "`, then `".join(line.strip() for line in question.lines) + "`", question.why
    return "the cells that light up", getattr(question, "why", "")


def _p(question: Number) -> str:
    return f" (p = {question.p})" if question.p else ""


def mistake(made: Mistake) -> dict:
    question = QUESTIONS[made.question]
    answer = mistaken(question, made.answer)
    match question:
        case Number():
            said = f"`{answer.text}` {question.unit}{_p(question)}"
        case FindLine():
            said = f"line {answer.text}, `{question.source.strip().splitlines()[int(answer.text) - 1].strip()}`"
        case Order():
            first, second = (question.lines[int(line)].strip() for line in answer.text.split(","))
            said = f"`{first}` before `{second}`"
        case _:
            said = answer.text
    return {"question": question, "said": said, "why": answer.why, "say": made.say}


def _still(notebook: nbformat.NotebookNode, name: str) -> Markup | None:
    """What of the picture behind a question may be seen while it is open: the saved chapter has it, as an image."""
    for cell in notebook.cells:
        if cell.cell_type == "code" and f'ask("{name}"' in cell.source:
            found = STILL.search("".join(output.get("data", {}).get("text/html", "") for output in cell.outputs))
            return Markup(found[0]) if found else None
    return None


def _printed(names: tuple[str, ...], notebook: nbformat.NotebookNode) -> list[dict]:
    """Questions as they stand on paper: with boxes to tick, a program to read, or a line to write on."""
    printed, room = [], MOST_STILLS
    for name in names:
        question, lines = QUESTIONS[name], []
        if isinstance(question, FindLine):
            lines = question.source.strip("\n").splitlines()
        elif isinstance(question, Order):
            lines = sorted(question.lines)  # any order that is not theirs
        still = _still(notebook, name) if room else None
        room -= still is not None
        unit = question.unit if isinstance(question, Number) else ""
        choices = _choices(question)
        printed.append({"text": question.text, "choices": choices, "lines": lines, "unit": unit, "still": still})
    return printed
