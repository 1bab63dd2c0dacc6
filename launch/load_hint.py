"""Hints before `%load_ext launch`, and below the errors of the notebook's own cells.

A restarted kernel does not know `%%ranks`, and IPython's "Cell magic not found" does not say what to do. Installing
this project adds a line to the environment's IPython configuration (etc/ipython in the repository) that loads this
module in every kernel: it registers a `%%ranks` that says what to run, and starts nothing. `%load_ext launch` replaces
it.

Errors of ordinary cells get a sentence of launch/hints or launch/kernel/whereabouts.py as a note of the exception. The
pictures of a `%%ranks` cell are shown below its error.

Left out: kernels of other environments, which cannot load this project.
"""

from __future__ import annotations

import re
import sys
from difflib import get_close_matches
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from IPython.core.error import UsageError as NoSuchMagic

from launch.shared.errors import UsageError

FIRST = "this kernel is new and does not know %%ranks yet: run %load_ext launch, then the cells above this one again"
JAX = 'JAX is installed for chapter 16 alone: run %pip install "jax>=0.10" and restart the kernel'
ON_TOP = "%%ranks goes into the first line of the cell, also above comments: move it there and run the cell again"


def load_ipython_extension(shell) -> None:
    """Registers the placeholder, unless the real magics are there."""
    if "ranks" not in shell.magics_manager.magics["cell"]:
        shell.register_magic_function(lambda line, cell: _not_yet(), "cell", "ranks")
        shell.register_magic_function(lambda line: _not_yet(), "line", "ranks")
    help_with_errors(shell)


def shadowed() -> str:
    """A sentence if another project hides one of our packages; "" if not."""
    ours = Path(__file__).parents[1]
    for name in ("collectives", "widgets", "launch", "course"):
        loaded = sys.modules.get(name)
        spec = loaded.__spec__ if loaded else PathFinder.find_spec(name)
        if spec and spec.origin and Path(spec.origin).parent != ours / name:
            return f"{spec.origin} has the name of Ringside's {name} and hides it: rename it and restart the kernel"
    return ""


def _not_yet():
    raise UsageError(FIRST)


def _on_top(line: str):
    raise UsageError(ON_TOP)


def help_with_errors(shell) -> None:
    """Adds hints to the errors of the notebook's own cells. Once per shell."""
    if "showtraceback" in vars(shell):
        return
    shell.register_magic_function(_on_top, "line", "%ranks")  # how IPython reads a `%%ranks` below the first line
    show = shell.showtraceback

    def showtraceback(exc_tuple=None, *args, **kwargs):
        error: Any = (exc_tuple or sys.exc_info())[1]
        hint = hint_for(error, shell) if error is not None else ""
        if hint and hint not in getattr(error, "__notes__", ()):
            error.add_note(hint)
        show(exc_tuple, *args, **kwargs)
        if hint and isinstance(error, NoSuchMagic):  # IPython shows its message only, without notes
            print(hint, file=sys.stderr)
        if afterwards := getattr(error, "afterwards", None):
            error.afterwards = None
            try:
                afterwards()
            except Exception:  # shown below the first error
                show()

    shell.showtraceback = showtraceback


def hint_for(error: BaseException, shell) -> str:
    """The hint for an error of the notebook's own cells; "" if there is none."""
    from launch.kernel import whereabouts

    magics = sys.modules.get("launch.magics")
    try:  # a bug in a hint must not hide the error
        if isinstance(error, NoSuchMagic):
            return misspelt_magic(shell)
        if isinstance(error, ModuleNotFoundError) and error.name == "jax":
            return JAX
        return whereabouts.for_notebook(error, shell, magics.loaded() if magics else None)
    except Exception:
        return ""


def misspelt_magic(shell) -> str:
    """`%%rank 4`, `%%Ranks`, `%%ranks4`: an unknown magic, spelt nearly like ours."""
    for line in shell.history_manager.input_hist_raw[-1].splitlines():
        found = re.match(r"\s*(%%?) ?([A-Za-z]+)", line)
        if found and get_close_matches(found[2].lower(), ["ranks"], cutoff=0.75):
            known = shell.magics_manager.magics["cell" if found[1] == "%%" else "line"]
            if not re.match(rf"\s*%%?({'|'.join(map(re.escape, known))})\b", line):
                number = re.search(r"\d+", line)
                return f"did you mean %%ranks {number[0]}?" if number else f"did you mean {found[1]}ranks?"
    return ""
