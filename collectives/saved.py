"""A Schedule in a file: plain JSON that another person can load, play, count and check, with numpy and nothing else.

A saved run keeps what only the ranks could know: the numbers that the chunks held, the lines of code behind each step,
the bytes that were really sent, how long every call took (`collectives.timed`). An algorithm keeps its transfers, step
by step, so a file does not depend on the version that wrote it. Loading runs no code from the file, and looks at every
number before it believes it.

Left out: the picture (`Player(...).save_html`).
"""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from collectives.counting import Counts
from collectives.errors import ScheduleError
from collectives.run import Run
from collectives.schedule import Cell, Schedule, Transfer
from collectives.timed import packed, unpacked

VERSION = 1
MOST_TRANSFERS = 1_000_000  # about 40 MB of JSON; a 256-rank ring has 130,560
LARGEST = 2**31
KNOWN = ("collective", "algorithm", "ranks", "chunks")


class SavedRun(Run):
    """A run that was loaded from a file. Its `events` are None if the file is from before files held times."""

    def as_if(self, **algorithms):
        """Not of a file, which has no longer what the ranks were asked for: ScheduleError says what to do."""
        raise ScheduleError(
            "a saved run cannot be told as if; call launch.recording().as_if(...) before you save, and save that"
        )

    def part(self, first: int, last: int):
        """Not of a file, which has counts of the whole run only: ScheduleError says what to do."""
        raise ScheduleError(
            "a saved run cannot be cut; call launch.recording().part(first, last) before you save, and save that"
        )


def save(schedule: Schedule, path) -> None:
    """Writes `schedule` to `path`. ValueError if it has more than a million transfers."""
    Path(path).write_text(json.dumps(_described(schedule), ensure_ascii=False), encoding="utf-8")


def load(path) -> Schedule:
    """The Schedule in a file that `save` wrote; a `SavedRun` if it was recorded.

    ValueError for any other file, OSError (FileNotFoundError and the like) if it cannot be read.
    """
    data = Path(path).read_bytes()
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


def _described(schedule: Schedule) -> dict:
    goal = schedule._goal
    described = {
        "ringside": VERSION,
        **{name: getattr(schedule, name) for name in (*KNOWN, "root", "local", "buffers", "result")},
        "chunk_bytes": None if schedule.chunk_bytes is None else schedule.chunk_bytes.tolist(),
        "start": {name: _rows(cells) for name, cells in schedule.start().cells.items()},
        "goal": None if goal is None else {name: _rows(np.array(cells, object)) for name, cells in goal.items()},
        "steps": [],
    }
    total = 0
    for step in schedule.steps:
        total += len(step.columns.src)
        if total > MOST_TRANSFERS:
            raise ValueError(
                f"{schedule.title} on {schedule.ranks} ranks has more than {MOST_TRANSFERS:,} transfers, too much for "
                "a file; the same algorithm on 64 ranks shows the same pattern"
            )
        rows = [list(transfer) for transfer in step.transfers]
        described["steps"].append([step.phase, step.caption, rows, [list(source) for source in step.sources]])
    if isinstance(schedule, Run):
        described["run"] = _told(schedule)
    return described


def _told(run: Run) -> dict:
    """What only the ranks could know. Ways are kept of the steps whose ops alone do not say them."""
    steps = range(len(run.steps))
    told = {
        "title": run.title,
        "counts": asdict(run.counts()),
        "start_values": run.start_values(),
        "values": [run.values(index) for index in steps],
        **{name: getattr(run, name) for name in ("built_ins", "lonely", "dropped")},
    }
    if ways := {str(index): run.ways(index) for index in steps if run.ways(index) != Schedule.ways(run, index)}:
        told["ways"] = ways
    if run.events is not None:
        told["calls"] = packed(run.events)
    return told


def _rows(cells: np.ndarray) -> list[list]:
    """Per rank and chunk the (rank, chunk) of all that is in the cell; None where a goal allows anything."""
    return [[None if cell is None else [list(origin) for origin in cell.origins] for cell in row] for row in cells]


def _made(described: dict) -> Schedule:
    ranks, chunks = (_whole(described[name], 1) for name in ("ranks", "chunks"))
    buffers = tuple(map(_text, described["buffers"]))
    if described["result"] not in buffers:
        raise ValueError(f"the result is in {described['result']!r}, which is not a buffer")
    steps = [_step(*step, ranks) for step in described["steps"]]
    more = {
        "root": None if described["root"] is None else _whole(described["root"], 0, ranks),
        "local": _whole(described["local"], 1, ranks + 1) if described.get("local") else None,
        "buffers": buffers,
        "result": described["result"],
        "start": _cells(described["start"], ranks, chunks),
        "goal": None if described["goal"] is None else _cells(described["goal"], ranks, chunks),
        "chunk_bytes": None if described["chunk_bytes"] is None else [_whole(n) for n in described["chunk_bytes"]],
    }
    names = [_text(described[name]) for name in KNOWN[:2]]
    schedule = Schedule.from_steps(*names, ranks, chunks, steps, **more)
    if "run" not in described:
        return schedule
    return SavedRun(*names, ranks, chunks, schedule.steps, **_run(described["run"], schedule), **more)


