"""Mesh: ranks on their grid, the groups they form, and which collective runs in which group.

A training job runs several collectives at once, each among some of the ranks: along the rows of a mesh, along its
columns, among all. Each kind of call has a grid of its own here: ranks of one colour are one group. Below it are the
bytes of one rank's calls, and whether the group leaves its machine. It is read from a recording, from what every call
says of its group; or it is the mesh alone, with the groups along each of its dimensions.

Left out: the messages within a collective (Player), and what single wires carry (TopologyMap).
"""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

from collectives.network import Topology
from collectives.units import size
from widgets._drawn import NARROW, WIDE, Followed, words
from widgets.base import join

MOST_RANKS, MOST_KINDS = 64, 8
# op, calls, between machines
NESTED = [("reduce_scatter", 1, False), ("all_reduce", 1, True), ("all_gather", 1, False)]
HUES = (1, 2, 3, 6, 4, 7, 0, 5)  # of the groups; both oranges last, since an orange edge says something else
EDGED = "Orange edge: on several machines."
Group = tuple[int, ...]


class Kind(NamedTuple):
    """Calls of one op in groups that lie alike. `calls` and `bytes` are those of the rank that has most."""

    op: str
    groups: list[Group]
    along: str
    calls: int
    bytes: int


class Mesh(Followed):
    """Draws the groups of `run` on a mesh of ranks, or, without a run, those of the mesh itself.

    >>> Mesh(launch.recording(), shape=(2, 4), names=("machine", "gpu"))           # doctest: +SKIP
    >>> Mesh(shape=(2, 4), names=("machine", "gpu"))                               # doctest: +SKIP

    run       `launch.recording()`: its `events` know their groups
    shape     of the mesh, the last dimension runs fastest, as in `init_device_mesh`; from the groups unless given
    names     of its dimensions, as `mesh_dim_names`
    local     ranks per machine: groups that leave it are marked; that of the topology it ran on, unless given
    step      0 is before the first kind of call, k after k of them; `playing` is True while it plays
    chosen    the rank whose groups stand out, -1 for none

    TypeError for a run that does not know its groups, ValueError for one without a call, with more than 64 ranks or 8
    kinds of calls, and for a shape that does not hold the ranks.
    """

    _entry = "mesh.js"
    _esm = join(_entry)

    def __init__(
        self,
        run: Any = None,
        *,
        shape: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        local: int | None = None,
        **traits,
    ):
        calls = [] if run is None else _calls(run)
        self.shape = _shape(shape, run, calls)
        self.names = _names(names, self.shape)
        ranks = prod(self.shape)
        network = getattr(run, "network", None)
        self.local = local or (network.local if isinstance(network, Topology) else None)
        if self.local is not None and ranks % self.local:
            raise ValueError(
                f"local is how many of the {ranks} ranks a machine has, so it divides {ranks}; got {local}"
            )
        lines = {name: _along(self.shape, dim) for dim, name in enumerate(self.names)}
        self.kinds = _kinds(calls, lines, ranks) if calls else [
            Kind(name, groups, name, 0, 0) for name, groups in lines.items()
        ]  # fmt: skip
        if len(self.kinds) > MOST_KINDS:
            raise ValueError(
                f"this run has {len(self.kinds)} kinds of calls, and {MOST_KINDS} can be drawn; record fewer lines"
            )
        super().__init__(
            self._picture(WIDE),
            self._picture(NARROW),
            headline=self._headline(bool(calls), getattr(run, "collective", "")),
            processes=ranks,
            size=" x ".join(map(str, self.shape)),
            told=[self._before(), *map(self._sentence, self.kinds)],
            phases=[[kind.op.removesuffix("_single"), 1] for kind in self.kinds],
            legend=[
                f"One colour is one group; along {self.names[-1]}, its ranks differ in {self.names[-1]} alone."
                + (f" {EDGED}" if self.local else "")
            ],
            takes_part=[self._of(rank) for rank in range(ranks)],
            **traits,
        )

    def summary(self) -> str:
        dimensions = ", ".join(f"{name} {long}" for name, long in zip(self.names, self.shape, strict=True))
        return f"{dimensions}; {', '.join(dict.fromkeys(kind.op for kind in self.kinds))}"

    def slow(self, group: Group) -> bool:
        """Whether a group has ranks of several machines."""
        return bool(self.local) and len({rank // (self.local or 1) for rank in group}) > 1

    def _headline(self, recorded: bool, whole: str) -> str:
        """`whole` is the collective that all calls together are proved to be."""
        if not recorded:
            leave = [kind.along for kind in self.kinds if self._leaves(kind)]
            if leave and len(leave) < len(self.kinds):
                return f"Groups along {' and '.join(leave)} span machines, the others stay inside one"
            told = [f"{_many(len(kind.groups), 'group')} along {kind.along}" for kind in self.kinds]
            return f"Each rank is in {_many(len(told), 'group')}: {', '.join(told)}"
        out = sum(kind.bytes for kind in self.kinds if self._leaves(kind))
        inside = sum(kind.bytes for kind in self.kinds) - out
        if inside and out:
            steps = [(kind.op.removesuffix("_single"), kind.calls, self._leaves(kind)) for kind in self.kinds]
            if whole == "all_reduce" and steps == NESTED:
                n = size(self.kinds[0].bytes)
                return f"One all_reduce in 3 steps: only {size(out)} of each rank's {n} cross between machines"
            return f"Over the slow links between machines: {size(out)} a rank. Inside a machine: {size(inside)}"
        sums: dict[str, list[int]] = {}
        for kind in self.kinds:
            there = sums.setdefault(kind.along, [0, 0])
            there[0] += kind.bytes
            there[1] += kind.calls
        told = [f"{_many(calls, 'call')} {along}, {size(nbytes)}" for along, (nbytes, calls) in sums.items()]
        return f"Each rank has {'; '.join(told)}"

    def _leaves(self, kind: Kind) -> bool:
        return any(map(self.slow, kind.groups))

    def _before(self) -> str:
        across = " Groups on several machines are marked in orange." if self.local else ""
        return f"Each grid is the same ranks; ranks of one colour are one group.{across}"

    def _sentence(self, kind: Kind) -> str:
        groups = " and ".join(map(_ranks, kind.groups[:2])) + (", and so on" if len(kind.groups) > 2 else "")
        where = f"{_many(len(kind.groups), 'group')} {kind.along}: {groups}"
        if not kind.calls:
            return f"Along {kind.along}, {_many(len(kind.groups), 'group')}: {groups}."
        leaves = (
            ""
            if not self.local
            else ", over the slow links"
            if any(map(self.slow, kind.groups))
            else ", inside a machine"
        )
        return f"{kind.op} in {where}; {_many(kind.calls, 'call')}, {size(kind.bytes)} a rank{leaves}."

    def _of(self, rank: int) -> str:
        found = []
        for kind in self.kinds:
            for group in kind.groups:
                if rank in group:
                    found.append(f"{kind.op} with {_ranks(group)}, as number {group.index(rank)}")
        return f"Rank {rank}: {'; '.join(dict.fromkeys(found)) or 'in no group'}."

    def _picture(self, width: int) -> tuple[list[str], int]:
        wide = width > NARROW
        across = min(len(self.kinds), 4 if wide else 2)
        named = sum(len(name) + 4 for name in self.names[:-1]) - 2
        left = 12 + 7 * max(named, 0) if wide else 10
        pitch = (width - left) // across
        columns = self.shape[-1]
        cell = min(38, (pitch - 16) // columns)
        places = [self._place(rank, cell) for rank in range(prod(self.shape))]
        tall = max(y for _, y in places) + cell
        parts: list[str] = []
        for i, kind in enumerate(self.kinds):
            x, y = left + i % across * pitch, 46 + i // across * (tall + 90)
            if wide and i % across == 0:
                parts += self._axes(x, y, cell)
            parts.append(f'<g transform="translate({x} {y})">{self._boxes(cell, tall)}<g data-step="{i + 1}">')
            parts += [*self._panel(kind, places, cell, tall), "</g></g>"]
        above = (len(self.kinds) - 1) // across * (tall + 90)
        calls, leave = (any(map(test, self.kinds)) for test in (lambda kind: kind.calls, self._leaves))
        return parts, above + tall + 54 + 18 * calls + 16 * leave

    def _place(self, rank: int, cell: int) -> tuple[int, int]:
        """Corner of a rank's box: the last dimension along the line, the others below each other with a gap."""
        columns = self.shape[-1]
        line = rank // columns
        gap = line // self.shape[-2] * 10 if len(self.shape) > 2 else 0
        machine = rank // self.local * 4 if self.local and self.local % columns == 0 else 0
        return rank % columns * cell, line * cell + gap + machine

    def _axes(self, x: int, y: int, cell: int) -> list[str]:
        """What the lines are called, beside the first grid."""
        columns, parts = self.shape[-1], []
        for line, place in enumerate(product(*map(range, self.shape[:-1])) if len(self.shape) > 1 else ()):
            name = ", ".join(f"{name} {index}" for name, index in zip(self.names, place, strict=False))
            middle = y + self._place(line * columns, cell)[1] + cell / 2 + 4
            parts.append(words(name, x - 10, middle, "rd-small rd-end rd-light"))
        return parts

    def _boxes(self, cell: int, tall: int) -> str:
        """A box behind the ranks of each machine, where these are whole lines."""
        columns = self.shape[-1]
        if not self.local or self.local % columns:
            return ""
        boxes = ""
        for first in range(0, prod(self.shape), self.local):
            (_, y), (_, low) = self._place(first, cell), self._place(first + self.local - 1, cell)
            wide, high = columns * cell + 6, low + cell - y + 2
            boxes += f'<rect class="rd-box" x="-3" y="{y - 1}" width="{wide}" height="{high}" rx="6"/>'
        return boxes

    def _panel(self, kind: Kind, places: list[tuple[int, int]], cell: int, tall: int) -> list[str]:
        many = f" × {kind.calls}" if kind.calls > 1 else ""
        parts = [words(kind.op.removesuffix("_single") + many if kind.calls else f"along {kind.along}", 0, -26)]
        parts.append(words(kind.along if kind.calls else _many(len(kind.groups), "group"), 0, -10, "rd-small rd-light"))
        inside, middle, thick = cell - 8, cell // 2, max(4, cell // 3)
        for front in (False, True):  # what joins the ranks is behind all boxes
            for number, group in enumerate(kind.groups):
                hue = f"rd-full rs-h{HUES[number % 8]}"
                boxes = "".join(f"M{x + 4} {y + 4}h{inside}v{inside}h-{inside}z" for x, y in (places[r] for r in group))
                way, wide = self._way([places[rank] for rank in group], cell, thick)
                slow = (
                    f'<path class="rd-line rd-slow" stroke-width="{wide + 5}" d="{way}"/>' if self.slow(group) else ""
                )
                band = f'{slow}<path class="rd-band {hue}" stroke-width="{wide}" d="{way}"/>'
                drawn = f'<path class="{hue}" d="{boxes}"/>' if front else band
                parts.append(f'<g data-ends="{" ".join(map(str, group))}">{drawn}</g>')
        for rank, (x, y) in enumerate(places):
            large = f' style="font-size:{min(14, cell * 0.5):.2g}px"'
            parts.append(words(str(rank), x + middle, y + middle + min(5, cell * 0.18), "rd-sum rd-mid", large))
        if kind.calls:
            parts.append(words(f"{size(kind.bytes)} a rank", 0, tall + 18, "rd-small"))
        if self._leaves(kind):
            parts.append(words("between machines", 0, tall + (33 if kind.calls else 18), "rd-small rd-slow"))
        return parts

    def _way(self, places: list[tuple[int, int]], cell: int, thick: int) -> tuple[str, int]:
        """From rank to rank; beside the ranks between them, where these are not of the group."""
        middle = cell // 2
        steps = zip(places, places[1:], strict=False)
        if all(max(abs(x - u), abs(y - v)) < 2 * cell for (x, y), (u, v) in steps):
            return "M" + "L".join(f"{x + middle} {y + middle}" for x, y in places), thick
        (x, y), *others = places
        return f"M{x + middle} {y + middle}" + "".join(f"H{x + cell}V{v + middle}H{u + middle}" for u, v in others), 3


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _ranks(group: Group) -> str:
    return f"ranks {', '.join(map(str, group))}" if len(group) <= 8 else f"{len(group)} ranks from {group[0]}"


def _calls(run: Any) -> list:
    """Its events, without those of the receiving side of messages."""
    events = getattr(run, "events", None)
    if events is None or any(not hasattr(event, "group") for event in events):
        raise TypeError(
            "Mesh draws a run that knows its groups, as launch.recording() of a `%%ranks --record` cell does (not one "
            f"that was loaded); or a shape alone, as in Mesh(shape=(2, 4)); got {type(run).__name__} {run!r:.60}"
        )
    calls = [event for event in events if event.op != "recv"]
    if not calls:
        raise ValueError("no rank called torch.distributed in this run: Mesh has nothing to draw; record another cell")
    if run.ranks > MOST_RANKS:
        raise ValueError(f"Mesh draws up to {MOST_RANKS} ranks, and this run has {run.ranks}")
    return calls


def _members(event: Any, ranks: int) -> Group:
    """The group of a call; the two sides of a message that names none."""
    if event.op == "send" and len(event.group) == ranks and event.peer is not None:
        return tuple(sorted((event.rank, event.peer)))
    return tuple(event.group)


def _shape(shape: Sequence[int] | None, run: Any, calls: list) -> tuple[int, ...]:
    """As given, or so that the groups of the run are its lines and columns."""
    if shape is not None:
        shape = tuple(shape)
        ranks = prod(shape) if run is None else run.ranks
        if not shape or min(shape) < 1 or prod(shape) != ranks or ranks > MOST_RANKS:
            raise ValueError(
                f"shape {shape} has {prod(shape)} places for {ranks} ranks; Mesh draws up to {MOST_RANKS} ranks"
            )
        return shape
    if run is None:
        raise ValueError("Mesh needs a run or a shape, as in Mesh(launch.recording()) or Mesh(shape=(2, 4))")
    groups = {_members(event, run.ranks) for event in calls}
    inner = [group for group in groups if 1 < len(group) < run.ranks]
    strides = [group[1] - group[0] for group in inner if group[1] - group[0] > 1]
    columns = min(strides, default=max((len(group) for group in inner), default=run.ranks))
    return (run.ranks // columns, columns) if run.ranks % columns == 0 and columns < run.ranks else (run.ranks,)


def _names(names: Sequence[str] | None, shape: tuple[int, ...]) -> tuple[str, ...]:
    if names is None:
        few: tuple[str, ...] = ("block", "row", "column")[-len(shape) :]
        return few if len(shape) < 4 else tuple(f"dim {number}" for number in range(len(shape)))
    if len(names) != len(shape):
        raise ValueError(f"names has one for each dimension of the mesh, {len(shape)}; got {len(names)}")
    return tuple(names)


def _along(shape: tuple[int, ...], dim: int) -> list[Group]:
    """The groups along a dimension: those ranks of which only that index differs."""
    strides = [prod(shape[number + 1 :]) for number in range(len(shape))]
    others = [range(1) if number == dim else range(long) for number, long in enumerate(shape)]
    firsts = (sum(index * stride for index, stride in zip(place, strides, strict=True)) for place in product(*others))
    return sorted(tuple(first + index * strides[dim] for index in range(shape[dim])) for first in firsts)


def _kinds(calls: list, lines: dict[str, list[Group]], ranks: int) -> list[Kind]:
    """The calls by op and by how their groups lie, in the order of their first."""
    found: dict[tuple[str, str], list] = {}
    for event in sorted(calls, key=lambda event: event.start):
        found.setdefault((event.op, _lies(_members(event, ranks), lines, ranks)), []).append(event)
    kinds = []
    for (op, along), events in found.items():
        of_rank: dict[int, list[int]] = {}
        for event in events:
            of_rank.setdefault(event.rank, []).append(event.bytes)
        groups = sorted({_members(event, ranks) for event in events})
        kinds.append(Kind(op, groups, along, max(map(len, of_rank.values())), max(map(sum, of_rank.values()))))
    return kinds


def _lies(group: Group, lines: dict[str, list[Group]], ranks: int) -> str:
    """ "along gpu", "among all ranks", "in other groups"."""
    if len(group) == ranks:
        return "among all ranks"
    return next((f"along {name}" for name, groups in lines.items() if group in groups), "in other groups")
