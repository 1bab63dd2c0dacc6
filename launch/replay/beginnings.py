"""What every rank must have held before the first step for a recorded run to make sense, in symbols.

Left out: the numbers; see `Recording.start_values`.
"""

from typing import NamedTuple

from collectives.schedule import Schedule
from collectives.state import Cell, empty_cells
from launch.replay.layout import Layout
from launch.replay.reading import Reading

COPIES = 8  # buffers that begin alike among which a copy of them is looked for


class Start(NamedTuple):
    """`cells` is buffer -> array [rank, chunk] of Cells. `copies` are the (buffer, chunk, rank) that are copies of
    others, `copied` the (rank, region) of variables that the moves never touch, but are copies too."""

    cells: dict
    copies: list
    copied: list


def start_of(schedule: Schedule, reading: Reading, layout: Layout) -> Start:
    """What the buffers hold before the first step.

    What is read before it is overwritten was there; other chunks are empty.

    A further buffer that starts as a copy of an earlier one, or of the rank's block of it, on every rank that has it,
    bears the same symbols; one that differs on some rank is numbered on, on all of them alike. Some rank may have a
    variable of that name that the moves never touch (`x`, where it sums up in `total`): it counts too.
    """
    cells = {name: empty_cells(schedule.ranks, schedule.chunks) for name in schedule.buffers}
    same = []
    begins = _Beginnings(reading, layout)
    full = _full_at_first(schedule, layout)
    for index, buffer in enumerate(schedule.buffers):
        places: dict[int, list[int]] = {}  # chunk -> ranks on which it starts full
        for rank, chunk in sorted(full.get(buffer, ())):
            places.setdefault(chunk, []).append(rank)
        copies = {chunk: begins.copied(ranks, buffer, chunk) for chunk, ranks in places.items()}
        here = {chunk for chunk, ranks in places.items() if begins.clash(ranks, buffer, chunk)}
        for chunk, ranks in places.items():
            number = chunk + schedule.chunks * index if chunk in here else chunk
            for rank in ranks:
                copy = copies[chunk]
                cells[buffer][rank, chunk] = cells[copy[0]][rank, copy[1](rank)] if copy else Cell(((rank, number),))
            if copies[chunk]:
                same += [(buffer, chunk, rank) for rank in ranks]
        for chunk, ranks in places.items():
            begins.add(ranks, buffer, chunk)
    return Start(cells, same, begins.idle)


def _full_at_first(schedule: Schedule, layout: Layout) -> dict[str, list[tuple[int, int]]]:
    """Buffer -> (rank, chunk) of what held something before the first step: what is read before it is overwritten."""
    first_use: dict[tuple[int, str, int], bool] = {}  # read first?
    for step in schedule.steps:
        for local in (False, True):
            moves = [t for t in step.transfers if (t.src == t.dst) == local]
            for t in moves:
                for i in range(t.count):
                    first_use.setdefault((t.src, t.src_buffer, t.chunk + i), True)
            for t in moves:
                for i in range(t.count):
                    first_use.setdefault((t.dst, t.dst_buffer, t.dst_chunk + i), t.op == "reduce")
    for rank, buffer in {(rank, buffer) for (rank, buffer, _), full in first_use.items() if full}:
        for chunk in range(schedule.chunks):  # who has sent a part of a buffer had all of it
            if layout.region(rank, buffer, chunk) is not None:
                first_use.setdefault((rank, buffer, chunk), True)
    found: dict[str, list] = {}
    for (rank, buffer, chunk), full in first_use.items():
        if full:
            found.setdefault(buffer, []).append((rank, chunk))
    return found


class _Beginnings:
    """What chunks held before the first step, to find those that start as copies of others."""

    def __init__(self, reading: Reading, layout: Layout):
        self.reading, self.layout = reading, layout
        self.filled: set[tuple[int, int]] = set()  # (rank, chunk) that some earlier buffer holds
        self.idle: list = []  # (rank, region) of variables that the moves never touch
        self.done: dict[str, set[int]] = {}  # buffer -> chunks that start full on some rank
        self.known: dict[tuple[int, int, bytes], list[str]] = {}  # (rank, chunk, bytes) -> buffers that begin so

    def add(self, ranks: list[int], buffer: str, chunk: int) -> None:
        self.done.setdefault(buffer, set()).add(chunk)
        for rank in ranks:
            self.filled.add((rank, chunk))
            names = self.known.setdefault((rank, chunk, self._bytes(rank, buffer, chunk)), [])
            if len(names) < COPIES:
                names.append(buffer)

    def clash(self, ranks: list[int], buffer: str, chunk: int) -> bool:
        """Whether an earlier buffer has that chunk's symbols, where this one holds something else."""
        if any((rank, chunk) in self.filled for rank in ranks):
            return True
        found = []  # (rank, unused region, what must be in it)
        for rank in self.reading.memories:
            if rank in ranks:
                mine = self._bytes(rank, buffer, chunk)
                idle = [self.layout.idle(rank, other, chunk) for other, chunks in self.done.items() if chunk in chunks]
                found += [(rank, region, {mine}) for region in idle if region]
            elif (rank, chunk) in self.filled and (region := self.layout.idle(rank, buffer, chunk)):
                found.append((rank, region, {held for r, c, held in self.known if (r, c) == (rank, chunk)}))
        self.idle += [(rank, region) for rank, region, _ in found]
        return any(self._held(rank, region) not in held for rank, region, held in found)

    def copied(self, ranks: list[int], buffer: str, chunk: int):
        """(earlier buffer, function from rank to its chunk) that this chunk starts as a copy of on all `ranks`, if any.

        That is the same chunk; but a buffer of one block (`out = x[rank].clone()`) starts as the rank's own block.
        """
        block = self.layout.chunks // (1 + max(self.reading.memories))
        ways = [lambda rank: chunk]
        if chunk < block and self.layout.region(ranks[0], buffer, block) is None:
            ways.insert(0, lambda rank: rank * block + chunk)
        held = {rank: self._bytes(rank, buffer, chunk) for rank in ranks}
        if not any(any(value) for value in held.values()):
            return None  # zeros on every rank are no copy of other zeros
        for way in ways:
            names = [self.known.get((rank, way(rank), held[rank]), []) for rank in ranks if held[rank]]
            if len(names) == len(ranks):
                common = [name for name in names[0] if all(name in others for others in names)]
                if common:
                    return common[0], way
        return None

    def _bytes(self, rank: int, buffer: str, chunk: int) -> bytes:
        region = self.layout.region(rank, buffer, chunk)
        return self._held(rank, region) if region and rank in self.reading.memories else b""

    def _held(self, rank: int, region) -> bytes:
        value = self.reading.at_start(rank, region)
        return b"" if value is None else value.tobytes()
