"""The gallery: a page for each collective with all its algorithms, each as a live Player, its counts and its code.

Everything on it is computed: the counts from the schedule, where an algorithm is the fastest from `compare`, the words
from the function's docstring.

Left out: the prose of chapter 7, which explains them.
"""

import inspect
from collections.abc import Callable, Iterator
from html import escape
from itertools import groupby

import numpy as np

from collectives import CATALOGUE, Network, Schedule, ScheduleError, build, compare, presets, spec
from collectives.units import size
from course.site.places import place
from widgets.player import Player

RANKS, LOCAL = 4, 2
SIZES = np.geomspace(8, 8e9, 61)
GIGABIT = Network(alpha=presets.GIGABIT_ETHERNET.alpha, beta=presets.GIGABIT_ETHERNET.beta)
NETWORKS = {"32 ranks on gigabit Ethernet": GIGABIT, "4 machines of 8 H100": presets.dgx_h100(4)}


def pages() -> Iterator[tuple[str, str]]:
    """The name and the Markdown of each collective's page."""
    for collective, family in CATALOGUE.items():
        wins = {where: _wins(collective, network) for where, network in NETWORKS.items()}
        parts = [f"# {collective}", spec.SAYS[collective]]
        for name, function in family.items():
            parts += _entry(collective, name, function, {where: won.get(name, "") for where, won in wins.items()})
        yield collective, "\n\n".join(parts) + "\n"


def _entry(collective: str, name: str, function: Callable, wins: dict[str, str]) -> list[str]:
    schedule = _smallest(collective, name)
    counts = schedule.counts(schedule.chunks)
    share = f"{counts.busiest / schedule.chunks:g} N" if schedule.collective != "barrier" else "nothing but the news"
    told = "".join(f"<p>{escape(part)}</p>" for part in inspect.cleandoc(function.__doc__ or "").split("\n\n"))
    steps = f"{counts.steps} step{'s' * (counts.steps != 1)}"
    won = "; ".join(f"{spans} ({where})" for where, spans in wins.items() if spans)
    code = inspect.getsource(function)
    return [
        f"## {name}",
        told.replace("\n", " "),
        place(Player(schedule)),
        f"On {schedule.ranks} ranks: {steps}, {counts.messages} messages; the busiest rank sends {share}."
        + (f" Fastest for {won}." if won else ""),
        f"<details><summary><code>collectives.{collective}.{name}</code></summary>",
        f"```python\n{code}```",
        "</details>",
    ]


def _smallest(collective: str, name: str) -> Schedule:
    """On four ranks, or the fewest that it takes."""
    for ranks in (RANKS, 8):
        try:
            return build(collective, name, ranks, local=LOCAL)
        except ScheduleError as refused:
            last = refused
    raise last


def _wins(collective: str, network) -> dict[str, str]:
    """By algorithm, the sizes of N at which it is the fastest."""
    try:
        best = compare(collective, 32, SIZES, network).best
    except ScheduleError:
        return {}
    spans: dict[str, list[str]] = {}
    for name, group in groupby(range(len(SIZES)), key=best.__getitem__):
        sizes = [SIZES[i] for i in group]
        spans.setdefault(name, []).append(_span(sizes[0], sizes[-1]))
    return {name: " and ".join(found) for name, found in spans.items()}


def _span(low: float, high: float) -> str:
    if (low, high) == (SIZES[0], SIZES[-1]):
        return "every N"
    if low == SIZES[0]:
        return f"N up to {size(high)}"
    return f"N from {size(low)}" if high == SIZES[-1] else f"N from {size(low)} to {size(high)}"
