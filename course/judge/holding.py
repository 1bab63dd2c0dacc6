"""What the answer of every rank holds and what it should hold, in letters: `a2` is what rank 0 had in its chunk 2.

The exercise's textbook says what should be there; the recording (`Recording.made_of`), which has seen it being made,
says what is. A letter is that of the pictures: `collectives.state.symbol`.

Left out: why the two differ (`diagnosis.py`).
"""

from bisect import bisect_right
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from collectives.state import symbol
from launch.replay.provenance import Kind

X, RETURNED = "trial_x", "returned"
"""What the argument and the returned value are called on the ranks of a trial; a leading _ would hide them."""

Origin = tuple[int, int]
"""(rank, element of its x)."""


class Block(NamedTuple):
    """Elements lo up to hi of the variable in which the answer stands. `wanted` is for its first element."""

    name: str  # "chunk 2", or "x" or "the answer" if that is all of it
    alone: bool  # it is all of it
    lo: int
    hi: int
    wanted: tuple[Origin, ...]


class Held(NamedTuple):
    """What stands in elements lo up to hi of the variable: the sum of `terms` (for its first element) in some way."""

    lo: int
    hi: int
    how: str
    terms: dict[Origin, float]
    other: Kind | None
    lines: tuple[int, ...]


class Answers:
    """The answers of a trial that came to its end, whose exercise may have no letters: then there are no blocks."""

    def __init__(self, trial):
        self.trial = trial
        self.in_place = trial.exercise.in_place
        self.variable = X if self.in_place else RETURNED
        self.textbook = trial.exercise.textbook(trial.p) if trial.exercise.textbook else None
        self._made: dict[int, list] = {}

    @property
    def recording(self):
        return self.trial.recording

    @cached_property
    def _chunks(self) -> list[list[int]]:
        """For every rank the chunks of the textbook that are its x."""
        assert self.textbook, "only blocks have chunks, and only a textbook has blocks"
        cells = self.textbook.start().cells[self.textbook.buffers[0]]
        return [[c for c, cell in enumerate(row) if cell] or list(range(self.textbook.chunks)) for row in cells]

    def _size(self, rank: int) -> int:
        """Elements of a chunk of a rank's x."""
        return max(self.trial.given[rank].size // len(self._chunks[rank]), 1)

    def blocks(self, rank: int) -> list[Block]:
        """The chunks of a rank's answer."""
        if self.textbook is None:
            return []
        goal = [
            (c, cell) for c, cell in enumerate(self.textbook.goal()[self.textbook.result][rank]) if cell is not None
        ]
        size, found = self.trial.expected[rank].size // max(len(goal), 1), []
        for place, (chunk, cell) in enumerate(goal):
            at = self._chunks[rank].index(chunk) if self.in_place else place
            alone = len(goal) == 1 and (self.textbook.chunks == 1 or not self.in_place)
            name = ("x" if self.in_place else "the answer") if alone else f"chunk {chunk}"
            wanted = [(r, self._chunks[r].index(c) * self._size(r)) for r, c in cell.origins]
            found.append(Block(name, alone, at * size, (at + 1) * size, tuple(wanted)))
        return found

    def held(self, rank: int, element: int) -> Held | None:
        """What one element of a rank's answer is made of, and which others in the same way; None if unseen."""
        if rank not in self._made:
            self._made[rank] = _joined(self.recording.made_of(rank, self._name(rank), of=X))
        return next((held for held in self._made[rank] if held.lo <= element < held.hi), None)

    def _name(self, rank: int) -> str:
        """The variable of the answer as the recording calls it, which has one name for each memory."""
        other = RETURNED if self.in_place else X
        if self.trial.answers[rank].get("is x") and self.recording.place_of(rank, self.variable) is None:
            return other if self.recording.place_of(rank, other) else self.variable
        return self.variable

    def is_right(self, rank: int, element: int, wants: Mapping[Origin, float]) -> bool:
        """Whether a rank's variable was seen to hold just that."""
        held = self.held(rank, element)
        return held is not None and not held.other and held.how == "sum" and self.at(held, element) == wants

    def at(self, held: Held, element: int) -> dict[Origin, float]:
        """The terms of one element of a Held."""
        return {(rank, first + element - held.lo): times for (rank, first), times in held.terms.items()}

    def chunk(self, origin: Origin) -> tuple[int, int]:
        """(rank, chunk) of an element of a rank's x."""
        rank, element = origin
        return rank, self._chunks[rank][min(element // self._size(rank), len(self._chunks[rank]) - 1)]

    def offset(self, origin: Origin) -> int:
        """Where in its chunk an element stands."""
        return origin[1] % self._size(origin[0])

    def cell(self, rank: int, element: int, variable: str = "") -> tuple[int, str, int] | None:
        """(rank, buffer, chunk) of an element of a rank's answer in the recording's picture, or of a `variable` as it
        was at the start; None if it is not shown."""
        first, variable = bool(variable), variable or self._name(rank)
        place = self.recording.place_of(rank, variable, first)
        if place is None and variable == X and self.trial.answers[rank].get("is x"):
            place = self.recording.place_of(rank, RETURNED, first)
        if place is None:
            return None
        buffer, at, count = place
        cuts = self.recording.cuts(buffer)
        itemsize = (self.trial.given[rank] if variable == X else self.trial.answers[rank]["values"]).itemsize
        chunk = bisect_right(cuts, cuts[at] + element * itemsize) - 1
        return (rank, buffer, chunk) if at <= chunk < at + count else None

    @cached_property
    def _shown(self) -> dict[tuple[int, int], tuple[int, int]]:
        """What the recording's picture calls the chunks of the textbook: of a whole x that was sent b0 and not b1.

        Empty if the picture has no letters for them, is cut elsewhere, or numbers them out of order, since it took
        another variable for the input. Then the textbook names them.
        """
        found: dict[tuple[int, int], tuple[int, int]] = {}
        if not len(self.recording.steps):
            return found
        for rank, chunks in enumerate(self._chunks):
            for place, chunk in enumerate(chunks):
                first = place * self._size(rank)
                self._see(found, (rank, chunk), self.recording.start(), X, rank, first, first + self._size(rank))
        end = self.recording.states(len(self.recording.steps) - 1)
        for rank in range(self.trial.p):
            for block in self.blocks(rank) if self.trial.expected[rank] is not None else ():
                held = self.held(rank, block.lo)
                if held and not held.other and len(held.terms) == 1 and held.hi >= block.hi:
                    of = self.chunk(next(iter(self.at(held, block.lo))))
                    self._see(found, of, end, "", rank, block.lo, block.hi)
        if found and all(len(chunks) == 1 for chunks in self._chunks) and {chunk for _, chunk in found.values()} == {0}:
            found |= {(rank, chunk): (rank, 0) for rank, (chunk,) in enumerate(self._chunks)}
        in_order = [found[chunk] for chunk in sorted(found)] == sorted({*found.values()})
        return found if in_order and len(found) == sum(map(len, self._chunks)) else {}

    def _see(self, found: dict, chunk: tuple[int, int], state, variable: str, rank: int, lo: int, hi: int) -> None:
        """Note what the picture calls that chunk, if it stands alone in one cell; what was found first counts."""
        first, last = self.cell(rank, lo, variable), self.cell(rank, hi - 1, variable)
        cell = state.cells[first[1]][first[0], first[2]] if first and first == last else None
        if cell and len(cell.origins) == 1 and cell.origins[0][0] == chunk[0]:
            found.setdefault(chunk, cell.origins[0])

    def letters(self, terms: Mapping[Origin, float]) -> str:
        """ "a2 + c2 + c2"; "(a2 + b2) / 4" if all of it is scaled."""
        counts: dict[tuple[int, int], float] = {}
        for origin, times in terms.items():
            chunk = self._shown.get(self.chunk(origin), self.chunk(origin))
            counts[chunk] = counts.get(chunk, 0) + times
        if len(counts) > 1 and len(set(counts.values())) == 1 and (times := next(iter(counts.values()))) != 1:
            inside = f"({_sum(dict.fromkeys(counts, 1))})"
            return f"{inside} / {1 / times:g}" if 0 < times < 1 else f"{times:g} {inside}"
        return _sum(counts)


def _joined(pieces) -> list[Held]:
    """What `Recording.made_of` gives, neighbours of one kind as one."""
    found: list[Held] = []
    for made in pieces:
        terms: dict[Origin, float] = {}
        for source, first, times in made.terms:
            terms[source, first] = terms.get((source, first), 0) + times
        held, last = (
            Held(made.lo, made.hi, made.how, terms, made.other, tuple(made.lines)),
            found[-1] if found else None,
        )
        if last and last.hi == held.lo and (last.how, last.other) == (held.how, held.other):
            if {(source, first + held.lo - last.lo): times for (source, first), times in last.terms.items()} == terms:
                found[-1] = last._replace(hi=held.hi, lines=last.lines or held.lines)
                continue
        found.append(held)
    return found


def _sum(counts: Mapping[tuple[int, int], float]) -> str:
    text = ""
    for origin, times in sorted(counts.items()):
        letter = symbol(*origin)
        whole = float(times).is_integer() and abs(times) <= 4
        for _ in range(int(abs(times)) if whole else 1):
            sign = (" - " if text else "-") if times < 0 else (" + " if text else "")
            part = (
                letter if whole else f"{letter} / {1 / abs(times):g}" if abs(times) < 1 else f"{abs(times):g} {letter}"
            )
            text += sign + part
    return text
