"""A compiled XLA program as a Run that a Player plays: each of its collectives is one step, shown as its effect.

    program(jax.jit(f).lower(x).compile().as_text())

It claims what the text says (`collectives.hlo`) and no more: who is in a group with whom, and what the operation
means. Which messages that takes is decided by the library below, and is not in the text. What is computed between two
collectives is not looked into: it gets letters of its own, in a step of its own. A buffer has the name of the
instruction that makes it.

Left out: the zeros that a collective_permute leaves on a rank that nobody sends to; along which dimension an array is
cut, so one that is cut along two of them is drawn as if they were one.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from collectives.counting import Counts
from collectives.errors import ScheduleError
from collectives.hlo import Call, Program
from collectives.run import Run
from collectives.state import Cell, empty_cells
from collectives.steps import Transfer

__all__ = ["program"]

SAYS = {
    "all_reduce": "every rank has the result of its group",
    "all_gather": "every rank has the parts of its group, in order",
    "reduce_scatter": "every rank has its part of the result of its group",
    "all_to_all": "part d of every rank goes to the d-th of its group",
    "collective_permute": "each source sends to its destination",
}


def program(text: str) -> Run:
    """ScheduleError for a text that is no compiled program, and for one without collectives."""
    read = Program(text)
    if not read.calls:
        raise ScheduleError("this program has no collectives: each rank works by itself")
    picture = _Picture(read)
    unseen = (0,) * read.ranks
    return Run.from_steps(
        "recorded",
        "compiled",
        read.ranks,
        picture.chunks,
        [step[:5] for step in picture.steps],
        buffers=picture.buffers,
        start=picture.start(),
        title=f"compiled: {' and '.join(dict.fromkeys(call.op for call in read.calls))}",
        counts=Counts(0, 0, 0, 0, unseen, unseen),
        events=None,
        built_ins=[(call.op, call.nbytes, read.ranks) for call in read.calls],
        unmatched=(),
        dropped=0,
        start_values=[],
        values=[[] for _ in picture.steps],
        ways=[step.ways for step in picture.steps],
    )


class _Place(NamedTuple):
    """`chunks` chunks of a buffer, from `first` on."""

    buffer: str
    first: int
    chunks: int

    def part(self, number: int, chunks: int) -> "_Place":
        """The number-th part of so many chunks."""
        return _Place(self.buffer, self.first + number * chunks, chunks)


class _Step(NamedTuple):
    """The first five as `Schedule.from_steps` takes them."""

    phase: str
    caption: str
    transfers: list[Transfer]
    sources: tuple[()]
    effect: bool
    ways: list[str]


class _Picture:
    """Where every value stands, and the steps that bring it there."""

    def __init__(self, read: Program) -> None:
        self.read = read
        self.places: dict[tuple[str, int], _Place] = {}  # a part of what an instruction makes -> where it stands
        self.begun: list[tuple[_Place, int]] = []  # the parameters, and the first letter of each
        self.letters = 0  # how many each rank has
        self.steps: list[_Step] = []
        for call, chunk in zip(read.calls, _chunk_bytes(read.calls), strict=True):
            self.bring([(part, size // chunk) for part, size in zip(call.operands, call.sizes, strict=True)])
            self.run(call)
        self.buffers = tuple(dict.fromkeys(place.buffer for place in self.places.values()))
        self.chunks = max(place.first + place.chunks for place in self.places.values())

    def start(self) -> dict[str, np.ndarray]:
        """What `Schedule` calls so: the parameters."""
        cells = {name: empty_cells(self.read.ranks, self.chunks) for name in self.buffers}
        for place, letter in self.begun:
            for rank, chunk in np.ndindex(self.read.ranks, place.chunks):
                cells[place.buffer][rank, place.first + chunk] = Cell(((rank, letter + chunk),))
        return cells

    def bring(self, operands: list[tuple[tuple[str, int], int]]) -> None:
        """Those that no collective has made get places in one buffer."""
        new = [(part, chunks) for part, chunks in operands if part not in self.places]
        names = [name for (name, _), _ in new]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        title = "".join(names[:1]) + more
        made = list[Transfer]()
        for (part, chunks), place in zip(new, _in_a_row(title, [chunks for _, chunks in new]), strict=True):
            self.places[part] = place
            if part[0] in self.read.parameters:
                self.begun.append((place, self.letters))
            else:
                to = (place.chunks, place.first, place.buffer, place.buffer)
                made += [Transfer(rank, rank, self.letters, "new", *to) for rank in range(self.read.ranks)]
            self.letters += chunks
        if made:
            caption = f"Each rank computes {title} by itself; how is not looked into."
            self.steps.append(_Step("compute", caption, made, (), False, ["computed"] * len(made)))

    def run(self, call: Call) -> None:
        """A step from a call's operands to its results."""
        sources = [self.places[part] for part in call.operands]
        size = len(call.groups[0])
        longer = {"all_gather": lambda chunks: chunks * size, "reduce_scatter": lambda chunks: chunks // size}
        lengths = [longer.get(call.op, int)(place.chunks) for place in sources]
        targets = list(_in_a_row(call.name, lengths))
        self.places |= {(call.name, number): place for number, place in enumerate(targets)}
        transfers = list(_transfers(call, sources, targets))
        loop = " It is in a loop: each turn runs it, the picture shows one." if call.in_loop else ""
        caption = f"{call!r}, as its effect: {SAYS[call.op]}.{loop}"
        ways = [call.how if transfer.op == "reduce" else "" for transfer in transfers]
        self.steps.append(_Step(f"{call.op} (built-in)", caption, transfers, (), True, ways))


def _in_a_row(buffer: str, lengths: Sequence[int]) -> Iterator[_Place]:
    for first, chunks in zip(accumulate(lengths, initial=0), lengths, strict=False):
        yield _Place(buffer, first, chunks)


def _chunk_bytes(calls: Sequence[Call]) -> list[int]:
    """Bytes of a chunk, for each call: as many as divide all of its parts, and those of the calls it hangs with."""
    makers = {call.name: number for number, call in enumerate(calls)}
    chain = list(range(len(calls)))  # the first call that each hangs with
    for number, call in enumerate(calls):
        linked = {chain[makers[name]] for name, _ in call.operands if name in makers} | {number}
        chain = [min(linked) if each in linked else each for each in chain]
    bytes_of = [0] * len(calls)
    for first, call in zip(chain, calls, strict=True):
        cut = call.op == "reduce_scatter" or _is_cut(call)
        parts = [size // len(call.groups[0]) if cut else size for size in call.sizes]
        bytes_of[first] = math.gcd(bytes_of[first], *parts)
    return [bytes_of[first] for first in chain]


def _is_cut(call: Call) -> bool:
    """An all_to_all is handed one operand that it cuts, or one for each rank of the group."""
    return call.op == "all_to_all" and len(call.operands) == 1


def _transfers(call: Call, sources: list[_Place], targets: list[_Place]) -> Iterator[Transfer]:
    """What stands where in the end, and where it came from."""
    if call.op == "collective_permute":
        for src, dst in call.groups:
            yield from (_moved(src, dst, *places) for places in zip(sources, targets, strict=True))
        return
    for group in call.groups:
        for (here, src), (there, dst) in ((a, b) for b in enumerate(group) for a in enumerate(group)):
            if call.op == "all_to_all" and not _is_cut(call):
                yield _moved(src, dst, sources[there], targets[here])
                continue
            for source, target in zip(sources, targets, strict=True):
                yield _between(call.op, (here, src), (there, dst), len(group), source, target)


def _between(
    op: str, sender: tuple[int, int], receiver: tuple[int, int], size: int, source: _Place, target: _Place
) -> Transfer:
    """What goes from one rank of a group to another: sender and receiver are (place in the group, rank)."""
    (here, src), (there, dst) = sender, receiver
    part = source.chunks // size
    match op:
        case "all_gather":
            return _moved(src, dst, source, target.part(here, source.chunks))
        case "reduce_scatter":
            return _moved(src, dst, source.part(there, part), target, "reduce")
        case "all_to_all":
            return _moved(src, dst, source.part(there, part), target.part(here, part))
        case _:
            return _moved(src, dst, source, target, "reduce")


def _moved(src: int, dst: int, source: _Place, target: _Place, op: str = "copy") -> Transfer:
    return Transfer(src, dst, source.first, op, source.chunks, target.first, source.buffer, target.buffer)
