"""A schedule as one still picture: its start and steps side by side, for wherever no browser runs the Player.

It has a few kB: at most eight frames, chosen evenly, and one column per rank instead of single cells where there are
very many.

Columns are ranks, rows are chunks; an arrow leads from the rank that sends to the one that receives. The hue says which
chunk the data was at first, so it goes where the data goes (grey: of several), the dark bar how many ranks' data is in
the cell, a frame what the step has written, a red frame the cell that a verdict is about. Below the last step of a run
that ended in a deadlock red arrows lead from stuck ranks to those they wait for. Left out: which cell an arrow
is about (the frame says it); the caption of every step is in the live Player.
"""

import math
from html import escape

from widgets import _still
from widgets.wait_for import stuck, text

FRAMES = 8
PER_LINE = 3
WIDTH = 308  # of a frame; three of them are as wide as a page
HEAD = 48  # pixels above the cells: title, ranks, arrows
MOST_ARROWS = 24  # more cover each other
HUES = (
    "#f5d999",
    "#bbe1f6",
    "#99d8c7",
    "#f9f4b3",
    "#99c7e0",
    "#eebe99",
    "#ebc9dc",
    "#d1d1d1",
)  # Okabe-Ito, 40 % on white
MIXED = "#f0f0f0"  # data of several chunks has no colour of its own
STYLE = (
    f"{_still.TEXT}"
    f".c text{{font:10.5px monospace;text-anchor:middle;fill:{_still.BOXED}}}"
    ".r text{font-size:11px;text-anchor:middle}"
    f".b{{stroke:#333;stroke-width:3}}.e{{fill:none;stroke:{_still.INK};stroke-dasharray:2}}"
    ".w{fill:none;stroke:#000;stroke-width:2}"
    f".a{{fill:none;stroke:{_still.INK};stroke-width:1.4}}"
)
WAITS = f'<path fill="none" stroke="{_still.STUCK}" stroke-width="2" d="{{}}"/>'
TIP_LONG, TIP_WIDE = 6, 3  # pixels of the head of an arrow
BELOW = 26  # pixels for who waits for whom
FRAMED = f'<path fill="none" stroke="{_still.STUCK}" stroke-width="3" d="{{}}"/>'


def html(schedule, name: str, until: int | None = None, wrong: tuple[int, str, int] | None = None) -> str:
    """An `<img>` of the strip, `name` in its alternative text; only words where a schedule is too large to draw.

    `until` is the last step that may be seen, of all if it is None. `wrong` is the (rank, buffer, chunk) that is framed
    in the last step.
    """
    if schedule.ranks * schedule.chunks * len(schedule.buffers) > 4096 or not len(schedule.steps):
        return f"<span>{escape(name)}</span>"
    framed = f"; wrong is rank {wrong[0]}, {wrong[1]}, chunk {wrong[2]}" if wrong else ""
    alt = f"{name}: what every rank holds at the start and after each step{framed}"
    if until is None and _waits(schedule):
        alt += f". {stuck(_waits(schedule))}"
    return _still.image(svg(schedule, until, wrong), alt)


