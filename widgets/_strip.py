"""A schedule as one still picture: its start and steps side by side, for wherever no browser runs the Player.

It stays below 40 kB: at most eight frames, chosen evenly, and one column per rank instead of single cells where there
are very many.

Columns are ranks, rows are chunks, with the buffer's name where there are several; an arrow leads from the rank that
sends to the one that receives. A cell has the text of the live one: the run's numbers where these are short and nothing
is summed, dim where they are only written over, else symbols. The hue says which chunk the data was at first, so it
goes where the data goes (grey: of several), the dark bar whose data is in the cell: one place per rank. A frame is what
the step has written, a red frame the cell that a verdict is about. Below the last step is what each rank sent and
received; of a run that ended in a deadlock the stuck ranks are red there, the ranks they wait for dashed, with red
arrows. Left out: which cell an arrow is about (the frame says it); the caption of every step is in the live Player.
"""

import math
from html import escape

from collectives.columns import NEW, REDUCE
from collectives.run import Run
from collectives.state import letter
from collectives.units import size
from widgets import _still
from widgets.wait_for import stuck, text

FRAMES, OF_MANY = 8, 6  # the second of more cells than FEW
FEW = 32
PER_LINE = 2
WIDTH = 320  # of a frame's columns; two of them are as wide as a page
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
    f".c{{font-family:monospace}}.c text{{font:inherit;text-anchor:middle;fill:{_still.BOXED}}}"
    f".c .d{{font-style:italic;fill:{_still.INK}}}"
    ".r text{font-size:12px;text-anchor:middle}.r.s text{font-size:11px;font-weight:400}"
    ".r .n{text-anchor:start}.r .k{text-anchor:end;font-weight:400}"
    f".b{{stroke:#333;stroke-width:3}}.e{{fill:none;stroke:{_still.INK};stroke-opacity:.5}}"
    ".w{fill:none;stroke:#000;stroke-width:2}"
    f".a{{fill:none;stroke:{_still.INK};stroke-width:1.4}}"
)
WAITS = f'<path fill="none" stroke="{_still.STUCK}" stroke-width="2" d="{{}}"/>'
TIP_LONG, TIP_WIDE = 6, 3  # pixels of the head of an arrow
BELOW, AMOUNTS = 26, 16  # pixels for who waits for whom, and for what was sent
ROWS = ((4, 28), (12, 20), (64, 10), (math.inf, 0))  # so many rows are so tall
SHORT = 6  # characters of a number that can be in a cell, as in js/labels.js
LONGEST = 14  # characters of a buffer's name
SMALLEST, LETTER = 10.0, 0.61  # pixels of letters in a cell, and how wide one is
STUCK = f'<path fill="{_still.STUCK}" fill-opacity=".14" stroke="{_still.STUCK}" stroke-width="2" d="{{}}"/>'
MISSING = f'<path fill="none" stroke="{_still.STUCK}" stroke-width="1.5" stroke-dasharray="5 3" d="{{}}"/>'
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
    last = len(schedule.steps) if until is None else until
    grid = _Grid(schedule, last)
    draw = _cells if grid.small else _columns
    waits = _waits(schedule) if until is None else ()
    amounts = _amounts(schedule, grid) if until is None else ""
    low = HEAD + (len(grid.rows) * grid.tall if grid.small else 66)
    under = low + (AMOUNTS if amounts else 0)
    tall = under + 6 + (BELOW if waits else 0)
    parts = []
    for i, step in enumerate(grid.shown):
        x, y = grid.margin + i % PER_LINE * (grid.margin + WIDTH + 14) + 10, i // PER_LINE * (tall + 14) + 10
        state = schedule.states(step - 1) if step else schedule.start()
        title = f"step {step}: {schedule.steps[step - 1].phase}" if step else "start"
        frame = ""
        if waits and step == last:
            refused = waits[0][1] is None
            title += "; refused" if refused else f"; {text(waits)}" if len(text(waits)) < 28 else "; stuck"
            pairs = {} if refused else dict.fromkeys(edge[:2] for edge in waits)
            frame += _in_red(waits, grid, low) + WAITS.format(_arcs(pairs, schedule.ranks, under + 2, 1))
        frame += '<use href="#r"/>' + _arrows(schedule, step) + draw(schedule, grid, state, step)
        if step == last:
            frame += amounts.format(y=low + 12)
        if wrong and grid.small and step == len(schedule.steps):
            title += ", wrong in the red frame"
            frame += FRAMED.format(_around(grid, wrong))
        parts.append(f'<g transform="translate({x} {y})"><text y="12">{escape(title)}</text>{frame}</g>')
    columns, lines = min(len(grid.shown), PER_LINE), -(-len(grid.shown) // PER_LINE)
    width, height = columns * (grid.margin + WIDTH + 14) + 6, lines * (tall + 14) + 6
    style = STYLE + (f".c{{font-size:{grid.font:.3g}px}}.b{{stroke-dasharray:{grid.dashes}}}" if grid.small else "")
    return _still.sheet(width, height, style, [f"<defs>{_names(grid)}</defs>", *parts])


class _Grid:
    """Where the cells of a frame are, and what is written in them."""

    def __init__(self, schedule, last: int):
        self.ranks, self.buffers, self.chunks = schedule.ranks, schedule.buffers, schedule.chunks
        self.rows = [(name, chunk) for name in schedule.buffers for chunk in range(schedule.chunks)]
        self.small = len(self.rows) * self.ranks <= 64
        self.shown = _shown(
            last, 2 * PER_LINE if not self.small else OF_MANY if len(self.rows) * self.ranks > FEW else FRAMES
        )
        self.wide, self.tall = WIDTH // self.ranks, next(tall for most, tall in ROWS if len(self.rows) <= most)
        self.w, self.h = self.wide - 2, self.tall - 2
        unit = (self.w - 4) / self.ranks  # of the bar, for each rank
        self.unit, self.dashes = unit, f"{unit - 1:.3g} 1" if unit > 4 else "none"
        self.names = [name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}\u2026" for name in self.buffers]
        named = max(len(name) for name in self.names) * 8.2 + 4 if len(self.buffers) > 1 else 0
        self.margin = round(named + (14 if self.numbered else 0)) if self.small else 0
        self.font, self.texts = 0.0, {}
        if self.small and self.h > 10:
            self._write(schedule)

    @property
    def numbered(self) -> bool:
        """Whether a row says its chunk."""
        return self.chunks > 1 and self.tall > 12

    def _write(self, schedule) -> None:
        """`texts` by (step, buffer, rank, chunk), in letters that fit."""
        states = {step: schedule.states(step - 1) if step else schedule.start() for step in self.shown}
        places = [
            (step, name, rank, chunk) for step in states for name, chunk in self.rows for rank in range(self.ranks)
        ]
        cells = [states[step].cells[name][rank, chunk] for step, name, rank, chunk in places]
        if held := numbers(schedule):
            forms = [[held[step].get((name, rank, chunk), "")] for step, name, rank, chunk in places]
        else:
            forms = [_forms(cell, chunk, self.ranks) for cell, (*_, chunk) in zip(cells, places, strict=True)]
            letters = [form[1:] if cell.origins[1:] else form for cell, form in zip(cells, forms, strict=True)]
            forms = forms if self._fits(forms) >= SMALLEST else letters
        self.font = min(max(self._fits(forms), SMALLEST), 15 if self.tall > 20 else 12)
        room = (self.w - 3) / LETTER / self.font
        found = [next((text for text in form if len(text) <= room), "") for form in forms]
        self.texts = dict(zip(places, found, strict=True))

    def _fits(self, forms) -> float:
        """The size of letters in which the first forms of all cells fit."""
        return (self.w - 4) / LETTER / max([1, *(len(form[0]) for form in forms if form)])


def numbers(schedule) -> list[dict] | None:
    """What cells hold at the start and after each step, as numbers, by (buffer, rank, chunk), where the live Player
    opens with numbers: those of a run whose values are all short, if there are no sums or ranks compute new data
    (js/labels.js)."""
    first = [*schedule.start_values(), *schedule.stale_values()]
    steps = [schedule.values(index) for index in range(len(schedule.steps))]
    known = [text for *_, text in [*first, *sum(steps, [])]]
    sums, made = (any(op in step.columns.op for step in schedule.steps) for op in (REDUCE, NEW))
    symbols = sums and not made  # the letter of new data would not tell what it is
    if not schedule.start_values() or not any(steps) or symbols or not all(0 < len(text) <= SHORT for text in known):
        return None
    held = [{(name, rank, chunk): text for rank, name, chunk, text in first}]
    for index, values in enumerate(steps):
        kept = {place: text for place, text in held[-1].items() if place not in _written(schedule, index + 1)}
        held.append(kept | {(name, rank, chunk): text for rank, name, chunk, text in values})
    return held


def _forms(cell, chunk: int, ranks: int) -> list[str]:
    """What a cell holds, ever shorter: "a0+b0", "a+b" where the row says the chunk, "2/4"."""
    if not cell:
        return []
    count = len(cell.contributors)
    few = [f"all {count}" if count == ranks else f"{count}/{ranks}"]
    if cell.kind != chunk or cell.times or len(cell.sign) > 1:
        return [str(cell), *few]
    return [str(cell), cell.sign.join(map(letter, cell.contributors)), *few]


def _shown(steps: int, frames: int) -> list[int]:
    """0 for the start, then steps counted from 1: all of them if they fit, else evenly chosen, the last always."""
    if steps < frames:
        return list(range(steps + 1))
    return [round(i * steps / (frames - 1)) for i in range(frames)]


def _names(grid: _Grid) -> str:
    """The ranks' names above the columns of every frame; numbers in narrow ones, not all in very narrow ones. Beside
    the rows the names of several buffers, and which chunk each is."""
    wide = WIDTH / grid.ranks
    every = 2 ** max(0, math.ceil(math.log2(24 / wide)))
    name = "rank " if wide >= 50 else ""
    names = [f'<text x="{(rank + 0.5) * wide:.0f}" y="28">{name}{rank}</text>' for rank in range(0, grid.ranks, every)]
    if grid.margin and len(grid.buffers) > 1:
        for i, name in enumerate(grid.names):
            middle = HEAD + (i + 0.5) * grid.chunks * grid.tall + 3
            names.append(f'<text class="n" x="{-grid.margin}" y="{middle:.0f}">{escape(name)}</text>')
    if grid.margin and grid.numbered:
        for i, (_, chunk) in enumerate(grid.rows):
            names.append(f'<text class="k" x="-4" y="{HEAD + (i + 0.5) * grid.tall + 3:.0f}">{chunk}</text>')
    return f'<g id="r" class="r">{"".join(names)}</g>'


def _amounts(schedule, grid: _Grid) -> str:
    """What each rank of a run has sent and received in all, below its column (at {y}), as far as there is room."""
    if schedule.chunk_bytes is None or not isinstance(schedule, Run) or not any(schedule.counts().sent):
        return ""
    counts = schedule.counts()
    both = [f"\u2191 {size(out)} \u2193 {size(into)}" for out, into in zip(counts.sent, counts.received, strict=True)]
    told = both if max(map(len, both)) * 6.2 <= grid.wide else [words.partition(" \u2193")[0] for words in both]
    if max(map(len, told)) * 6.2 > grid.wide:
        return ""
    texts = (
        f'<text x="{round((r + 0.5) * WIDTH / grid.ranks)}" y="{{y}}">{words}</text>' for r, words in enumerate(told)
    )
    return f'<g class="r s">{"".join(texts)}</g>'


def _in_red(waits, grid: _Grid, low: int) -> str:
    """The columns of stuck ranks in a red box, those of ranks that they wait for in a dashed one."""
    stuck = {edge[0] for edge in waits}
    missing = {edge[1] for edge in waits} - stuck - {None}

    def boxes(ranks) -> str:
        return "".join(f"M{rank * grid.wide - 1} 15h{grid.wide}V{low}h-{grid.wide}z" for rank in sorted(ranks))

    return STUCK.format(boxes(stuck)) + (MISSING.format(boxes(missing)) if missing else "")


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


def _cells(schedule, grid: _Grid, state, step) -> str:
    """Every cell by itself: its hue, a bar with a place for each rank whose data is in it, what it holds."""
    wide, tall, w, h = grid.wide, grid.tall, grid.w, grid.h
    written = _written(schedule, step)
    hues = empty = bars = frames = texts = ""
    for line, (name, chunk) in enumerate(grid.rows):
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
            bars += "".join(
                f"M{x + 2 + a * grid.unit:.4g} {y + h - 3}h{max((b - a) * grid.unit, 2):.3g}"
                for a, b in _runs(cell.contributors)
            )
            if not cell:
                empty += box
            elif (name, rank, chunk) in written:
                frames += f"M{x + 1} {y + 1}h{w - 2}v{h - 2}h-{w - 2}z"  # inside: the page may be as dark as the frame
            if words := grid.texts.get((step, name, rank, chunk)):
                dim = "" if cell else ' class="d"'
                middle = round(y + h / 2 + 0.35 * grid.font - (1.5 if h > 10 else 0))
                texts += f'<text x="{x + w // 2}" y="{middle}"{dim}>{escape(words)}</text>'
    hues = f'<g stroke-width="{h}" stroke-dasharray="{w} 2">{hues}</g>'
    return f'{hues}{_path("e", empty)}{_path("b", bars)}{_path("w", frames)}<g class="c">{texts}</g>'


def _runs(ranks) -> list[list[int]]:
    """Consecutive ranks together, each run as [from, to)."""
    found: list[list[int]] = []
    for rank in ranks:
        if found and found[-1][1] == rank:
            found[-1][1] += 1
        else:
            found.append([rank, rank + 1])
    return found


def _around(grid: _Grid, cell: tuple[int, str, int]) -> str:
    """The outline of a cell, as `_cells` draws it."""
    rank, name, chunk = cell
    x, y = rank * grid.wide, HEAD + grid.rows.index((name, chunk)) * grid.tall
    return f"M{x} {y}h{grid.w}v{grid.h}h-{grid.w}z"


def _columns(schedule, grid: _Grid, state, step) -> str:
    """One column per rank: how much of it is filled (pale) and how much holds every rank's data (blue)."""
    wide = WIDTH / schedule.ranks
    filled = whole = ""
    low = HEAD + 62
    for rank in range(schedule.ranks):
        cells = [state.cells[name][rank, chunk] for name, chunk in grid.rows]
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
