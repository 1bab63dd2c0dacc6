"""The steps of a Recording as a Schedule has them: transfers between chunks, a phase, a sentence, lines of the cell.

Left out: which step a message belongs to (`replay.happened`), which chunks there are (`replay.layout`), what they held
before the first step (`replay.symbols`).
"""

from collections import defaultdict
from typing import NamedTuple

from collectives.schedule import Transfer
from launch.replay.layout import Layout
from launch.replay.matching import Call, Collective
from launch.replay.moves import Move
from launch.replay.symbols import Symbols

BUILT_IN = " (built-in)"
WAYS = {"sum": "sum", "max": "maximum", "min": "minimum", "avg": "average", "product": "product"}
WAYS |= {"band": "bitwise and", "bor": "bitwise or", "bxor": "bitwise exclusive or"}
NAMED = 4  # messages that a caption spells out


class Told(NamedTuple):
    """A step that tells a built-in as if by an algorithm: `words` say so, `phase` is the algorithm's, `calls` the
    call's."""

    words: str
    phase: str
    calls: tuple[Call, ...]


class Steps(NamedTuple):
    """`steps` is what `Schedule.from_steps` takes. Per step: `wrote`, the (rank, buffer, chunk, Spot) of each chunk,
    and `ways`, what each transfer does: "sum", "max" ..., for a new one how it came about, "" for a copy."""

    steps: list[tuple]
    wrote: list[list[tuple]]
    ways: list[list[str]]


def steps_of(
    moves: list[Move], items: list, told: dict[int, list[Told]], layout: Layout, symbols: Symbols, code
) -> Steps:
    """`items` are messages and collectives; `code(call)` is (line, text) of the line that made a call."""
    by_step, calls, built_in = defaultdict(list), defaultdict(list), defaultdict(list)
    for move in moves:
        by_step[move.step].append(move)
    for item in items:
        calls[item.step] += item.calls
        if isinstance(item, Collective):
            built_in[item.step].append(item.calls[0].event["op"])
    steps, wrote, ways = [], [], []
    for number in sorted({*told, *by_step, *calls}):
        transfers, here = [], {}
        for move in by_step[number]:
            transfers.append(_transfer(move, layout, symbols))
            first, count = layout.span(move.dst, move.target)
            buffer = layout.buffer(move.dst, move.target)
            cuts = layout.cuts[buffer]
            for i in range(first, first + count):
                at = move.spot.lo - move.target.lo
                here[move.dst, buffer, i] = move.spot._replace(lo=at + cuts[i], hi=at + cuts[i + 1])
        phase = " and ".join(dict.fromkeys(built_in[number])) + BUILT_IN if built_in[number] else _phase(transfers)
        for each in told.get(number, ()):
            phase, calls[number] = each.phase, calls[number] + [*each.calls]
        sources = sorted({(call.rank, *code(call)) for call in calls[number]})
        ways.append([move.how for move in by_step[number]])
        caption = _caption(phase, transfers, ways[-1], layout.chunks)
        words = dict.fromkeys(each.words for each in told.get(number, ()))
        caption = f"{' and '.join(words)}: {caption}" if words else caption
        steps.append((phase, caption, transfers, sources))
        wrote.append([(*cell, spot) for cell, spot in here.items()])
    return Steps(steps, wrote, ways)


def _transfer(move: Move, layout: Layout, symbols: Symbols) -> Transfer:
    target, count = layout.span(move.dst, move.target)
    here = layout.buffer(move.dst, move.target)
    if move.op == "new":
        return Transfer(move.src, move.dst, symbols.new(move), "new", count, target, here, here)
    chunk, _ = layout.span(move.src, move.source)
    return Transfer(move.src, move.dst, chunk, move.op, count, target, layout.buffer(move.src, move.source), here)


def _phase(transfers) -> str:
    if transfers and all(transfer.op == "new" for transfer in transfers):
        return "compute"
    return "reduce" if any(transfer.op == "reduce" for transfer in transfers) else "copy"


def _caption(phase: str, transfers, ways: list[str], chunks: int) -> str:
    """One sentence: what the step does, and its first messages."""
    reductions = {way for way, t in zip(ways, transfers, strict=True) if t.op == "reduce"}
    result = "" if reductions <= {"sum"} else " or ".join(f"the {WAYS.get(way, way)}" for way in sorted(reductions))
    if phase.endswith(BUILT_IN):
        says = f"The library's {phase.removesuffix(BUILT_IN)}, as its effect: what the library sends cannot be seen."
        return f"{says} It takes {result}." if result else says
    says = f"What arrives is {'added' if reductions else 'kept'}"
    if result:
        says = f"Of what arrives and what is there {result} stays"
    sent = [t for t in transfers if t.src != t.dst]
    if not sent:
        if phase == "compute":
            return "Ranks put data of their own making in place."
        return f"Ranks take {result} of what they have." if result else "Ranks add or copy what they have."
    told = []
    for t in sent[:NAMED]:
        last = t.chunk + t.count - 1
        what = "" if chunks == 1 else f" chunk {t.chunk}" if t.count == 1 else f" chunks {t.chunk}-{last}"
        told.append(f"rank {t.src} sends{what} to rank {t.dst}")
    return f"{says}: {', '.join(told)}{', and so on' if len(sent) > NAMED else ''}."
