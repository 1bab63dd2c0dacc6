"""A Schedule in the form the browser takes: 16 bytes per transfer, and a small dictionary for the rest.

`js/schedule.js` reads both and computes every state itself; the layout of a record is written down twice, here and
there, and a browser test compares all states of several schedules with those of `collectives`.
"""

import numpy as np

from collectives.columns import COPY, NEW, REDUCE, Columns
from collectives.errors import ScheduleError
from collectives.run import Run
from collectives.spec import GETS
from collectives.state import SIGNS

RECORD = np.dtype([
    ("src", "<u2"), ("dst", "<u2"), ("chunk", "<u4"), ("dst_chunk", "<u4"), ("count", "<u2"),
    ("src_buffer_and_op", "u1"), ("dst_buffer", "u1"),
])  # fmt: skip
BITS = np.array([0, 128, 64], np.int64)  # of copy, reduce and new in the byte that they share with the source buffer
MOST_BUFFERS = 64  # what is left of that byte
UNPROMISED = ("barrier", "send_recv", "recorded")  # collectives that leave no result in a buffer
MOST_PROVED = 512  # cells of all ranks
MOST_TRANSFERS = 250_000  # 4 MB; a 256-rank ring has 130,560


def pack(schedule) -> tuple[bytes, dict]:
    """The transfers of all steps as records, and what js/schedule.js calls Meta. ValueError when it is too much."""
    if len(schedule.buffers) > MOST_BUFFERS:
        raise ValueError(
            f"{schedule.title} has {len(schedule.buffers)} buffers, more than a browser can play ({MOST_BUFFERS}); "
            "of a recording play fewer steps, with launch.recording().part(first, last)"
        )
    columns, total = [], 0
    for step in schedule.steps:
        columns.append(step.columns)
        total += len(step.columns.src)
        if total > MOST_TRANSFERS:
            raise ValueError(
                f"{schedule.title} on {schedule.ranks} ranks has more transfers than a "
                f"browser can play ({MOST_TRANSFERS:,}); the same algorithm on 64 ranks shows the same pattern"
            )
    return b"".join(map(_records, columns)), _meta(schedule, columns)


def goal(schedule) -> str:
    """What ranks have at the end, in a clause; "" of what is no plan of a known collective, does not add, or is not
    proved: a proof of very many cells takes too long for a title."""
    clause = GETS.get(schedule.collective, "").format(ranks=schedule.ranks)
    if not clause or isinstance(schedule, Run) or schedule.ranks * schedule.chunks > MOST_PROVED:
        return ""
    if any({*schedule.ways(index)} - {"", "sum"} for index in range(len(schedule.steps))):
        return ""
    try:
        schedule.check()
    except ScheduleError:
        return ""
    return clause


def _records(step) -> bytes:
    records = np.zeros(len(step.src), RECORD)
    for name in ("src", "dst", "chunk", "dst_chunk", "count", "dst_buffer"):
        records[name] = getattr(step, name)
    records["src_buffer_and_op"] = step.src_buffer + BITS[step.op]
    return records.tobytes()


def _meta(schedule, columns: list[Columns]) -> dict:
    sizes = schedule.chunk_bytes
    values = [_values(schedule, schedule.values(index)) for index in range(len(columns))]
    ways = [schedule.ways(index) for index in range(len(columns))]
    sources = [list(map(list, step.sources)) for step in schedule.steps]
    return {
        "collective": schedule.collective,
        "title": schedule.title,
        "ranks": schedule.ranks,
        "chunks": schedule.chunks,
        "buffers": list(schedule.buffers),
        "result": None if schedule.collective in UNPROMISED else schedule.result,
        "local": schedule.local if schedule.local and 1 < schedule.local < schedule.ranks else None,
        "counts": [len(step.src) for step in columns],
        "phases": _phases(schedule),
        "captions": [step.caption for step in schedule.steps],
        "start": [_start(cells) for cells in schedule.start().cells.values()],
        "knowledge": schedule.collective == "barrier",
        "chunk_bytes": None if sizes is None else [int(size) for size in sizes],
        "sources": sources if any(sources) else None,
        "values": values if any(values) else None,
        "start_values": _values(schedule, schedule.start_values()) or None,
        "stale": _values(schedule, schedule.stale_values()) or None,
        "signs": _signs(columns, ways),
        "made": _made(columns, ways),
        "effects": [step.effect for step in schedule.steps],
        "in_network": [step.in_network for step in schedule.steps],
    }


def _signs(columns: list[Columns], ways: list[list[str]]) -> list[list[str] | None] | None:
    """Per step the sign of every reduce, and of what divides a sum, "" elsewhere; None where all are sums, and if that
    is so in every step."""
    words = [_ways_of((REDUCE, COPY), *step) for step in zip(columns, ways, strict=True)]
    signs = [None if {*step} <= {"", "sum"} else [SIGNS.get(way, way) for way in step] for step in words]
    return signs if any(signs) else None


def _made(columns: list[Columns], ways: list[list[str]]) -> list[list[str] | None] | None:
    """Per step how every new came about, "" elsewhere; None where nothing did, and if that is so in every step."""
    words = [_ways_of((NEW,), *step) for step in zip(columns, ways, strict=True)]
    return [step if any(step) else None for step in words] if any(map(any, words)) else None


def _ways_of(ops: tuple[int, ...], step: Columns, ways: list[str]) -> list[str]:
    """The ways of the transfers that have one of these ops, "" for the others."""
    return [way if has else "" for way, has in zip(ways, np.isin(step.op, ops).tolist(), strict=True)]


def _phases(schedule) -> list[list]:
    """Consecutive steps of one phase as [name, number of steps]."""
    phases: list[list] = []
    for step in schedule.steps:
        if phases and phases[-1][0] == step.phase:
            phases[-1][1] += 1
        else:
            phases.append([step.phase, 1])
    return phases


def _start(cells) -> str | list:
    """ "own" if every rank holds its own chunks; else per cell [rank, chunk, origin rank, origin chunk, ...]."""
    places = list(np.ndindex(cells.shape))
    if all(cells[place].origins == (place,) for place in places):
        return "own"
    return [[*place, *sum((o * times for o, times in cells[place].terms), ())] for place in places if cells[place]]


def _values(schedule, values) -> list:
    return [[rank, list(schedule.buffers).index(buffer), chunk, str(text)] for rank, buffer, chunk, text in values]
