"""One sentence per step that a student understands: what the phase does, then who sends what to whom.

With many ranks only the first messages are named, so that a caption stays one line however large the schedule is.
"""

from collectives.columns import Columns, where

NAMED = 4  # messages spelled out before "and so on"
LOOKED_AT = 256  # transfers that are searched for them


def describe(says: str, moves: Columns, chunks: int) -> str:
    """The sentence of one step of a schedule with `chunks` chunks: `says`, then its first messages, if it sends any."""
    there = dict.fromkeys(zip(moves.src.tolist()[:LOOKED_AT], moves.dst.tolist()[:LOOKED_AT], strict=True))
    pairs = [(src, dst) for src, dst in there if src != dst]
    if not pairs:
        return f"{says}."
    messages = [message(src, dst, _carried(src, dst, moves), chunks) for src, dst in pairs[:NAMED]]
    return sentence(says, messages, len(pairs) > NAMED)


def sentence(says: str, messages: list[str], more: bool) -> str:
    """`says`, then the first messages of a step; `more`: there are others that are not named."""
    return f"{says}: {', '.join(messages)}{', and so on' if more else ''}."


def message(src: int, dst: int, ranges: list[tuple[int, int]], chunks: int) -> str:
    """ "rank 0 sends chunks 2-3 to rank 1": `ranges` are (first chunk, how many) of all `chunks`."""
    if chunks == 1:
        return f"rank {src} sends to rank {dst}"
    many = "s" if len(ranges) > 1 or ranges[0][1] > 1 else ""
    named = " and ".join(f"{first}" if count == 1 else f"{first}-{first + count - 1}" for first, count in ranges[:3])
    more = " and more" if len(ranges) > 3 else ""
    return f"rank {src} sends chunk{many} {named}{more} to rank {dst}"


def _carried(src: int, dst: int, moves: Columns) -> list[tuple[int, int]]:
    return [
        (chunk, count) for _, _, chunk, _, count, *_ in where((moves.src == src) & (moves.dst == dst), moves).rows()
    ]


def places(count: int) -> str:
    """ "1 place", "2 places"."""
    return f"{count} place{'s' if count > 1 else ''}"
