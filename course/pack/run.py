"""A chapter run once, with our solutions in it: the filled notebook, and a page of every picture that it shows.

What a student would type in front of `check("NAME")` is replaced by course/solutions/NAME.py. The rest is as
course/refresh.py has it, cell by cell so that it can be told how far it is. It runs in an empty folder with a memory of
its own: what the chapter saves, and what its checks remember, is nobody's.

Left out: how pages look.
"""

import json
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbclient.exceptions import CellExecutionError, DeadKernelError
from tqdm import tqdm

from course.pack.keep import PICTURES
from course.refresh import normalise

COURSE = Path(__file__).parents[1]
CHECK = re.compile(r"^check\(\"(\w+)\"\)", re.MULTILINE)
TIMEOUT = 300  # seconds for a cell, on a machine that has other things to do


@dataclass(frozen=True)
class Picture:
    """A page in the chapter's folder of pictures, and the cell that showed it."""

    cell: str
    page: str
    title: str


def one_by_one(chapters: list[Path], do: Callable[[Path], None]) -> int:
    """`do` each chapter and tell how far it is; how many a failing cell has left out. KeyboardInterrupt if it is
    stopped: nbclient takes Ctrl-C for itself and ends the kernel."""
    failed = 0
    for number, chapter in enumerate(chapters, start=1):
        print(f"{number} of {len(chapters)}: {chapter.stem} ...", flush=True)
        try:
            do(chapter)
        except CellExecutionError as error:
            failed += 1
            print(f"  left out, because a cell failed: {error.ename}: {error.evalue}", flush=True)
        except DeadKernelError:
            raise KeyboardInterrupt from None
    return failed


def fill(notebook: nbformat.NotebookNode) -> list[str]:
    """Put our solutions where students write theirs, in place; the names of those that are not in this copy."""
    missing, code = [], [cell for cell in notebook.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code):
        for name in CHECK.findall(cell.source):
            theirs = [each for each in code[:number] if re.search(rf"^def {name}\(", each.source, re.MULTILINE)]
            ours = COURSE / "solutions" / f"{name}.py"
            if theirs and ours.exists():
                theirs[-1].source = f"{theirs[-1].source.splitlines()[0]}\n{ours.read_text(encoding='utf-8').strip()}"
            elif theirs:
                missing.append(name)
    return missing


def with_pictures(notebook: nbformat.NotebookNode, name: str, pages: Path) -> list[Picture]:
    """Run every cell of `notebook`, in place, and write its pictures into the folder `pages`."""
    pages.mkdir(parents=True, exist_ok=True)
    code = [cell.id for cell in notebook.cells if cell.cell_type == "code"]
    execute(notebook, name, f"from course.pack.keep import keep\nkeep({str(pages.resolve())!r}, {code!r})")
    return [Picture(*each) for each in json.loads((pages / PICTURES).read_text(encoding="utf-8"))]


def execute(notebook: nbformat.NotebookNode, name: str, first: str) -> None:
    """Run every cell of `notebook`, in place, after a cell `first` that does not stay.

    nbclient's CellExecutionError if a cell fails.
    """
    from nbclient import NotebookClient

    keeping = nbformat.v4.new_code_cell(first)
    notebook.cells.insert(0, keeping)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=TIMEOUT,
            kernel_name="python3",
            store_widget_state=False,
            record_timing=False,
            extra_arguments=["--log-level=CRITICAL"],  # what the kernel says is not about the chapter
            resources={"metadata": {"path": folder}},
        )
        memory = {"JUPYTER_DATA_DIR": folder, "PYTHONPATH": os.pathsep.join([str(COURSE.parent), *_python_path()])}
        with client.setup_kernel(env=os.environ | memory):
            client.execute_cell(keeping, 0, store_history=False)
            for number, cell in enumerate(tqdm(notebook.cells, desc=name, unit="cell", disable=None, leave=False)):
                if number:
                    client.execute_cell(cell, number)
    notebook.cells.pop(0)
    normalise(notebook)


def _python_path() -> list[str]:
    return [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
