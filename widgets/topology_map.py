"""TopologyMap: which links of a machine room a schedule uses, and how much goes over each.

Two algorithms may send the same bytes and differ by an order of magnitude in time, because of the links they load. The
map draws machines, GPUs, NICs and the wires between them, as thick as what they carry, and marks the busiest.
What is drawn is what `schedule.cost` counts: Python works it out once per step, the browser adds steps up. Of a run
that was played on the topology it is what its links carried, built-ins included.

Left out: networks that have no links to draw (`Network`), and topologies made by hand, whose shape nobody knows.
"""

from html import escape

import numpy as np
import traitlets

from collectives import Schedule, Topology
from collectives.network import check_network
from collectives.played import Carried
from collectives.run import Run
from collectives.traffic import of_steps, scale
from collectives.units import duration, size
from widgets import _still, _wires
from widgets._packing import pack
from widgets.base import join, styles
from widgets.question import Asked

MOST_RANKS = 128
COUNTED = "What the ranks sent: messages as they were, built-ins as the steps that the library takes inside."
LISTED = 5  # links in a table


class TopologyMap(Asked):
    """Shows what `schedules`, one at a time, send over the links of `topology`.

    >>> flat, nested = all_reduce.ring(ranks=32), all_reduce.hierarchical(nodes=4, local=8)
    >>> TopologyMap(flat, nested, topology=presets.dgx_h100(), nbytes=1e9)     # doctest: +SKIP
    >>> TopologyMap(launch.recording())     # of a cell that ran on a Topology                # doctest: +SKIP

    topology   made by Topology.machines, Topology.ring or Topology.shared, or one of `collectives.presets`; may
               be left out for a run that was played on one
    nbytes     N in bytes, the larger buffer of one rank; may be left out for a recording
    shown      which of the schedules is on the map, counted from 0
    step       what has been sent after so many steps; all of them at first
    playing    True while it plays

    All schedules are drawn to one scale, so that they can be compared. The busiest link is the one that is busy for
    the longest time, which need not be the one with most bytes. TypeError for anything but Schedules and a Topology;
    ValueError for none, for more than 128 ranks, and for a topology made by hand.
    """

    _esm = join("topology.js")
    _css = styles("frame.css", "player.css", "topology.css", "question.css")
    shown = traitlets.Int(0).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    playing = traitlets.Bool(False).tag(sync=True)
    room = traitlets.Dict().tag(sync=True)
    runs = traitlets.List().tag(sync=True)
    data = traitlets.Bytes().tag(sync=True)

    def __init__(self, *schedules: Schedule, topology: Topology | None = None, nbytes: float | None = None, **traits):
        if topology is None:
            played = [run.network for run in schedules if isinstance(run, Run)]
            topology = next((network for network in played if isinstance(network, Topology)), None)
        _check(schedules, topology, nbytes)
        assert topology is not None  # that was checked
        self.schedules, self.topology, self.nbytes = schedules, topology, nbytes
        loads = [_loads(schedule, topology, nbytes) for schedule in schedules]
        self._uses = [
            table[order].sum(axis=0) for order, table in loads
        ]  # of each schedule the bytes and seconds of links
        runs = [_run(schedule, topology, nbytes, order) for schedule, (order, _) in zip(schedules, loads, strict=True)]
        traits.setdefault("step", len(runs[traits.get("shown", 0)]["order"]))
        super().__init__(
            room={
                "kind": topology.kind,
                "title": topology.name,
                "ranks": topology.ranks,
                "local": topology.local,
                "links": _wires.spelled(topology),
            },
            runs=runs,
            data=b"".join(table.tobytes() for _, table in loads),
            **traits,
        )

    def summary(self) -> str:
        return f"{', '.join(schedule.title for schedule in self.schedules)} on {self.topology.name}"

    def fallback(self) -> str:
        """The map with all steps of each schedule; where it is not one of machines, the busiest links as a table."""
        if self.topology.kind != "machines":
            return "".join(map(self._table, self.schedules))
        runs = []
        for schedule, run, use in zip(self.schedules, self.runs, self._uses, strict=True):
            steps = len(run["order"])
            takes = f"{f'All {steps} steps take' if steps > 1 else 'Takes'} {duration(sum(run['seconds']))}."
            headline = f"{schedule.title} on {self.topology.name}{_wires.bottleneck(use[1])}"
            said = [] if _carried(schedule, self.topology) else [takes]
            runs.append((headline, said + _wires.told(self.topology, use), use))
        alt = " ".join(f"{headline}. {' '.join(said)}" for headline, said, _ in runs)
        return _still.image(_wires.svg(self.topology, runs), alt)

    def _table(self, schedule: Schedule) -> str:
        if _carried(schedule, self.topology):
            return f"<p>{escape(f'{schedule.title}: what the links of {self.topology.name} carried')}</p>"
        cost = schedule.cost(nbytes=self.nbytes, network=self.topology)
        busiest = sorted(cost.by_link.items(), key=lambda link: -link[1].seconds)
        rows = "".join(
            f"<tr><td>{escape(name)}</td><td>{size(use.bytes)}</td><td>{duration(use.seconds)}</td></tr>"
            for name, use in busiest[:LISTED]
        )
        more = f"<p>... and {len(busiest) - LISTED} more links.</p>" if len(busiest) > LISTED else ""
        title = escape(f"{schedule.title} on {self.topology.name}: {duration(cost.seconds)}")
        heads = "<tr><th>busiest links</th><th>carried</th><th>busy for</th></tr>"
        return f"<table><caption>{title}</caption>{heads}{rows}</table>{more}"


