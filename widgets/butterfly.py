"""Butterfly: algorithms in which all ranks meet in pairs, drawn as the crossing lines that gave them their name.

Rows are ranks, columns are what each rank holds before the first step and after each; lines show who meets whom, as
thick as the message is long. A row's bar is the vector: the parts that its rank still works on are blue, and they fill
up as more ranks' data is in them. What it has given away is empty. With machines marked (`local`), the
lines between them are the slow links: there the order of the partners decides.

All of it is read from Schedules: which part of a bar is still needed follows from the steps that come, backwards.
Left out: ranks without a partner, as on 6 ranks, and the sums' letters (Player).
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import groupby

from collectives import Schedule
from collectives.columns import COPY, NEW
from collectives.state import State, single_chunks
from collectives.steps import Step
from collectives.units import size
from widgets._drawn import NARROW, WIDE, Followed, words
from widgets._packing import goal
from widgets.base import join

MOST_RANKS = 16
ROW, BAR = 19, 13  # pixels from rank to rank, and of a bar
HEAD = 56  # above the first rank: title, distance, amount
THICKEST = 5
HUE = "rs-h4"  # no other than blue: where in the bar a part is says which part of the vector
BARS = "A bar is the N bytes of a rank; dark to the top: the data of all ranks is in it."
KEY = {"its part": (True, 0.0), "ranks' data already in it": (True, 0.5), "given away": (False, 0.0)}  # pale, dark
LINES = "Line: a message, thick if it is long"


class Butterfly(Followed):
    """Draws `schedules`, one above the other, on one clock.

    >>> Butterfly(all_reduce.halving_doubling(8))                                          # doctest: +SKIP
    >>> Butterfly(all_reduce.halving_doubling(8), all_reduce.halving_doubling_far_first(8), local=4)  # doctest: +SKIP

    local     ranks per machine, a divisor of the number of ranks: messages between machines are marked as slow
    step      0 is before the first step, k after k steps; `playing` is True while it plays
    chosen    the rank whose meetings stand out, -1 for none

    TypeError for anything but Schedules; ValueError for none, for different or more than 16 ranks, and for a schedule
    in which ranks do not meet in pairs, which it names.
    """

    _entry = "butterfly.js"
    _esm = join(_entry)

    def __init__(self, *schedules: Schedule, local: int | None = None, **traits):
        _check(schedules, local)
        self.schedules, self.local = schedules, local
        wings = [_Wing(schedule, local) for schedule in schedules]
        steps = max(len(wing.groups) for wing in wings)
        ranks = range(schedules[0].ranks)
        super().__init__(
            _picture(wings, WIDE),
            _picture(wings, NARROW),
            headline=_headline(wings),
            processes=len(ranks),
            size=f"{local} on each machine" if local else "",
            told=[_before(wings), *(_sentence(wings, step) for step in range(steps))],
            phases=_phases(wings),
            legend=[BARS, LINES + (", orange if it leaves the machine." if local else ".")],
            takes_part=[
                f"Rank {rank} meets {'; '.join(wing.met(rank, len(wings) > 1) for wing in wings)}." for rank in ranks
            ],
            **traits,
        )

    def summary(self) -> str:
        where = f", {self.local} on each machine" if self.local else ""
        return f"{', '.join(s.title for s in self.schedules)}, {self.schedules[0].ranks} ranks{where}"


class _Wing:
    """One schedule as a butterfly: its steps with messages, who meets whom in each, and what is left to do."""

    def __init__(self, schedule: Schedule, local: int | None):
        self.schedule, self.local = schedule, local
        self.groups = _groups(schedule)
        self.partners = [_partners(schedule, number, group[0]) for number, group in enumerate(self.groups)]
        self.sent = [_amounts(schedule, group[0]) for group in self.groups]  # step -> rank -> chunks, or bytes
        self.needed = _needed(schedule, self.groups)  # before the first step, and after each

    def slow(self, rank: int, other: int) -> bool:
        """Whether a message between them leaves the machine."""
        return bool(self.local) and rank // (self.local or 1) != other // (self.local or 1)

    @property
    def across(self) -> Fraction:
        """The most that one rank sends to other machines, in units of `said`."""
        ranks = range(self.schedule.ranks)
        slow = [
            [sent[r] for sent, met in zip(self.sent, self.partners, strict=True) if self.slow(r, met[r])] for r in ranks
        ]
        return max(sum(amounts, Fraction(0)) for amounts in slow)

    @property
    def whole(self) -> Fraction:
        """The most that one rank sends in all."""
        return max(sum((sent[rank] for sent in self.sent), Fraction(0)) for rank in range(self.schedule.ranks))

    def said(self, amount: Fraction) -> str:
        """ "1/2 N"; bytes of a recorded run."""
        if self.schedule.chunk_bytes is not None:
            return size(float(amount))
        return "N" if amount == 1 else f"{amount} N"

    def distances(self, step: int) -> str:
        """How many places apart partners are: "4"; on a ring of the ranks, so at most half of them."""
        p = self.schedule.ranks
        return ", ".join(map(str, sorted({min((a - b) % p, (b - a) % p) for a, b in enumerate(self.partners[step])})))

    def met(self, rank: int, named: bool) -> str:
        others = ", ".join(str(met[rank]) for met in self.partners)
        return f"{others} in {self.schedule.algorithm}" if named else others


def _check(schedules: Sequence[Schedule], local: int | None) -> None:
    for schedule in schedules:
        if not isinstance(schedule, Schedule):
            raise TypeError(f"Butterfly draws Schedules, such as all_reduce.halving_doubling(8); got {schedule!r:.60}")
    if not schedules:
        raise ValueError("Butterfly needs a schedule, such as all_reduce.halving_doubling(8)")
    counts = sorted({schedule.ranks for schedule in schedules})
    if len(counts) > 1:
        raise ValueError(f"Butterfly draws schedules of the same number of ranks, got {counts[0]} and {counts[1]}")
    if counts[0] > MOST_RANKS:
        raise ValueError(
            f"Butterfly draws up to {MOST_RANKS} ranks, got {counts[0]}; {MOST_RANKS} have the same pattern"
        )
    if local is not None and (local < 1 or counts[0] % local):
        raise ValueError(
            f"local is how many of the {counts[0]} ranks a machine has, so it divides {counts[0]}; got {local}"
        )


def _groups(schedule: Schedule) -> list[list[Step]]:
    """Steps with messages, each with the steps without any that follow: there a rank only moves its own data."""
    groups: list[list[Step]] = []
    for step in schedule.steps:
        if (step.columns.src != step.columns.dst).any():
            groups.append([step])
        elif groups:
            groups[-1].append(step)
    if not groups:
        raise ValueError(f"{schedule.title} is no butterfly: no rank sends anything")
    return groups


def _partners(schedule: Schedule, number: int, step: Step) -> list[int]:
    """Whom each rank meets. ValueError unless every rank sends to one other and hears from the same."""
    ends = zip(step.columns.src.tolist(), step.columns.dst.tolist(), strict=True)
    pairs = {(src, dst) for src, dst in ends if src != dst}
    for rank in range(schedule.ranks):
        to, source = {dst for src, dst in pairs if src == rank}, {src for src, dst in pairs if dst == rank}
        if len(to) != 1 or to != source:
            does = f"rank {rank} sends to {_names(to)} and hears from {_names(source)}"
            raise ValueError(
                f"{schedule.title} on {schedule.ranks} ranks is no butterfly: in step {number + 1} {does}. In a "
                "butterfly all ranks meet in pairs, as in all_reduce.halving_doubling(8)"
            )
    return [dst for _, dst in sorted(pairs)]


def _names(ranks: set[int]) -> str:
    return ", ".join(map(str, sorted(ranks))) or "nobody"


def _amounts(schedule: Schedule, step: Step) -> list[Fraction]:
    """What each rank sends: a share of N, or bytes of a run that has counted them."""
    sent = [Fraction(0)] * schedule.ranks
    sizes = schedule.chunk_bytes
    for src, dst, chunk, _, count, *_ in step.columns.rows():
        if src != dst:
            share = Fraction(count, schedule.chunks)
            sent[src] += share if sizes is None else Fraction(int(sizes[chunk : chunk + count].sum()))
    return sent


def _needed(schedule: Schedule, groups: list[list[Step]]) -> list[set]:
    """(buffer, rank, chunk) of what is still read or promised, before the first step and after each group."""
    end = schedule.states(-1)
    goal = schedule.goal() or {schedule.result: end.cells[schedule.result]}
    numbers = {name: number for number, name in enumerate(schedule.buffers)}
    needed = {
        (numbers[name], rank, chunk)
        for name, cells in goal.items()
        for rank in range(schedule.ranks)
        for chunk in range(schedule.chunks)
        if cells[rank, chunk]
    }
    found = [needed]
    for group in reversed(groups):
        for step in reversed(group):
            needed = _needed_before(step, needed)
        found.append(needed)
    return found[::-1]


def _needed_before(step: Step, needed: set) -> set:
    """What has to be there before a step so that `needed` is there after it."""
    messages, local = single_chunks(step.moves)
    for op, source, target in reversed(local):
        if target in needed:
            needed = (needed - {target} if op in (COPY, NEW) else needed) | ({source} if op != NEW else set())
    over = {target for op, _, target in messages if op == COPY}
    return (needed - over) | {source for _, source, target in messages if target in needed}


def _states(wing: _Wing) -> list[State]:
    """What all ranks hold before the first step and after each group."""
    ends, index = [], -1
    for group in wing.groups:
        index += len(group)
        ends.append(index)
    return [wing.schedule.start(), *(wing.schedule.states(end) for end in ends)]


def _headline(wings: list[_Wing]) -> str:
    """What is done, as far as all do the same, and what the drawing says about it."""
    done = {goal(wing.schedule) for wing in wings}
    job = f"{done.pop()} ({wings[0].schedule.collective}): " if len(done) == 1 and all(done) else ""
    return f"{job[:1].upper()}{job[1:]}{_finding(wings)}"


def _finding(wings: list[_Wing]) -> str:
    first = wings[0]
    name = first.schedule.algorithm
    if not first.local or not any(wing.across for wing in wings):
        return f"{name} has all ranks meet in pairs, {len(first.groups)} steps, each sends {first.said(first.whole)}"
    if len(wings) == 1:
        return f"{name} sends {first.said(first.across)} of each rank's {first.said(first.whole)} over the slow links"
    best, worst = sorted(wings, key=lambda wing: wing.across)[:: len(wings) - 1]
    few, many = best.said(best.across), worst.said(worst.across)
    if best.across in (0, worst.across):
        return f"{few} a rank over the slow links, {many} with {worst.schedule.algorithm}"
    times = float(f"{float(worst.across / best.across):.3g}")
    return f"{best.schedule.algorithm} sends {times:g} times less over the slow links"


def _before(wings: list[_Wing]) -> str:
    machines = " Ranks of one frame share a machine; orange lines leave it, and are slow." if wings[0].local else ""
    return f"Every rank has its own data. Lines show who will meet whom.{machines}"


def _sentence(wings: list[_Wing], step: int) -> str:
    clauses = []
    for wing in wings:
        name = f"{wing.schedule.algorithm}: " if len(wings) > 1 else ""
        if step >= len(wing.groups):
            clauses.append(f"{name}done")
            continue
        sent, met = wing.sent[step], wing.partners[step]
        slow = [wing.slow(rank, other) for rank, other in enumerate(met)]
        where = (
            ""
            if not wing.local
            else ", over the slow link"
            if all(slow)
            else ", partly over slow links"
            if any(slow)
            else ", inside a machine"
        )
        clauses.append(f"{name}ranks {wing.distances(step)} apart swap {wing.said(max(sent))} each{where}")
    told = "; ".join(clauses)
    return f"{told[0].upper() if len(wings) == 1 else told[0]}{told[1:]}."


def _phases(wings: list[_Wing]) -> list[list]:
    longest = max(wings, key=lambda wing: len(wing.groups))
    phases: list[list] = []
    for group in longest.groups:
        if phases and phases[-1][0] == group[0].phase:
            phases[-1][1] += 1
        else:
            phases.append([group[0].phase, 1])
    return phases


def _picture(wings: list[_Wing], width: int) -> tuple[list[str], int]:
    """SVG parts of all wings, one below the other, and their height."""
    parts: list[str] = []
    y = 0
    for wing in wings:
        parts += [f'<g transform="translate(0 {y})">', *_wing(wing, width), "</g>"]
        y += HEAD + ROW * wing.schedule.ranks + 8
    x = 4.0
    for said, (pale, dark) in KEY.items():
        wide = 40 + 7.7 * len(said)  # on a wall the words are wider
        if x + wide > width:
            x, y = 4.0, y + 18
        boxes = _outlined(HUE if pale else "rd-empty", [(x, y + 14, 20, BAR)])
        boxes += _outlined(f"rd-full {HUE}", [(x, y + 14, 20, BAR * dark)]) if dark else ""
        parts += [boxes, words(said, x + 26, y + 12, "rd-small rd-light")]
        x += wide
    return parts, y + 20


def _wing(wing: _Wing, width: int) -> list[str]:
    ranks, steps, wide = wing.schedule.ranks, len(wing.groups), width > NARROW
    left = (92 if wing.local else 66) if wide else 42
    pitch = (width - left - 8) / (steps + 0.5)
    one = round(pitch * 2 / wing.schedule.chunks) / 4  # of a bar that is half as wide: a chunk, in quarters of a pixel
    bar, xs = one * wing.schedule.chunks, [round(left + pitch * step) for step in range(steps + 1)]
    parts = [*_title(wing, wide), *_machines(wing, width)]
    for rank in range(ranks):
        name = f"rank {rank}" if wide else str(rank)
        parts.append(words(name, left - 8, _middle(rank) + 5, "rd-small rd-end", f' data-rank="{rank}"'))
    if wide:
        done = "sum" if wing.schedule.collective == "all_reduce" else "result"
        parts.append(words("own data", xs[0] + bar - 8, 50, "rd-small rd-light rd-end"))
        parts.append(words(done, xs[-1] + bar / 2, 50, "rd-small rd-light rd-mid", f' data-step="{steps}"'))
    thickest = max(max(sent) for sent in wing.sent)
    for step in range(steps):
        ends = xs[step] + bar + 2, xs[step + 1] - 2
        apart, many = wing.distances(step), wing.said(max(wing.sent[step]))
        slow = any(wing.slow(rank, other) for rank, other in enumerate(wing.partners[step]))
        kind = f"rd-small rd-mid{' rd-slow' if slow else ''}"
        parts.append(f'<g data-step="{step + 1}">{_lines(wing, step, ends, thickest)}')
        parts.append(words(f"{apart} apart" if wide else apart, sum(ends) / 2, 34, f"{kind} rd-light"))
        parts.append(
            words(many if wide else many.removesuffix(" N").replace("N", "1"), sum(ends) / 2, 50, kind) + "</g>"
        )
    for step, state in enumerate(_states(wing)):
        parts.append(f'<g class="rd-after" data-step="{step}">{_bars(wing, step, state, xs[step], one)}</g>')
    return parts + _flights(wing, xs, one)


def _title(wing: _Wing, wide: bool) -> list[str]:
    name = wing.schedule.algorithm
    labels = [] if wide else [words("apart", 2, 34, "rd-small rd-light"), words("of N", 2, 50, "rd-small")]
    if not wing.local:
        return [words(name, 4, 16), *labels]
    across = f"{wing.said(wing.across)} a rank over the slow links"
    if wide:
        return [words(name, 4, 16), words(across, 692, 16, "rd-end rd-slow"), *labels]
    return [words(name, 4, 16, "rd-small"), words(wing.said(wing.across), 336, 16, "rd-end rd-small rd-slow"), *labels]


def _machines(wing: _Wing, width: int) -> list[str]:
    """A box behind the ranks of each machine."""
    parts = []
    local = wing.local or wing.schedule.ranks
    for machine in range(wing.schedule.ranks // local):
        y, tall = HEAD + ROW * local * machine + 1, ROW * local - 2
        parts.append(f'<rect class="rd-box" x="2" y="{y}" width="{width - 4}" height="{tall}" rx="6"/>')
        if wing.local and width > NARROW and local > 3:
            turned = f' transform="rotate(-90 16 {y + tall / 2:g})"'
            parts.append(words(f"machine {machine}", 16, y + tall / 2, "rd-turned rd-mid rd-light", turned))
    return parts


def _middle(rank: int) -> int:
    return HEAD + ROW * rank + ROW // 2


def _lines(wing: _Wing, step: int, ends: tuple[float, float], thickest: Fraction) -> str:
    """From each rank to its partner, as thick as the message is long; and on to itself, what it keeps."""
    x, u = map(round, ends)
    keeps = "".join(f"M{x} {_middle(rank)}H{u}" for rank in range(wing.schedule.ranks))
    parts = f'<path class="rd-own" d="{keeps}"/>'
    for rank, other in enumerate(wing.partners[step]):
        thick = 1 + (THICKEST - 1) * float(wing.sent[step][rank] / thickest) if thickest else 1
        slow = " rd-slow" if wing.slow(rank, other) else ""
        way = f'd="M{x} {_middle(rank)}L{u} {_middle(other)}" stroke-width="{thick:.2g}"'
        parts += f'<path class="rd-line{slow}" {way} data-ends="{rank} {other}"/>'
    return parts


def _bars(wing: _Wing, step: int, state: State, x: float, one: float) -> str:
    """The vector of each rank: parts it still works on in their colour, darker the more ranks' data is in them."""
    schedule = wing.schedule
    number = schedule.buffers.index(schedule.result)
    cells = state.cells[schedule.result]
    final = schedule.states(-1).cells[schedule.result]
    most = max(len(cell.contributors) for cell in final.flat) or 1
    wide = round(one * schedule.chunks)
    parts = _outlined("rd-empty", [(x, _middle(rank) + BAR // 2, wide, BAR) for rank in range(schedule.ranks)])
    pale, full = [], []
    for rank in range(schedule.ranks):
        low = _middle(rank) + BAR // 2
        shares = [
            len(cells[rank, chunk].contributors) / most if (number, rank, chunk) in wing.needed[step] else 0
            for chunk in range(schedule.chunks)
        ]
        at = 0
        for share, alike in groupby(shares):
            many = len(list(alike))
            if share:
                pale.append((x + one * at, low, one * many, BAR))
                full.append((x + one * at, low, one * many, round(BAR * share)))
            at += many
    return parts + _outlined(HUE, pale) + _outlined(f"rd-full {HUE}", full)


def _outlined(kind: str, boxes: Iterable[tuple[float, float, float, float]]) -> str:
    """One path of boxes: left, low, wide, high."""
    path = "".join(f"M{x:g} {low:g}h{wide:g}v-{high:g}h-{wide:g}z" for x, low, wide, high in boxes)
    return f'<path class="{kind}" d="{path}"/>'


def _flights(wing: _Wing, xs: list[int], one: float) -> list[str]:
    """What ranks send, drawn where it lands; css/drawn.css has it come from where it starts. One group for each way."""
    ways: dict[tuple[int, float, int], list] = {}
    for step, group in enumerate(wing.groups):
        for src, dst, chunk, dst_chunk, count, *_ in group[0].columns.rows():
            if src != dst:
                way = (step + 1, one * (chunk - dst_chunk) + xs[step] - xs[step + 1], ROW * (src - dst))
                box = (xs[step + 1] + one * dst_chunk, _middle(dst) + BAR // 2, one * count, BAR)
                ways.setdefault(way, []).append(box)
    return [
        f'<g class="rd-flight" data-step="{step}" style="--x:{x:g}px;--y:{y}px">'
        f"{_outlined(f'rd-full {HUE}', boxes)}</g>"
        for (step, x, y), boxes in ways.items()
    ]
