"""cost_explorer: how long every algorithm of a collective takes, from one byte to gigabytes, and which one wins where.

A plotly figure over `collectives.compare`: seconds against N, both logarithmic, one line per algorithm, the fastest
underlaid, crossovers marked and named. The few fastest are drawn, or those that were asked for; the others wait in the
legend for a click. Several networks or numbers of ranks are one figure each, chosen in a menu or
with a slider, all inside the figure: nothing asks Python.

Left out: measured times, and the model itself (`collectives.network`).
"""

from collections.abc import Iterable

import numpy as np

from collectives import Network, ScheduleError, Topology, compare, presets
from collectives.catalogue import algorithms as known
from collectives.network import check_network
from collectives.spec import GETS
from collectives.units import duration, size
from widgets._still import BOXED, INK

SIZES = tuple(float(f"{10 ** (k / 3):.3g}") for k in range(31))  # 1 B to 10 GB, three to a power of ten
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", INK)
AXIS_NAME = "N, bytes of a whole vector"
DASHES = ("solid", "dash", "dot", "dashdot")
OVER_WORDS = 64  # pixels: three lines about who wins stand between the plot and what is chosen
LAST = 2000  # place in the legend of what is not drawn: after all others
UNDERLAY = "rgba(120, 120, 120, 0.3)"
ON_A_WALL = {"paper_bgcolor": "#ffffff", "plot_bgcolor": "#ffffff"}  # where the page around is not seen


def cost_explorer(
    collective: str = "all_reduce",
    ranks=None,
    network=None,
    sizes=SIZES,
    algorithms=None,
    pipelined=False,
    projector: int | None = None,
):
    """Seconds against N (bytes) of every algorithm of `collective`, as a plotly `go.Figure`.

    >>> cost_explorer("all_reduce")                                            # the networks of collectives.presets
    >>> cost_explorer("all_reduce", ranks=(4, 8, 16, 32), network=Network(alpha=10e-6, beta=1 / 10e9))
    >>> cost_explorer("all_to_all", network=presets.dgx_h100(machines=2))      # doctest: +SKIP

    ranks     how many, or several numbers, for a slider; a Topology that is not told takes all the ranks it has
    network   a Network or Topology, or several of them, for a menu
    sizes     every N in bytes
    algorithms  names of those to draw; without it the fastest four are drawn, and all that win somewhere
    pipelined   as in `Schedule.cost`: nobody waits, as in NCCL
    projector   for a wall that is so many pixels high, 720 or 1080: no text is smaller than a fortieth of that

    Seconds are those of alpha-beta-gamma, alpha seconds per message, beta per byte, gamma per byte added. Algorithms
    that do not take a number of ranks are left out there. ScheduleError for a collective or an algorithm nobody knows,
    for a Network without `ranks`, and for more ranks than a Topology has.
    """
    from widgets.figure import Figure

    comparisons = [
        compare(collective, p, sizes, each, algorithms, pipelined)
        for each in (_presets() if network is None else _several(network))
        for p in _ranks(ranks, each)
    ]
    figure = Figure()
    drawn = {name for comparison in comparisons for name in comparison.shown}
    names = sorted(known(collective), key=lambda name: name not in drawn)  # what is drawn at first has the colours
    owner = []  # of each trace, the number of its comparison, and how it is seen when that is chosen
    for i, comparison in enumerate(comparisons):
        before = len(figure.data)
        _draw(figure, comparison, names)
        owner += [(i, trace.visible) for trace in figure.data[before:]]
    for trace, (i, seen) in zip(figure.data, owner, strict=True):
        trace.visible = seen if i == 0 else False
    several = len(comparisons) > 1
    what = f"{len(comparisons)} settings" if several else _name(comparisons[0])
    sentences = [f"{_name(comparison)}. {comparison.verdict()}" for comparison in comparisons]
    _lay_out(
        figure,
        f"How long until {GETS[collective].format(ranks='ranks')} (one {collective})?"
        if collective in GETS
        else f"How long does one {collective} take?",
        f"time of one {collective}",
        {
            "name": f"cost_explorer({collective}, {what})",
            "sentences": sentences,
            "x": AXIS_NAME,
            "panels": [
                (_name(comparison), [n for n, (whose, seen) in enumerate(owner) if whose == i and seen is True])
                for i, comparison in enumerate(comparisons)
            ],
        },
    )
    _choices(figure, comparisons, owner)
    if projector:
        for_a_wall(figure, projector)
    return figure


