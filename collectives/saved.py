"""A Schedule in a file: plain JSON that another person can load, play, count and check with nothing but numpy.

A saved run keeps what only the ranks could know: the numbers that the chunks held, the lines of code behind each step,
the bytes that were really sent, how long every call took (`collectives.timed`). An algorithm keeps its transfers, step
by step, so a file does not depend on the version that wrote it. Loading runs no code from the file and checks every
number in it.

Left out: the picture (`Player(...).save_html`).
"""

import json
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from collectives.counting import Counts
from collectives.errors import ScheduleError
from collectives.played import Carried, described, rebuilt
from collectives.run import Run
from collectives.schedule import Cell, Schedule, Transfer
from collectives.timed import Clock, packed, unpacked

VERSION = 1
MOST_TRANSFERS = 1_000_000  # about 40 MB of JSON; a 256-rank ring has 130,560
MOST_BYTES = 100_000_000  # of a file; reading it takes ten times as much memory
LARGEST = 2**31
KNOWN = ("collective", "algorithm", "ranks", "chunks")


class SavedRun(Run):
    """A run that was loaded from a file. Its `events` are None if the file was written before files held times."""

    def as_if(self, **algorithms: str) -> NoReturn:
        """A file does not keep what the ranks were asked for, so this raises ScheduleError, which says what to do."""
        raise ScheduleError(
            "a saved run has no as_if; call launch.recording().as_if(...) before you save, and save that"
        )

    def part(self, first: int, last: int) -> NoReturn:
        """A file has counts of the whole run only, so this raises ScheduleError, which says what to do."""
        raise ScheduleError(
            "a saved run cannot be cut; call launch.recording().part(first, last) before you save, and save that"
        )


def save(schedule: Schedule, path: "str | PathLike[str]") -> None:
    """Writes `schedule` to `path`. ValueError if it has over a million transfers or is too large for `load`."""
    data = json.dumps(_described(schedule), ensure_ascii=False).encode()
    if len(data) > MOST_BYTES:
        raise ValueError(
            f"{schedule.title} would be a file of {len(data) // 10**6} MB, and at most {MOST_BYTES // 10**6} MB can be "
            "loaded again; save a part of it, as in launch.recording().part(0, 10)"
        )
    Path(path).write_bytes(data)


def load(path: "str | PathLike[str]") -> Schedule:
    """The Schedule in a file that `save` wrote; a `SavedRun` if it was recorded.

    ValueError for any other file, OSError (FileNotFoundError and the like) if it cannot be read.
    """
    with open(path, "rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(
            f"{Path(path).name} is larger than {MOST_BYTES // 10**6} MB, larger than any file that "
            "Schedule.save or launch.recording().save writes; load a file that one of them wrote"
        )
    try:
        described = json.loads(data)
        if described["ringside"] != VERSION:
            raise ValueError(f"written as version {described['ringside']!r}, this Ringside reads {VERSION}")
        return _made(described)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ValueError(
            f"{Path(path).name} is not a file that Schedule.save or launch.recording().save wrote, or it was changed "
            f"since ({why:.120}); save it again and load that"
        ) from None


def _described(schedule: Schedule) -> dict[str, Any]:
    total = 0
    for step in schedule.steps:
        total += len(step.moves.src)
        if total > MOST_TRANSFERS:
            raise ValueError(
                f"{schedule.title} on {schedule.ranks} ranks has more than {MOST_TRANSFERS:,} transfers, too much for "
                "a file; the same algorithm on 64 ranks shows the same pattern"
            )
    goal = schedule._goal
    described = {
        "ringside": VERSION,
        **{name: getattr(schedule, name) for name in (*KNOWN, "root", "local", "buffers", "result")},
        "chunk_bytes": None if schedule.chunk_bytes is None else schedule.chunk_bytes.tolist(),
        "start": {name: _rows(cells) for name, cells in schedule.start().cells.items()},
        "goal": None if goal is None else {name: _rows(np.array(cells, object)) for name, cells in goal.items()},
        "steps": [],
    }
    for step in schedule.steps:
        rows = [list(transfer) for transfer in step.transfers]
        sources = [list(source) for source in step.sources]
        described["steps"].append([step.phase, step.caption, rows, sources, step.effect, step.in_network])
    if isinstance(schedule, Run):
        described["run"] = _measured(schedule)
    return described


