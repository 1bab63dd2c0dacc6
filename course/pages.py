"""The chapters as web pages for a room without internet: `ringside pages [FOLDER]`.

Each page stands alone and asks no other host for anything: still pictures in place of widgets, formulas as MathML,
which every browser of today draws by itself. nbconvert's own pages load MathJax, require.js and mermaid from a server.
Links from chapter to chapter lead from page to page. What a question's run showed, and the text behind it, is folded.

Left out: the moving picture. `Player(...).save_html("ring.html")` makes a page of one.
"""

import argparse
import sys
from copy import deepcopy
from functools import cache
from pathlib import Path

import nbformat
from jinja2 import pass_context
from latex2mathml.converter import convert
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from course import chapters


class _Renderer(IPythonRenderer):
    """Markdown whose formulas are MathML and whose links to chapters are links to their pages."""

    def block_math(self, body: str) -> str:
        return convert(body, display="block")

    def inline_math(self, body: str) -> str:
        return convert(body)

    def link(self, text: str, url: str, title: str | None = None) -> str:
        chapter = not url.startswith("http") and ".ipynb" in url
        return super().link(text, url.replace(".ipynb", ".html") if chapter else url, title)


class Page(HTMLExporter):
    """nbconvert's exporter without what it loads from elsewhere."""

    def __init__(self, **traits):
        super().__init__(
            template_name="page", extra_template_basedirs=[str(chapters.FOLDER)], exclude_anchor_links=True, **traits
        )

    @pass_context
    def markdown2html(self, context, source):
        return to_html(source)


def to_html(markdown: str) -> str:
    """Markdown as such a page has it."""
    return MarkdownWithMath(renderer=_Renderer(escape=False, exclude_anchor_links=True)).render(markdown)


@cache
def _exporter() -> Page:
    """One for all pages: it reads its templates once."""
    return Page()


def page(notebook: nbformat.NotebookNode, stem: str) -> str:
    """The page of one chapter."""
    html, _ = _exporter().from_notebook_node(_folded(notebook), {"metadata": {"name": stem.replace("_", " ")}})
    return html


def _folded(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The same, with a mark for the template at what would give a question's answer away: what the cells below it
    showed, and the first text behind them, unless a new part begins there."""
    notebook, asked = deepcopy(notebook), False
    for cell in notebook.cells:
        if cell.cell_type == "code":
            asks = bool(chapters.ASKED.search(cell.source))
            cell.metadata["folded"] = asked and not asks
            asked |= asks
        elif asked:
            cell.metadata["folded"] = not cell.source.startswith(("#", "<details"))
            asked = False
    return notebook


def write(folder: Path) -> list[Path]:
    """Write a page of every chapter into `folder`, which is made if need be. OSError if that cannot be."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = []
    for chapter in chapters.notebooks():
        pages.append(folder / f"{chapter.stem}.html")
        pages[-1].write_text(page(nbformat.read(chapter, as_version=4), chapter.stem), encoding="utf-8")
    return pages


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m course.pages", description="Writes the chapters as web pages.")
    parser.add_argument("folder", nargs="?", default="pages", type=Path, help="where (default: pages)")
    folder = parser.parse_args(arguments).folder
    try:
        pages = write(folder)
    except OSError as error:
        print(f"nothing can be written to {folder}: {error.strerror}; name another: python -m course.pages FOLDER")
        return 1
    print(f"{len(pages)} pages in {folder}; begin with {pages[0].name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
