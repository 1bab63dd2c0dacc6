"""SlotGrid: the orders of a pipeline as grids of slots, the bubble as holes, what each rank keeps as squares.

Several orders stand one below the other on one clock, so that what is longer takes longer. An order of the student's
own can be typed, one line for each rank, and is counted while it is typed: its bubble, and the micro-batches it keeps.
A recorded run is drawn below the order that it ran: dark where the rank was blocked, up to its end.

Left out: the arithmetic (`collectives/pipeline.py`, and js/slots.js for what is typed).
"""

import math
from collections.abc import Iterable
from html import escape

import traitlets

from collectives.pipeline import Order
from collectives.run import Run
from collectives.timed import TIMES
from widgets import _bars, _still
from widgets.base import join, styles
from widgets.question import Asked

MOST = 4_000  # actions of all orders together
WIDTH, LEFT, RIGHT, ROW, LANE = 760, 64, 94, 19, 17  # pixels of the still picture
HUES = {"F": "#56b4e9", "B": "#e69f00", "I": "#f0e442", "W": "#3fbf98"}
LATER = {"F": "#b4def5", "B": "#f3cf85", "I": "#f8f3b0", "W": "#a5e0cd"}  # of a rank's second stage
LOST = "#d55e00"
SQUARE, SQUARES = 6, 8  # pixels of a micro-batch that is kept, and how many stand in a line