def _carried(schedule: Schedule, topology: Topology) -> Carried | None:
    """What the links of this very topology carried, if it is a run that was played on it."""
    return schedule.carried if isinstance(schedule, Run) and schedule.network is topology else None


def _check(schedules, topology, nbytes) -> None:
    for schedule in schedules:
        if not isinstance(schedule, Schedule):
            raise TypeError(f"TopologyMap shows Schedules, such as all_reduce.ring(ranks=32); got {schedule!r:.60}")
    if not schedules:
        raise ValueError("TopologyMap needs a schedule, such as all_reduce.ring(ranks=32)")
    if not isinstance(topology, Topology):
        raise TypeError(f"TopologyMap draws a Topology, such as presets.dgx_h100(); got {topology!r:.60}")
    if topology.ranks > MOST_RANKS:
        raise ValueError(f"TopologyMap draws up to {MOST_RANKS} ranks, {topology.name} has {topology.ranks}")
    if nbytes is not None and not nbytes > 0:
        raise ValueError(f"nbytes is N in bytes and positive, got {nbytes!r}")
    for schedule in schedules:
        check_network(topology, schedule.ranks)
    if topology.kind is None:
        raise ValueError(
            f"TopologyMap draws what Topology.machines, .ring and .shared make; {topology.name} was made otherwise "
            "(schedule.cost(...).by_link counts its links)"
        )


def _loads(schedule: Schedule, topology: Topology, nbytes) -> tuple[list[int], np.ndarray]:
    """Which kind each step is of, and per kind of step the bytes on every link and its busy seconds [kind, 2, link].

    Steps that look alike to the network are one kind: the 62 of a ring on 32 ranks are.
    """
    betas = topology.betas(topology.ranks)
    if moved := _carried(schedule, topology):
        carried = np.array(moved.on_links(topology), "<f8")
        return [0], np.array([carried, carried * betas]).reshape(1, 2, len(betas))
    unit = scale(schedule, nbytes).unit_bytes
    known, order, kinds = {}, [], []
    for traffic in of_steps(schedule):
        if id(traffic) not in known:
            loads = topology.loads(traffic, schedule.ranks)
            known[id(traffic)] = (traffic, len(kinds))  # kept, so that its id stays its own
            kinds.append((loads.units * unit, loads.seconds + loads.slopes * unit))
        order.append(known[id(traffic)][1])
    return order, np.array(kinds, "<f8").reshape(len(kinds), 2, len(topology.betas(topology.ranks)))


def _run(schedule: Schedule, topology: Topology, nbytes, order: list[int]) -> dict:
    """What js/topology.js calls Run."""
    if isinstance(schedule, Run) and _carried(schedule, topology):
        took = sum(schedule.step_seconds or ())
        whole = {"title": schedule.title, "phases": [["the run", 1]], "captions": [COUNTED]}
        return {"order": order, "seconds": [took], **whole}
    _, meta = pack(schedule)
    seconds = schedule.cost(nbytes=nbytes, network=topology).step_seconds
    described = {name: meta[name] for name in ("title", "phases", "captions")}
    return {"order": order, "seconds": list(seconds), **described}
