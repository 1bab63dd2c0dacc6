"""A chapter's deck: one HTML file that needs no network, made by nbconvert's exporter of reveal.js slides.

It follows the plan of 50 minutes. Each part is a slide with the section's first words, and each picture and question of
that section a slide of its own, alive: a clicker's keys step it, and after its last step they turn the page. The
speaker's view (key s) has the minutes, what to do, what is right, and what to say about wrong answers.

reveal.js itself comes from the package sphinx-revealjs, which carries it (`pip install 'ringside[slides]'`).

Left out: charts that a chapter draws with plotly, whose script is three times as large as a deck.
"""

import re
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path

import nbformat
from jinja2 import pass_context
from nbconvert import SlidesExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course import chapters
from course.chapters import ASKED, name_of
from course.notes import NOTES
from course.notes.note import Part
from course.pack import paper
from course.pack.board import BOARD
from course.pack.run import Picture
from course.pages import to_html
from course.questions import QUESTIONS

SENTENCES = re.compile(r"(?<=[.!?:*`]) +(?=[A-Z`*])")
LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")
KEYS = (
    "PageDown and the right arrow step a picture and turn the page, s opens this view, f fills the screen, digits "
    "count hands, Enter shows what is right."
)
FEW = 2
"""Sentences on the slide that begins a part."""


class Deck(SlidesExporter):
    """nbconvert's exporter with reveal.js inside, and formulas as MathML."""

    def __init__(self, **traits):
        folder = str(chapters.FOLDER)
        super().__init__(template_name="deck", extra_template_basedirs=[folder], exclude_input=True, **traits)

    @pass_context
    def markdown2html(self, context, source):
        return to_html(source)


def deck(saved: nbformat.NotebookNode, pictures: list[Picture], folder: Path, stem: str) -> nbformat.NotebookNode:
    """The slides of a chapter that has notes as a notebook, with the pages of `folder` in it."""
    notes = NOTES[name_of(stem)]
    cells = [_text(f"# {paper.title(saved)}\n\n{_first(_sections(saved)[0][1])}", "slide")]
    cells += [_notes(f"{KEYS}\n\nFor home: {notes.home}")]
    for part in notes.fifty:
        cells += _of_part(part, saved, pictures, folder, stem)
    for take_away in paper.TAKE_AWAY.findall(paper.text(saved)):
        cells += [_text(f"## Take away\n\n{take_away.partition('Next:')[0].strip()}", "slide")]
    return new_notebook(cells=cells, metadata={"title": paper.title(saved)})


def html(slides: nbformat.NotebookNode, stem: str) -> str:
    """The deck as one page. LookupError where reveal.js is not installed."""
    resources = {"metadata": {"name": stem.replace("_", " ")}, "deck": _reveal()}
    return Deck().from_notebook_node(slides, resources)[0]


@cache
def _reveal() -> dict[str, str]:
    found = find_spec("sphinx_revealjs")
    if found is None or found.origin is None:
        raise LookupError("no slides: pip install 'ringside[slides]' brings reveal.js")
    home = Path(found.origin).parent / "_static" / "revealjs"
    css = [home / "dist" / name for name in ("reset.css", "reveal.css", "theme/white.css")]
    scripts = [home / "dist" / "reveal.js", home / "plugin" / "notes" / "notes.js"]
    styles = "\n".join(re.sub(r"@import[^;]*;", "", path.read_text(encoding="utf-8")) for path in css)
    board = Path(__file__).with_name("board.css").read_text(encoding="utf-8")
    return {"css": f"{styles}\n{board}", "js": "\n".join(path.read_text(encoding="utf-8") for path in scripts)}


def _of_part(part: Part, saved, pictures: list[Picture], folder: Path, stem: str) -> list:
    """Its slide, one for each drawing on the board, and one for each picture of its section."""
    notes = NOTES[name_of(stem)]
    text, cells = next(
        ((text, cells) for heading, text, cells in _sections(saved) if heading == part.heading), ("", [])
    )
    cells = cells + [
        cell
        for heading, _, others in _sections(saved)
        if heading != part.heading
        for cell in others
        if _named(cell, part)
    ]
    told = [f"*{each.question}?* {each.answer}" for each in notes.replies if each.question in part.do]
    do = "\n\n".join([f"**{part.minutes} minutes.** {part.do}", *told])
    slides = [_text(f"## {part.heading}\n\n{_first(text)}", "slide"), _notes(do)]
    for drawing in BOARD.get(name_of(stem), ()):
        if drawing.heading == part.heading:
            slides += [_text(drawing.svg(len(drawing.steps), after="fragment"), "slide")]
            slides += [
                _notes("\n".join(f"{number}. {said}" for number, (said, _) in enumerate(drawing.steps, start=1)))
            ]
    for cell in cells:
        for picture in pictures:
            page = folder / picture.page
            if picture.cell == cell.id and "-720" not in picture.page and "-1080" not in picture.page:
                slides += [_picture(page.read_text(encoding="utf-8"))]
                slides += [
                    _notes("\n\n".join(said)) for name in ASKED.findall(cell.source)[:1] if (said := _said(name, notes))
                ]
    return slides


def _named(cell, part: Part) -> bool:
    """Whether the part names what this cell asks, which may be in a section of its own."""
    return any(f"`{name}`" in part.do for name in ASKED.findall(cell.source))


def _said(name: str, notes) -> list[str]:
    """What the speaker has before them when this is asked."""
    right, why = paper.right(QUESTIONS[name])
    said = [notes.ask] if name == notes.room else []
    said += [f"Right: {right}. {why}"]
    told = [paper.mistake(each) for each in notes.wrong if each.question == name]
    return said + [f"They say {each['said']}: {each['say']}" for each in told]


def _sections(saved) -> list[tuple[str, str, list]]:
    """Heading, the text below it, and the code cells up to the next heading."""
    found: list[tuple[str, str, list]] = []
    for cell in saved.cells:
        if cell.cell_type == "code":
            found[-1][2].append(cell)
            continue
        hidden = paper.BLOCK.sub("", cell.source)
        pieces = paper.HEADING.split(hidden)
        for heading, text in zip(pieces[1::2], pieces[2::2], strict=True):
            found.append((heading, text, []))
    return found


def _first(text: str) -> str:
    """The first sentences of the first paragraph that is one."""
    paragraphs = [" ".join(each.split()) for each in text.strip().split("\n\n")]
    plain = [each for each in paragraphs if each and not each.startswith(("|", "-", "<", "*", "!", "#", "$", "["))]
    return LINK.sub(r"\1", " ".join(SENTENCES.split(plain[0])[:FEW])) if plain else ""


def _text(markdown: str, kind: str):
    return new_markdown_cell(markdown, metadata={"slideshow": {"slide_type": kind}})


def _notes(markdown: str):
    return _text(markdown, "notes")


def _picture(page: str):
    frame = f'<iframe title="picture" data-page="{escape(page)}"></iframe>'
    shown = new_output("display_data", {"text/html": frame})
    return new_code_cell("", outputs=[shown], metadata={"slideshow": {"slide_type": "slide"}})
