"""The registry of explanations of one rank's error: what the student most likely meant, from the exception and the
code.

A rule is a function of an error and of the Place in the cell where it was raised. It returns a sentence, or "" if it
cannot prove its case. `RULES` holds them all; the first sentence wins. To prove its case, a rule finds the failing
expression by its position in the source, looks names up in the frame, and asks a function whether it is torch's. A
sentence states a fact ("dist.recv returns ...") and then what to write; what is only likely is a question.

    explain             for an error (_calls.py: torch.distributed's functions; names.py: names, attributes, modules;
                        needs.py: a newer torch)
    leftovers.notes     for a cell without an error that leaves a trap for later cells

Both run where the code ran, in a rank or in the notebook's kernel, and import no torch.

Left out: names that are elsewhere, on other ranks or in the notebook (launch/kernel/whereabouts.py asks for them). What
several ranks do to each other: launch/doctor/explain.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from launch.hints import _calls, names, needs
from launch.hints.place import place_of

RULES = (*needs.RULES, *_calls.RULES, *names.RULES)


EXIT = (
    "exit() ends only this cell: the rank and its variables live on; %ranks restart makes new ranks, %ranks stop ends "
    "them"
)


@dataclass(frozen=True)
class Hint:
    """`text` is the sentence, "" if there is none. `missing` is the name of a NameError; launch/kernel/whereabouts.py
    may know where it is and explain it better, unless this is `sure`: the code itself sets the name."""

    text: str = ""
    missing: str = ""
    sure: bool = False


def explain(error: BaseException) -> Hint:
    """The hint for an error that a cell has raised."""
    if isinstance(error, SystemExit):
        return Hint(EXIT)
    try:  # rules look at the student's objects; if that fails there is no hint
        missing, place = names.missing(error), place_of(error)
        if place is None:
            return Hint("", missing)
        if here := names.not_come_by(error, place):
            return Hint(here, missing, sure=True)
        return Hint(next(filter(None, (rule(error, place) for rule in RULES)), ""), missing)
    except Exception:
        return Hint()
