"""Race: two or more schedules side by side on one clock, every step as long as it takes on a network.

Which algorithm is fastest depends on N, latency and bandwidth; with the sliders the winner flips before one's eyes. The
browser works out the times itself (js/cost.js, the model of `collectives.network`). Recorded runs race in the seconds
that were measured, without sliders; on several machines these are as sure as their clocks, and a race that is closer
has no winner. Which links a message takes on a
topology only Python knows: it sends what every step puts on them, and the sliders make all links faster or slower.

Left out: sliders for single kinds of links; a Race on another Topology shows what they would.
"""

from html import escape

import numpy as np
import traitlets

from collectives import Network, Schedule, Topology
from collectives.network import check_network
from collectives.played import in_words
from collectives.run import Run
from collectives.timed import uncertainty
from collectives.traffic import of_steps, per_rank
from collectives.units import duration, size
from widgets import _still
from widgets._packing import pack
from widgets.base import join, styles
from widgets.question import Asked

DEFAULT = Network(alpha=10e-6, beta=1 / 10e9)
WIDTH = 900  # of the still picture


class Race(Asked):
    """Plays `schedules`, given one after the other, against each other.

    >>> Race(all_reduce.naive(ranks=8), all_reduce.ring(ranks=8), nbytes=64e6)      # doctest: +SKIP

    >>> Race(naive, ring)      # two recordings: the seconds that were measured             # doctest: +SKIP

    nbytes     N in bytes, the larger buffer of one rank; 1 MB unless given
    network    a flat `collectives.Network`: alpha seconds per message, beta per byte, gamma per byte added; or a
               `Topology`: its sliders then say how many times the latency and the bandwidth of all its links
    measured   whether the clock is that of the runs: if all of `schedules` are recordings, and neither nbytes nor a
               network is given
    step       at how many moments (ends of steps, of any schedule) the clock has been
    playing    True while it plays

    TypeError for anything but Schedules and a network; ValueError for fewer than two schedules or N that is not
    positive, ScheduleError for a topology with too few ranks.
    """

    _esm = join("race.js")
    _css = styles("frame.css", "stage.css", "race.css", "question.css")
    step = traitlets.Int(0).tag(sync=True)
    playing = traitlets.Bool(False).tag(sync=True)
    nbytes = traitlets.Float().tag(sync=True)
    alpha = traitlets.Float().tag(sync=True)
    bandwidth = traitlets.Float().tag(sync=True)
    gamma = traitlets.Float().tag(sync=True)
    topology = traitlets.Unicode(allow_none=True).tag(sync=True)
    measured = traitlets.Bool(False).tag(sync=True)
    data = traitlets.Bytes().tag(sync=True)
    metas = traitlets.List().tag(sync=True)

    def __init__(
        self, *schedules: Schedule, nbytes: float | None = None, network: Network | Topology | None = None, **traits
    ):
        runs = [schedule for schedule in schedules if isinstance(schedule, Run) and schedule.step_seconds]
        measured = len(runs) == len(schedules) and nbytes is None and network is None
        nbytes, network = 1e6 if nbytes is None else nbytes, DEFAULT if network is None else network
        for schedule in schedules:
            if not isinstance(schedule, Schedule):
                raise TypeError(f"Race plays Schedules, such as all_reduce.ring(ranks=8); got {schedule!r:.60}")
        if len(schedules) < 2:
            raise ValueError(f"Race needs at least two schedules, got {len(schedules)}")
        if not nbytes > 0:
            raise ValueError(f"nbytes is N in bytes and positive, got {nbytes!r}")
        if not isinstance(network, Network | Topology):
            wanted = "Race runs on a Network(alpha, beta) or a Topology, such as Topology.machines(4, gpus=8, ...)"
            raise TypeError(f"{wanted}; got {network!r:.60}")
        packed = [pack(schedule) for schedule in schedules]
        metas = [meta | {"nbytes": None} for _, meta in packed]
        if measured:
            metas = [meta | _as_measured(run) for run, meta in zip(runs, metas, strict=True)]
            model = {"alpha": 1.0, "bandwidth": 1.0, "topology": _places(runs)}
        elif isinstance(network, Topology):
            metas = [meta | _on(network, schedule) for schedule, meta in zip(schedules, metas, strict=True)]
            model = {"alpha": 1.0, "bandwidth": 1.0, "topology": network.name}
        else:
            model = {"alpha": network.alpha, "bandwidth": 1 / network.beta, "topology": None}
        self.schedules, self.runs, self.network = schedules, runs, network
        super().__init__(
            data=b"".join(data for data, _ in packed),
            metas=metas,
            nbytes=nbytes,
            gamma=0.0 if measured else network.gamma,
            measured=measured,
            **model,
            **traits,
        )

    def _freshness(self) -> str:
        return "new"

    def summary(self) -> str:
        names = (schedule.title for schedule in self.schedules)
        return f"{', '.join(names)}, {self.schedules[0].ranks} ranks"

    def fallback(self) -> str:
        """A bar for each, on one clock, below who wins and by how much."""
        if self.measured:
            ends = [np.cumsum(run.step_seconds or (0.0,)) for run in self.runs]
            error, where = max(uncertainty(run.clocks) for run in self.runs), _places(self.runs)
        else:
            ends = [_ends(schedule, self.nbytes, self.network) for schedule in self.schedules]
            error, where = 0.0, f"N = {size(self.nbytes)}, {in_words(self.network, self.schedules[0].ranks)}"
        titles = [schedule.title for schedule in self.schedules]
        won = _won(titles, [float(end[-1]) for end in ends], error)
        times = ", ".join(f"{title} {duration(end[-1])}" for title, end in zip(titles, ends, strict=True))
        return _still.image(_bars(titles, ends, won, where), f"{won} ({where}: {times})")


