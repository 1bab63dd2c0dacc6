"""The student's own copies of the chapters: `python -m course.own` makes them.

The chapters of the repository hold their outputs, for readers on the web, for instructors and for the tests. Who works
through them should see no answer beside its question, and should be able to write into them without a quarrel with
`git pull`. So `make lab` opens a folder of the student's own: the chapters without outputs, and nothing else to see.

What has been touched is never overwritten. A chapter that is missing is put there, which is how one starts it afresh:
delete it (or give it another name) and run `make lab` again. One that the course has changed since is renewed if it is
still byte for byte as it was given; else the new one is put beside it, once, and a sentence says so.

The folder is `my-course` beside the `course` folder, or, where nothing can be written there (a hub, a read-only
checkout), `ringside` in the home folder. A folder can be named: `python -m course.own FOLDER`.

Left out: merging. What the student wrote and what the course changed are two notebooks side by side.
"""

import argparse
import hashlib
import json
import os
import sys
from pathlib import Path

import nbformat

from course import chapters

GIVEN = ".given.json"  # in the folder: the hash of each chapter as it was given last


def own_folder() -> Path:
    """Where the student's copies are kept if no folder is named."""
    beside = chapters.FOLDER.parent
    return beside / "my-course" if os.access(beside, os.W_OK) else Path.home() / "ringside"


def hand_out(folder: Path) -> list[str]:
    """Put into `folder` what is missing there; the sentences about what has changed.

    OSError if the folder cannot be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    given, told = _given(folder), []
    for chapter in chapters.notebooks():
        text, theirs = without_outputs(chapter), folder / chapter.name
        if not theirs.exists() or (_hash(theirs.read_bytes()) == given.get(chapter.name) != _hash(text)):
            _write(theirs, text)
        elif given.get(chapter.name) != _hash(text):
            beside = _free(folder, chapter.stem)
            _write(beside, text)
            told.append(f"{chapter.name} has changed since you began it: the new one is beside yours, as {beside.name}")
        given[chapter.name] = _hash(text)
    _write(folder / GIVEN, (json.dumps(given, indent=1) + "\n").encode())
    return told


def without_outputs(chapter: Path) -> bytes:
    """The chapter as a student begins it: nothing has been run. Tags stay; they are the tests' and do no harm."""
    notebook = nbformat.read(chapter, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return (nbformat.writes(notebook) + "\n").encode()


def _given(folder: Path) -> dict[str, str]:
    """What was given; of a folder from elsewhere nothing is known, so that all in it counts as touched."""
    try:
        given = json.loads((folder / GIVEN).read_text(encoding="utf-8"))
        return given if isinstance(given, dict) else {}
    except (OSError, ValueError):
        return {}


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _free(folder: Path, stem: str) -> Path:
    """ "02_messages (new).ipynb", or the first number that is free."""
    names = (f"{stem} (new{'' if n == 1 else f' {n}'}).ipynb" for n in range(1, 1000))
    return next(folder / name for name in names if not (folder / name).exists())


def _write(path: Path, data: bytes) -> None:
    beside = path.with_name(f".{path.name}.part")  # put in place as a whole: an interrupted write would lose everything
    beside.write_bytes(data)
    beside.replace(path)


def main(arguments: list[str]) -> int:
    """Hand the chapters out; where they are is said when the first are."""
    parser = argparse.ArgumentParser(prog="python -m course.own", description="Makes your own copies of the chapters.")
    parser.add_argument("folder", nargs="?", default=own_folder(), type=Path, help="where (default: %(default)s)")
    folder = parser.parse_args(arguments).folder
    began = (folder / GIVEN).exists()
    try:
        told = hand_out(folder)
    except OSError as error:
        print(
            f"No copies of the chapters can be put into {folder}: {error.strerror}. Name another folder:",
            file=sys.stderr,
        )
        print("  python -m course.own FOLDER", file=sys.stderr)
        return 1
    if not began:
        print(f"Your own copies of the chapters are in {folder}; start one afresh by deleting it.", file=sys.stderr)
    print(*told, sep="\n", end="\n" if told else "", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
