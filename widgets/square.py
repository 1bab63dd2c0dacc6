"""Square: what each collective does to a square of data. Rows are ranks, columns are the pieces of the vector.

A broadcast copies a row, a reduce-scatter adds columns up onto the diagonal, an all-to-all turns rows into columns: on
the square each collective is one move, and two that are easily confused look different. With `uses` it shows the rule
of choosing one: what ranks receive and do not use is crossed out, and beside it is the collective that leaves just the
rest, with the bytes of both.

The squares are what `collectives.spec` promises, before and after. Left out: how an algorithm gets there (Player) and
what it leaves where nothing is promised (Zoo).
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from collectives import CATALOGUE, Schedule, ScheduleError, build
from collectives.state import EMPTY, letter
from widgets._drawn import NARROW, WIDE, Drawn, words
from widgets.base import join

Cells = Any  # an object array [rank, piece] of Cells and None, whose elements numpy gives no type
MOST_RANKS = 8
MOVES = {
    "broadcast": ("the root's row,", "copied to every row"),
    "scatter": ("the root's row,", "spread over the diagonal"),
    "gather": ("the diagonal, collected", "in the root's row"),
    "reduce": ("columns added up", "in the root's row"),
    "all_gather": ("the diagonal,", "copied down its columns"),
    "reduce_scatter": ("columns added up", "on the diagonal"),
    "all_reduce": ("columns added up", "in every row"),
    "all_to_all": ("rows become columns,", "columns become rows"),
}
LEGEND = "Colour: the piece. Letter: whose data it is (a is rank 0's). Σ: the sum of all."
USED = {"own": "own piece only", "root": "root only"}
USES = {"own": "its own piece", "root": "what the root needs"}


class Square(Drawn):
    """Shows what `collectives` do to the square of `ranks` (2 to 8) and their pieces; all eight unless some are named.

    >>> Square()                                               # doctest: +SKIP
    >>> Square("all_reduce", uses="own")                       # doctest: +SKIP

    uses      of one collective, what the ranks use of what they receive: "own", each rank its own piece, or "root",
              only the root uses anything. What is thrown away is crossed out, and the right collective is beside it
    step      0 is before the first collective, k after k of them; `playing` is True while it plays

    The root is rank 0. ValueError for other numbers of ranks, for a name that is no collective with data, and for a use
    of which no collective leaves just that much.
    """

    _entry = "square.js"
    _esm = join(_entry)

    def __init__(self, *collectives: str, ranks: int = 4, uses: str | None = None, **traits):
        _check(collectives, ranks, uses)
        self.collectives, self.ranks, self.uses = collectives or tuple(MOVES), ranks, uses
        if uses is None:
            sides = [_all(self.collectives, ranks, width) for width in (WIDE, NARROW)]
            what = self.collectives[0] if len(self.collectives) == 1 else "each collective"
            head = f"How {what} moves data between processes: each row is what one rank holds"
            told = [f"{name}: {' '.join(MOVES[name])}." for name in self.collectives]
            phases = [[name, 1] for name in self.collectives]
        else:
            (name,) = self.collectives
            other = _right(name, ranks, uses) or _none(name, ranks, uses)
            sides = [_wasted(name, other, ranks, uses, width) for width in (WIDE, NARROW)]
            after, rest = _goal(name, ranks), _goal(other, ranks)
            lost = _filled(after) - _filled(rest)
            head = f"{name} leaves {_filled(after)} pieces and {lost} are thrown away: {other} leaves just the rest"
            who = "Each rank uses only its own piece" if uses == "own" else "Only the root uses what it gets"
            told = [
                f"{name}: {' '.join(MOVES[name])}; all ranks together send {_sent(name, ranks)}.",
                f"{who}, so {lost} of {_filled(after)} pieces are thrown away.",
                f"{other} leaves just these, and sends {_sent(other, ranks)}.",
            ]
            phases = [[name, 1], ["used", 1], [other, 1]]
        before = "Each row is what a rank holds, each column a piece of the vector. What will be on the right?"
        wide, narrow = sides
        super().__init__(
            wide,
            narrow,
            headline=head,
            processes=ranks,
            told=[before, *told],
            legend=[LEGEND, *(["N: the bytes of one rank's vector."] if uses else [])],
            phases=phases,
            **traits,
        )

    def summary(self) -> str:
        names = ", ".join(self.collectives) if len(self.collectives) < len(MOVES) else "all"
        return f"{names}, {self.ranks} ranks{f', uses={self.uses!r}' if self.uses else ''}"


def _check(collectives: Sequence[str], ranks: int, uses: str | None) -> None:
    if isinstance(ranks, bool) or not isinstance(ranks, int) or not 2 <= ranks <= MOST_RANKS:
        raise ValueError(f"Square shows 2 to {MOST_RANKS} ranks, got {ranks!r}")
    if unknown := [name for name in collectives if name not in MOVES]:
        raise ValueError(f"Square knows {', '.join(MOVES)}; got {unknown[0]!r}")
    if uses is not None and uses not in USES:
        raise ValueError(f'uses is "own" (each rank its own piece) or "root" (only the root); got {uses!r}')
    if uses is not None and len(collectives) != 1:
        raise ValueError(f'uses goes with one collective, as in Square("all_reduce", uses={uses!r})')


def _spec(collective: str, ranks: int) -> Schedule:
    """What the collective promises, with a piece for each rank and without any steps."""
    buffers = ("input", "output") if collective == "all_to_all" else ("data",)
    return Schedule(collective, "", ranks, ranks, (), root=0, buffers=buffers, result=buffers[-1])


def _start(collective: str, ranks: int) -> Cells:
    """[rank, piece] of Cells."""
    plan = _spec(collective, ranks)
    return plan.start().cells[plan.buffers[0]]


def _goal(collective: str, ranks: int) -> Cells:
    """[rank, piece] of Cells, None where nothing is promised."""
    plan = _spec(collective, ranks)
    goal = plan.goal()
    assert goal is not None  # every collective of MOVES promises something
    return goal[plan.result]


def _filled(cells: Cells) -> int:
    return sum(bool(cell) for cell in cells.flat)


def _sent(collective: str, ranks: int) -> str:
    """The fewest bytes that all ranks together send in any algorithm, in N; without a switch that adds."""
    found = []
    for name in CATALOGUE[collective]:
        try:
            plan = build(collective, name, ranks, local=2)
        except ScheduleError:
            continue
        if not any(step.in_network for step in plan.steps):
            found.append(plan.counts(nbytes=1).total_bytes)
    return "N" if min(found) == 1 else f"{Fraction(min(found)).limit_denominator(ranks)} N"


def _right(collective: str, ranks: int, uses: str) -> str | None:
    """The collective that leaves what is used of this one and nothing else."""
    used = _goal(collective, ranks)
    for rank, piece in np.ndindex(used.shape):
        if (piece != rank) if uses == "own" else rank:
            used[rank, piece] = None
    return next((name for name in MOVES if name != collective and np.array_equal(_goal(name, ranks), used)), None)


def _none(collective: str, ranks: int, uses: str) -> str:
    """There is none: ValueError."""
    others = ", ".join(name for name in MOVES if _right(name, ranks, uses))
    raise ValueError(f"no other collective leaves {USES[uses]} of {collective}; with uses={uses!r} try {others}")


def _all(collectives: Sequence[str], ranks: int, width: int) -> tuple[list[str], int]:
    """A tile for each collective: before, after, and the move in words."""
    across = min(len(collectives), 4 if width > NARROW else 2)
    left = 54 if width > NARROW else 22
    pitch = (width - left) // across
    side = min(ranks * 30, (pitch - 34) // 2)
    cell = side // ranks
    parts: list[str] = []
    for i, name in enumerate(collectives):
        x, y = left + i % across * pitch, 30 + i // across * (ranks * cell + 74)
        parts.append(words(name, x, y - 12))
        if i % across == 0:
            parts += _ranks(x, y, cell, ranks, width > NARROW)
        far = x + ranks * cell + 24
        start, goal = _start(name, ranks), _goal(name, ranks)
        parts.append(
            _grid(x, y, cell, ranks)
            + _grid(far, y, cell, ranks)
            + f'{_square(start, x, y, cell)}<g class="rd-after" data-step="{i + 1}">{_square(goal, far, y, cell)}'
        )
        parts.append(_arrow(x + ranks * cell + 5, y + ranks * cell / 2, 14))
        lines = (
            words(line, x, y + ranks * cell + 16 + 15 * k, "rd-small rd-light") for k, line in enumerate(MOVES[name])
        )
        parts += [*lines, "</g>", *_flights(goal, (x, y), (far, y), cell, i + 1)]
    rows = -(-len(collectives) // across)
    return parts, 30 + rows * (ranks * cell + 74) - 28


def _ranks(x: float, y: float, cell: int, ranks: int, wide: bool) -> list[str]:
    names = (f"rank {rank}" if wide else str(rank) for rank in range(ranks))
    return [words(name, x - 6, y + (k + 0.5) * cell + 4, "rd-small rd-end") for k, name in enumerate(names)]


def _square(cells: Cells, x: float, y: float, cell: int, lost: np.ndarray | None = None) -> str:
    """Cells in the colour of their piece, darker the more ranks' data is in them, those `lost` crossed out."""
    ranks = len(cells)
    parts = ""
    for kind in range(ranks):
        pale = full = ""
        for rank, piece in np.ndindex(cells.shape):
            here = cells[rank, piece]
            if here and here.kind == kind:
                box = f"M{x + piece * cell + 1} {y + rank * cell + 1}h{cell - 2}v{cell - 2}h-{cell - 2}z"
                gone = lost is not None and lost[rank, piece]
                pale, full = (pale + box, full) if gone else (pale, full + box)
        parts += f'<path class="rs-h{kind}" d="{pale}"/>' if pale else ""
        parts += f'<path class="rd-full rs-h{kind}" d="{full}"/>' if full else ""
    if cell >= 14:
        parts += _letters(cells, x, y, cell, lost)
    if lost is not None:
        at = [
            (x + piece * cell + 3, y + rank * cell + 3) for rank, piece in np.ndindex(cells.shape) if lost[rank, piece]
        ]
        long = cell - 6
        cross = "".join(f"M{u} {v}l{long} {long}m0-{long}l-{long} {long}" for u, v in at)
        parts += f'<path class="rd-line rd-slow" stroke-width="2.5" d="{cross}"/>'
    return parts


