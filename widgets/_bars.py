"""The measured calls of a run as one still picture on a time axis, for wherever no browser runs the Timeline.

Every rank has a line, to scale: above, in a colour for each op, what is under way; below, grey, when the rank is
blocked; the pale rest is its own work. At the right is the share of the time that a rank was blocked. A triangle marks
the rank that entered a call last while others were waiting for it.

Bars that fall on the same pixels are one, so the picture stays small however many calls there are. Left out: how a
single call went, which the live Timeline tells.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable
from html import escape
from itertools import chain

from collectives.units import duration
from widgets import _still
from widgets.wait_for import named

WIDTH, LEFT, RIGHT, ROW = 760, 66, 98, 36  # pixels; ROW is from rank to rank
HUES = ("#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#0072b2", "#f0e442")  # of ops, in the order of their first call
LATE = "#d55e00"
WORK = 'fill-opacity=".16" fill="#888"'
LEAST = 0.02  # of the run: a shorter wait is not worth a mark
TOLD = 0.2  # of the run: shorter waits are left out of the headline
NEEDS_ALL = re.compile("all_reduce|all_gather|reduce_scatter|(monitored_)?barrier|recv")  # see js/spans.js
Span = tuple[float, float]


def svg(calls: list[dict], ranks: int, error: float, said: str) -> str:
    """The picture as SVG text, below its headline. `calls` are what js/spans.js calls Measured; `error` is by how many
    seconds the times of two ranks may be wrong against each other."""
    end = _end(calls)
    ops = list(dict.fromkeys(call["op"] for call in calls))
    hues = {op: HUES[i % len(HUES)] for i, op in enumerate(ops)}
    blocked, late = _blocked(calls, ranks, end), _late(calls, error, end)
    keys, top = _legend(hues, bool(late))
    first, more = _still.headline(said, 8)
    parts = [first, f'<g transform="translate(0 {more})">', keys]
    for rank in range(ranks):
        of_rank = [call for call in calls if call["rank"] == rank]
        marks = [at for call, at, _ in late if call["rank"] == rank]
        parts.append(_line(rank, of_rank, top + ROW * rank, hues, end, blocked[rank], marks))
    low = top + ROW * ranks
    parts += [_axis(end, low), "</g>"]
    return _still.sheet(WIDTH, low + 24 + more, f"{_still.TEXT}.s text{{font-size:12px}}", parts)


def headline(calls: list[dict], ranks: int, error: float) -> str:
    """What a glance should take away: the rank that others waited for much of it, else how long ranks were blocked."""
    if not calls:
        return "No rank called torch.distributed"
    end = _end(calls)
    busy: dict[int, list[Span]] = defaultdict(list)  # a rank that is blocked itself keeps no other one waiting
    for call in calls:
        busy[call["rank"]] += blocked_by(call)
    found = _late(calls, error, end)
    late = [each for each in found if _length_outside([*chain(*each[2].values())], busy[each[0]["rank"]]) > LEAST * end]
    waited: dict[int, list[Span]] = defaultdict(list)
    for call, _, spans in late:
        waited[call["rank"]] += chain(*spans.values())
    longest = {rank: _length_outside(spans, busy[rank]) for rank, spans in waited.items()}
    last = max(longest, key=longest.__getitem__, default=0)
    if waited and longest[last] > TOLD * end:
        return _was_late(last, late, busy[last])
    blocked = _blocked(calls, ranks, end)
    most = max(range(ranks), key=blocked.__getitem__)
    if len(set(map(_share, blocked))) == 1:
        return f"Each rank was blocked {_share(blocked[most])} of {duration(end)}"
    return f"Rank {most} was blocked longest, {_share(blocked[most])} of {duration(end)}"


def _was_late(rank: int, late: list[tuple], busy: list[Span]) -> str:
    """ "Rank 2 was late 3 times: ranks 0, 1 waited up to 1.5 s" """
    mine = [spans for call, _, spans in late if call["rank"] == rank]
    often = f" {len(mine)} times" if len(mine) > 1 else ""
    waits: dict[int, list[Span]] = defaultdict(list)
    for spans in mine:
        for other, some in spans.items():
            waits[other] += some
    long = {other: _length_outside(some, busy) for other, some in waits.items()}
    told = {other: duration(seconds) for other, seconds in sorted(long.items()) if seconds > 0}
    most = duration(max(long.values()))
    up_to = "up to " if {*told.values()} != {most} else ""
    return f"Rank {rank} was late{often}: {named([*told])} waited {up_to}{most}"


def _end(calls: list[dict]) -> float:
    return max((at for call in calls for at in (until(call), *chain(*blocked_by(call)))), default=0.0) or 1e-9


def _blocked(calls: list[dict], ranks: int, end: float) -> list[float]:
    """Of each rank the share of the time in which calls blocked it."""
    spans: list[list[Span]] = [[] for _ in range(ranks)]
    for call in calls:
        spans[call["rank"]] += blocked_by(call)
    return [_length(mine) / end for mine in spans]


def _share(part: float) -> str:
    return f"{100 * part:.0f} %"


def until(call: dict) -> float:
    begun, issued, _, waited, done = call["times"]
    return max(next((t for t in (done, waited, issued) if t is not None), begun), begun)


def blocked_by(call: dict) -> list[Span]:
    begun, issued, waits, waited, _ = call["times"]
    spans = [(begun, issued), (waits, waited)]
    return [(a, b) for a, b in spans if a is not None and b is not None]


def _waits(call: dict) -> list[Span]:
    """When the rank waited for its call to end. A monitored_barrier has no wait: all leave it when it returns."""
    begun, issued, waits, waited, _ = call["times"]
    a, b = (begun, issued) if call["op"] == "monitored_barrier" else (waits, waited)
    return [(a, b)] if a is not None and b is not None else []


def _unsure(call: dict) -> list[Span]:
    """From the return of a call to its end, where nobody is known to have waited for it."""
    _, issued, waits, _, _ = call["times"]
    return [(issued, until(call))] if issued is not None and waits is None and until(call) > issued else []


def merged(spans: Iterable[Span]) -> list[Span]:
    made: list[Span] = []
    for a, b in sorted(spans):
        if made and a <= made[-1][1]:
            made[-1] = (made[-1][0], max(made[-1][1], b))
        else:
            made.append((a, b))
    return made


def _length(spans: Iterable[Span]) -> float:
    return sum(b - a for a, b in merged(spans))


def _length_outside(spans: list[Span], others: list[Span]) -> float:
    """The seconds of some spans that are in none of the others."""
    return _length([*spans, *others]) - _length(others)


def _late(calls: list[dict], error: float, end: float) -> list[tuple[dict, float, dict[int, list[Span]]]]:
    """(call, begin, spans) of the calls that surely came last to what others were already waiting for, and when each of
    these waited."""
    sides = defaultdict(list)
    for call in calls:
        if call["match"] is not None:
            sides[call["match"]].append(call)
    found = []
    for together in sides.values():
        *others, last = sorted(together, key=lambda call: call["times"][0])
        came = last["times"][0]
        if others and came - others[-1]["times"][0] > error:
            sure = came - error  # as in js/spans.js
            waited = {call["rank"]: [(a, min(b, sure)) for a, b in _waits(call) if a < sure] for call in others
                      if until(call) > came or NEEDS_ALL.match(call["op"])}  # fmt: skip
            if max(map(_length, waited.values()), default=0.0) > LEAST * end:
                found.append((last, came, waited))
    return found


def _x(time: float, end: float) -> int:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * min(max(time / end, 0.0), 1.0))


def _bars(spans: Iterable[Span], end: float, y: int, tall: int, paint: str) -> str:
    """At least two pixels each, those that touch as one; with a pixel between calls that do not."""
    pixels = merged((_x(a, end), max(_x(b, end), _x(a, end) + 2)) for a, b in spans)
    path = "".join(f"M{a:g} {y}h{b - a:g}v{tall}H{a:g}z" for a, b in pixels)
    return f'<path {paint} d="{path}"/>' if path else ""


def _line(rank: int, calls: list[dict], y: int, hues: dict, end: float, blocked: float, late: list[float]) -> str:
    parts = [f'<text x="8" y="{y + 20}">rank {rank}</text>']
    parts.append(_bars([(0.0, end)], end, y + 5, 22, WORK))
    for op, hue in hues.items():
        parts.append(_bars([(call["times"][0], until(call)) for call in calls if call["op"] == op], end, y + 5, 11,
                           f'fill="{hue}"'))  # fmt: skip
    parts.append(_bars([span for call in calls for span in _unsure(call)], end, y + 17, 10,
                       f'fill-opacity=".4" fill="{_still.INK}"'))  # fmt: skip
    parts.append(_bars([span for call in calls for span in blocked_by(call)], end, y + 17, 10, f'fill="{_still.INK}"'))
    marks = "".join(f"M{x} {y + 7}l-5-8h10z" for x in dict.fromkeys(_x(at, end) for at in late))
    if marks:
        parts.append(f'<path fill="{LATE}" d="{marks}"/>')
    parts.append(f'<g class="s"><text x="{WIDTH - RIGHT + 6}" y="{y + 20}">{_share(blocked)} blocked</text></g>')
    return "".join(parts)


def _legend(hues: dict, late: bool) -> tuple[str, int]:
    """What the colours are, in as many lines as that takes, and where they end."""
    box = '<path {} d="M{} {}h14v10h-14z"/>'
    entries = [(box, f'fill="{hue}"', op) for op, hue in hues.items()]
    entries += [(box, f'fill="{_still.INK}"', "blocked in a call"), (box, WORK, "its own work")]
    if late:
        entries.append(('<path {} d="M{} {}h14l-7 11z"/>', f'fill="{LATE}"', "late: others waited for it"))
    x, y, parts = 8, 30, []
    for shape, paint, words in entries:
        wide = 32 + round(7.3 * len(words))
        if x + wide > WIDTH and x > 8:
            x, y = 8, y + 18
        parts.append(f'{shape.format(paint, x, y)}<text x="{x + 18}" y="{y + 10}">{escape(words)}</text>')
        x += wide
    return f'<g class="s">{"".join(parts)}</g>', y + 20


def _axis(end: float, y: int) -> str:
    """Round moments below the lines, about five."""
    rough = end / 5
    size = 10.0 ** math.floor(math.log10(rough))
    step = size * next(times for times in (1, 2, 5, 10) if times * size >= rough)
    parts = []
    for k in range(int(end / step) + 1):
        x, words = _x(k * step, end), duration(k * step) if k else "0"
        tick = f'<path stroke="{_still.INK}" d="M{x} {y}v5"/>'
        parts.append(f'{tick}<text text-anchor="middle" x="{x}" y="{y + 18}">{words}</text>')
    line = f'<path stroke="{_still.INK}" d="M{LEFT} {y}H{WIDTH - RIGHT}"/>'
    return f'<g class="s">{line}{"".join(parts)}</g>'
