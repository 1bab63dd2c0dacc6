"""Drift: what the models of all ranks say at each step of a training, and which data each rank has.

Without messages the lines of the ranks tilt apart; ranks that average their gradients have one line, striped in the
colours of all that hold it.

Left out: the training. The lines are what the ranks held, `launch.pull("path")`.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import traitlets

from widgets import _still
from widgets._drawn import NARROW, STYLE, WIDE, Drawn, words
from widgets.base import join
from widgets.wait_for import named

HUES = (4, 5, 2, 6, 0, 1, 3, 7)  # of rank 0, rank 1 ...: the strong ones first
TALL, LEFT, LOW = 240, 34, 24  # pixels of the picture; left of the axis and below it
END = 2.0  # the curve x² is learned from 0 to here
STRIPE = 14  # pixels of a line that several ranks hold
LEGEND = "Gray: the curve x². Dots: the data of a rank. Line: what its model says."
SHARED = " Striped: several ranks have it."
NEAR = 1e-3  # of the longest step: what float32 loses
GHOSTS = (1, 3, 10, 30)  # steps that the still shows faintly


class Drift(Drawn):
    """`paths[rank][step]` is what a rank held after that many steps: w[0] and w[1] of a line, or with `at` what its
    model says at these x. `points[rank]` are the x that the rank learns x² from.

    It plays once by itself: where the lines go is what it shows. `step` is the last one unless it is given.

    >>> Drift(launch.pull("path"), launch.pull("mine"))        # doctest: +SKIP

    ValueError if ranks have not gone the same number of steps, or values do not fit `at`.
    """

    _entry = "drift.js"
    _esm = join(_entry)
    _plays = True
    xs = traitlets.List().tag(sync=True)
    ways = traitlets.List().tag(sync=True)  # by rank and step: y at each of xs

    def __init__(self, paths: Sequence, points: Sequence[Iterable], *, at: Sequence[float] | None = None, **traits):
        steps = {len(path) for path in paths}
        if len(steps) != 1:
            raise ValueError(f"every rank has a row for each step; got {sorted(steps)} rows")
        if at is None and any(len(row) != 2 for path in paths for row in path):
            raise ValueError("each row is w[0] and w[1]; for other models give what they say, and at=[x, ...]")
        xs = [0.0, END] if at is None else [round(float(x), 3) for x in at]
        said = [[[row[0], row[0] + END * row[1]] if at is None else row for row in path] for path in paths]
        self._ways = [[[round(float(y), 3) for y in row] for row in path] for path in said]
        if any(len(row) != len(xs) for path in self._ways for row in path):
            raise ValueError(f"each row has what a model says at the {len(xs)} x of at")
        self._paths, self._seen, self._xs, self._line = paths, [[float(x) for x in of] for of in points], xs, at is None
        alike: dict[str, list[int]] = {}
        for rank, path in enumerate(said):
            alike.setdefault(str([[f"{y:.2f}" for y in row] for row in path]), []).append(rank)
        self._alike = [*alike.values()]
        last = steps.pop() - 1
        traits.setdefault("step", last)
        noun = "line" if at is None else "model"
        ranks, models = len(paths), len(self._alike)
        self._whose = f"one {noun} for all ranks" if models == 1 else f"{ranks} ranks, {models} {noun}s"
        apart = _apart(path[-1] for path in said)
        super().__init__(
            self._drawn(WIDE),
            self._drawn(NARROW),
            headline=f"{ranks} ranks hold one {noun}, the same after every step"
            if models == 1
            else f"{ranks} ranks learn alone, each from its own data: {models} {noun}s, {apart}"
            if self._alone()
            else f"{ranks} ranks learn {models} different {noun}s: {apart} after {last} steps",
            processes=ranks,
            size=f"{last} steps",
            told=[self._told(step) for step in range(last + 1)],
            phases=[["training", last]],
            legend=[LEGEND + SHARED * (models < ranks)],
            xs=xs,
            ways=self._ways,
            **traits,
        )

    def summary(self) -> str:
        return self._whose

    def fallback(self) -> str:
        """The last step, with some before it faintly."""
        ghosts = [step for step in GHOSTS if step < len(self.told) - 1]
        parts = [*self._ground(WIDE), *(self._lines(WIDE, step, 0.25) for step in ghosts), self._lines(WIDE, -1)]
        first, more = _still.headline(self.headline, 4)
        head = [first, words(self.told[-1], 4, 36 + more, "rd-small rd-light")]
        pale = [f"Pale: step{'s' * (len(ghosts) > 1)} {', '.join(map(str, ghosts))}."] if ghosts else []
        legend = [
            words(line, 4, TALL + 60 + more + 16 * k, "rd-small rd-light")
            for k, line in enumerate([*self.legend, *pale])
        ]
        drawn = [*head, f'<g transform="translate(0 {42 + more})">', *parts, "</g>", *legend]
        tall = TALL + 52 + more + 16 * len(legend)
        return _still.image(_still.sheet(WIDE, tall, STYLE, drawn), f"{self.headline}: {self.told[-1]}")

    def _alone(self) -> bool:
        """Whether each line follows from the points of its rank alone: whether every step is the gradient of the rank's
        own mean squared error, times one factor for all. Of a model `at` that cannot be told."""
        if not self._line or not all(self._seen):
            return False
        moved, slopes = [], []
        for path, seen in zip(self._paths, self._seen, strict=True):
            held, x = np.array(path, float), np.array(seen)
            errors = held[:-1, :1] + held[:-1, 1:] * x - x * x
            moved.append(np.diff(held, axis=0))
            slopes.append(np.stack([errors.mean(axis=1), (errors * x).mean(axis=1)], axis=1))
        went, slope = np.concatenate(moved), np.concatenate(slopes)
        if not (slope * slope).sum():
            return False
        factor = (went * slope).sum() / (slope * slope).sum()
        return factor < 0 and float(abs(went - factor * slope).max()) <= NEAR * float(abs(went).max())

    def _told(self, step: int) -> str:
        apart = _apart(self._ways[ranks[0]][step] for ranks in self._alike)
        if self._line:
            held = ((named(ranks).capitalize(), *self._paths[ranks[0]][step]) for ranks in self._alike)
            told = [f"{who}: {w0:.2f} {'-' if w1 < 0 else '+'} {abs(w1):.2f} x." for who, w0, w1 in held]
            return " ".join(told + [f"The lines are {apart}."] * (len(told) > 1))
        return f"The models are {apart}." if len(self._alike) > 1 else "All ranks have the same model."

    def _scale(self, width: int) -> tuple[float, float, float]:
        """(pixels of 1 in x, of 1 in y, pixels at which y is 0)."""
        ys = [0.0, END**2, *(y for path in self._ways for row in path for y in row)]
        low, high = min(ys), max(ys)
        unit = (TALL - LOW - 12) / (high - low)
        return (width - LEFT - 12) / END, unit, 8 + high * unit

    def _ground(self, width: int) -> list[str]:
        """Axes, curve and data."""
        across, up, zero = self._scale(width)
        ticks = [y for y in range(-8, 9, 2) if 8 <= round(zero - y * up) <= TALL - LOW]
        parts = [f'<path class="rd-empty" d="M{LEFT} {zero:.0f}h{END * across:.0f}M{LEFT} 4V{TALL - LOW}"/>']
        parts += [words(f"{y}", LEFT - 6, zero - y * up + 4, "rd-small rd-light rd-end") for y in ticks]
        parts += [words(f"{x}", LEFT + x * across, TALL - 6, "rd-small rd-light rd-mid") for x in (0, 1, 2)]
        curve = "L".join(f"{LEFT + x / 10 * across:.0f} {zero - (x / 10) ** 2 * up:.0f}" for x in range(21))
        parts.append(f'<path class="rd-line" stroke-width="4" stroke-opacity=".6" d="M{curve}"/>')
        for rank, seen in enumerate(self._seen):
            before = {x for other in self._seen[:rank] for x in other}
            places = {x: f"M{LEFT + x * across:.0f} {zero - x * x * up:.0f}h0" for x in seen}
            alone = "".join(place for x, place in places.items() if x not in before)
            inside = "".join(place for x, place in places.items() if x in before)  # of a dot that another rank has, too
            label = f"M{LEFT + 20} {14 + 15 * rank}h0"
            parts.append(f'<path class="{_hue(rank)}" stroke-width="11" d="{alone}{label}"/>')
            if inside:
                parts.append(f'<path class="{_hue(rank)}" stroke-width="6" d="{inside}"/>')
            parts.append(words(f"rank {rank}", LEFT + 32, 18 + 15 * rank, "rd-small rd-light"))
        return parts

    def _lines(self, width: int, step: int, opacity: float = 1) -> str:
        across, up, zero = self._scale(width)
        drawn = ""
        for ranks in self._alike:
            gap = STRIPE * (len(ranks) - 1)
            for turn, rank in enumerate(ranks):
                stripes = f' stroke-dasharray="{STRIPE} {gap}" stroke-dashoffset="{-STRIPE * turn}"' if gap else ""
                points = zip(self._xs, self._ways[rank][step], strict=True)
                way = "L".join(f"{LEFT + x * across:.0f} {zero - y * up:.0f}" for x, y in points)
                drawn += f'<path class="{_hue(rank)}" stroke-width="3.5" data-way="{rank}"{stripes} d="M{way}"/>'
        return f'<g data-place="{LEFT} {zero:.1f} {across:.2f} {up:.2f}" opacity="{opacity}">{drawn}</g>'

    def _drawn(self, width: int) -> tuple[list[str], int]:
        return [*self._ground(width), self._lines(width, -1)], TALL


def _apart(said: Iterable) -> str:
    """ "up to 2.1 apart", "0.02 apart": at the x where models differ most."""
    apart = max(max(ys) - min(ys) for ys in zip(*said, strict=True))
    return f"up to {apart:.1f} apart" if apart >= 0.05 else f"{apart:.2f} apart"


def _hue(rank: int) -> str:
    return f"rd-full rd-band rs-h{HUES[rank % len(HUES)]}"