def _letters(cells: Cells, x: float, y: float, cell: int, lost: np.ndarray | None) -> str:
    """Whose data it is, and Σ for everybody's: a text for each row, with a place for each letter."""
    parts = ""
    for rank, row in enumerate(cells):
        shown = [piece for piece, here in enumerate(row) if here and (lost is None or not lost[rank, piece])]
        if shown:
            marks = "".join("Σ" if len(row[c].contributors) > 1 else letter(row[c].contributors[0]) for c in shown)
            at = " ".join(f"{x + (piece + 0.5) * cell:g}" for piece in shown)
            large = f'style="font-size:{0.7 * cell:.2g}px" y="{y + (rank + 0.75) * cell:g}"'
            parts += f'<text class="rd-sum rd-mid" x="{at}" {large}>{marks}</text>'
    return parts


def _grid(x: float, y: float, cell: int, ranks: int) -> str:
    """The square while it is empty."""
    lines = "".join(f"M{x} {y + k * cell}h{ranks * cell}M{x + k * cell} {y}v{ranks * cell}" for k in range(ranks + 1))
    return f'<path class="rd-empty" d="{lines}"/>'


def _arrow(x: float, y: float, long: float) -> str:
    tip = f"M{x + long} {y:g}l-6-5M{x + long} {y:g}l-6 5"
    return f'<path class="rd-line" stroke-width="2" d="M{x} {y:g}h{long}{tip}"/>'