def _several(given) -> list:
    return list(given) if isinstance(given, Iterable) else [given]


def _ranks(ranks, network) -> list[int]:
    """What was asked for, else all that the network has."""
    if ranks is not None:
        return _several(ranks)
    if isinstance(network, Topology):
        return [network.ranks]
    check_network(network, 1)
    raise ScheduleError(f"cost_explorer needs ranks, for example ranks=8: {network} has as many as you like")


def _presets() -> list[Topology]:
    return [
        presets.dgx_h100(),
        presets.gpus_on_ethernet(),
        presets.pcie_box(),
        presets.tpu_ring(),
        presets.laptops_on_wifi(4),
    ]


def _name(comparison) -> str:
    network, ranks = comparison.network, comparison.ranks
    return _network(network) if ranks == getattr(network, "ranks", None) else f"{ranks} ranks, {_network(network)}"


def _network(network: Network | Topology) -> str:
    if isinstance(network, Topology):
        return network.name
    adding = f", {size(1 / network.gamma)}/s added" if network.gamma else ""
    speed = f"{size(1 / network.beta)}/s" if network.beta else "no limit to bandwidth"
    return f"{duration(network.alpha)} per message, {speed}{adding}"


def _draw(figure, comparison, names: list[str]) -> None:
    """The traces of one comparison: what is fastest, every algorithm, where they cross."""
    sizes = comparison.sizes.tolist()
    fastest = np.min(list(comparison.seconds.values()), axis=0)
    figure.add_scatter(
        x=sizes, y=_short(fastest), name="fastest", mode="lines", visible=True, hoverinfo="skip",
        line={"color": UNDERLAY, "width": 11},
    )  # fmt: skip
    for name, seconds in comparison.seconds.items():
        place = names.index(name)  # the same line in every comparison
        figure.add_scatter(
            x=sizes, y=_short(seconds), name=name, mode="lines",
            visible=True if name in comparison.shown else "legendonly",
            legendrank=1 if name in comparison.shown else LAST,
            line={"color": OKABE_ITO[place % len(OKABE_ITO)], "dash": DASHES[place % len(DASHES)]},
            hovertemplate=f"<b>{name}</b><br>%{{x:.3s}}B takes %{{y:.3s}}s<extra></extra>",
        )  # fmt: skip
    crossovers = comparison.crossovers
    figure.add_scatter(
        x=[cross.nbytes for cross in crossovers], y=[cross.seconds for cross in crossovers],
        text=[f"{cross.after} from {size(cross.nbytes)}" for cross in crossovers],
        customdata=[f"{cross.before} and {cross.after} both take {duration(cross.seconds)}" for cross in crossovers],
        name="crossover", mode="markers+text", visible=True, cliponaxis=False,
        textposition=[f"bottom {'left' if 100 * cross.nbytes > sizes[-1] else 'right'}" for cross in crossovers],
        marker={"symbol": "circle-open", "size": 13, "color": INK, "line": {"width": 2}},
        textfont={"size": 13}, hovertemplate="%{text}: %{customdata}<extra></extra>",
    )  # fmt: skip


def _short(seconds) -> list[float]:
    """Four digits: no eye sees more, and the notebook stays small."""
    return [float(f"{value:.4g}") for value in seconds]


