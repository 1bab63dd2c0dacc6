"""Builds the site: `python -m course.site [FOLDER [CHAPTER ...]]`, or `make site`. Needs the extra `site`.

Each chapter is run once, so that its widgets have real runs to play; a chapter that is as it was is not run again. The
result is static: it opens from the file system and from any server, and asks no other host for anything.

Left out: putting it on a server.
"""

import argparse
import hashlib
import re
import shutil
import sys
from pathlib import Path

import nbformat
from sphinx.cmd.build import main as sphinx

from collectives import all_reduce
from course import chapters
from course.own import without_outputs
from course.pack import run
from course.site import gallery, places, reference
from widgets.player import Player

HERE = Path(__file__).parent
ROOT = chapters.FOLDER.parent
CODE = ("collectives", "widgets", "launch", "course")
STATE = re.compile(r'<div class="alive" data-kind="(\w+)" data-state="(\d+\.json)">')
PLOTLY = "application/vnd.plotly.v1+json"
MOVING = re.compile(r"^!\[.*\]\(docs/ringside\.webp\)$", re.MULTILINE)  # the README's picture
ROW = re.compile(r"^\| ([^|]+) \| (.*\.ipynb.*) \| \d+ \|$", re.MULTILINE)  # of the README's table of chapters
TOP = """<p><a href="../notebooks/{stem}.ipynb" download>Run it yourself</a>: this chapter as a notebook, for a
JupyterLab that <code>make lab</code> or <code>ringside lab</code> has opened. Here its pictures live without it, and
its questions are answered on this page.</p>"""


def run_chapter(chapter: Path, folder: Path, code: str) -> None:
    """Leave in `folder` the executed notebook and the state of each widget, unless they are there for this code."""
    made_from = hashlib.sha256(chapter.read_bytes() + code.encode()).hexdigest()
    if (folder / "made_from").exists() and (folder / "made_from").read_text() == made_from:
        return
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "states").mkdir(parents=True)
    notebook = nbformat.read(chapter, as_version=4)
    states = str((folder / "states").resolve())
    run.execute(notebook, chapter.stem, f"from course.site.keep import keep\nkeep({states!r})")
    nbformat.write(notebook, folder / "chapter.ipynb")
    (folder / "made_from").write_text(made_from)


def with_places(folder: Path) -> nbformat.NotebookNode:
    """The executed chapter with the state of each widget beside its still."""
    notebook = nbformat.read(folder / "chapter.ipynb", as_version=4)
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if PLOTLY in data:
                figure = data.pop(PLOTLY)
                data["text/html"] = places.figure({key: figure[key] for key in ("data", "layout")}, "")
            elif found := STATE.match(data.get("text/html", "")):
                kind, name = found.groups()
                still = data["text/html"][found.end() : -len("</div>")]
                data["text/html"] = places.with_state(kind, places.read(folder / "states" / name), still)
    return notebook


def front(runs: Path) -> str:
    """The first page: the README, with a recorded run that plays at once in place of its moving picture."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    body, _, _ = MOVING.sub(lambda _: _first_run(runs), readme).partition("## The code")
    parts = {name.strip(): re.findall(r"\((course/\S+)\.ipynb\)", row) for name, row in ROW.findall(readme)}
    parts |= {"All algorithms": ["gallery/*"], "Reference": ["reference/*", "docs/*", "CONTRIBUTING", "CHANGELOG"]}
    return "\n\n".join([body, *(_menu(name, pages) for name, pages in parts.items())])


def _menu(name: str, pages: list[str]) -> str:
    return "\n".join(["```{toctree}", ":hidden:", ":glob:", f":caption: {name}", *pages, "```"])


def _first_run(runs: Path) -> str:
    """The ring of chapter 5 as it was recorded, or, where that chapter was not run, the textbook's."""
    executed = runs / "05_all_reduce"
    for cell in with_places(executed).cells if (executed / "made_from").exists() else ():
        for output in cell.get("outputs", ()):
            if output.get("data", {}).get("text/plain", "").startswith("Player(your run: all_reduce ring,"):
                return output["data"]["text/html"].replace('class="alive"', 'class="alive" data-plays', 1)
    return places.place(Player(all_reduce.ring(4)), plays=True)


def write_source(folder: Path, runs: Path) -> None:
    """All that Sphinx reads: the repository's pages under their own paths, so that links between them hold."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("course", "docs", "gallery", "reference", "_extra/notebooks"):
        (folder / name).mkdir(parents=True)
    shutil.copy(HERE / "conf.py", folder)
    shutil.copytree(HERE / "static", folder / "_static")
    for chapter in chapters.notebooks():
        executed = runs / chapter.stem / "made_from"
        notebook = with_places(runs / chapter.stem) if executed.exists() else nbformat.read(chapter, as_version=4)
        notebook.cells.insert(1, nbformat.v4.new_markdown_cell(TOP.format(stem=chapter.stem)))
        nbformat.write(notebook, folder / "course" / chapter.name)
        (folder / "_extra" / "notebooks" / chapter.name).write_bytes(without_outputs(chapter))
    for page in (*(ROOT / "docs").iterdir(), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"):
        shutil.copy(page, folder / page.relative_to(ROOT))
    for made in (gallery, reference):
        for name, text in made.pages():
            (folder / made.__name__.rpartition(".")[2] / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / "index.md").write_text(front(runs), encoding="utf-8")
    places.write_scripts(folder / "_static")


def code() -> str:
    """A hash of all code that a chapter runs."""
    files = sorted(path for name in CODE for kind in ("*.py", "*.js", "*.css") for path in (ROOT / name).rglob(kind))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m course.site", description="Builds the web site; needs the extra `site`."
    )
    parser.add_argument("folder", nargs="?", default="site", type=Path, help="where it is written (default: site)")
    parser.add_argument("chapters", nargs="*", help="which are run, as 05 08 (default: all); others keep their stills")
    given = parser.parse_args(arguments)
    folder = given.folder
    runs, source = (folder.with_name(f".{folder.name}.{name}") for name in ("runs", "source"))
    try:
        wanted = chapters.chosen(given.chapters)
        runs.mkdir(parents=True, exist_ok=True)
    except LookupError as error:
        print(f"there is no chapter {error}; say 05 or 05_all_reduce: python -m course.site FOLDER CHAPTER")
        return 2
    except OSError as error:
        print(f"nothing can be written to {folder}: {error.strerror}; name another: python -m course.site FOLDER")
        return 1
    known = code()
    try:
        failed = run.one_by_one(wanted, lambda chapter: run_chapter(chapter, runs / chapter.stem, known))
    except KeyboardInterrupt:
        print("stopped. The same command goes on with the chapter that was under way")
        return 130
    write_source(source, runs)
    print("pages ...", flush=True)
    failed += sphinx(["-q", "-E", str(source), str(folder)])
    print(f"the site is in {folder}; open {folder / 'index.html'}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
