"""A plotly figure with two logarithmic axes as a still picture, for wherever no plotly runs.

Traces are drawn as they are in the live figure: lines in their colour and dash, points, and circles with their words
where two curves cross. What a menu or a slider of the live figure chooses between is one panel each, side by side.
Everything is read from the figure: traces, ticks, names.

Left out: linear axes; algorithms that wait in the legend for a click.
"""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from widgets import _still
from widgets._drawn import STYLE, WIDE, words

DASHES = {"dash": "6 4", "dot": "2 3", "dashdot": "8 3 2 3"}
LEFT, HEAD, FOOT, GAP = 58, 22, 40, 14  # pixels around a panel's axes: ticks, its name, ticks and name, the next one
TALL = {1: 340, 2: 230}  # of the axes, by panels in a row
LETTER, NARROW = 6.7, 12  # pixels of a letter in a small word; letters of a line beside a crossing


def svg(figure: Any) -> str:
    """`figure.layout.meta` may have "panels": [(name, numbers of its traces), ...], and "x", the name of that axis."""
    meta = figure.layout.meta
    panels = meta.get("panels") or [("", range(len(figure.data)))]
    shown = [[figure.data[i] for i in numbers] for _, numbers in panels]
    spans = [
        _span([value for traces in shown for trace in traces for value in trace[axis]], below)
        for axis, below in (("x", 0.04), ("y", 0.2))  # words are below the lowest curve
    ]
    columns = min(len(panels), 2)
    wide, tall = (WIDE - (columns - 1) * GAP) // columns, HEAD + TALL[columns] + FOOT
    parts = []
    for i, ((name, _), traces) in enumerate(zip(panels, shown, strict=True)):
        x, y = i % columns * (wide + GAP), i // columns * tall
        inside = _panel(figure, traces, spans, wide - LEFT - 8, TALL[columns], meta.get("x", ""), f"words{i}")
        parts.append(f'<g transform="translate({x + LEFT} {y + HEAD})">{words(name, 0, -8, "rd-small")}{inside}</g>')
    low = -(-len(panels) // columns) * tall
    legend, end = _legend([trace for traces in shown for trace in traces], low + 14)
    return _still.sheet(WIDE, end, f"{STYLE}.g{{stroke:{_still.INK};stroke-opacity:.25}}", [*parts, legend])


def _span(values: Sequence[float], below: float) -> tuple[float, float]:
    """The powers of ten between which they are, with a little air above, and a part of that span below."""
    logs = [math.log10(value) for value in values if value > 0]
    span = max(logs) - min(logs) or 1.0
    return min(logs) - below * span, max(logs) + 0.04 * span


def _panel(
    figure: Any,
    traces: Sequence[Any],
    spans: Sequence[tuple[float, float]],
    wide: int,
    tall: int,
    x_name: str,
    free: str,
):
    """Axes with their ticks, then lines, then what is marked on them. No line crosses these words: `free` is the name
    of a mask that keeps their places free, on paper of any colour."""
    (left, right), (low, high) = spans

    def across(value: float) -> float:
        return round((math.log10(value) - left) / (right - left) * wide, 1)

    def down(value: float) -> float:
        return round((high - math.log10(value)) / (high - low) * tall, 1)

    parts = []
    for value, text in _ticks(figure.layout.xaxis, left, right):
        parts.append(f'<path class="g" d="M{across(value):g} 0V{tall}"/>')
        parts.append(words(text, across(value), tall + 15, "rd-small rd-light rd-mid"))
    for value, text in _ticks(figure.layout.yaxis, low, high):
        parts.append(f'<path class="g" d="M0 {down(value):g}H{wide}"/>')
        parts.append(words(text, -5, down(value) + 4, "rd-small rd-light rd-end"))
    parts.append(words(x_name or figure.layout.xaxis.title.text or "", wide / 2, tall + 31, "rd-small rd-mid"))
    if figure.layout.yaxis.title.text:
        parts.append(words(figure.layout.yaxis.title.text, 4, 12, "rd-small"))
    places, ground = "", len(parts)
    lines = [] if any(trace.text for trace in traces) else parts
    for trace in traces:
        points = [(across(x), down(y)) for x, y in zip(trace.x, trace.y, strict=True)]
        if trace.mode == "lines":
            lines.append(f'<path fill="none" {_stroke(trace)} d="M{"L".join(f"{x:g} {y:g}" for x, y in points)}"/>')
        for i, (x, y) in enumerate(points if "markers" in trace.mode else []):
            text = trace.text[i] if trace.text else ""
            paint = f'fill="none" stroke="{_still.INK}" stroke-width="2"' if text else f'fill="{trace.marker.color}"'
            parts.append(f'<circle {paint} cx="{x:g}" cy="{y:g}" r="{5 if text else 3.5}"/>')
            if text:
                said = textwrap.wrap(text, NARROW, break_long_words=False)  # below the curve, which rises
                long = LETTER * max(map(len, said))
                fits = x + 10 + long < wide
                place = (x + 10, "rd-small") if fits else (wide, "rd-small rd-end")
                parts += [words(line, place[0], y + 20 + 14 * k, place[1]) for k, line in enumerate(said)]
                hole = long + 15
                begin = x + 7 if fits else wide + 3 - hole
                places += f'<path d="M{begin:g} {y + 8:g}h{hole:g}v{14 * len(said) + 2}h-{hole:g}z"/>'
    if lines is parts:
        return "".join(parts)
    size = f'x="-9" y="-9" width="{wide + 18}" height="{tall + 18}"'
    mask = f'<mask id="{free}" maskUnits="userSpaceOnUse" {size}><rect fill="#fff" {size}/>{places}</mask>'
    drawn = f'{mask}<g mask="url(#{free})">{"".join(lines)}</g>'
    return "".join([*parts[:ground], drawn, *parts[ground:]])


def _ticks(axis: Any, low: float, high: float) -> list[tuple[float, str]]:
    """Those of the axis that are in sight; without any the powers of ten."""
    if axis.tickvals is None:
        given = [(10.0**k, f"{10.0**k:,.10g}") for k in range(math.ceil(low), math.floor(high) + 1)]
    else:
        given = [*zip(axis.tickvals, axis.ticktext, strict=True)]
    return [(value, text) for value, text in given if low <= math.log10(value) <= high]


def _stroke(trace: Any) -> str:
    dash = DASHES.get(trace.line.dash or "")
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'stroke="{trace.line.color}" stroke-width="{trace.line.width or 2}"{dashed}'


def _legend(traces: Sequence[Any], y: int) -> tuple[str, int]:
    """The lines by name, each once, in as many rows as that takes, and where they end."""
    lines = {trace.name: trace for trace in traces if trace.mode == "lines"}
    parts, x = [], 2.0
    for name, trace in lines.items():
        wide = 50 + LETTER * len(name)
        if x + wide > WIDE and x > 2:
            x, y = 2.0, y + 18
        parts.append(f'<path {_stroke(trace)} d="M{x:g} {y - 4}h28"/>{words(name, x + 34, y, "rd-small rd-light")}')
        x += wide
    return "".join(parts), y + 8