def _measured(run: Run) -> dict[str, Any]:
    """What only the ranks could know. `ways` has only the steps whose ways do not follow from their ops."""
    steps = range(len(run.steps))
    kept = {
        "title": run.title,
        "counts": asdict(run.counts()),
        "start_values": run.start_values(),
        "values": [run.values(index) for index in steps],
        **{name: getattr(run, name) for name in ("built_ins", "unmatched", "dropped")},
    }
    if ways := {str(index): run.ways(index) for index in steps if run.ways(index) != Schedule.ways(run, index)}:
        kept["ways"] = ways
    if run.events is not None:
        kept["calls"] = packed(run.events)
    if run.step_seconds is not None:
        kept["step_nanoseconds"] = [round(1e9 * seconds) for seconds in run.step_seconds]
    if run.network is not None:
        kept["network"] = described(run.network, run.ranks)
    if run.carried is not None:
        kept["carried"] = run.carried
    if run.stuck:
        kept["stuck"] = run.stuck
    if run.began:
        kept["began"] = round(1e9 * run.began)
    if run.clocks:
        kept["clocks"] = [[clock.ranks, round(1e9 * clock.offset), round(1e9 * clock.error)] for clock in run.clocks]
    return kept


def _rows(cells: np.ndarray) -> list[list[Any]]:
    """For each rank and chunk, the (rank, chunk) of everything in its cell; None where a goal allows anything."""
    return [[None if cell is None else _repeated(cell) for cell in row] for row in cells]


def _repeated(cell: Cell) -> list[list[int]]:
    return [[*origin] for origin, times in cell.terms for _ in range(times)]


def _made(described: dict[str, Any]) -> Schedule:
    ranks, chunks = (_whole(described[name], 1) for name in ("ranks", "chunks"))
    buffers = tuple(map(_text, described["buffers"]))
    if described["result"] not in buffers:
        raise ValueError(f"the result is in {described['result']!r}, which is not a buffer")
    steps = [_step(ranks, *step) for step in described["steps"]]
    more: dict[str, Any] = {
        "root": None if described["root"] is None else _whole(described["root"], 0, ranks),
        "local": _whole(described["local"], 1, ranks + 1) if described.get("local") else None,
        "buffers": buffers,
        "result": described["result"],
        "start": _cells(described["start"], ranks, chunks),
        "goal": None if described["goal"] is None else _cells(described["goal"], ranks, chunks),
        "chunk_bytes": None if described["chunk_bytes"] is None else [_whole(n) for n in described["chunk_bytes"]],
    }
    collective, algorithm = _text(described["collective"]), _text(described["algorithm"])
    schedule = Schedule.from_steps(collective, algorithm, ranks, chunks, steps, **more)
    if "run" not in described:
        return schedule
    kept = _run(described["run"], schedule)
    return SavedRun(collective, algorithm, ranks, chunks, schedule.steps, **kept, **more)


def _run(kept: dict[str, Any], schedule: Schedule) -> dict[str, Any]:
    """What `_measured` kept, as the arguments of a Run with the steps of `schedule`."""
    _check_values(kept, schedule)
    if "calls" in kept:
        _check_calls(kept["calls"], schedule.ranks)
    ways = kept.get("ways", {})
    counts: dict[str, Any] = {key: tuple(n) if isinstance(n, list) else n for key, n in kept["counts"].items()}
    return {
        "title": kept["title"],
        "counts": Counts(**counts),
        "events": unpacked(kept["calls"]) if "calls" in kept else None,
        "built_ins": tuple(map(tuple, kept["built_ins"])),
        "unmatched": tuple(map(tuple, kept.get("unmatched", kept.get("lonely", ())))),  # older files
        "dropped": kept["dropped"],
        "step_seconds": _step_seconds(kept, schedule),
        "network": rebuilt(kept["network"]) if "network" in kept else None,
        "carried": _carried(kept, schedule),
        "clocks": [_clock(schedule.ranks, *row) for row in kept.get("clocks", ())],
        "began": _whole(kept.get("began", 0)) / 1e9,
        "stuck": [_wait(schedule.ranks, *row) for row in kept.get("stuck", ())],
        "start_values": _values(kept["start_values"]),
        "values": [_values(rows) for rows in kept["values"]],
        "ways": [ways.get(str(index)) or schedule.ways(index) for index in range(len(schedule.steps))],
    }


def _step_seconds(kept: dict[str, Any], schedule: Schedule) -> list[float] | None:
    if "step_nanoseconds" not in kept:
        return None
    if len(kept["step_nanoseconds"]) != len(schedule.steps):
        raise ValueError("there are not as many measured times as steps")
    return [_whole(each) / 1e9 for each in kept["step_nanoseconds"]]


def _carried(kept: dict[str, Any], schedule: Schedule) -> Carried | None:
    if "carried" not in kept:
        return None
    rows, *_ = kept["carried"]  # files of earlier versions have a second item
    if [len(row) for row in rows] != [schedule.ranks] * schedule.ranks:
        raise ValueError("the bytes carried are not given for every pair of ranks")
    moved = tuple(tuple(_whole(nbytes) for nbytes in row) for row in rows)
    return Carried(moved)


