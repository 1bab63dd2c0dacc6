"""WaitFor: who waits for whom; the picture beside a deadlock's explanation.

Ranks stand on a circle, rank 0 at the top, clockwise; an arrow leads from a rank to the one it waits for. Ranks that
wait are filled, in the red of whatever is stuck, ranks that are not coming any more are outlined and dashed, so that
colour is not needed to tell them apart, and bystanders are small. The same picture lives in the browser, in the colours
of the page and with a table beside it whose rows light up their arrows, and stands still in a file, on paper, in a
clone that nobody trusts.

Left out: more ranks than can be drawn as circles; the table names them all.
"""

import math
from html import escape

import traitlets

from widgets import _still
from widgets.base import Widget, join, styles

RING, SMALL, BALL, EDGE = 134, 74, 17, 26  # pixels: the circle the ranks stand on, that of few ranks, a rank, around it
FEW = 8  # ranks
MOST_RANKS = 32
MOST_ARROWS = 200
MOST_CLAUSES, MOST_CALLS = 8, 3  # in a sentence


class WaitFor(Widget):
    """`edges` are (rank, other rank, op, line): rank waits for other in that op, called in that line (0: not known).
    `ranks` is how many there are in all.

    >>> WaitFor([(0, 1, "recv", 3), (1, 0, "recv", 3)], ranks=2)
    WaitFor(ranks=2, waiting=2)

    ValueError for an edge from or to a rank that there is not.
    """

    _esm = join("wait-for.js")
    _css = styles("frame.css", "wait-for.css")
    edges = traitlets.List().tag(sync=True)
    ranks = traitlets.Int().tag(sync=True)
    headline = traitlets.Unicode().tag(sync=True)
    picture = traitlets.Unicode().tag(sync=True)

    def __init__(self, edges, ranks: int, **traits):
        edges = [list(edge) for edge in edges]
        for rank, other, *_ in edges:
            if not (0 <= rank < ranks and 0 <= other < ranks):
                raise ValueError(f"rank {max(rank, other)}: there are ranks 0 to {ranks - 1} in this picture")
        picture = _svg(edges, ranks) if ranks <= MOST_RANKS else ""
        super().__init__(edges=edges, ranks=ranks, headline=headline(edges), picture=picture, **traits)

    def summary(self) -> str:
        return f"ranks={self.ranks}, waiting={len({rank for rank, *_ in self.edges})}"

    def fallback(self) -> str:
        words = text(self.edges)
        if not self.picture:
            return f"<span>{escape(words)}</span>"
        return _still.image(self.picture, words)


def headline(edges) -> str:
    """Who waits for whom, if that is one or two clauses; else the ranks that keep all others waiting, ranks that wait
    for each other, or ranks whose calls do not fit."""
    if refused := sorted(rank for rank, other, *_ in edges if other is None):
        return f"The calls of {named(refused)} do not fit"
    others = {rank: {other for waits, other, *_ in edges if waits == rank} for rank, *_ in edges}
    reached = {rank: _reached(rank, others) for rank in others}
    missing = sorted({other for _, other, *_ in edges} - set(others))
    circle = sorted(rank for rank in others if rank in reached[rank])
    if missing and not circle:
        if len(clauses := _clauses(edges)) <= 2:
            return "; ".join(clauses).capitalize()
        return f"{named(missing).capitalize()} keep{'s' * (len(missing) == 1)} {named(sorted(others))} waiting"
    if circle and all(reached[rank] >= set(circle) for rank in circle):
        one_each = len(circle) > 2 and all(len(others[rank]) == 1 for rank in circle)
        how = "waits for itself" if len(circle) == 1 else "wait in a circle" if one_each else "wait for each other"
        return f"{named(circle).capitalize()} {how}"
    return f"{named(sorted(others)).capitalize()} can never go on"


def _reached(rank: int, others: dict[int, set[int]]) -> set[int]:
    """Every rank that this one waits for, itself or through others."""
    found: set[int] = set()
    todo = [rank]
    while todo:
        new = others.get(todo.pop(), set()) - found
        found |= new
        todo += new
    return found


def text(edges) -> str:
    """Who waits for whom in words: 'ranks 0 to 3, 5 wait for rank 4; rank 4 waits for ranks 6, 7'."""
    clauses = _clauses(edges)
    more = [f"and {len(clauses) - MOST_CLAUSES} more"] if len(clauses) > MOST_CLAUSES else []
    return "; ".join([*clauses[:MOST_CLAUSES], *more])


def _clauses(edges) -> list[str]:
    alike: dict[tuple[int, ...], list[int]] = {}
    for rank in sorted({rank for rank, *_ in edges}):
        alike.setdefault(tuple(sorted(other for waiting, other, *_ in edges if waiting == rank)), []).append(rank)
    return [
        f"{named(ranks)} wait{'s' if len(ranks) == 1 else ''} for {named(others)}" for others, ranks in alike.items()
    ]


