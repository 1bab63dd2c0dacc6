"""Whether the numbers of a run bear out what its moves say: the sum is there, at the end, where it should be.

A student's arithmetic leaves no event. Moves told from its traces may be wrong (a chunk added to twice, overwritten
later, left out), and then the proof by symbols proves something that did not happen. So before a run gets a name, the
ranks' real numbers before it are put together as the symbols say, and compared with the real numbers after it.

Left out: data that any program would turn into the same numbers; `replay.doubt` finds those.
"""

import numpy as np

TOGETHER = {"sum": np.add, "avg": np.add, "max": np.maximum, "min": np.minimum, "product": np.multiply}


def bears_out(goal: dict, start: dict, reading, layout) -> bool:
    """Whether every rank holds in the end what `goal` says, made of the numbers in `start`.

    Both are buffer -> [rank, chunk] of Cells. A sum may have become a mean. Where nobody saw the numbers, the moves are
    believed.
    """
    ways = {move.how for move in reading.moves if move.op == "reduce"}
    if len(ways) > 1 or not ways <= set(TOGETHER):
        return len(ways) == 1  # a bitwise reduction of the library's
    way = next(iter(ways), "sum")
    numbers = _numbers(start, reading, layout)
    assumed = {(a.call.rank, use.region) for a in reading.arrivals.values() for use in a.uses if use.assumed}
    for buffer, cells in goal.items():
        for rank, chunk in np.argwhere(cells != None):  # noqa: E711 (an array)
            region = layout.region(rank, buffer, chunk)
            if region is None or any(rank == other and region.overlaps(part) for other, part in assumed):
                continue
            held = reading.at_end(rank, region)
            parts = [numbers.get(origin) for origin in cells[rank, chunk].origins]
            if held is None or any(part is None or part.shape != held.shape for part in parts):
                continue
            if not _fits(parts, held, way, reading.memories[rank].dtype(region.place)):
                return False
    return True


def _numbers(start: dict, reading, layout) -> dict:
    """(rank, chunk) -> the numbers that this symbol stands for."""
    found = {}
    for buffer, cells in start.items():
        for rank, chunk in np.argwhere(cells.astype(bool)):
            region = layout.region(rank, buffer, chunk)
            if region is not None and rank in reading.memories:
                found.setdefault(cells[rank, chunk].origins[0], reading.at_start(rank, region))
    return found


def _fits(parts: list, held, way: str, dtype: str) -> bool:
    with np.errstate(all="ignore"):
        whole = parts[0]
        for part in parts[1:]:
            whole = TOGETHER[way](whole, part)
        if held.dtype.kind not in "fc":
            return any(np.array_equal(whole, held * scale) for scale in _scales(parts, way))
        precision = 2**-8 if dtype == "bfloat16" else np.finfo(held.dtype).eps
        largest = max(np.abs(term).max(initial=0) for term in (whole, *parts))
        slack = 4 * len(parts) * precision * largest
        return any(
            np.allclose(whole, held * scale, rtol=0, atol=slack, equal_nan=True) for scale in _scales(parts, way)
        )


def _scales(parts: list, way: str) -> tuple:
    """What the result may have been divided by: nothing, or for a mean the number of its parts."""
    return (len(parts),) if way == "avg" else (1, len(parts)) if way == "sum" else (1,)
