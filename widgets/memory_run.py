"""MemoryRun: what ranks really held while they trained, a bar for each call, as `course.held` has measured it.

A panel is a run; in it each bar is a moment of its last step, in order, with the optimizer's state, the weights and the
gradients on top of each other. All bars have one scale, and the highest of each run is marked. A bar is the rank that
held most at that moment.

Left out: what is computed and not measured (Memory), and activations, which are not measured.
"""

from collections.abc import Mapping, Sequence

from collectives.units import size
from widgets._drawn import NARROW, WIDE, Drawn, words
from widgets.base import join
from widgets.memory import HUES, NAMES

LETTERS = {"all_reduce": "A", "reduce_scatter": "R", "all_gather": "G", "update": "U"}
LEAST, PITCH, GAP = 98, 19, 12  # pixels: a panel at least, from bar to bar, between panels
HEAD, TALL, FOOT = 40, 170, 34
KINDS = ("weights", "gradients", "optimizer")  # as measured


class MemoryRun(Drawn):
    """Draws what `course.held.held` has measured on each rank: `MemoryRun(launch.pull("kept"))`.

    kept    of each rank {name of a run: [(call, bytes of weights, of gradients, of the optimizer's state), ...]}
    step    the moment that is shown, counted through all runs; 0 is before the first. `playing` is True while it plays

    ValueError if there is nothing to draw, or if the ranks made different calls.
    """

    _entry = "memory-run.js"
    _esm = join(_entry)

    def __init__(self, kept: Sequence[Mapping[str, Sequence[Sequence]]], **traits):
        calls = [{name: [moment[0] for moment in run] for name, run in of.items()} for of in kept]
        if not calls or not calls[0] or not all(calls[0].values()):
            raise ValueError('nothing was measured; run held(...) on the ranks, then MemoryRun(launch.pull("kept"))')
        for rank, others in enumerate(calls):
            if others != calls[0]:
                raise ValueError(f"ranks 0 and {rank} made different calls, so their moments are not the same")
        self.runs = {
            name: [max((of[name][at] for of in kept), key=lambda moment: sum(moment[1:])) for at in range(len(run))]
            for name, run in kept[0].items()
        }
        self.alike = all(
            sum(of[name][at][1:]) == sum(moment[1:])
            for of in kept
            for name, run in self.runs.items()
            for at, moment in enumerate(run)
        )
        told = [f"Each bar is what {self._whose()} held when a call began, or after the update."]
        told += [self._told(name, at) for name, run in self.runs.items() for at in range(len(run))]
        traits.setdefault("step", len(told) - 1)
        super().__init__(
            self._drawn(WIDE),
            self._drawn(NARROW),
            headline=self._headline(),
            processes=len(kept),
            told=told,
            phases=[(name, len(run)) for name, run in self.runs.items()],
            legend=[f"A bar: {self._whose()} as a call begins. {self._letters()}. Bold line: the peak."],
            **traits,
        )

    def summary(self) -> str:
        return f"{', '.join(self.runs)}; {self.processes} ranks"

    def _whose(self) -> str:
        return "every rank" if self.alike else "the fullest rank"

    def _letters(self) -> str:
        there = {moment[0] for run in self.runs.values() for moment in run}
        return ", ".join(f"{letter} {call}" for call, letter in LETTERS.items() if call in there)

    def _headline(self) -> str:
        peaks = [f"{size(_peak(run))} with {name}" for name, run in self.runs.items()]
        return f"Measured: a rank held at most {', '.join([peaks[0], peaks[-1]][: len(peaks)])}"

    def _told(self, name: str, at: int) -> str:
        run = self.runs[name]
        call, *parts = run[at]
        alike = [index for index, moment in enumerate(run) if moment[0] == call]
        which = f"{call} {alike.index(at) + 1} of {len(alike)}" if len(alike) > 1 else call
        each = ", ".join(f"{NAMES[kind]} {size(n)}" for kind, n in zip(KINDS, parts, strict=True))
        most = ", its peak" if sum(parts) == _peak(run) else ""
        when = "after the update" if call == "update" else f"when {which} began"
        return f"{name}, {when}: {each}. Together {size(sum(parts))}{most}."

    def _drawn(self, width: int) -> tuple[list[str], int]:
        """SVG parts, and the height."""
        parts, low = _legend(width)
        x, y, step = 4.0, low, 0
        for name, run in self.runs.items():
            pitch = min(PITCH, (width - 8) / len(run))
            wide = max(LEAST, pitch * len(run))
            if x > 4 and x + wide > width:
                x, y = 4.0, y + HEAD + TALL + FOOT
            parts += self._panel(name, run, x, y, pitch, step)
            x, step = x + wide + GAP, step + len(run)
        return parts, int(y + HEAD + TALL + FOOT)

    def _panel(self, name: str, run, x: float, y: float, pitch: float, before: int) -> list[str]:
        scale = TALL / max(map(_peak, self.runs.values()))  # pixels of a byte
        floor, bar = y + HEAD + TALL, pitch - 4
        parts = [words(name, x, y + 14), words(f"peak {size(_peak(run))}", x, y + 30, "rd-small rd-light")]
        parts.append(f'<path class="rd-empty" d="M{x:g} {floor:g}h{pitch * len(run):g}"/>')
        for at, (call, *held) in enumerate(run):
            left, low = x + pitch * at + 2, float(floor)
            amounts = dict(zip(KINDS, held, strict=True))
            drawn = ""
            for kind, hue in HUES.items():
                if tall := amounts.get(kind, 0) * scale:
                    low -= tall
                    drawn += (
                        f'<path class="rd-full {hue} rs-bare" d="M{left:g} {low:.1f}h{bar:g}v{tall:.1f}h{-bar:g}z"/>'
                    )
            if sum(held) == _peak(run):
                drawn += f'<path class="rd-line rs-peak" stroke-width="2.5" d="M{left - 2:g} {low:.1f}h{bar + 4:g}"/>'
            letter = words(LETTERS.get(call, call[0]), left + bar / 2, floor + 14, "rd-small rd-light rd-mid")
            parts.append(f'<g data-step="{before + at + 1}">{drawn}{letter}</g>')
        return parts


def _peak(run) -> int:
    return max(sum(moment[1:]) for moment in run)


def _legend(width: int) -> tuple[list[str], int]:
    parts, x, y = [], 4.0, 4
    for kind in ("gradients", "weights", "optimizer"):
        wide = 26 + 7.2 * len(NAMES[kind])
        if x + wide > width:
            x, y = 4.0, y + 18
        parts.append(f'<path class="rd-full {HUES[kind]} rs-bare" d="M{x:g} {y:g}h13v11h-13z"/>')
        parts.append(words(NAMES[kind], x + 18, y + 10, "rd-small rd-light"))
        x += wide
    return parts, y + 26
