"""The instructor's pack: `python -m course.pack [FOLDER [CHAPTER ...]]`, or `make pack`.

    index.html                  leads to all of it, from file:// and without a network
    notes/CHAPTER.html          timing for 50 and 90 minutes, the question to the room, what they will get wrong
    handouts/CHAPTER.html, .pdf one sheet of A4; the PDF where there is a Chromium that prints it
    filled/CHAPTER.ipynb, .html our solutions in it, run when the pack was built
    stripped/CHAPTER.ipynb      as the students begin it
    pictures/CHAPTER/*.html     every question and every animation, with the run that was recorded
    slides/CHAPTER.html         a deck for 50 minutes with the pictures alive on it (course/pack/slides.py)

Without a CHAPTER (05 or 05_all_reduce) it takes all. Each chapter is run once, which takes up to a minute or two; what
is finished is in the folder and stays there when you stop it.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import nbformat

from course import pages
from course.chapters import chosen, name_of, notebooks
from course.own import without_outputs
from course.pack import paper, run, slides

KINDS = ("notes", "handouts", "filled", "stripped", "pictures", "slides")


def build(chapter: Path, folder: Path) -> list[str]:
    """Put all of one chapter into `folder`, which has the folders of KINDS; what is missing, as sentences."""
    stem, said = chapter.stem, []
    saved, filled = (nbformat.read(chapter, as_version=4) for _ in range(2))
    if missing := run.fill(filled):
        said.append(f"no solution of {', '.join(missing)} in this copy of the course")
    theirs, part = folder / "pictures" / stem, folder / "pictures" / f".{stem}.part"
    try:
        pictures = run.with_pictures(filled, stem, part)
        shutil.rmtree(theirs, ignore_errors=True)
        part.replace(theirs)  # as a whole: what was there stays until this is complete
    finally:
        shutil.rmtree(part, ignore_errors=True)
    (folder / "filled" / f"{stem}.ipynb").write_text(nbformat.writes(filled) + "\n", encoding="utf-8")
    (folder / "filled" / f"{stem}.html").write_text(pages.page(filled, stem), encoding="utf-8")
    (folder / "stripped" / f"{stem}.ipynb").write_bytes(without_outputs(chapter))
    (folder / "notes" / f"{stem}.html").write_text(paper.notes_page(saved, stem, pictures), encoding="utf-8")
    sheet = paper.handout(saved, stem)
    if sheet is None:
        return [*said, "nobody has written notes on it yet"]
    (folder / "handouts" / f"{stem}.html").write_text(sheet, encoding="utf-8")
    try:
        deck = slides.html(slides.deck(saved, pictures, theirs, stem), stem)
        (folder / "slides" / f"{stem}.html").write_text(deck, encoding="utf-8")
    except LookupError as error:
        said.append(str(error))
    if not print_pdf(folder / "handouts" / f"{stem}.html"):
        said.append("no PDF of the handout: print its page, or install Chromium")
    return said


def print_pdf(page: Path) -> bool:
    """Print `page` to a PDF beside it; False where there is no Chromium, or it cannot."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        return False
    flags = ["--headless", "--disable-gpu", "--no-pdf-header-footer", f"--print-to-pdf={page.with_suffix('.pdf')}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        flags.append("--no-sandbox")  # else it refuses root
    command = [browser, *flags, page.resolve().as_uri()]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    except (OSError, subprocess.SubprocessError):
        return False
    return page.with_suffix(".pdf").exists()


def write_index(folder: Path) -> None:
    """List every chapter that is there whole, also those of an earlier run."""
    chapters = []
    for chapter in notebooks():
        stem, listed = chapter.stem, folder / "pictures" / chapter.stem / run.PICTURES
        if (folder / "notes" / f"{stem}.html").exists() and listed.exists():
            chapters.append(
                {
                    "stem": stem,
                    "title": paper.title(nbformat.read(chapter, as_version=4)),
                    "noted": name_of(stem) in paper.NOTES,
                    "handout": (folder / "handouts" / f"{stem}.html").exists(),
                    "slides": (folder / "slides" / f"{stem}.html").exists(),
                    "pdf": (folder / "handouts" / f"{stem}.pdf").exists(),
                    "pictures": len(json.loads(listed.read_text(encoding="utf-8"))),
                }
            )
    (folder / "index.html").write_text(paper.index(chapters), encoding="utf-8")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m course.pack", description="Builds the pack for teachers.")
    parser.add_argument("folder", nargs="?", default="pack", type=Path, help="where it is written (default: pack)")
    parser.add_argument("chapters", nargs="*", help="some chapters only, as 05 08")
    given = parser.parse_args(arguments)
    folder = given.folder
    try:
        chapters = chosen(given.chapters)
        for kind in KINDS:
            (folder / kind).mkdir(parents=True, exist_ok=True)
    except LookupError as error:
        print(f"there is no chapter {error}; say 05 or 05_all_reduce: python -m course.pack FOLDER CHAPTER")
        return 2
    except OSError as error:
        print(f"nothing can be written to {folder}: {error.strerror}; name another: python -m course.pack FOLDER")
        return 1
    # a chart that a chapter draws with plotly itself: the notebook has it, its page does not
    warnings.filterwarnings("ignore", message="Your element with mimetype")

    def do(chapter: Path) -> None:
        try:
            for sentence in build(chapter, folder):
                print(f"  {sentence}", flush=True)
        finally:
            write_index(folder)

    try:
        failed = run.one_by_one(chapters, do)
    except KeyboardInterrupt:
        print(f"stopped. What was finished is in {folder}; the rest: python -m course.pack {folder} CHAPTER ...")
        return 130
    print(f"the pack is in {folder}; open {folder / 'index.html'}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