def _clock(world: int, ranks: Any, offset: Any, error: Any) -> Clock:
    """The clock of one machine; in a file its times are in nanoseconds."""
    return Clock(tuple(_whole(rank, 0, world) for rank in ranks), _whole(offset, -(2**62)) / 1e9, _whole(error) / 1e9)


def _wait(world: int, rank: Any, other: Any, op: Any, line: Any = 0) -> tuple[int, int | None, str, int]:
    """Older files have no `line`; there it is part of `op`: "recv, line 7"."""
    return _whole(rank, 0, world), None if other is None else _whole(other, 0, world), _text(op), _whole(line)


def _values(rows: list[list[Any]]) -> list[Any]:
    return [tuple(row) for row in rows]


def _step(
    ranks: int, phase: Any, caption: Any, transfers: Any, sources: Any, effect: Any = None, in_network: Any = False
) -> tuple[Any, ...]:
    """A step as `Schedule.from_steps` takes it. Older files have no `effect`; there the phase's name tells."""
    if type(effect) is not bool:
        effect = _text(phase).endswith("(built-in)")
    rows = [Transfer(*row) for row in transfers]
    for row in rows:  # whether they make sense is for `Schedule.check`: a wrong schedule can be saved too
        for value in (row.src, row.dst, row.chunk, row.count, row.dst_chunk):
            _whole(value, -LARGEST, LARGEST)
    lines = [(_whole(rank, 0, ranks), _whole(line), _text(code)) for rank, line, code in sources]
    return _text(phase), _text(caption), rows, lines, effect, in_network is True


def _cells(buffers: dict[str, Any], ranks: int, chunks: int) -> dict[str, np.ndarray]:
    made = {}
    for name, rows in buffers.items():
        if len(rows) != ranks or any(len(row) != chunks for row in rows):
            raise ValueError(f"buffer {name!r} does not have {chunks} chunks on each of {ranks} ranks")
        made[name] = np.empty((ranks, chunks), object)
        for place in np.ndindex(ranks, chunks):
            origins = rows[place[0]][place[1]]
            made[name][place] = None if origins is None else Cell(tuple((_whole(r), _whole(c)) for r, c in origins))
    return made


def _check_values(run: dict[str, Any], schedule: Schedule) -> None:
    """Checks what the Player shows of a run: its texts must belong to cells of the schedule."""
    _text(run["title"])
    if len(run["values"]) != len(schedule.steps):
        raise ValueError("there are not as many values as steps")
    for index, ways in run.get("ways", {}).items():
        ops = [t.op for t in schedule.steps[int(index)].transfers]
        fit = [
            _text(way) in ("", "avg") if op == "copy" else bool(_text(way)) for way, op in zip(ways, ops, strict=False)
        ]
        if len(ways) != len(ops) or not all(fit):
            raise ValueError(f"what step {index} does is not said of every transfer")
    for rank, buffer, chunk, text in [*run["start_values"], *sum(run["values"], [])]:
        _whole(rank, 0, schedule.ranks), _whole(chunk, 0, schedule.chunks), _text(text)
        schedule.buffers.index(buffer)


def _check_calls(kept: dict[str, Any], ranks: int) -> None:
    """Checks what the Timeline shows of a run."""
    for line, code in kept["lines"]:
        _whole(line), _text(code)
    for label, sides, *part in kept["matches"]:
        _text(label), _whole(sides, 1), [_text(text) for text in part]
        if len(part) > 1:
            raise ValueError(f"a call carries {len(part)} parts, not one")
    for rank, op, peer, nbytes, line, match, start, *times in kept["calls"]:
        _whole(rank, 0, ranks), _text(op), _whole(nbytes), _whole(line, 0, len(kept["lines"])), _whole(start)
        if len(times) != 4:
            raise ValueError(f"a call has {len(times) + 1} times, not 5")
        bounds = [(peer, None), (match, len(kept["matches"])), *((time, None) for time in times)]
        for value, end in bounds:
            if value is not None:
                _whole(value, 0, end)


def _whole(value: Any, least: int = 0, end: int | None = None) -> int:
    """`value` if it is a whole number from `least` up to, not including, `end`."""
    if type(value) is not int or value < least or (end is not None and value >= end):
        raise ValueError(
            f"{value!r:.40} is not a whole number from {least}{' up' if end is None else f' to {end - 1}'}"
        )
    return value


def _text(value: Any) -> str:
    if type(value) is not str:
        raise ValueError(f"{value!r:.40} is not a text")
    return value
