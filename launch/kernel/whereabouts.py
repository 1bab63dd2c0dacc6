"""Explains a NameError by where the name is: in the notebook, on other ranks, or in a cell that has not run here.

The notebook and every rank have variables of their own, and most NameErrors of new students come from that. The other
namespaces and the cells that were run before are asked.

Left out: what the failing code itself tells (launch/hints).
"""

from __future__ import annotations

import ast
import inspect
from types import ModuleType

from launch.hints import Hint, explain
from launch.hints.leftovers import BACK
from launch.hints.place import bound, parse, place_of, spans
from launch.shared import codec
from launch.shared.errors import LaunchError, name_ranks

OURS = ("launch", "course", "widgets", "collectives")
FIRST_CELL = {*OURS, "ask", "check", "Player", "Race", "Timeline", "Zoo", "TopologyMap", "Butterfly", "Square", "Mesh"}


def for_ranks(hint: Hint, lacking: list[int], shell, ranks) -> str:
    """Why the ranks `lacking` do not have the hint's missing name, and what to do."""
    if hint.sure:
        return "; ".join(filter(None, [hint.text, new_processes(lacking, ranks)]))
    return elsewhere(hint, lacking, shell, ranks)


def new_processes(lacking: list[int], ranks) -> str:
    """A sentence if all these ranks have replaced dead ones; else ""."""
    if any(rank not in ranks.came_back for rank in lacking):
        return ""
    return "the process is new, since the one before died with its variables: run the cells again that set them"


def elsewhere(hint: Hint, lacking: list[int], shell, ranks) -> str:
    """The name is on other ranks, in a `%%ranks` cell, or in the notebook."""
    name, variables = hint.missing, notebook_variables(shell)
    if name in BACK:
        return f"a cell has deleted {name}: {BACK[name]} brings it back"
    if name in FIRST_CELL:
        return f"{name} belongs to the notebook: use it in a cell without %%ranks"
    owners = {rank for rank, has in enumerate(ranks.call("has", name=name)) if has} - {*lacking}
    if owners:
        has = "has" if len(owners) == 1 else "have"
        there = f"{name_ranks(owners)} {has} {name}; the line that sets it has not run here"
        return new_processes(lacking, ranks) or there
    if said := from_earlier_cell(name, shell):
        return said
    return from_notebook(name, variables[name]) if name in variables else hint.text or unheard_of(name)


def unheard_of(name: str) -> str:
    return f"is {name} set in a cell above that has not run yet?"


def notebook_variables(shell) -> dict:
    """The student's own variables and imports in the notebook."""
    return {name: value for name, value in shell.user_ns.items() if name not in shell.user_ns_hidden and name[0] != "_"}


def from_notebook(name: str, value) -> str:
    """How the ranks get the notebook's value of that name."""
    module = getattr(value, "__module__", None) or type(value).__module__
    if isinstance(value, ModuleType):
        if value.__name__.partition(".")[0] in OURS:
            return f"{name} belongs to the notebook: use it in a cell without %%ranks"
        line = f"import {value.__name__}" + ("" if value.__name__ == name else f" as {name}")
        return f"the notebook has imported {name}, and every rank imports for itself: {line}"
    if module.partition(".")[0] in OURS and (inspect.isfunction(value) or inspect.isclass(value)):
        return f"{name} belongs to the notebook: use it in a cell without %%ranks"
    if inspect.isfunction(value) or inspect.isclass(value):
        if module == "__main__":
            return f"{name} is defined in the notebook, where no rank can see it: put %%ranks above its cell and run it"
        return f"the notebook has imported {name}, and every rank imports for itself: from {module} import {name}"
    try:
        codec.encode(value, [], name)
    except TypeError:
        kind = type(value).__name__
        return (
            f"the notebook's {name} ({kind}) cannot travel: is {name} set for the ranks in a cell that has not run yet?"
        )
    return f"{name} is a variable of the notebook, which ranks cannot see: launch.push({name}={name}) gives it to them"


def from_earlier_cell(name: str, shell) -> str:
    """A `%%ranks` cell that sets the name, but not on these ranks: they are newer, or it stopped before that line."""
    cells = shell.history_manager.input_hist_raw
    for number in range(len(cells) - 2, 0, -1):  # the last one is the one that failed
        first, _, body = cells[number].lstrip().partition("\n")
        tree = parse(body) if first.startswith("%%ranks") else None
        if tree is not None and name in bound(tree):
            return f"cell [{number}] sets {name}, but not on these ranks: run it again"
    return ""


def for_notebook(error: BaseException, shell, session) -> str:
    """The hint for an error in the notebook's own cell; `session` is None before %load_ext."""
    if isinstance(error, LaunchError | SystemExit):
        return ""
    hint = explain(error)
    if not hint.missing or hint.sure:
        return hint.text
    return on_the_ranks(hint, error, session) or hint.text or unheard_of(hint.missing)


def on_the_ranks(hint: Hint, error: BaseException, session) -> str:
    """The hint if the ranks have the name and the notebook does not; else ""."""
    name = hint.missing
    has = session.call("has", name=name) if session is not None and session.size else []
    if any(has):
        owners = "the ranks have" if all(has) else f"{name_ranks(r for r, it in enumerate(has) if it)} has"
        if call := wants_a_name(name, error):
            return f'{call} wants the name in quotes: {call}("{name}")'
        if "module" in has and name not in BACK:
            return hint.text
        fetch = f', or fetch it: {name} = launch.pull("{name}")' if "value" in has and name not in BACK else ""
        return f"{owners} {name}, the notebook does not: put %%ranks above the cell{fetch}"
    if name in BACK:
        return f"only the ranks know {name}: put %%ranks above the cell"
    if name in FIRST_CELL:
        return f"{name} comes from the first cell of the chapter: run that one first, after every restart of the kernel"
    return ""


def wants_a_name(name: str, error: BaseException) -> str:
    """'check' in `check(shift)`: a call of our function whose first parameter is called `name`."""
    place = place_of(error)
    if place is None:
        return ""
    for call in (node for node in ast.walk(place.scope) if isinstance(node, ast.Call) and node.args):
        function, first = place.called(call), call.args[0]
        ours = (getattr(function, "__module__", None) or "").partition(".")[0] in OURS
        here = spans(call, place.line) and isinstance(first, ast.Name) and first.id == name
        if ours and here and next(iter(inspect.signature(function).parameters), "") == "name":
            return ast.unparse(call.func)
    return ""
