"""Which exercises a student has solved, kept in a file of the student's own.

It stands in Jupyter's data folder of the user (JUPYTER_DATA_DIR moves it), not beside the chapters: a fresh clone or
`git pull` must neither lose it nor carry it along.
"""

import json
from pathlib import Path

from jupyter_core.paths import jupyter_data_dir

from course.exercises import EXERCISES


def _file() -> Path:
    return Path(jupyter_data_dir()) / "ringside" / "progress.json"


def solved_names() -> set[str]:
    """Return the names of the exercises solved so far; an unreadable file counts as none.

    Names that this version of the course does not know are kept: another version does.
    """
    try:
        return {name for name in json.loads(_file().read_text(encoding="utf-8")) if isinstance(name, str)}
    except (OSError, ValueError, TypeError):
        return set()


def solved(name: str) -> None:
    """Remember that `name` is solved. A folder that cannot be written to costs the memory, not the verdict."""
    try:
        _file().parent.mkdir(parents=True, exist_ok=True)
        beside = _file().with_suffix(".new")  # put in place as a whole: an interrupted write would lose everything
        beside.write_text(json.dumps(sorted(solved_names() | {name})), encoding="utf-8")
        beside.replace(_file())
    except OSError as error:
        print(f"(Your progress could not be kept in {_file().name}: {error.strerror}.)")


def show() -> None:
    """Print every exercise with a mark if it is solved."""
    done = solved_names() & set(EXERCISES)
    for name in EXERCISES:
        print(f"  {'done' if name in done else 'open'}  {name}")
    print(f"{len(done)} of {len(EXERCISES)} solved")