def svg(schedule, until: int | None = None, wrong: tuple[int, str, int] | None = None) -> str:
    """The strip as SVG text, up to step `until`, with the cell `wrong` framed in the last."""
    buffers = [(name, chunk) for name in schedule.buffers for chunk in range(schedule.chunks)]
    small = len(buffers) * schedule.ranks <= 64
    draw = _cells if small else _columns
    waits = _waits(schedule) if until is None else ()
    low = HEAD + (len(buffers) * _row(buffers) if small else 66)
    tall = low + 6 + (BELOW if waits else 0)
    shown = _shown(len(schedule.steps) if until is None else until, FRAMES if small else PER_LINE)
    parts = []
    for i, step in enumerate(shown):
        x, y = i % PER_LINE * (WIDTH + 14) + 10, i // PER_LINE * (tall + 14) + 10
        state = schedule.states(step - 1) if step else schedule.start()
        title = f"step {step}: {schedule.steps[step - 1].phase}" if step else "start"
        frame = '<use href="#r"/>' + _arrows(schedule, step) + draw(schedule, buffers, state, step)
        if wrong and small and step == len(schedule.steps):
            title += ", wrong in the red frame"
            frame += FRAMED.format(_around(schedule, buffers, wrong))
        if waits and step == len(schedule.steps):
            refused = waits[0][1] is None
            title += "; refused" if refused else f"; {text(waits)}" if len(text(waits)) < 28 else "; stuck"
            pairs = {} if refused else dict.fromkeys(edge[:2] for edge in waits)
            frame += WAITS.format(_arcs(pairs, schedule.ranks, low + 2, 1))
        parts.append(f'<g transform="translate({x} {y})"><text y="12">{escape(title)}</text>{frame}</g>')
    columns, lines = min(len(shown), PER_LINE), -(-len(shown) // PER_LINE)
    width, height = columns * (WIDTH + 14) + 6, lines * (tall + 14) + 6
    return _still.sheet(width, height, STYLE, [f"<defs>{_ranks(schedule.ranks)}</defs>", *parts])


def _shown(steps: int, frames: int) -> list[int]:
    """0 for the start, then steps counted from 1: all of them if they fit, else evenly chosen, the last always."""
    if steps < frames:
        return list(range(steps + 1))
    return [round(i * steps / (frames - 1)) for i in range(frames)]


def _row(buffers) -> int:
    return 20 if len(buffers) <= 12 else 10


def _ranks(ranks: int) -> str:
    """The ranks' names above the columns of every frame; numbers in narrow ones, not all in very narrow ones."""
    wide = WIDTH / ranks
    every = 2 ** max(0, math.ceil(math.log2(24 / wide)))
    name = "rank " if wide >= 50 else ""
    names = (f'<text x="{(rank + 0.5) * wide:.0f}" y="28">{name}{rank}</text>' for rank in range(0, ranks, every))
    return f'<g id="r" class="r">{"".join(names)}</g>'


def _arrows(schedule, step: int) -> str:
    """An arc from each rank that sends in that step to the rank that receives; none where they would be a web."""
    if not step:
        return ""
    moved = schedule.steps[step - 1].transfers
    pairs = dict.fromkeys((transfer.src, transfer.dst) for transfer in moved if transfer.src != transfer.dst)
    return _path("a", _arcs(pairs, schedule.ranks, HEAD - 2, -1))


def _arcs(pairs, ranks: int, y: int, side: int) -> str:
    """An arc for each pair of ranks, above the line at `y` (side -1) or below it (1)."""
    arcs, wide = "", WIDTH / ranks
    if len(pairs) > MOST_ARROWS or wide < 18:
        return ""
    for src, dst in pairs:
        way = 1 if dst > src else -1
        start, end = round((src + 0.5) * wide) + 2 * way, round((dst + 0.5) * wide) - 5 * way
        middle = (start + end) // 2
        pull = y + side * (14 + 12 * abs(dst - src) // ranks)  # an arc is half as high as the point that pulls it
        arcs += f"M{start} {y}Q{middle} {pull} {end} {y}{_head(end - middle, y - pull)}"
    return arcs


def _head(dx: int, dy: int) -> str:
    """The two strokes of the head of an arrow that has come along (dx, dy). A marker would be at the last arc alone."""
    long, thick = TIP_LONG / math.hypot(dx, dy), TIP_WIDE / math.hypot(dx, dy)
    (a, b), (c, d) = ((round(side * dy * thick - dx * long), round(-side * dx * thick - dy * long)) for side in (1, -1))
    return f"m{a} {b}l{-a} {-b} {c} {d}".replace(" -", "-")


def _waits(schedule) -> tuple:
    """Who waits for whom at the end of a run, as `collectives.run.Run` has it; () of a plan."""
    return getattr(schedule, "stuck", ())


def _cells(schedule, buffers, state, step) -> str:
    """Every cell by itself: its hue, a bar for how many ranks' data is in it, what it holds where that fits."""
    wide, tall = WIDTH // schedule.ranks, _row(buffers)
    w, h = wide - 2, tall - 2
    written = _written(schedule, step)
    named = h > 10 and all(6.4 * len(str(cell)) <= w for cells in state.cells.values() for cell in cells.flat)
    hues = empty = bars = frames = texts = ""
    for line, (name, chunk) in enumerate(buffers):
        y = HEAD + line * tall
        row = state.cells[name][:, chunk]
        kinds = [cell.kind if cell else None for cell in row]
        for kind in dict.fromkeys(kind for kind in kinds if kind is not None):
            # A full row is one dashed line, the dashes being its cells: a third of the bytes.
            path = (
                f"M0 {y + h // 2}h{wide * len(row)}"
                if all(other == kind for other in kinds)
                else "".join(f"M{r * wide} {y + h // 2}h{w}" for r, other in enumerate(kinds) if other == kind)
            )
            hues += f'<path stroke="{HUES[kind % len(HUES)] if kind >= 0 else MIXED}" d="{path}"/>'
        for rank, cell in enumerate(row):
            x = rank * wide
            box = f"M{x} {y}h{w}v{h}h-{w}z"
            if not cell:
                empty += box
                continue
            bars += f"M{x} {y + h - 2}h{w * len(cell.contributors) // schedule.ranks}"
            if (name, rank, chunk) in written:
                frames += f"M{x + 1} {y + 1}h{w - 2}v{h - 2}h-{w - 2}z"  # inside: the page may be as dark as the frame
            if named:
                texts += f'<text x="{x + w // 2}" y="{y + 12}">{cell}</text>'
    hues = f'<g stroke-width="{h}" stroke-dasharray="{w} 2">{hues}</g>'
    return f'{hues}{_path("e", empty)}{_path("b", bars)}{_path("w", frames)}<g class="c">{texts}</g>'


def _around(schedule, buffers, cell: tuple[int, str, int]) -> str:
    """The outline of a cell, as `_cells` draws it."""
    rank, *where = cell
    wide, tall = WIDTH // schedule.ranks, _row(buffers)
    x, y = rank * wide, HEAD + buffers.index(tuple(where)) * tall
    return f"M{x} {y}h{wide - 2}v{tall - 2}h-{wide - 2}z"


def _columns(schedule, buffers, state, step) -> str:
    """One column per rank: how much of it is filled (pale) and how much holds every rank's data (blue)."""
    wide = WIDTH / schedule.ranks
    filled = whole = ""
    low = HEAD + 62
    for rank in range(schedule.ranks):
        cells = [state.cells[name][rank, chunk] for name, chunk in buffers]
        x = round((rank + 0.5) * wide, 1)
        filled += f"M{x:g} {low}v-{60 * sum(map(bool, cells)) // len(cells)}"
        whole += f"M{x:g} {low}v-{60 * sum(len(cell.contributors) == schedule.ranks for cell in cells) // len(cells)}"
    return (
        f'<path stroke="{HUES[4]}" stroke-width="{wide * 0.8:.3g}" d="{filled}"/>'
        f'<path stroke="#0072b2" stroke-width="{wide * 0.8:.3g}" d="{whole}"/>'
    )


def _path(kind: str, path: str) -> str:
    return f'<path class="{kind}" d="{path}"/>' if path else ""


def _written(schedule, step: int) -> set:
    if not step:
        return set()
    return {
        (transfer.dst_buffer, transfer.dst, transfer.dst_chunk + i)
        for transfer in schedule.steps[step - 1].transfers
        for i in range(transfer.count)
    }
