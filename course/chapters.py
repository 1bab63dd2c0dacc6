"""The chapters, in the order in which they are read: the notebooks of this folder, and what else has a chapter's name.

A chapter `05_all_reduce.ipynb` has its questions in `course/questions/all_reduce.py`, its exercises and the notes on it
in modules of that name in `course/exercises` and `course/notes`. So nothing is registered anywhere: what has no module
there has no questions, no exercises or no notes.
"""

import importlib
import re
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parent
ASKED = re.compile(r"\bask\(\"(\w+)\"")
"""A question in the source of a cell; the group is its name."""

COMPILER, SYMBOLS = "torch._dynamo", "torch.fx.experimental.symbolic_shapes"
LATE_IMPORTS = dict.fromkeys(
    ["data_parallel", "sharding", "tensor_parallel", "pipeline", "compiler", "cluster", "capstone", "interview"],
    COMPILER,
) | {"experts": SYMBOLS}
"""By chapter what its ranks come to import in a cell: torch's compiler (1.2 s on each rank) for an optimizer, DDP,
FSDP, DTensor and pipeline stages, and its symbols (0.3 s) for a backward pass that begins with a gradient."""


def notebooks() -> list[Path]:
    """The files of the chapters."""
    return sorted(FOLDER.glob("*.ipynb"))


def chosen(names: Iterable[str]) -> list[Path]:
    """The chapters of those names or numbers (05, 05_all_reduce, all_reduce), all without any; LookupError if there
    is no such chapter."""
    found = []
    for name in names:
        fits = [each for each in notebooks() if name in (each.stem, each.stem.partition("_")[0], name_of(each.stem))]
        if not fits:
            raise LookupError(name)
        found += fits
    return found or notebooks()


def name_of(stem: str) -> str:
    """ "all_reduce" of "05_all_reduce": the name under which questions, exercises and notes know a chapter."""
    return re.sub(r"^\d+_", "", stem)


def modules(package: str) -> dict[str, ModuleType]:
    """By the name of their chapter, the modules in the package that belong to one."""
    names = {name: f"{package}.{name}" for name in (name_of(path.stem) for path in notebooks())}
    return {name: importlib.import_module(module) for name, module in names.items() if find_spec(module)}
