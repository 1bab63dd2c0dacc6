"""compare: all algorithms of one collective on one network, over many sizes: which wins where.

    compare("all_reduce", ranks=32, sizes=[1e3, 1e6, 1e9], network=presets.dgx_h100())

shows as a table: those that win somewhere and the next best, four at least. `algorithms=[...]` says which ones to take;
without it all are compared. Algorithms that cut the vector into as many chunks as one likes are taken with the best of
a few numbers of chunks for each size.

Left out: the picture (widgets/cost_explorer.py).
"""

import inspect
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from collectives import catalogue
from collectives.catalogue import build
from collectives.cost import Curve
from collectives.errors import ScheduleError, check_ranks
from collectives.network import Network, Topology, check_network
from collectives.schedule import Schedule
from collectives.units import duration, size

CHUNKS = (2, 8, 32, 128)
FEW = 4  # algorithms that are shown where nobody said which
COLUMNS = 8  # sizes shown in the table; `seconds` has all


class Crossover(NamedTuple):
    """From `nbytes` on `after` is faster than `before`, which was the fastest up to here; both take `seconds` there."""

    nbytes: float
    seconds: float
    before: str
    after: str


class Comparison:
    """What `compare` found: `seconds[algorithm]` over `sizes` (bytes), and why an algorithm was skipped.

    `shown` are the algorithms to show: those that were asked for, else the few that are fastest.
    """

    def __init__(
        self,
        collective: str,
        ranks: int,
        sizes: ArrayLike,
        network: Network | Topology,
        algorithms: Sequence[str] | None = None,
        pipelined: bool = False,
    ) -> None:
        self.collective, self.ranks, self.network = collective, check_ranks("compare", ranks), network
        self.sizes = np.sort(np.asarray(sizes, float).ravel())
        if not len(self.sizes) or self.sizes[0] <= 0:
            raise ScheduleError("compare needs sizes in bytes, all above 0, for example sizes=[1e3, 1e6, 1e9]")
        check_network(network, self.ranks)
        self.skipped: dict[str, str] = {}
        self._curves: dict[str, list[Curve]] = {}
        for name, function in _chosen(collective, algorithms).items():
            try:
                self._curves[name] = [
                    Curve(schedule, network, pipelined) for schedule in self._variants(name, function)
                ]
            except ScheduleError as refusal:
                self.skipped[name] = str(refusal)
        self.seconds = {name: self._time(name, self.sizes) for name in self._curves}
        if not self.seconds:
            raise ScheduleError("; ".join(self.skipped.values()))
        self.shown = list(self.seconds) if algorithms is not None else self._few()

    def _few(self) -> list[str]:
        """All that are fastest somewhere, and of the others those that lose least, as taught."""
        times = np.array(list(self.seconds.values()))
        behind = np.log(np.maximum(times, 1e-12) / np.maximum(times.min(axis=0), 1e-12)).mean(axis=1)
        winners, names = set(self.best), list(self.seconds)
        order = sorted(names, key=lambda name: (name not in winners, behind[names.index(name)]))
        few = set(order[: max(FEW, len(winners))])
        return [name for name in names if name in few]

    def _variants(self, name: str, function: Callable[..., Schedule]) -> list[Schedule]:
        local = getattr(self.network, "local", None)
        cuts = "chunks" in inspect.signature(function).parameters
        choices = [{"chunks": chunks} for chunks in CHUNKS] if cuts else [{}]
        return [build(self.collective, name, self.ranks, local, **choice) for choice in choices]

    def _time(self, name: str, sizes: ArrayLike) -> np.ndarray:
        best: np.ndarray = np.min([curve(sizes) for curve in self._curves[name]], axis=0)
        return best

    @property
    def best(self) -> list[str]:
        """The fastest algorithm for every size; of equals the one that is taught first."""
        names, times = list(self.seconds), np.array(list(self.seconds.values()))
        return [names[i] for i in (times <= times.min(axis=0) * (1 + 1e-9)).argmax(axis=0)]

    @property
    def crossovers(self) -> list[Crossover]:
        """Where one size has another winner than the next: the N between them at which the two are equally fast."""
        found, best = [], self.best
        for i in range(len(self.sizes) - 1):
            before, after = best[i], best[i + 1]
            if before == after:
                continue
            low, high = self.sizes[i], self.sizes[i + 1]
            for _ in range(30):  # a factor of 1000 between two sizes shrinks to a millionth of a percent
                middle = np.sqrt(low * high)
                if self._time(before, middle) <= self._time(after, middle):
                    low = middle
                else:
                    high = middle
            found.append(Crossover(float(high), float(self._time(after, high)), before, after))
        return found

    def _rows(self) -> tuple[list[str], list[list[str]], list[list[bool]]]:
        """Column heads, the cells of every algorithm, and which of them are the fastest of their column."""
        shown = np.unique(np.linspace(0, len(self.sizes) - 1, min(COLUMNS, len(self.sizes))).round().astype(int))
        best = self.best
        cells = [[duration(self.seconds[name][i]) for i in shown] for name in self.shown]
        wins = [[best[i] == name for i in shown] for name in self.shown]
        return [size(self.sizes[i]) for i in shown], cells, wins

    def _title(self) -> str:
        return f"{self.collective}, {self.ranks} ranks, {self.network}"

    def __repr__(self) -> str:
        heads, cells, wins = self._rows()
        rows = [["", *heads]] + [
            [name, *(f"{text}{'*' if won else ' '}" for text, won in zip(row, marks, strict=True))]
            for name, row, marks in zip(self.shown, cells, wins, strict=True)
        ]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [self._title()]
        lines += ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
        return "\n".join([*lines, f"* fastest. {self.verdict()}"])

    def _repr_html_(self) -> str:
        heads, cells, wins = self._rows()
        head = "".join(f"<th>{escape(text)}</th>" for text in ["", *heads])
        body = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            + "".join(f"<td>{f'<b>{text}</b>' if won else text}</td>" for text, won in zip(row, marks, strict=True))
            + "</tr>"
            for name, row, marks in zip(self.shown, cells, wins, strict=True)
        )
        return (
            f"<table><caption>{escape(self._title())}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>Bold: fastest. {escape(self.verdict())}</p>"
        )

    def verdict(self) -> str:
        """One sentence: who wins where."""
        steps = [f"{cross.after} from {size(cross.nbytes)} on" for cross in self.crossovers]
        skipped = f" Not for this network or number of ranks: {', '.join(self.skipped)}." if self.skipped else ""
        slower = len(self.seconds) - len(self.shown)
        more = f" Not shown: {slower} that are slower." if slower else ""
        return f"Fastest: {', '.join([self.best[0], *steps])}.{more}{skipped}"


def compare(
    collective: str,
    ranks: int,
    sizes: ArrayLike,
    network: Network | Topology,
    algorithms: Sequence[str] | None = None,
    pipelined: bool = False,
) -> Comparison:
    """Cost of every algorithm of `collective`, or of those named in `algorithms`, for `ranks` ranks and every N in
    `sizes` (bytes) on `network`; `pipelined` as in `Schedule.cost`. ScheduleError for a name that the collective does
    not have."""
    return Comparison(collective, ranks, sizes, network, algorithms, pipelined)


def _chosen(collective: str, names: Sequence[str] | None) -> dict[str, Callable[..., Schedule]]:
    """The functions of these names, in the order they are taught; all if there are none."""
    known = catalogue.algorithms(collective)
    if names is None:
        return known
    if isinstance(names, str) or not names:
        raise ScheduleError(f"algorithms is a list of names, for example [{', '.join(map(repr, list(known)[:2]))}]")
    if unknown := [name for name in names if name not in known]:
        raise ScheduleError(f"{collective} has no algorithm {unknown[0]!r}; it has {', '.join(known)}")
    return {name: function for name, function in known.items() if name in names}
