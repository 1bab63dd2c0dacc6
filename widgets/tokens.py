"""Tokens: the tokens of a mixture of experts as coloured dots, on their way to their experts and back.

A dot has the colour of the expert that the router chose for it. Ranks are rows: on the left their tokens, in the middle
the experts, on the right what has come back, each result in its token's row. A token that goes to several experts is a
pie, cut by their weights. With a capacity an expert has so many places for each rank that sends; tokens that find none
are crossed out on the left and rings on the right.

It is read from a recording: a row of x is found again in what each rank received, number by number. So a token that
was sent to the wrong rank is seen there. Left out: the counts that are exchanged first, and the backward pass.
"""

from collections import Counter
from collections.abc import Sequence
from math import cos, pi, sin
from typing import Any, NamedTuple

import numpy as np

from collectives.state import letter
from widgets._drawn import NARROW, WIDE, Followed, words
from widgets.base import join

MOST_RANKS, MOST_ROWS = 8, 64
LINE = 8  # tokens side by side
GAP = 6  # pixels between ranks, and between the places of two senders


class Row(NamedTuple):
    """A row that an expert got: token `token` of rank `sender`. `place` counts among all rows of this expert, with a
    capacity among the places for this sender."""

    sender: int
    token: int
    expert: int
    place: int


