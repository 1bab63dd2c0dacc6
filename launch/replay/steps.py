"""The steps of a Recording as a Schedule has them: transfers between chunks, a phase, a sentence, lines of the cell.

Left out: which step a message belongs to (`replay.matching`), which chunks there are (`replay.layout`), what they held
before the first step (`replay.beginnings`).
"""

from collections import defaultdict

from collectives.schedule import Transfer
from launch.replay.layout import Layout
from launch.replay.reading import Reading

BUILT_IN = " (built-in)"
WAYS = {"sum": "sum", "max": "maximum", "min": "minimum", "avg": "average", "product": "product"}
WAYS |= {"band": "bitwise and", "bor": "bitwise or", "bxor": "bitwise exclusive or"}
NAMED = 4  # messages that a caption spells out


def steps_of(reading: Reading, layout: Layout):
    """What `Schedule.from_steps` wants; per step the (rank, buffer, chunk, look) that it wrote, and per step and
    transfer what it does with what is there: "sum", "max" ..., "" for a copy."""
    moves, calls, built_in = defaultdict(list), defaultdict(list), defaultdict(list)
    for move in reading.moves:
        moves[move.step].append(move)
    for item in [*reading.messages, *reading.collectives]:
        calls[item.step] += item.calls
    for collective in reading.collectives:
        built_in[collective.step].append(collective.calls[0].event["op"])
    steps, looks, ways = [], [], []
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
        ways.append([move.how if move.op == "reduce" else "" for move in moves[number]])
        caption = _caption(phase, transfers, layout.chunks, _other_than_sum(ways[-1]))
        words = dict.fromkeys(words for words, _, _ in reading.told.get(number, ()))
        caption = f"{' and '.join(words)}: {caption}" if words else caption
        steps.append((phase, caption, transfers, sources))
        looks.append([(*cell, look) for cell, look in wrote.items()])
    return steps, looks, ways


def _phase(transfers) -> str:
    return "reduce" if any(transfer.op == "reduce" for transfer in transfers) else "copy"


def _caption(phase: str, transfers, chunks: int, result: str) -> str:
    """One sentence: what the step does, and its first messages. `result` is what becomes of two if not their sum."""
    if phase.endswith(BUILT_IN):
        says = f"The library's {phase.removesuffix(BUILT_IN)}, as its effect: what the library sends cannot be seen."
        return f"{says} It takes {result}." if result else says
    says = f"What arrives is {'added' if _phase(transfers) == 'reduce' else 'kept'}"
    if result:
        says = f"Of what arrives and what is there {result} stays"
    sent = [t for t in transfers if t.src != t.dst]
    if not sent:
        return f"Ranks take {result} of what they have." if result else "Ranks add or copy what they have."
    told = []
    for t in sent[:NAMED]:
        last = t.chunk + t.count - 1
        what = "" if chunks == 1 else f" chunk {t.chunk}" if t.count == 1 else f" chunks {t.chunk}-{last}"
        told.append(f"rank {t.src} sends{what} to rank {t.dst}")
    return f"{says}: {', '.join(told)}{', and so on' if len(sent) > NAMED else ''}."


def _other_than_sum(ways: list[str]) -> str:
    """ "the maximum", "the maximum or the sum"; "" where there are only sums and copies."""
    found = {*ways} - {""}
    return "" if found <= {"sum"} else " or ".join(f"the {WAYS.get(way, way)}" for way in sorted(found))