def _won(titles: list[str], seconds: list[float], error: float) -> str:
    """ "ring wins: 3.9 times faster than naive"; nobody does where they are closer than the clocks are right."""
    (best, first), *others = sorted(zip(seconds, titles, strict=True))
    second, title = others[0]
    if second - best <= max(error, 0.005 * best):
        clocks = f", as far as their clocks tell (± {duration(error)})" if error else ""
        return f"No winner: {first} and {title} take the same time{clocks}"
    return f"{first} wins: {float(f'{second / best:.3g}'):,g} times faster than {title}"


def _ends(schedule: Schedule, nbytes: float, network: Network | Topology) -> np.ndarray:
    """Seconds from the start to the end of each step."""
    return np.cumsum(schedule.cost(nbytes=nbytes, network=network).step_seconds or (0.0,))


def _bars(titles: list[str], ends: list[np.ndarray], won: str, where: str) -> str:
    """A line for each schedule: its title, a bar as long as its time, cut at the ends of its steps, and the time."""
    left, right, row, top = 20 + 8.5 * max(map(len, titles)), 80, 30, 54
    fastest = min(end[-1] for end in ends)
    scale = (WIDTH - left - right) / max(end[-1] for end in ends)
    parts = [f'<text x="10" y="20">{escape(won)}</text>']
    parts.append(f'<text class="s" x="10" y="40">{escape(where)}; a bar is cut at the end of each step</text>')
    for line, (title, end) in enumerate(zip(titles, ends, strict=True)):
        y, stops = top + line * row, [round(left + scale * second, 1) for second in end]
        cuts = "".join(f"M{x:g} {y}v20" for x in stops[:-1]) if len(stops) * 3 < stops[-1] - left else ""
        hue = "#56b4e9" if end[-1] == fastest else "#b9c4cb"
        parts.append(
            f'<text x="10" y="{y + 15}">{escape(title)}</text>'
            f'<rect x="{left}" y="{y}" width="{stops[-1] - left:g}" height="20" fill="{hue}"/>'
            f'<path stroke="#333" d="{cuts}"/><text x="{stops[-1] + 6:g}" y="{y + 15}">{duration(end[-1])}</text>'
        )
    style = f"{_still.TEXT}.s{{font-size:12px;font-weight:400}}"
    return _still.sheet(WIDTH, top + 8 + row * len(titles), style, parts)


def _as_measured(run: Run) -> dict:
    """What js/cost.js calls Work of every step: seconds, whatever the network; and by how many they may be wrong."""
    work = [{"lines": [[seconds, 0]], "added": 0} for seconds in run.step_seconds or ()]
    return {"work": work, "error": uncertainty(run.clocks)}


def _places(runs: list[Run]) -> str:
    """'measured on ethernet, 10 times slower', of each run that ran elsewhere."""
    return f"measured on {' and '.join(dict.fromkeys(map(_place, runs)))}"


def _place(run: Run) -> str:
    if run.network:
        return run.network.name or "a network"
    return f"{len(run.clocks)} machines" if len(run.clocks) > 1 else "this machine"


def _on(topology: Topology, schedule: Schedule) -> dict:
    """What js/cost.js calls Work of every step, in seconds on this topology; and the machines, to draw them."""
    check_network(topology, schedule.ranks)
    work = []
    for traffic in of_steps(schedule):
        loads = topology.loads(traffic, schedule.ranks)
        lines = np.unique(np.stack([loads.seconds, loads.slopes], axis=1), axis=0)
        added = per_rank(traffic.adder, traffic.reduced, schedule.ranks).max(initial=0)
        work.append({"lines": lines.tolist(), "added": int(added)})
    local = topology.local
    drawn = local and 1 < local < schedule.ranks and schedule.ranks % local == 0
    return {"work": work, "local": local if drawn else None}
