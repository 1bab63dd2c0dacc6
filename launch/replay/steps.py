"""The steps of a Recording as a Schedule has them: transfers between chunks, a phase, a sentence, lines of the cell.

Also the state before the first step: what every rank must have held for the run to make sense.

Left out: which step a message belongs to (`replay.matching`), which chunks there are (`replay.layout`).
"""

from collections import defaultdict

from collectives.schedule import Schedule, Transfer
from collectives.state import Cell, empty_cells
from launch.replay.layout import Layout
from launch.replay.reading import Reading

BUILT_IN = " (built-in)"
WAYS = {"max": "the maximum", "min": "the minimum", "avg": "the average", "product": "the product"}
NAMED = 4  # messages that a caption spells out
COPIES = 8  # buffers that begin alike among which a copy of them is looked for


def steps_of(reading: Reading, layout: Layout):
    """What `Schedule.from_steps` wants, and per step the (rank, buffer, chunk, look) that it wrote."""
    moves, calls, built_in = defaultdict(list), defaultdict(list), defaultdict(list)
    for move in reading.moves:
        moves[move.step].append(move)
    for item in [*reading.messages, *reading.collectives]:
        calls[item.step] += item.calls
    for collective in reading.collectives:
        built_in[collective.step].append(collective.calls[0].event["op"])
    steps, looks = [], []
    for number in reading.numbers:
        transfers, wrote = [], {}
        for move in moves[number]:
            chunk, count = layout.span(move.src, move.source)
            target, _ = layout.span(move.dst, move.target)
            there, here = layout.buffer(move.src, move.source), layout.buffer(move.dst, move.target)
            transfers.append(Transfer(move.src, move.dst, chunk, move.op, count, target, there, here))
            wrote.update({(move.dst, here, target + i): move.look for i in range(count)})
        phase = " and ".join(dict.fromkeys(built_in[number])) + BUILT_IN if built_in[number] else _phase(transfers)
        for _, part, of in reading.told.get(number, ()):
            phase, calls[number] = part, calls[number] + [*of]
        sources = sorted({(call.rank, call.line, reading.code_of(call)) for call in calls[number]})
        ways = {move.how for move in moves[number] if move.op == "reduce"}
        caption = _caption(phase, transfers, layout.chunks, ways) + _other_than_sum(ways)
        words = dict.fromkeys(words for words, _, _ in reading.told.get(number, ()))
        caption = f"{' and '.join(words)}: {caption}" if words else caption
        steps.append((phase, caption, transfers, sources))
        looks.append([(*cell, look) for cell, look in wrote.items()])
    return steps, looks


def _phase(transfers) -> str:
    return "reduce" if any(transfer.op == "reduce" for transfer in transfers) else "copy"


def _caption(phase: str, transfers, chunks: int, ways: set[str]) -> str:
    """One sentence: what the step does, and its first messages."""
    if phase.endswith(BUILT_IN):
        return f"The library's {phase.removesuffix(BUILT_IN)}, as its effect: what the library sends cannot be seen."
    added = "added" if ways <= {"sum"} else "combined with what is there"
    says = f"What arrives is {added if _phase(transfers) == 'reduce' else 'kept'}"
    sent = [t for t in transfers if t.src != t.dst]
    if not sent:
        return "Ranks add or copy what they have."
    told = []
    for t in sent[:NAMED]:
        last = t.chunk + t.count - 1
        what = "" if chunks == 1 else f" chunk {t.chunk}" if t.count == 1 else f" chunks {t.chunk}-{last}"
        told.append(f"rank {t.src} sends{what} to rank {t.dst}")
    return f"{says}: {', '.join(told)}{', and so on' if len(sent) > NAMED else ''}."


def _other_than_sum(ways: set[str]) -> str:
    """A sentence more where the picture's plus is not a sum."""
    if ways <= {"sum"}:
        return ""
    told = " or ".join(sorted(WAYS.get(way, way) for way in ways))
    return f" Plus stands for {told} here: the symbols say whose data went in."


def start_of(schedule: Schedule, reading: Reading, layout: Layout):
    """Buffer -> array [rank, chunk] of Cells. What is read before it is overwritten was there; other chunks are empty.

    A further buffer that starts as a copy of an earlier one, or of the rank's block of it, on every rank that has it,
    bears the same symbols; one that differs on some rank is numbered on, on all of them alike.
    """
    cells = {name: empty_cells(schedule.ranks, schedule.chunks) for name in schedule.buffers}
    begins = _Beginnings(reading, layout)
    full = _full_at_first(schedule, layout)
    for index, buffer in enumerate(schedule.buffers):
        places: dict[int, list[int]] = {}  # chunk -> ranks on which it starts full
        for rank, chunk in sorted(full.get(buffer, ())):
            places.setdefault(chunk, []).append(rank)
        copies = {chunk: begins.copied(ranks, buffer, chunk) for chunk, ranks in places.items()}
        here = {chunk for chunk, ranks in places.items() if any((rank, chunk) in begins.filled for rank in ranks)}
        for chunk, ranks in places.items():
            number = chunk + schedule.chunks * index if chunk in here else chunk
            for rank in ranks:
                copy = copies[chunk]
                cells[buffer][rank, chunk] = cells[copy[0]][rank, copy[1](rank)] if copy else Cell(((rank, number),))
        for chunk, ranks in places.items():
            begins.add(ranks, buffer, chunk)
    return cells


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
        self.known: dict[tuple[int, int, bytes], list[str]] = {}  # (rank, chunk, bytes) -> buffers that begin so

    def add(self, ranks: list[int], buffer: str, chunk: int) -> None:
        for rank in ranks:
            self.filled.add((rank, chunk))
            names = self.known.setdefault((rank, chunk, self._bytes(rank, buffer, chunk)), [])
            if len(names) < COPIES:
                names.append(buffer)

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
        value = self.reading.at_start(rank, region) if region and rank in self.reading.memories else None
        return b"" if value is None else value.tobytes()
