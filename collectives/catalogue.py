"""All algorithms by name, and how to build each for p ranks: for tables, tests and widgets that show all of them."""

import inspect
from collections.abc import Callable
from typing import Any

from collectives import (
    all_gather,
    all_reduce,
    all_to_all,
    barrier,
    broadcast,
    gather,
    reduce,
    reduce_scatter,
    scatter,
    send_recv,
)
from collectives.errors import ScheduleError
from collectives.schedule import Schedule

MODULES = (broadcast, scatter, gather, reduce, all_gather, reduce_scatter, all_reduce, all_to_all, barrier, send_recv)
CATALOGUE: dict[str, dict[str, Callable[..., Schedule]]] = {
    module.__name__.rpartition(".")[2]: {function.__name__: function for function in module.ALGORITHMS}
    for module in MODULES
}


def algorithms(collective: str) -> dict[str, Callable[..., Schedule]]:
    """Name -> function of every algorithm of a collective, in the order they are taught."""
    if collective not in CATALOGUE:
        raise ScheduleError(f"no collective is called {collective!r}; there are {', '.join(CATALOGUE)}")
    return CATALOGUE[collective]


def build(collective: str, algorithm: str, ranks: int, local: int | None = None, **arguments: Any) -> Schedule:
    """The schedule of that algorithm for `ranks` ranks; `local` ranks per machine for algorithms that need it.

    ScheduleError if the algorithm does not take this number of ranks.
    """
    known = algorithms(collective)
    if algorithm not in known:
        raise ScheduleError(f"{collective} has no algorithm {algorithm!r}; it has {', '.join(known)}")
    function = known[algorithm]
    if "nodes" not in inspect.signature(function).parameters:
        return function(ranks, **arguments)
    if not local or ranks % local or local in (1, ranks):
        raise ScheduleError(f"{collective}.{algorithm} needs several machines of several ranks each")
    return function(ranks // local, local, **arguments)
