"""Memory: what each rank keeps while it trains, cut by ZeRO-1, 2 and 3, to scale; a step plays through it.

A column is a rank. Its blocks are the optimizer's state, the weights, the gradients and the activations, as high as
they are large; a row of a block is a layer. What is filled is there; a shard is the p-th of the width that belongs to
the rank, so the shards of all ranks are a whole. The gauge beside the columns adds up one rank, with its peak.

All of it is computed. Left out: what a run held (memory_run.py), the arithmetic (`collectives/memory.py`), and more
columns than four: all ranks keep equally much.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from collectives.memory import STAGES, Training
from collectives.units import size
from widgets import _still
from widgets._drawn import NARROW, STYLE, WIDE, Drawn, words
from widgets.base import join

MOST_LAYERS = 12
COLUMNS = 4  # ranks that are drawn
PANEL, COLUMN, GAP, GAUGE = 166, 30, 4, 12  # pixels
HEAD, TALL, FOOT = 59, 200, 72  # above the blocks, all of them, below
HUES = {"optimizer": "rs-h2", "weights": "rs-h1", "gradients": "rs-h0", "activations": "rs-h6"}  # from the floor up
NAMES = {"optimizer": "optimizer's state", "weights": "weights", "gradients": "gradients", "activations": "activations"}


class Memory(Drawn):
    """Draws one step of training on `ranks` ranks, without ZeRO and with its three stages.

    >>> Memory("Llama 3 8B", ranks=16, tokens=4096)                                       # doctest: +SKIP
    >>> Memory([32, 272, 272], ranks=4, weight=4, gradient=4, optimizer=8)                # doctest: +SKIP

    model      a name of `collectives.memory.MODELS`, or the number of parameters of each layer
    tokens     of one rank's batch, for the activations of a model with a name
    gpu        bytes that a rank has; what does not fit is marked
    settings   bytes for one parameter, `weight`, `gradient` and `optimizer` (2, 2, 12), and `activation` bytes of a
               layer; of a model with a name `units`, the parts in which it is gathered (8)
    step       0 is before the step, the last one after the update; `playing` is True while it plays

    ValueError for a name that is not known, for less than 2 ranks and for more than 12 layers.
    """

    _entry = "memory.js"
    _esm = join(_entry)

    def __init__(self, model: str | Sequence[float], ranks: int, tokens: float = 2048, gpu: float = 0.0, **settings):
        traits = {name: settings.pop(name) for name in ("step", "playing") if name in settings}
        if isinstance(model, str):
            self.name, self.noun = model, "part"
            units = settings.pop("units", 8)
            plain = replace(Training.of(model, ranks, tokens=tokens, units=units), **settings)
        else:
            self.name, self.noun = "the model", "layer"
            plain = Training(list(model), ranks, **settings)
        if len(plain.layers) > MOST_LAYERS:
            raise ValueError(f"Memory draws up to {MOST_LAYERS} layers, got {len(plain.layers)}; add some up")
        self.gpu, self.runs = gpu, [replace(plain, stage=stage) for stage in range(4)]
        phases = [(name, len(list(some))) for name, some in groupby(m.phase for m in plain.moments[1:])]
        merged = [*phases[:2], ("update", 2)]
        wide, narrow = self._drawn(WIDE), self._drawn(NARROW)
        super().__init__(
            *(([part for part, *_ in parts], tall) for parts, tall in (wide, narrow)),
            headline=self._headline(),
            processes=ranks,
            size="computed",
            told=[self._told(at) for at in range(len(plain.moments))],
            phases=merged,
            **traits,
        )
        first, second = self.runs[1].totals, self.runs[2].totals
        shown = max(range(len(plain.moments)), key=lambda at: first[at] - second[at])  # where ZeRO-2 differs most
        self._parts = [part for part, start, end in wide[0] if start <= shown < end]

    def summary(self) -> str:
        return f"{self.name}, {self.runs[0].ranks} ranks"

    def fallback(self) -> str:
        head, more = _still.headline(self.headline, 4)
        hidden = f".rs-bare{{stroke:none}}.rs-gauge{{fill:{_still.INK}}}.rs-peak{{stroke-width:2.5}}"
        parts = [head, f'<g transform="translate(0 {28 + more})">', *self._parts, "</g>"]
        svg = _still.sheet(WIDE, self._height + 28 + more, STYLE + hidden, parts)
        return _still.image(svg, f"{self.headline}: {' '.join(self.told)}")

    def _headline(self) -> str:
        plain, most = self.runs[0], self.runs[3]
        return (
            f"Training {self.name} peaks at {size(plain.peak)} a rank, {size(most.peak)} if {plain.ranks} ranks share "
            "what they keep: ZeRO-3"
        )

    def _told(self, at: int) -> str:
        """One sentence for a moment."""
        moment, ends = self.runs[0].moments[at], len(self.runs[0].layers) - 1
        layer = moment.layer
        if layer is None:
            return {
                "start": "ZeRO-1 cuts the optimizer's state, ZeRO-2 the gradients too, ZeRO-3 the weights too.",
                "reduce": "All gradients are summed. From ZeRO-1 on a rank keeps its shard of the sum.",
                "update": "Each rank has updated its shard; ZeRO-1 and 2 have gathered the weights again.",
            }[moment.phase]
        name, back = f"{self.noun} {layer + 1}", moment.phase == "backward"
        other = f"{self.noun} {layer + 2 if back else layer}"
        freed = "" if layer == (ends if back else 0) else f" and has freed {other}"
        if not back:
            return f"Forward, {name}: ZeRO-3 has gathered its weights{freed}. Its activations stay."
        kept = "" if layer == ends else f" Of the gradient of {other}, ZeRO-2 and 3 have kept a shard."
        return f"Backward, {name}: ZeRO-3 has gathered it again{freed}. Its whole gradient is there.{kept}"

    def _drawn(self, width: int) -> tuple[list[tuple[str, int, int]], int]:
        """(SVG, first moment, moment after the last one) of all parts, and the height."""
        across = width // PANEL
        parts = _legend(width, bool(self.runs[0].activation), self.gpu)
        top = parts[-1][1]
        drawn = [(svg, 0, 10**6) for svg, _ in parts]
        for index, run in enumerate(self.runs):
            x, y = 4 + index % across * (PANEL + 7), top + index // across * (HEAD + TALL + FOOT)
            drawn += self._panel(run, x, y)
        return drawn, top + -(-len(self.runs) // across) * (HEAD + TALL + FOOT)

    def _panel(self, run: Training, x: float, y: float) -> list[tuple[str, int, int]]:
        plain, moments = self.runs[0], run.moments
        whole = {"optimizer": sum(run.layers) * run.optimizer, "weights": sum(run.layers) * run.weight}
        whole |= {"gradients": sum(run.layers) * run.gradient, "activations": len(run.layers) * run.activation}
        scale = TALL / max(sum(whole.values()), plain.peak)  # pixels of a byte
        floor = y + HEAD + TALL
        ranks = range(min(run.ranks, COLUMNS))
        parts = [(words(STAGES[run.stage], x, y + 14), 0, 10**6)]
        for line, said in enumerate(_kept(run)):
            parts.append((words(said, x, y + 30 + 15 * line, "rd-small rd-light"), 0, 10**6))
        shares: dict[str, list[Sequence[float]]] = {
            "optimizer": [[1 / run.ranks if run.stage else 1.0] for _ in moments],
            "weights": [m.weights for m in moments],
            "gradients": [m.gradients for m in moments],
            "activations": [m.activations for m in moments],
        }
        bottom = floor
        for kind, hue in HUES.items():
            rows = [sum(run.layers)] if kind == "optimizer" else run.layers
            for row, amount in enumerate(rows):
                part = amount / sum(rows) if kind != "activations" else 1 / len(rows)
                tall = whole[kind] * part * scale
                if not tall:
                    continue
                bottom -= tall
                spans = _spans([of[row] for of in shares[kind]])
                box = _Row(x, bottom, max(tall - (0.7 if tall > 2 else 0), 0.4), ranks, run.ranks, hue)
                parts += box.parts(spans, kind == "weights" and run.stage == 3, kind == "activations")
        for rank in ranks:
            outline = f'<path class="rd-empty" d="M{_at(x, rank):g} {floor:g}h{COLUMN}V{bottom:.1f}h{-COLUMN}z"/>'
            parts.append((outline, 0, 10**6))
            name = str(rank) if rank else "rank 0"
            label = words(name, _at(x, rank) + COLUMN / 2, floor + 14, "rd-small rd-light rd-mid")
            parts.append((label, 0, 10**6))
        if run.ranks > COLUMNS:
            parts.append((words("…", _at(x, COLUMNS) + 1, floor + 14, "rd-small"), 0, 10**6))
        return parts + self._gauge(run, x + PANEL - GAUGE - 8, floor, scale, x)

    def _gauge(self, run: Training, x: float, floor: float, scale: float, left: float) -> list[tuple[str, int, int]]:
        """One rank added up, now and at its peak."""
        top, full = floor - run.peak * scale, floor - self.runs[0].peak * scale
        over = bool(self.gpu) and run.peak > self.gpu
        fits = f"{'does not fit' if over else 'fits'} in {size(self.gpu)}" if self.gpu else ""
        parts = [
            (f'<path class="rd-empty" d="M{x:g} {floor:g}h{GAUGE}V{full:.1f}h{-GAUGE}z"/>', 0, 10**6),
            (words(f"peak {size(run.peak)}", left, floor + 46, "rd-slow" if over else ""), 0, 10**6),
            (words(fits, left, floor + 62, "rd-small rd-light" + " rd-slow" * over), 0, 10**6),
        ]
        for total, start, end in _spans(run.totals):
            tall = total * scale
            bar = f'<path class="rs-gauge" d="M{x:g} {floor:g}h{GAUGE}v{-tall:.1f}h{-GAUGE}z"{_when(start, end)}/>'
            now = words(f"now {size(total)}", left, floor + 30, "rd-small rd-light", _when(start, end))
            parts += [(bar, start, end), (now, start, end)]
        parts.append((f'<path class="rd-line rs-peak" d="M{x - 4:g} {top:.1f}h{GAUGE + 8}"/>', 0, 10**6))
        if self.gpu and self.gpu * scale < TALL + HEAD - 30:
            line = f"M{x - 6:g} {floor - self.gpu * scale:.1f}H{x + GAUGE + 6:g}"
            parts.append((_limit(line), 0, 10**6))
        return parts


def _kept(run: Training) -> tuple[str, str]:
    """What a rank keeps, in two lines below the name of the stage."""
    if not run.stage:
        return "every rank keeps", "everything"
    of = "the optimizer's state" if run.stage == 1 else "the gradients, too" if run.stage == 2 else "the weights, too"
    return f"each of the {run.ranks} keeps 1/{run.ranks}", f"of {of}"


class _Row:
    """The part of one layer in one block, for all columns."""

    def __init__(self, x: float, top: float, tall: float, ranks: range, count: int, hue: str):
        self.x, self.top, self.tall, self.ranks, self.count, self.hue = x, top, tall, ranks, count, hue

    def parts(self, spans, lent: bool, own: bool) -> list[tuple[str, int, int]]:
        """`lent` is what is gathered for a while: light beside the shard, which stays. What is the rank's `own` is no
        copy of anything."""
        made = []
        if lent:
            made.append((self._path([1 / self.count], "rd-full ", 0, 10**6), 0, 10**6))
        for share, start, end in spans:
            if share and not (lent and share < 1):
                made.append((self._path([share], "" if lent else "rd-full ", start, end), start, end))
        return made[::-1]  # what is gathered, below the shard

    def _path(self, shares, full: str, start: int, end: int) -> str:
        (share,) = shares
        shapes = []
        for rank in self.ranks:
            wide = COLUMN * share
            left = _at(self.x, rank) + (COLUMN * rank / self.count if share < 1 else 0)
            shapes.append(f"M{left:.4g} {self.top:.1f}h{wide:.3g}v{self.tall:.3g}h{-wide:.3g}z")
        return f'<path class="{full}{self.hue} rs-bare" d="{"".join(shapes)}"{_when(start, end)}/>'


def _limit(line: str) -> str:
    return f'<path class="rd-line rd-slow" stroke-width="1.5" stroke-dasharray="2 2" d="{line}"/>'


def _at(x: float, rank: int) -> float:
    return x + rank * (COLUMN + GAP)


def _when(start: int, end: int) -> str:
    return "" if end >= 10**6 else f' data-when="{start} {end}"'


def _spans(values: Sequence) -> list[tuple]:
    """(value, first, after the last) of runs of equal values."""
    made, at = [], 0
    for value, some in groupby(values):
        count = len(list(some))
        made.append((value, at, at + count))
        at += count
    return made


def _legend(width: int, active: bool, gpu: float) -> list[tuple[str, int]]:
    """(SVG, where the legend ends)."""
    parts, x, y = [], 4.0, 4
    entries = [
        (f"rd-full {hue} rs-bare", NAMES[kind])
        for kind, hue in reversed(HUES.items())
        if kind != "activations" or active
    ]
    entries += [
        ("rs-h1 rs-bare", "gathered for a while"),
        ("rs-gauge", "all of one rank"),
        ("rd-line rs-peak", "its peak"),
    ]
    if gpu:
        entries.append(("", f"what a GPU has, {size(gpu)}"))
    for name, said in entries:
        wide = 26 + 7.2 * len(said)
        if x + wide > width:
            x, y = 4.0, y + 18
        shape = f"M{x:g} {y + 6:g}h13" if "rd-line" in name or not name else f"M{x:g} {y:g}h13v11h-13z"
        box = f'<path class="{name}" d="{shape}"/>' if name else _limit(shape)
        parts.append((box + words(said, x + 18, y + 10, "rd-small rd-light"), y + 26))
        x += wide
    return parts