def _flights(goal: Cells, old: tuple[float, float], new: tuple[float, float], cell: int, step: int) -> list[str]:
    """Each piece on its way from where a rank had it to where it lands; one group for each way."""
    ways: dict[tuple[float, float], dict[int, str]] = {}
    for rank, piece in np.ndindex(goal.shape):
        lands = goal[rank, piece] or EMPTY
        for source, number in lands.origins:
            way = (old[0] - new[0] + (number - piece) * cell, old[1] - new[1] + (source - rank) * cell)
            boxes = ways.setdefault(way, {})
            box = f"M{new[0] + piece * cell + 1} {new[1] + rank * cell + 1}h{cell - 2}v{cell - 2}h-{cell - 2}z"
            boxes[number] = boxes.get(number, "") + box
    return [
        f'<g class="rd-flight" data-step="{step}" style="--x:{x:g}px;--y:{y:g}px">'
        + "".join(f'<path class="rd-full rs-h{kind}" d="{path}"/>' for kind, path in boxes.items())
        + "</g>"
        for (x, y), boxes in ways.items()
    ]


def _wasted(collective: str, other: str, ranks: int, uses: str, width: int) -> tuple[list[str], int]:
    """Before, after, what is used of it, and the collective that leaves just that."""
    wide = width > NARROW
    left = 56 if wide else 22
    pitch = (width - left) // (4 if wide else 2)
    cell = min(30, (pitch - 44) // ranks)
    side = ranks * cell
    start, after, rest = _start(collective, ranks), _goal(collective, ranks), _goal(other, ranks)
    lost = np.array([[bool(after[at]) and not rest[at] for at in row] for row in _places(ranks)])
    count = int(lost.sum())
    panels = [
        ("before", "", start, None),
        (collective, f"sends {_sent(collective, ranks)} in all", after, None),
        (USED[uses], f"{count} of {_filled(after)} thrown away", after, lost),
        (other, f"sends {_sent(other, ranks)} in all", rest, None),
    ]
    parts: list[str] = []
    places = []
    for i, (head, foot, cells, gone) in enumerate(panels):
        x, y = left + i % (4 if wide else 2) * pitch, 30 + i // (4 if wide else 2) * (side + 60)
        places.append((x, y))
        kind = " rd-slow" if gone is not None else ""
        inside = words(head, x, y - 12, kind.strip()) + _square(cells, x, y, cell, gone)
        inside += words(foot, x, y + side + 18, f"rd-small{kind}")
        if i and (wide or i % 2):
            inside += (
                _arrow(x - pitch + side + 8, y + side / 2, pitch - side - 16) if i < 3 else _equals(x, y, side, pitch)
            )
        parts.append(f'{_grid(x, y, cell, ranks)}<g class="rd-after" data-step="{i}">{inside}</g>')
        if i == 0 or (not wide and i == 2):
            parts += _ranks(x, y, cell, ranks, wide)
    parts += _flights(after, places[0], places[1], cell, 1)
    return parts, places[-1][1] + side + 30


def _places(ranks: int) -> list[list[tuple[int, int]]]:
    return [[(rank, piece) for piece in range(ranks)] for rank in range(ranks)]


def _equals(x: float, y: float, side: float, pitch: float) -> str:
    middle = x - (pitch - side) / 2
    return words("=", middle, y + side / 2 + 6, "rd-mid")
