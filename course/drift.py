"""The picture of the small model of chapter 0: the curve x², the points of each rank, and the line that each rank has.

Ranks that average their gradients all draw the same line; ranks that do not talk draw one each.

Left out: the training. The lines are what the ranks hold, `launch.pull("w")`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")


def drift(lines: Sequence[Sequence[float]], points: Sequence[Iterable[float]]) -> Any:
    """A figure; `lines` has w[0] and w[1] of every rank and `points` the x of every rank. Rounded, so that the saved
    picture is the same on every machine."""
    from widgets.figure import ON_THE_PAGE, Figure  # plotly takes its time to load

    one = len({tuple(f"{number:.2f}" for number in line) for line in lines}) == 1
    title = "one line for all ranks" if one else f"{len(lines)} ranks, {len(lines)} lines"
    sentences = [f"rank {rank}: {w0:.2f} + {w1:.2f} x" for rank, (w0, w1) in enumerate(lines)]
    room = {"t": 50, "b": 40, "l": 50, "r": 20}
    layout = {"template": ON_THE_PAGE, "height": 380, "title": title, "margin": room, "font": {"size": 12}}
    figure = Figure(layout=layout | {"meta": {"name": f"drift({title})", "sentences": sentences}})
    curve = [n / 10 for n in range(21)]
    figure.add_scatter(x=curve, y=[round(x * x, 2) for x in curve], name="x²", line={"color": "gray", "width": 4})
    for rank, ((w0, w1), mine) in enumerate(zip(lines, points, strict=True)):
        colour, seen = COLOURS[rank % len(COLOURS)], [round(float(x), 3) for x in mine]
        look = {"color": colour, "dash": "dash" if one and rank else "solid"}
        ends = [round(w0, 2), round(w0 + 2 * w1, 2)]
        figure.add_scatter(x=[0, 2], y=ends, mode="lines", name=sentences[rank], line=look)
        dots = {"mode": "markers", "name": f"what rank {rank} sees", "marker": {"color": colour, "size": 9}}
        figure.add_scatter(x=seen, y=[round(x * x, 3) for x in seen], **dots)
    return figure
