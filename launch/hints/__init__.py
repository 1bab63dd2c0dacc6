"""The sentence that helps: what a student most likely meant, from what was raised and what the code says.

A rule is a function of an error and of the place in the cell where it was raised. It returns a sentence, or "" if it
does not prove its case: the failing expression is found by its position in the source, a name is looked up in the
frame, and whether a function is torch's is asked of the function. A sentence states facts ("dist.recv returns ...") and
then what to write; what is only likely is a question. Where nothing can be proved nothing is said.

    explain   for an error (_calls.py: torch.distributed's functions; names.py: names, attributes, modules)
    notes     for a cell that came through and has left behind what a student will stumble over (leftovers.py)

Both run where the code ran, in a rank or in the notebook's kernel, and import no torch.

Left out: names that live elsewhere, on other ranks or in the notebook (launch/kernel/whereabouts.py), which has to ask.
"""

from __future__ import annotations

from dataclasses import dataclass

from launch.hints import _calls, names
from launch.hints.place import place_of

RULES = (*_calls.RULES, *names.RULES)


@dataclass(frozen=True)
class Hint:
    """`text` is the sentence, "" if there is none. `missing` is the name of a NameError, which may live elsewhere
    (launch/kernel/whereabouts.py); that explains it better, unless the code itself is `sure`: it sets the name."""

    text: str = ""
    missing: str = ""
    sure: bool = False


def explain(error: BaseException) -> Hint:
    """What helps with an error that a cell has raised."""
    try:  # a hint looks at objects of the student's; if that goes wrong there is none, and the error stands for itself
        missing, place = names.missing(error), place_of(error)
        if place is None:
            return Hint("", missing)
        if here := names.not_come_by(error, place):
            return Hint(here, missing, sure=True)
        return Hint(next(filter(None, (rule(error, place) for rule in RULES)), ""), missing)
    except Exception:
        return Hint()