class Tokens(Followed):
    """Draws the first exchange of `run` that moves rows of `x`, and the one that brings results back.

    >>> Tokens(launch.recording(), x=launch.pull("x"), choice=launch.pull("choice"))       # doctest: +SKIP

    run       `launch.recording()` of the cell that sends tokens to experts and back with all_to_all_single
    x         of each rank its tokens: (tokens, numbers), equally many on all ranks
    choice    of each rank the expert of each token: (tokens,), or (tokens, k) for k experts a token
    gate      of each rank the weights of these, in the shape of `choice`; all alike unless given
    experts   how many there are, equally many on each rank; one on each unless given
    step      0 is before the tokens leave, 1 when experts have them, 2 when results are back; `playing` is True while
              it plays
    chosen    the rank whose tokens stand out, -1 for none

    How many rows an expert takes from each rank (a capacity) is read from the run: pieces are equally long then, and
    some rows in them are no token. TypeError for a run without values; ValueError for one in which no rank receives a
    row of x, for shapes that do not fit together, and for more than 8 ranks or 64 rows that travel.
    """

    _entry = "tokens.js"
    _esm = join(_entry)

    def __init__(
        self,
        run: Any,
        *,
        x: Sequence,
        choice: Sequence,
        gate: Sequence | None = None,
        experts: int | None = None,
        **traits,
    ):
        rows, self.choice, self.gate = _read(x, choice, gate)
        self.ranks, self.tokens, self.k = self.choice.shape
        self.experts = self.ranks if experts is None else experts
        _check(self)
        self.local = self.experts // self.ranks
        op, came, self.back = _found(run, rows)
        self.capacity, self.rows = self._places(came)
        there = {(row.sender, row.token, row.expert) for row in self.rows}
        self.wanted = [(s, t, e) for s in range(self.ranks) for t in range(self.tokens) for e in self.choice[s, t]]
        self.lost = [one for one in self.wanted if one not in there]
        self.load = [Counter(row.expert for row in self.rows)[expert] for expert in range(self.experts)]
        super().__init__(
            self._picture(WIDE),
            self._picture(NARROW),
            headline=self._headline(),
            processes=self.ranks,
            size=f"{self.experts} experts",
            told=self._told(op),
            phases=[["to experts", 1], ["back", 1]][: 1 + self.back],
            legend=self._legend(),
            takes_part=[self._of(rank) for rank in range(self.ranks)],
            **traits,
        )

    def summary(self) -> str:
        limit = f", at most {self.capacity} from each rank" if self.capacity else ""
        return f"{self.ranks * self.tokens} tokens, {self.experts} experts{limit}"

    def _places(self, came: list[list]) -> tuple[int, list[Row]]:
        """The capacity, 0 for none, and the rows that experts got. `came` has for each rank (sender, token) of each row
        that it received, None for a row that is no token."""
        there = [(rank, at, token) for rank, mine in enumerate(came) for at, token in enumerate(mine) if token]
        long = len(came[0])
        capacity = long // self.experts
        if (
            long % self.experts == 0
            and all(len(mine) == long for mine in came)
            and len(there) < max(self.choice.size, self.ranks * long)
            and all(sender == at * self.ranks // long for _, at, (sender, _) in there)
        ):
            return capacity, [
                Row(sender, token, rank * self.local + at // capacity % self.local, at % capacity)
                for rank, at, (sender, token) in there
            ]
        rows: list[Row] = []
        for rank, mine in enumerate(came):
            lines: dict[int, list] = {expert: [] for expert in range(rank * self.local, (rank + 1) * self.local)}
            for token in filter(None, mine):
                right = [e for e in sorted(self.choice[token]) if e in lines and token not in lines[e]]
                lines[right[0] if right else rank * self.local].append(token)
            rows += [Row(s, t, e, place) for e, line in lines.items() for place, (s, t) in enumerate(sorted(line))]
        return 0, rows

    def _headline(self) -> str:
        total, noun = len(self.wanted), "tokens" if self.k == 1 else "copies of tokens"
        go = f"{self.ranks * self.tokens} tokens (pieces of text) go to {self.experts} expert networks"
        if self.capacity:
            many = f"{len(self.lost)}{'' if self.k == 1 else f' of {total} {noun}'}" if self.lost else "none"
            are = "are" if len(self.lost) > 1 else "is"
            return f"{go}; {many} {are} dropped: an expert takes at most {self.capacity} from each rank"
        if self.lost:
            return f"{len(self.lost)} of {total} {noun} did not come to the expert that the router chose"
        most, least = (f(range(self.experts), key=self.load.__getitem__) for f in (max, min))
        each = f"{go}{f', each to {self.k}' if self.k > 1 else ''}{', and back' * self.back}"
        got = f"expert {most} gets {self.load[most]}, expert {least} {self.load[least] or 'none'}"
        if self.load[least] == self.load[most]:
            got = f"each expert gets {self.load[most]}"
        return f"{each}: {got}"

    def _told(self, op: str) -> list[str]:
        colour = "the colour of its expert" if self.k == 1 else "the colours of its experts, cut by their weights"
        told = [f"The router has chosen: a dot has {colour}. How many will each expert get?"]
        gets = ", ".join(map(str, self.load))
        names = [_name(sender, token) for sender, token, _ in self.lost]
        few = f"{', '.join(names[:4])}{' and others' if len(names) > 4 else ''}"
        dropped = f"; no place is left for {few}" if self.capacity and names else ""
        told.append(f"{op} takes tokens to the rank of their expert. Experts get {gets}{dropped}.")
        if self.back:
            adds = " There they are added, times their weights." if self.k > 1 else ""
            rings = " A dropped token skips its expert." if dropped and self.k == 1 else ""
            told.append(f"Another {op} brings each result to the rank that it came from.{adds}{rings}")
        return told

    def _legend(self) -> list[str]:
        lines = ["Colour: the expert. a0: token 0 of rank 0." + (" Pie: cut by weight." if self.k > 1 else "")]
        if self.lost:
            framed = " Frame: full, and more wanted in." if self.capacity else ""
            what, ring = ("dropped", "skipped every expert") if self.capacity else ("lost", "no result")
            lines.append(f"Crossed out: {what}. Ring: {ring}.{framed}")
        return lines

    def _of(self, rank: int) -> str:
        to = ", ".join("+".join(map(str, experts)) for experts in self.choice[rank].tolist())
        lost = sum(sender == rank for sender, *_ in self.lost)
        came = sum(row.expert // self.local == rank for row in self.rows)
        dropped = f", {lost} of them dropped" if lost else ""
        return f"Rank {rank} sends its tokens to experts {to}{dropped}; {came} came to it."

    def _picture(self, width: int) -> tuple[list[str], int]:
        return _Canvas(self, width).drawn()


class _Canvas:
    """One of the two pictures: where everything is, and its parts."""

    def __init__(self, of: Tokens, width: int):
        self.of, self.wide = of, width > NARROW
        across = min(of.tokens, LINE)
        self.left = 56 if self.wide else 20
        room = 250 if self.wide else 112
        self.dot = min(22 if self.wide else 13, (72 if not self.wide else 140) / across)
        block = across * self.dot
        self.right = width - block - 6
        band = of.capacity or max((row.place + 1 for row in of.rows), default=1)
        bands = of.ranks if of.capacity else 1
        gaps = GAP * (of.ranks - 1)
        self.seat = min(self.dot, (room - 8 - gaps) / (band * bands))
        self.bands = [k * (band * self.seat + GAP) for k in range(bands)]
        self.inside = band * bands * self.seat + gaps + 8
        self.middle = round((self.left + block + self.right - self.inside) / 2)
        self.block, self.head = block, 44 if of.capacity else 26  # pixels above the first rank
        self.expert = self.seat + 22  # pixels of an expert: its name, its row of dots
        lines = -(-of.tokens // LINE)
        self.tall = max(of.local * (self.expert + 2), lines * self.dot + 6) + GAP

    def drawn(self) -> tuple[list[str], int]:
        of = self.of
        parts = self._heads()
        for rank in range(of.ranks):
            y = self.head + rank * self.tall
            parts.append(
                f'<rect class="rd-box" x="2" y="{y:g}" width="{self.right + self.block + 2:g}" '
                f'height="{self.tall - GAP:g}" rx="6"/>'
            )
            name = f"rank {rank}" if self.wide else str(rank)
            middle = y + (self.tall - GAP) / 2 + 4
            parts.append(words(name, self.left - 6, middle, "rd-small rd-end", f' data-rank="{rank}"'))
        parts += [self._ribbons(1), self._experts()]
        for rank in range(of.ranks):
            parts.append(f'<g data-ends="{rank}">{self._home(rank)}</g>')
        parts += self._came()
        if of.back:
            parts += [self._ribbons(2), *map(self._results, range(of.ranks)), *map(self._returning, of.rows)]
        return parts, round(self.head + of.ranks * self.tall)

    def _heads(self) -> list[str]:
        low = 20 if self.of.capacity else 16
        middle = "experts: places for" if self.wide and self.of.capacity else "experts"
        names = ("tokens of each rank" if self.wide else "tokens", middle, "results")
        places = (self.left, self.middle, self.right)
        parts = [words(name, x, low, "rd-light") for name, x in zip(names, places, strict=True)]
        named = self.wide and self.of.capacity * self.seat > 40
        for rank, x in enumerate(self.bands if self.of.capacity else ()):
            name = f"rank {rank}" if named else str(rank)
            parts.append(words(name, self.middle + 4 + x, low + 18, "rd-small rd-light"))
        return parts

    def _token(self, rank: int, token: int, x: float) -> tuple[float, float]:
        """The middle of a token in the block that begins at x."""
        column, line = token % LINE, token // LINE
        lines = -(-self.of.tokens // LINE)
        top = self.head + rank * self.tall + (self.tall - GAP - lines * self.dot) / 2
        return x + (column + 0.5) * self.dot, top + (line + 0.5) * self.dot

    def _floor(self, expert: int) -> float:
        """The top of an expert's box."""
        rank, local = divmod(expert, self.of.local)
        high = self.of.local * (self.expert + 2) - 2
        return self.head + rank * self.tall + (self.tall - GAP - high) / 2 + local * (self.expert + 2)

    def _at(self, row: Row) -> tuple[float, float]:
        """The middle of a row at its expert."""
        if self.of.capacity:
            before = self.bands[row.sender] + row.place * self.seat
        else:
            others = {each.sender for each in self.of.rows if each.expert == row.expert and each.sender < row.sender}
            before = row.place * self.seat + GAP * len(others)
        return self.middle + 4 + before + self.seat / 2, self._floor(row.expert) + 18 + self.seat / 2

    def _experts(self) -> str:
        """Their boxes; with a capacity the places for each sender."""
        parts, of = "", self.of
        for expert in range(of.experts):
            y = self._floor(expert)
            name = f"expert {expert}" if self.wide else f"e{expert}"
            box = f'x="{self.middle}" y="{y:g}" width="{self.inside:g}" height="{self.expert:g}" rx="4"'
            parts += f'<rect class="rd-empty" {box}/>'
            parts += words(name, self.middle + 5, y + 13, "rd-small")
            many = f"{of.load[expert]} came" if self.wide else str(of.load[expert])
            parts += words(many, self.middle + self.inside - 5, y + 13, "rd-small rd-end", ' data-step="1"')
            for sender in range(of.ranks) if of.capacity else ():
                for place in range(of.capacity):
                    u, v = self._at(Row(sender, 0, expert, place))
                    parts += f'<circle class="rd-empty" cx="{u:g}" cy="{v:g}" r="{self.seat * 0.42:.3g}"/>'
        for sender, expert in sorted({(sender, expert) for sender, _, expert in of.lost}) if of.capacity else ():
            u, v = self._at(Row(sender, 0, expert, 0))
            wide, high = of.capacity * self.seat + 2, self.seat + 2
            parts += (
                f'<rect class="rd-line rd-slow" stroke-width="2" data-step="1" x="{u - self.seat / 2 - 1:g}" '
                f'y="{v - self.seat / 2 - 1:g}" width="{wide:g}" height="{high:g}" rx="{high / 2:g}"/>'
            )
        return parts

    def _home(self, rank: int) -> str:
        parts = ""
        for token in range(self.of.tokens):
            at = self._token(rank, token, self.left)
            parts += self._pie(rank, token, at, range(self.of.k)) + self._name(rank, token, at, self.dot)
            if gone := [one for one in self.of.lost if one[:2] == (rank, token)]:
                x, y = at
                r = self.dot * 0.42
                parts += (
                    f'<path class="rd-crossed" stroke-width="2" data-step="1" data-lost="{len(gone)}" '
                    f'd="M{x - r:g} {y - r:g}l{2 * r:g} {2 * r:g}m0-{2 * r:g}l-{2 * r:g} {2 * r:g}"/>'
                )
        return parts

    def _came(self) -> list[str]:
        """The dots at the experts, and on their way there."""
        parts = []
        for row in self.of.rows:
            (x, y), (u, v) = self._at(row), self._token(row.sender, row.token, self.left)
            hue = self._hue(row)
            dot = f'<circle class="rd-full {hue}" cx="{x:g}" cy="{y:g}" r="{self.seat * 0.42:.3g}"/>'
            named = self._name(row.sender, row.token, (x, y), self.seat)
            parts.append(f'<g data-ends="{row.sender}"><g class="rd-after" data-step="1">{dot}{named}</g></g>')
            parts.append(self._flight(dot, 1, u - x, v - y))
        return parts

    def _results(self, rank: int) -> str:
        parts = ""
        lost = {one for one in self.of.lost if one[0] == rank}
        for token in range(self.of.tokens):
            x, y = self._token(rank, token, self.right)
            there = [k for k, e in enumerate(self.of.choice[rank, token]) if (rank, token, e) not in lost]
            ring = f'<circle class="rd-line" stroke-width="1.5" cx="{x:g}" cy="{y:g}" r="{self.dot * 0.42:.3g}"/>'
            parts += self._pie(rank, token, (x, y), there) if there else ring
            name = self._name(rank, token, (x, y), self.dot)
            parts += name if there else name.replace("rd-sum ", "")
        return f'<g data-ends="{rank}"><g class="rd-after" data-step="2">{parts}</g></g>'

    def _returning(self, row: Row) -> str:
        (x, y), (u, v) = self._token(row.sender, row.token, self.right), self._at(row)
        dot = f'<circle class="rd-full {self._hue(row)}" cx="{x:g}" cy="{y:g}" r="{self.dot * 0.42:.3g}"/>'
        return self._flight(dot, 2, u - x, v - y)

    def _hue(self, row: Row) -> str:
        """The colour that the token has at home: that of another expert, if it has come to the wrong one."""
        mine = self.of.choice[row.sender, row.token]
        return f"rs-h{(row.expert if row.expert in mine else mine[0]) % 8}"

    def _flight(self, dot: str, step: int, x: float, y: float) -> str:
        return dot.replace('class="', f'data-step="{step}" style="--x:{x:.4g}px;--y:{y:.4g}px" class="rd-flight ')

    def _name(self, rank: int, token: int, at: tuple[float, float], wide: float) -> str:
        if wide < 17:
            return ""
        return words(_name(rank, token), at[0], at[1] + 3.5, "rd-sum rd-mid", ' style="font-size:10px"')

    def _pie(self, rank: int, token: int, at: tuple[float, float], which: Sequence[int]) -> str:
        """A dot, cut by the weights of its experts; only those in `which`."""
        (x, y), r, of = at, self.dot * 0.42, self.of
        experts, weights = of.choice[rank, token], of.gate[rank, token] / of.gate[rank, token].sum()
        if of.k == 1:
            return f'<circle class="rd-full rs-h{experts[0] % 8}" cx="{x:g}" cy="{y:g}" r="{r:.3g}"/>'
        ends = np.cumsum([0, *weights]) * 2 * pi
        parts = ""
        for k in which:
            (a, b), large = ends[k : k + 2], int(weights[k] > 0.5)
            start, end = (f"{x + r * sin(turn):.4g} {y - r * cos(turn):.4g}" for turn in (a, b))
            d = f"M{x:g} {y:g}L{start}A{r:.3g} {r:.3g} 0 {large} 1 {end}z"
            parts += f'<path class="rd-full rs-bare rs-h{experts[k] % 8}" d="{d}"/>'
        return parts

    def _ribbons(self, step: int) -> str:
        """From each rank's tokens to each expert, as thick as they are many; and from there back."""
        of, parts = self.of, ""
        counts = Counter((row.sender, row.expert) for row in of.rows)
        one = min(2.0, (self.tall - GAP - 8) / of.tokens / of.k)
        for (sender, expert), many in sorted(counts.items()):
            before = sum(n for (s, e), n in counts.items() if s == sender and e < expert)
            others = sum(n for (s, e), n in counts.items() if e == expert and s < sender)
            mine = sum(n for (s, _), n in counts.items() if s == sender)
            y = self.head + sender * self.tall + (self.tall - GAP) / 2 + one * (before + (many - mine) / 2)
            v = self._floor(expert) + self.expert / 2 + one * (others + (many - of.load[expert]) / 2)
            ends = (self.left + self.block + 2, self.middle - 2), (self.right - 2, self.middle + self.inside + 2)
            x, u = ends[step - 1]
            half = (x + u) / 2
            parts += (
                f'<path class="rd-band rs-h{expert % 8}" stroke-width="{one * many:.3g}" data-ends="{sender}" '
                f'd="M{x:g} {y:.4g}C{half:g} {y:.4g} {half:g} {v:.4g} {u:g} {v:.4g}"/>'
            )
        return f'<g data-step="{step}">{parts}</g>'


def _name(rank: int, token: int) -> str:
    return f"{letter(rank)}{token}"


def _read(x: Sequence, choice: Sequence, gate: Sequence | None) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """x of each rank; choice and gate as (ranks, tokens, k)."""
    rows = [np.asarray(each) for each in x]
    try:
        chosen = np.stack([np.asarray(each) for each in choice])
        chosen = chosen.reshape(*chosen.shape[:2], -1)
        weights = (
            np.ones(chosen.shape) if gate is None else np.stack([np.asarray(g) for g in gate]).reshape(chosen.shape)
        )
    except ValueError:
        raise ValueError(
            "choice and gate have the same shape on every rank, (tokens,) or (tokens, k), as in launch.pull('choice')"
        ) from None
    if len(rows) != len(chosen) or any(each.ndim != 2 or len(each) != chosen.shape[1] for each in rows):
        shapes = f"x {[tuple(each.shape) for each in rows]}, choice {[tuple(each.shape) for each in chosen]}"
        raise ValueError(f"x has a row for each token that choice has an expert for; got {shapes}")
    return rows, chosen, weights


def _check(of: Tokens) -> None:
    if of.ranks > MOST_RANKS or of.choice.size > MOST_ROWS:
        raise ValueError(
            f"Tokens draws up to {MOST_RANKS} ranks and {MOST_ROWS} rows that travel, got {of.ranks} and "
            f"{of.choice.size}; record fewer tokens"
        )
    if of.experts % of.ranks or not 0 <= of.choice.min() <= of.choice.max() < of.experts:
        raise ValueError(
            f"{of.experts} experts on {of.ranks} ranks have numbers 0 to {of.experts - 1}, equally many on each rank; "
            f"choice has {of.choice.min()} to {of.choice.max()}. With several on a rank say experts="
        )


def _found(run: Any, x: list[np.ndarray]) -> tuple[str, list[list], bool]:
    """The op that first takes rows of x to ranks; of each rank the (sender, token) of each row it received, None for
    one that is no token; and whether a later call of that op brings as many rows back."""
    events = getattr(run, "events", None)
    if events is None or any(not hasattr(event, "after") for event in events):
        raise TypeError(
            "Tokens draws launch.recording() of a `%%ranks --record` cell, whose calls have values (not a run that was "
            f"loaded); got {type(run).__name__}"
        )
    width = x[0].shape[1]
    names = {tuple(row): (rank, token) for rank, rows in enumerate(x) for token, row in enumerate(rows.tolist())}
    calls: dict[int, list] = {}
    for event in events:
        if event.op.startswith("all_to_all") and event.match is not None:
            calls.setdefault(event.match.number, []).append(event)
    numbers = sorted(calls)
    for number in numbers:
        came: list[list] = [[] for _ in x]
        for event in calls[number]:
            flat = [value for values in event.after for value in values or ()]
            if len(flat) % width == 0:
                came[event.rank] = [names.get(row) for row in zip(*[iter(flat)] * width, strict=True)]
        if any(token for mine in came for token in mine):
            later = [calls[other] for other in numbers if other > number]
            back = any(sum(len(v) for e in call for v in e.after) == width * sum(map(len, came)) for call in later)
            return calls[number][0].op, came, back
    raise ValueError(
        "no rank received a row of x in this run: record the cell that sends tokens with all_to_all_single, and pull x "
        "as it was then (up to 4,096 numbers a call are kept)"
    )
