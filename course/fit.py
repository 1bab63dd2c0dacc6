"""The picture of chapter 6: how long messages took on each network, and the line alpha + beta n through those times.

The line is a least-squares fit in which a miss of 10 % counts the same for a short message as for a long one.

Left out: the measuring, which a cell of the chapter does on the ranks.
"""

from collections.abc import Sequence
from typing import Any

from collectives.units import duration, rate, size

COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7")


def fit(sizes: Sequence[int], times: dict[str, Sequence[float]]) -> Any:
    """A figure; `sizes` in bytes, `times` in seconds for each network's name. Both axes are logarithmic."""
    import numpy as np

    from widgets.figure import ON_THE_PAGE, Figure  # plotly is slow to load

    sentences, lines = [], []
    for name, taken in times.items():
        beta, alpha = np.polyfit(sizes, taken, 1, w=1 / np.asarray(taken))
        sentences.append(f"{name}: alpha {duration(alpha)}, {rate(1 / beta)}, bends at {size(alpha / beta)}")
        lines.append((alpha, beta))
    title = "What a message took, and alpha + beta n"
    meta = {"name": f"fit({', '.join(times)})", "sentences": sentences}
    layout = {
        "template": ON_THE_PAGE,
        "height": 420,
        "title": title,
        "legend": {"orientation": "h", "y": -0.25},
        "meta": meta,
    }
    figure = Figure(layout=layout)
    n = np.geomspace(min(sizes), max(sizes), 50)
    for taken, (alpha, beta), said, colour in zip(times.values(), lines, sentences, COLOURS, strict=False):
        figure.add_scatter(x=sizes, y=taken, mode="markers", marker_color=colour, showlegend=False)
        figure.add_scatter(x=n, y=alpha + beta * n, mode="lines", name=said, line_color=colour)
    figure.update_xaxes(type="log", dtick=1, title="bytes").update_yaxes(type="log", dtick=1, title="seconds")
    return figure
