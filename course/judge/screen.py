"""What the student has run, cell by cell, so that a check judges the function that is on the screen and no older one.

The ranks keep a function until another one takes its name. So after a syntax error, a forgotten %%ranks or another name
for the function the old one is still there, and a verdict about it would be about a text that nobody sees any more.
Here is noted which cells were run since the course was imported, and `stale` tells from that whether the ranks have the
last one that was written. A front end names its cells (JupyterLab and VS Code do): then a cell that was run again is
known to be the same cell.

Left out: a cell that was changed and not run. No kernel hears of it; the verdict names the run that it is about.
"""

import re
from dataclasses import dataclass

_log: dict[int, "Ran"] = {}  # number of an execution -> what was run


@dataclass
class Ran:
    """One execution of a cell. `cell` is the front end's name for it, None if it gave none; `error` how it failed."""

    number: int
    source: str
    cell: str | None
    error: str = ""

    @property
    def on_ranks(self) -> bool:
        return self.source.lstrip().startswith("%%ranks")

    def defines(self, name: str) -> bool:
        """Whether its text has a function of that name, in whatever state the rest of the text is."""
        return bool(re.search(rf"^[ \t]*(async[ \t]+)?def[ \t]+{re.escape(name)}[ \t]*\(", self.source, re.MULTILINE))

    @property
    def functions(self) -> list[str]:
        return re.findall(r"^def[ \t]+(\w+)", self.source, re.MULTILINE)


def watch() -> None:
    """Begin to note what is run in this kernel, if this is one."""
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None or getattr(shell, "_ringside_screen", False):
        return
    shell._ringside_screen = True

    def ran(result) -> None:
        info, error = result.info, result.error_before_exec or result.error_in_exec
        if result.execution_count and info.store_history and not info.silent:
            number = result.execution_count
            _log[number] = Ran(number, info.raw_cell, info.cell_id, _in_a_line(error) if error else "")

    shell.events.register("post_run_cell", ran)


def _in_a_line(error: BaseException) -> str:
    said, name = str(error).splitlines(), type(error).__name__.removeprefix("Cell")  # a CellSyntaxError of ours
    return f"{name}: {said[0]}" if said else name


def stale(name: str, number: int | None) -> str:
    """Why the function that the ranks have from execution `number` (None: they have none) is not the one on the
    screen, and what to do; "" if it is."""
    after = number or 0
    later = [ran for at, ran in sorted(_log.items()) if at > after]
    kept = f"the ranks still have the one of cell [{number}]" if number else "the ranks have none"
    last = next((ran for ran in reversed(later) if ran.defines(name)), None)
    if renamed := _renamed(name, number, last.number if last else after):
        return renamed
    if last is not None:
        cell = f"cell [{last.number}]"
        if not last.on_ranks:
            return (
                f"{cell} defines {name} without %%ranks at its top, so only the notebook knows it, and {kept}; put "
                "%%ranks on its first line and run it again"
            )
        if last.error:
            return f"{cell}, which defines {name}, failed with {last.error}; {kept}: fix that and run it again"
        return "" if number else f"{cell} defines {name}, and yet rank 0 lacks it; run that cell again, on all ranks"
    return ""


def _renamed(name: str, number: int | None, after: int) -> str:
    """Whether the cell of execution `number` was run again, `after` another, and has the function no more."""
    origin = _log.get(number) if number else None
    if origin is None or origin.cell is None:
        return ""
    again = next(
        (ran for at, ran in sorted(_log.items(), reverse=True) if at > after and ran.cell == origin.cell), None
    )
    if again is None or again.defines(name):
        return ""
    instead = f" but {again.functions[0]}" if again.functions else ""
    return (
        f"the cell that defined {name} as [{number}] was run again as [{again.number}] and defines it no "
        f"more{instead}; give the function its name {name} again and run the cell"
    )
