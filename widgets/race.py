"""Race: two or more schedules side by side on one clock, every step as long as it takes on a network.

Which algorithm is fastest depends on N, latency and bandwidth; with the sliders the winner flips before one's eyes. The
browser works out the times itself (js/cost.js, the model of `collectives.network`).

Left out: topologies: a Race draws a flat network, `schedule.cost` knows the others.
"""

import traitlets

from collectives import Network, Schedule
from widgets.base import Widget, join, styles
from widgets.packing import pack

DEFAULT = Network(alpha=10e-6, beta=1 / 10e9)


class Race(Widget):
    """Plays `schedules`, given one after the other, against each other.

    >>> Race(all_reduce.naive(ranks=8), all_reduce.ring(ranks=8), nbytes=64e6)      # doctest: +SKIP

    nbytes     N in bytes, the larger buffer of one rank
    network    a flat `collectives.Network`: alpha seconds per message, beta per byte, gamma per byte added
    step       at how many moments (ends of steps, of any schedule) the clock has been
    playing    True while it plays

    TypeError for anything but Schedules and a flat Network; ValueError for fewer than two schedules or N that is not
    positive.
    """

    _esm = join("race.js")
    _css = styles("frame.css", "stage.css", "race.css")
    step = traitlets.Int(0).tag(sync=True)
    playing = traitlets.Bool(False).tag(sync=True)
    nbytes = traitlets.Float().tag(sync=True)
    alpha = traitlets.Float().tag(sync=True)
    bandwidth = traitlets.Float().tag(sync=True)
    gamma = traitlets.Float().tag(sync=True)
    data = traitlets.Bytes().tag(sync=True)
    metas = traitlets.List().tag(sync=True)

    def __init__(self, *schedules: Schedule, nbytes: float = 1e6, network: Network = DEFAULT, **traits):
        for schedule in schedules:
            if not isinstance(schedule, Schedule):
                raise TypeError(f"Race plays Schedules, such as all_reduce.ring(ranks=8); got {schedule!r:.60}")
        if len(schedules) < 2:
            raise ValueError(f"Race needs at least two schedules, got {len(schedules)}")
        if not nbytes > 0:
            raise ValueError(f"nbytes is N in bytes and positive, got {nbytes!r}")
        if not isinstance(network, Network):
            raise TypeError(f"Race draws a flat network: give it a Network(alpha, beta), got {network!r:.60}")
        packed = [pack(schedule) for schedule in schedules]
        self.schedules = schedules
        super().__init__(
            data=b"".join(data for data, _ in packed),
            metas=[meta | {"nbytes": None} for _, meta in packed],
            nbytes=nbytes,
            alpha=network.alpha,
            bandwidth=1 / network.beta,
            gamma=network.gamma,
            **traits,
        )

    def summary(self) -> str:
        names = (schedule.title for schedule in self.schedules)
        return f"{', '.join(names)}, {self.schedules[0].ranks} ranks"