def _lay_out(figure, title: str, taken: str, meta: dict) -> None:
    from widgets.figure import ON_THE_PAGE

    figure.layout.template = ON_THE_PAGE  # `update_layout` would add it to plotly's own
    axis = {"type": "log", "ticks": "outside"}
    figure.update_layout(
        height=640, meta=meta, hovermode="closest",
        title={"text": title, "x": 0.02, "xanchor": "left", "y": 0.97, "yanchor": "top"},
        font={"size": 14},
        margin={"l": 20, "r": 20, "t": 130, "b": 20},
        # Plotly makes no room for the axis above a legend: empty lines do, and the axis is named by an annotation.
        legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0,
                "title": {"text": "<br><br><br>algorithms (click: draw it, or not)", "side": "top"},
                "bgcolor": "rgba(0, 0, 0, 0)"},
        xaxis={**axis, **_labels(range(0, 13, 3), size)},
        yaxis={**axis, "automargin": True, "title": {"text": taken}, **_labels(range(-9, 5), duration)},
    )  # fmt: skip


def _labels(powers, words) -> dict:
    """Ticks at powers of ten, with their units."""
    ticks = [10.0**power for power in powers]
    return {"tickvals": ticks, "ticktext": [words(tick) for tick in ticks]}


def _winners(comparison) -> str:
    later = [f"{cross.after} from {size(cross.nbytes)} on" for cross in comparison.crossovers]
    return f"<b>Fastest: {',<br>'.join([comparison.best[0], *later])}</b>"


def _choices(figure, comparisons, owner: list[tuple]) -> None:
    """A menu of networks, or a slider of numbers of ranks, that shows the traces of one comparison; and who wins."""
    place = {"x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom"}  # the left end above the plot
    verdict = {"text": _winners(comparisons[0]), "align": "left", "showarrow": False, "xref": "paper", "yref": "paper"}
    axis = {"text": AXIS_NAME, "showarrow": False, "xref": "paper", "yref": "paper"}
    axis |= {"x": 0.5, "y": 0, "yanchor": "top", "yshift": -26}
    figure.update_layout(annotations=[{**place, **verdict}, axis])
    if len(comparisons) == 1:
        figure.update_layout(title={"subtitle": {"text": _name(comparisons[0])}})
        return
    slides = len({id(comparison.network) for comparison in comparisons}) == 1
    steps = [
        {
            "method": "update",
            "label": str(comparison.ranks) if slides else _name(comparison),
            "args": [
                {"visible": [seen if i == j else False for j, seen in owner]},
                {"annotations[0].text": _winners(comparison)},
            ],
        }
        for i, comparison in enumerate(comparisons)
    ]
    if slides:
        title = {"subtitle": {"text": _network(comparisons[0].network)}}
        slider = {"steps": steps, "currentvalue": {"prefix": "ranks: "}, "pad": {"b": OVER_WORDS}, **place}
        figure.update_layout(title=title, sliders=[slider], margin={"t": 240}, height=720)
    else:
        menu = {"buttons": steps, "font": {"size": 12}, "pad": {"b": OVER_WORDS}, **place}
        figure.update_layout(updatemenus=[menu], margin={"t": 160})


def for_a_wall(figure, height: int) -> None:
    """Letters a fortieth of the wall's height, and lines to go with them, on nearly all of it."""
    text = -(-height // 40)
    growth, room = text / figure.layout.font.size, height / 720
    figure.update_layout(
        height=round(0.94 * height),
        font={"size": text, "color": BOXED},
        **ON_A_WALL,
        title={"subtitle": {"font": {"size": text}}, "font": {"size": text}},
        margin={side: round(room * figure.layout.margin[side]) for side in "tblr"},
    )
    figure.update_traces(textfont={"size": text}, marker={"size": round(13 * growth)}, selector={"name": "crossover"})
    for trace in figure.data:
        if trace.mode == "lines":
            trace.line.width = growth * (trace.line.width or 2)
    for annotation in figure.layout.annotations:
        annotation.update(font={"size": text}, yshift=growth * (annotation.yshift or 0))
    for chosen in (*figure.layout.updatemenus, *figure.layout.sliders):
        chosen.update(font={"size": text}, pad={"b": round(room * OVER_WORDS)})
