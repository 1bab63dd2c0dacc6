"""The steps of a Recording as a Schedule has them: transfers between chunks, a phase, a sentence, lines of the cell.

Also the state before the first step: what every rank must have held for the run to make sense.

Left out: which step a message belongs to (`replay.matching`), which chunks there are (`replay.layout`).
"""

from collections import defaultdict

from collectives.schedule import Schedule, Transfer
from collectives.state import Cell, empty_cells
from launch.replay.layout import Layout
from launch.replay.memory import Memory
from launch.replay.reading import Reading

BUILT_IN = " (built-in)"
WAYS = {"max": "the maximum", "min": "the minimum", "avg": "the average", "product": "the product"}
NAMED = 4  # messages that a caption spells out


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
    for number in sorted({*moves, *calls}):  # a message whose memory cannot be looked at still makes a step
        transfers, wrote = [], {}
        for move in moves[number]:
            chunk, count = layout.span(move.src, move.source)
            target, _ = layout.span(move.dst, move.target)
            there, here = layout.buffer(move.src, move.source), layout.buffer(move.dst, move.target)
            transfers.append(Transfer(move.src, move.dst, chunk, move.op, count, target, there, here))
            wrote.update({(move.dst, here, target + i): move.look for i in range(count)})
        phase = " and ".join(dict.fromkeys(built_in[number])) + BUILT_IN if built_in[number] else _phase(transfers)
        sources = sorted({(call.rank, call.line, reading.code_of(call)) for call in calls[number]})
        ways = {move.how for move in moves[number] if move.op == "reduce"}
        caption = _caption(phase, transfers, layout.chunks, ways) + _other_than_sum(ways)
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
    says = f"What arrives is {added if phase == 'reduce' else 'kept'}"
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


def start_of(schedule: Schedule, memories: dict[int, Memory], layout: Layout):
    """Buffer -> array [rank, chunk] of Cells. What is read before it is overwritten was there; other chunks are empty.

    A further buffer that starts as a copy of an earlier one, or of the rank's block of it, bears the same symbols; one
    that differs is numbered on.
    """
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
    cells = {name: empty_cells(schedule.ranks, schedule.chunks) for name in schedule.buffers}
    for index, buffer in enumerate(schedule.buffers):
        for rank, chunk in sorted((r, c) for (r, name, c), full in first_use.items() if full and name == buffer):
            earlier = [name for name in schedule.buffers[:index] if cells[name][rank].any()]
            known = _known(schedule, memories.get(rank), layout, cells, (rank, buffer, chunk), earlier)
            here = any(cells[name][rank, chunk] for name in earlier)
            number = chunk + schedule.chunks * index if here else chunk
            cells[buffer][rank, chunk] = known or Cell(((rank, number),))
    return cells


def _known(schedule: Schedule, memory, layout: Layout, cells, place, earlier: list[str]) -> Cell | None:
    """The symbol of an earlier buffer's chunk that this one starts as a copy of, if any.

    That is the same chunk; but a buffer of one block (`out = x[rank].clone()`) starts as the rank's own block.
    """
    rank, buffer, chunk = place
    region, block = layout.region(*place), schedule.chunks // schedule.ranks
    small = chunk < block and layout.region(rank, buffer, block) is None
    for name in earlier:
        for other in [rank * block + chunk, chunk] if small else [chunk]:
            if cells[name][rank, other] and _alike(memory, region, layout.region(rank, name, other)):
                return cells[name][rank, other]
    return None


def _alike(memory: Memory | None, region, other) -> bool:
    if memory is None or region is None or other is None:
        return False
    values = [memory.history(each)[1][:1] for each in (region, other)]
    return bool(values[0] and values[1]) and values[0][0].tobytes() == values[1][0].tobytes()