def _run(told: dict, schedule: Schedule) -> dict:
    """What `_told` kept, as the arguments of a Run with the steps of `schedule`."""
    _check_values(told, schedule)
    if "calls" in told:
        _check_calls(told["calls"], schedule.ranks)
    ways = told.get("ways", {})
    return {
        "title": told["title"],
        "counts": Counts(**{key: tuple(n) if isinstance(n, list) else n for key, n in told["counts"].items()}),
        "events": unpacked(told["calls"]) if "calls" in told else None,
        **{name: tuple(map(tuple, told[name])) for name in ("built_ins", "lonely")},
        "dropped": told["dropped"],
        "start_values": _values(told["start_values"]),
        "values": [_values(rows) for rows in told["values"]],
        "ways": [ways.get(str(index)) or schedule.ways(index) for index in range(len(schedule.steps))],
    }


def _values(rows: list[list]) -> list[tuple]:
    return [tuple(row) for row in rows]


def _step(phase, caption, transfers, sources, ranks: int) -> tuple:
    rows = [Transfer(*row) for row in transfers]
    for row in rows:  # whether they make sense is for `Schedule.check`: a wrong schedule can be saved too
        for value in (row.src, row.dst, row.chunk, row.count, row.dst_chunk):
            _whole(value, -LARGEST, LARGEST)
    lines = [(_whole(rank, 0, ranks), _whole(line), _text(code)) for rank, line, code in sources]
    return _text(phase), _text(caption), rows, lines


def _cells(buffers: dict, ranks: int, chunks: int) -> dict[str, np.ndarray]:
    made = {}
    for name, rows in buffers.items():
        if len(rows) != ranks or any(len(row) != chunks for row in rows):
            raise ValueError(f"buffer {name!r} does not have {chunks} chunks on each of {ranks} ranks")
        made[name] = np.empty((ranks, chunks), object)
        for place in np.ndindex(ranks, chunks):
            origins = rows[place[0]][place[1]]
            made[name][place] = None if origins is None else Cell(tuple((_whole(r), _whole(c)) for r, c in origins))
    return made


def _check_values(run: dict, schedule: Schedule) -> None:
    """What the Player shows of a run: texts that belong to a cell of the schedule."""
    _text(run["title"])
    if len(run["values"]) != len(schedule.steps):
        raise ValueError("there are not as many values as steps")
    for index, ways in run.get("ways", {}).items():
        if [bool(_text(way)) for way in ways] != [t.op != "copy" for t in schedule.steps[int(index)].transfers]:
            raise ValueError(f"what step {index} does is not said of every transfer")
    for rank, buffer, chunk, text in [*run["start_values"], *sum(run["values"], [])]:
        _whole(rank, 0, schedule.ranks), _whole(chunk, 0, schedule.chunks), _text(text)
        schedule.buffers.index(buffer)


def _check_calls(kept: dict, ranks: int) -> None:
    """What the Timeline shows of a run."""
    for line, code in kept["lines"]:
        _whole(line), _text(code)
    for label, sides in kept["matches"]:
        _text(label), _whole(sides, 1)
    for rank, op, peer, nbytes, line, match, start, *times in kept["calls"]:
        _whole(rank, 0, ranks), _text(op), _whole(nbytes), _whole(line, 0, len(kept["lines"])), _whole(start)
        if len(times) != 4:
            raise ValueError(f"a call has {len(times) + 1} times, not 5")
        bounds = [(peer, None), (match, len(kept["matches"])), *((time, None) for time in times)]
        for value, end in bounds:
            if value is not None:
                _whole(value, 0, end)


def _whole(value, least: int = 0, end: int | None = None) -> int:
    """`value` if it is a whole number from `least` up to, not including, `end`."""
    if type(value) is not int or value < least or (end is not None and value >= end):
        raise ValueError(
            f"{value!r:.40} stands where a number from {least}{'' if end is None else f' to {end - 1}'} is"
        )
    return value


def _text(value) -> str:
    if type(value) is not str:
        raise ValueError(f"{value!r:.40} stands where a text is")
    return value