def stuck(edges) -> str:
    """The same as a sentence, with the calls: 'Stuck in recv, line 7: rank 3 waits for rank 2.'; "" without edges."""
    ranks: dict[str, list[int]] = {}  # by call
    for rank, _, op, line in edges:
        ranks.setdefault(_call(op, line), []).append(rank)
    if edges and edges[0][1] is None:
        at = [f"{named(sorted(some))} in {call}" for call, some in ranks.items()]
        return f"Refused, since the calls do not fit: {'; '.join(at[:MOST_CLAUSES])}."
    return f"Stuck in {' and '.join([*ranks][:MOST_CALLS])}: {text(edges)}." if edges else ""


def _call(op: str, line: int) -> str:
    """ "recv, line 7" """
    return f"{op}, line {line}" if line else op


def named(ranks) -> str:
    """'rank 2', 'ranks 0 to 4, 6, 7': no hyphen, at which a browser breaks the line"""
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    parts = [f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(parts)}"


def _svg(edges, ranks: int) -> str:
    """The picture as SVG text, in colours for any page; css/wait-for.css has those of a live page."""
    waiting = {rank for rank, *_ in edges}
    others = {other for _, other, *_ in edges} - waiting
    scale = min(1.0, 16 / ranks)  # smaller balls for many ranks
    ring = SMALL if ranks <= FEW else RING
    size = 2 * (ring + EDGE)
    places = [_place(rank, ranks, ring) for rank in range(ranks)]
    arrows = [
        _arrow(
            places[rank], places[other], scale, f"rank {rank} waits for rank {other}: {_call(*call)}", f"{rank} {other}"
        )
        for rank, other, *call in edges[:MOST_ARROWS]
    ]
    balls = [_ball(places[rank], rank, rank in waiting, rank in others, scale) for rank in range(ranks)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" viewBox="0 0 {size} {size}" '
        f'font-family="sans-serif" role="img"><title>{escape(text(edges))}</title>'
        f"{''.join(arrows)}{''.join(balls)}</svg>"
    )


def _place(rank: int, ranks: int, ring: int) -> tuple[float, float]:
    turn, middle = 2 * math.pi * rank / ranks, ring + EDGE
    return middle + ring * math.sin(turn), middle - ring * math.cos(turn)


def _arrow(start, end, scale: float, words: str, ends: str) -> str:
    """Bent a little to the left, so that two ranks that wait for each other show two arrows."""
    (x, y), (u, v) = start, end
    length = math.hypot(u - x, v - y) or 1
    along, gap = ((u - x) / length, (v - y) / length), (BALL + 3) * scale
    bend = 0.12 * length
    middle = ((x + u) / 2 + along[1] * bend, (y + v) / 2 - along[0] * bend)
    tip = (u - along[0] * gap, v - along[1] * gap)
    line = (
        f"M{x + along[0] * gap:.1f} {y + along[1] * gap:.1f}Q{middle[0]:.1f} {middle[1]:.1f} {tip[0]:.1f} {tip[1]:.1f}"
    )
    return (
        f'<g class="rs-wait" data-ends="{ends}"><title>{escape(words)}</title>'
        f'<path d="{line}" fill="none" stroke="{_still.STUCK}" stroke-width="2"/>'
        f'<path d="{_head(middle, tip, scale)}" fill="{_still.STUCK}"/></g>'
    )


def _head(middle, tip, scale: float) -> str:
    """A triangle at the tip of a curve that comes from `middle`. A marker would need an id, and ids clash on a page."""
    length = math.hypot(tip[0] - middle[0], tip[1] - middle[1]) or 1
    x, y = (tip[0] - middle[0]) / length, (tip[1] - middle[1]) / length
    long, half = 10 * scale, 4.5 * scale
    left, right = ((tip[0] - long * x + side * half * y, tip[1] - long * y - side * half * x) for side in (1, -1))
    return f"M{tip[0]:.1f} {tip[1]:.1f} {left[0]:.1f} {left[1]:.1f} {right[0]:.1f} {right[1]:.1f}z"


def _ball(place, rank: int, waits: bool, missing: bool, scale: float) -> str:
    x, y = place
    kind = "rs-waits" if waits else "rs-missing" if missing else "rs-free"
    scale *= 1 if waits or missing else 0.75
    red = _still.STUCK
    fill, ink, edge = (red, "#fff", red) if waits else ("#fff", "#000", red if missing else "#999")
    size = max(10, 14 * scale)
    dash = ' stroke-dasharray="4 3"' if missing else ""
    circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{BALL * scale:.1f}" fill="{fill}" stroke="{edge}"'
    words = f'<text x="{x:.1f}" y="{y + 0.35 * size:.1f}" font-size="{size:.1f}" text-anchor="middle"'
    return (
        f'<g class="{kind}" data-rank="{rank}">{circle} stroke-width="2.5"{dash}/>'
        f'{words} fill="{ink}">{rank}</text></g>'
    )
