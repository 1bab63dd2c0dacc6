"""Which collective a recorded run turned out to be, and by whose algorithm.

Proved, not guessed: a run is an all_reduce if its moves, run on symbols, pass the same check as the textbook's. Its
algorithm has a name if, step by step, the same ranks send each other as much as in `collectives.all_reduce.ring`.

Left out: large recordings, for which the proof would take longer than it is worth; they stay "recorded".
"""

import importlib
import inspect
from typing import NamedTuple

import numpy as np

from collectives import meaning
from collectives.errors import ScheduleError
from collectives.schedule import Schedule
from collectives.state import Cell

ROOTLESS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")
ROOTED = ("broadcast", "reduce", "gather", "scatter")
GATHERING = ("gather", "all_gather")
LARGEST = 200_000  # cells that a check would write
MOST_BUFFERS = 16  # no collective needs more; a training run has hundreds


class Found(NamedTuple):
    collective: str
    algorithm: str
    root: int | None
    result: str  # the buffer that holds the result
    goal: dict | None = None  # where it must stand, if not where `collectives.meaning` says


def recognise(schedule: Schedule, start, bears_out) -> Found:
    """What a schedule is, whose true start is `start`; "recorded" if it is none of the collectives.

    `bears_out(goal)` says whether the run's numbers agree that `goal` was reached.
    """
    moved = sum(transfer.count for step in schedule.steps for transfer in step.transfers)
    if moved and moved * schedule.ranks <= LARGEST and len(schedule.buffers) <= MOST_BUFFERS:
        rooted = [(name, root) for name in ROOTED for root in range(schedule.ranks)]
        for collective, root in [*((name, None) for name in ROOTLESS), *rooted]:
            for result in schedule.buffers:
                for goal in (None, *_in_a_block(schedule, collective, root, result)):
                    reached = _proved(schedule, start, collective, root, result, goal)
                    if reached is not None and bears_out(reached):
                        return Found(collective, algorithm(schedule, collective), root, result, goal)
    return nothing_known(schedule)


def nothing_known(schedule: Schedule) -> Found:
    return Found("recorded", "recorded", None, schedule.buffers[0])


def _in_a_block(schedule: Schedule, collective: str, root, result: str):
    """The goal where a rank has its block in a buffer of its own, in which its first chunk is chunk 0.

    That is the result of reduce_scatter and scatter (`out`), or what ranks bring along to gather and all_gather (`x`).
    """
    ranks, block = schedule.ranks, schedule.chunks // schedule.ranks
    if schedule.chunks % ranks or collective not in (*GATHERING, "reduce_scatter", "scatter"):
        return
    if collective not in GATHERING and result == schedule.buffers[0]:
        return
    cells = np.full((ranks, schedule.chunks), None, dtype=object)
    if collective in GATHERING:
        cells[slice(None) if root is None else root] = [
            Cell(((c // block, c % block),)) for c in range(schedule.chunks)
        ]
    else:
        parts = {"root": root, "buffers": schedule.buffers, "result": result}
        usual = meaning.goal(Schedule(collective, "", ranks, schedule.chunks, (), **parts))[result]
        for rank in range(ranks):
            if rank != root:  # scatter's root has its own block where it scatters from
                cells[rank, :block] = usual[rank, rank * block : (rank + 1) * block]
    yield {result: cells}


def _proved(schedule: Schedule, start, collective: str, root, result: str, goal) -> dict | None:
    """The goal that is proved to be reached (buffer -> [rank, chunk] of Cells), None if it is not."""
    parts = {"root": root, "buffers": schedule.buffers, "result": result}
    claim = Schedule(collective, "", schedule.ranks, schedule.chunks, schedule.steps, start=start, goal=goal, **parts)
    promise = Schedule(collective, "", schedule.ranks, schedule.chunks, (), **parts)
    try:
        wanted, held = promise.start().cells[schedule.buffers[0]].astype(bool), claim.start().cells.values()
        if goal is not None and collective in GATHERING:
            wanted[:] = np.arange(schedule.chunks) < schedule.chunks // schedule.ranks
        # the input may stand in one buffer on this rank, in another on that
        if not np.array_equal(wanted, np.any([cells.astype(bool) for cells in held], axis=0)):
            return None
        claim.check()
        return claim.goal()
    except ScheduleError:
        return None


def algorithm(schedule: Schedule, collective: str) -> str:
    """The name of the textbook's algorithm that sends the same messages in the same steps, else "recorded"."""
    mine = _pattern(schedule)
    try:
        module = importlib.import_module(f"collectives.{collective}")
    except ModuleNotFoundError:
        return "recorded"
    makers = [make for _, make in inspect.getmembers(module, inspect.isfunction) if make.__module__ == module.__name__]
    for make in sorted(
        makers, key=lambda make: make.__code__.co_firstlineno
    ):  # as the module has them: simple ones first
        name = make.__name__
        if name.startswith("_"):
            continue
        try:
            if _pattern(make(schedule.ranks)) == mine:
                return name
        except (ScheduleError, TypeError, ValueError):
            continue  # not for this number of ranks, or it needs to be told more
    return "recorded"


def _pattern(schedule: Schedule):
    """Per step with messages, who sends whom which part of the buffer, as sorted (src, dst, share)."""
    sizes = schedule.chunk_bytes if schedule.chunk_bytes is not None else [1] * schedule.chunks
    whole = sum(sizes)
    steps = []
    for step in schedule.steps:
        sent: dict = {}
        for t in step.transfers:
            if t.src != t.dst:
                sent[t.src, t.dst] = sent.get((t.src, t.dst), 0) + sum(sizes[t.chunk : t.chunk + t.count])
        if sent:
            steps.append(sorted((*pair, round(float(nbytes / whole), 6)) for pair, nbytes in sent.items()))
    return steps