class SlotGrid(Asked):
    """Shows who does what when in a pipeline.

    >>> SlotGrid(pipeline.gpipe(4, 8), pipeline.one_f_one_b(4, 8))                # doctest: +SKIP
    >>> SlotGrid([[1, 2, -1, -2], [1, -1, 2, -2]])                                # doctest: +SKIP
    >>> SlotGrid(launch.pull("order"), run=launch.recording())                    # doctest: +SKIP

    orders   Orders of `collectives.pipeline`, or lists with what each rank does: i is the forward pass of micro-batch
             i, -i its backward pass. All have equally many ranks and micro-batches
    run      a recording of the first order, whose waits are drawn below it: with `events`, as a Timeline takes it
    typed    the order that is typed below the picture: a text for each rank; [] for none. `yours` is that Order
    step     how many slots are shown in full, in the smallest part of a slot; all at first
    playing  True while it plays

    ValueError for no order, for orders that do not fit together, for more than 4,000 actions and for a run on another
    number of ranks; TypeError for a run without measured events.
    """

    _entry, _sheets = "slot-grid.js", ("frame.css", "timeline.css", "slot-grid.css")
    _esm, _css = join(_entry), styles(*_sheets, "question.css")
    orders = traitlets.List().tag(sync=True)
    recorded = traitlets.Dict().tag(sync=True)
    typed = traitlets.List().tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
    playing = traitlets.Bool(False).tag(sync=True)

    def __init__(self, *orders: Order | Iterable, run: Run | None = None, **traits):
        made = [order if isinstance(order, Order) else Order("Your order", order) for order in orders]
        if not made:
            raise ValueError("SlotGrid needs an order, such as pipeline.one_f_one_b(4, 8)")
        if len({(order.ranks, order.micro) for order in made}) > 1:
            sizes = ", ".join(f"{order.name} {order.ranks} and {order.micro}" for order in made)
            raise ValueError(f"SlotGrid compares orders of equally many ranks and micro-batches; here: {sizes}")
        if sum(len(each) for order in made for each in order.orders) > MOST:
            raise ValueError(f"SlotGrid draws up to {MOST:,} actions; take fewer micro-batches")
        self.made = made
        self.measured = run is not None
        most = max(order.ticks for order in made)
        traits.setdefault("step", max(-(-order.length * most // order.ticks) for order in made))
        traits.setdefault("recorded", _recorded(run, made[0].ranks) if run is not None else {})
        super().__init__(orders=[{"name": order.name, "lines": order.texts} for order in made], **traits)

    @property
    def yours(self) -> Order:
        """The order that was typed; ValueError if it is none yet."""
        return Order("Your order", self.typed)

    def _freshness(self) -> str:
        return "new"

    def summary(self) -> str:
        names = ", ".join(order.name for order in self.made)
        return f"{names}; {self.made[0].ranks} ranks, {self.made[0].micro} micro-batches"

    def fallback(self) -> str:
        """All orders on one clock."""
        said = "; ".join([_headline(self.made), *map(_verdict, self.made)])
        return _still.image(_svg(self.made, self.recorded), said)


def _headline(orders: list[Order]) -> str:
    """As js/slot-grid.js says it."""
    right = [order for order in orders if not order.stuck]
    if not right:
        return "An order that comes to a standstill"
    best, worst = (f(right, key=lambda order: order.bubble) for f in (min, max))
    share = f"{100 * best.bubble:.0f} %"
    if len(orders) == 1:
        return f"One training step by {best.name}: each rank idles {share} of the time"
    same = best.bubble == worst.bubble
    idles = f"{best.name} idles {share}, {worst.name} {100 * worst.bubble:.0f} %"
    return f"One step alone: {f'each rank idles {share} of the time' if same else idles}"


def _verdict(order: Order) -> str:
    """As js/slot-grid.js says it."""
    if order.stuck:
        return f"{order.name}: {order.stuck}"
    time, every, most = order.length / order.ticks, order.period / order.ticks, max(order.kept)
    overlapped = f"{every - 3 * order.micro:g} of {every:g} if repeated, " if every < time else ""
    return (
        f"{order.name}: bubble {order.idle:g} of {time:g} slots ({order.bubble:.0%}), {overlapped}"
        f"keeps up to {most:g} micro-batch{'es' * (most != 1)}"
    )


def _recorded(run: Run, ranks: int) -> dict:
    """How many seconds the run took, when each rank was blocked, when it was done, and the idle share of the time."""
    events = getattr(run, "events", None)
    if events is None:
        raise TypeError("SlotGrid takes a run with measured events: launch.recording() after `%%ranks --record`")
    if run.ranks != ranks:
        raise ValueError(f"the run has {run.ranks} ranks, the order {ranks}")
    calls = [{"rank": event.rank, "times": [getattr(event, name) for name in TIMES]} for event in events]
    mine = [[call for call in calls if call["rank"] == rank] for rank in range(ranks)]
    blocked = [_bars.merged(span for call in of for span in _bars.blocked_by(call)) for of in mine]
    ends = [max(map(_bars.until, of), default=0.0) for of in mine]
    took = max(ends) or 1e-9
    waited = sum(b - a for spans in blocked for a, b in spans)
    idle = (waited + sum(took - end for end in ends)) / ranks / took  # a rank that is done is idle, too
    drawn = [[[a, b] for a, b in spans if b > a] for spans in blocked]
    return {"seconds": took, "idle": idle, "blocked": drawn, "ends": ends}


def _svg(orders: list[Order], recorded: dict) -> str:
    slots = max(order.length / order.ticks for order in orders) or 1
    wide = (WIDTH - LEFT - RIGHT) / slots
    parts = []
    used = {slot.action.kind for order in orders for slot in order.slots}
    names = {"F": "forward", "B": "backward", "I": "gradient of the input", "W": "gradient of the weights"}
    entries = [(f'fill="{hue}"', names[kind]) for kind, hue in HUES.items() if kind in used]
    entries.append(('class="i"', "idle: the bubble"))
    half = " (half: one of two stages)" if any(kept % 1 for order in orders for kept in order.kept) else ""
    entries.append((f'fill="{_still.INK}"', f"a micro-batch kept in memory{half}"))
    if any(slot.action.stage >= order.ranks for order in orders for slot in order.slots):
        entries.append((f'fill="{LATER["F"]}"', "paler: a rank's second stage"))
    head, more = _still.headline(_headline(orders), 0, 13)
    parts.append(head)
    x, low = 0, 35 + more
    for box, said in entries:
        long = 34 + round(8.4 * len(said))
        if x + long > WIDTH:
            x, low = 0, low + 18
        parts.append(f'<path {box} d="M{x + 0.5} {low - 9.5}h14v10h-14z"/><text x="{x + 19}" y="{low}">{said}</text>')
        x += long
    y = low + 17
    for index, order in enumerate(orders):
        parts.append(f'<text y="{y + 13}">{escape(_verdict(order))}</text>')
        y += 20
        lanes = recorded and not index
        for rank in range(order.ranks):
            parts.append(_row(order, rank, y, wide / order.ticks))
            y += ROW
            if lanes:
                parts.append(_lane(recorded, rank, y, wide * order.length / order.ticks))
                y += LANE
        if lanes:
            said = f"recorded: idle {recorded['idle']:.0%} of the time (the stronger gray: blocked in a call)"
            parts.append(f'<g class="s"><text x="{LEFT}" y="{y + 13}">{said}</text></g>')
            y += 16
        y += 12
    style = (
        f"{_still.TEXT}.s text{{font-weight:400;font-size:13px}}.n text{{font-size:12px;fill:{_still.BOXED};"
        f"text-anchor:middle}}.i{{fill:{LOST};fill-opacity:.1;stroke:{LOST};stroke-dasharray:3 3}}"
    )
    return _still.sheet(WIDTH, y, style, parts)


def _row(order: Order, rank: int, y: int, tick: float) -> str:
    mine = [slot for slot in order.slots if slot.rank == rank]
    parts = [f'<g class="s"><text y="{y + 13}">rank {rank}</text>']
    if order.kept[rank]:
        after = WIDTH - RIGHT + 8 + min(math.ceil(order.kept[rank]), SQUARES) * (SQUARE + 1)
        parts.append(f'<text x="{after}" y="{y + 13}">{order.kept[rank]:g}</text>')
    parts.append("</g>")
    lines = -(-order.kept[rank] // SQUARES)
    each = min(SQUARE + 1, (ROW - 2) / max(lines, 1))
    for i in range(math.ceil(order.kept[rank])):
        x, top = WIDTH - RIGHT + 5 + i % SQUARES * (SQUARE + 1), y + (ROW - 2 - lines * each) / 2 + i // SQUARES * each
        wide = SQUARE * min(1, order.kept[rank] - i)
        parts.append(f'<path fill="{_still.INK}" d="M{x} {top:g}h{wide:g}v{min(SQUARE, each - 1):g}h{-wide:g}z"/>')

    def shape(start: float, end: float, inset: float = 0.0) -> str:
        x, wide = LEFT + start * tick + inset, (end - start) * tick - 1 - 2 * inset
        return f"M{x:.4g} {y + inset:g}h{wide:.4g}v{ROW - 2 - 2 * inset:g}h{-wide:.4g}z"

    edges = [0, *(edge for slot in mine for edge in (slot.start, slot.end)), order.length]
    gaps = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if b > a]
    parts.append("".join(f'<path class="i" d="{shape(a, b, 0.5)}"/>' for a, b in gaps))
    for kind, hue in HUES.items():
        for later in False, True:
            chosen = [s for s in mine if s.action.kind == kind and (s.action.stage >= order.ranks) == later]
            if chosen:
                shapes = "".join(shape(s.start, s.end) for s in chosen)
                parts.append(f'<path fill="{LATER[kind] if later else hue}" d="{shapes}"/>')
    numbers = [
        f'<text x="{LEFT + (s.start + s.end) / 2 * tick:.4g}" y="{y + 13}">{s.action.micro}</text>'
        for s in mine
        if (s.end - s.start) * tick > 10 * len(str(s.action.micro))
    ]
    return f'{"".join(parts)}<g class="n">{"".join(numbers)}</g>'


def _lane(recorded: dict, rank: int, y: int, wide: float) -> str:
    second = wide / recorded["seconds"]
    at = [(LEFT + a * second, LEFT + b * second) for a, b in recorded["blocked"][rank]]
    end = recorded["ends"][rank] * second
    spans = "".join(f"M{a:.4g} {y}H{b:.4g}v12H{a:.4g}z" for a, b in at)
    own = f'<g class="s"><text y="{y + 10}">recorded</text></g>'
    own += f'<path {_bars.WORK} d="M{LEFT} {y}h{end:.4g}v12h{-end:.4g}z"/>'
    return f'{own}<path fill="{_still.INK}" d="{spans}"/>'
