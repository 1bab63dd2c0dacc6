"""Which collective a recorded run was, and by whose algorithm: a proof, or no name.

A run is an all_reduce if what every rank ends with is, element by element, what `collectives.spec` demands of data
that all ranks had in a variable of one name. What they end with is taken from the accounts (`replay._happened`), to the
last line of the cell: it does not matter which numbers the data are. The algorithm has a name if its messages are
those of `collectives.all_reduce.ring`: the same ranks send each other as much of the same ranks' data.

Left out: large recordings, for which the proof would take longer than it is worth; they stay "recorded".
"""

import importlib
import inspect
from collections import Counter
from collections.abc import Callable
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from collectives import spec
from collectives.errors import ScheduleError
from collectives.proof import Proof
from collectives.schedule import Schedule
from collectives.state import Cell, State

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
    goal: dict | None = None  # what must stand where


def name_of(schedule: Schedule, start, sizes: dict[str, list[int]], stood, holds) -> Found:
    """What a schedule is, whose true start is `start`; "recorded" if it is none of the collectives.

    `sizes` are the bytes of the chunks of every buffer. `stood(rank, buffer, chunk)` says whether the symbol of that
    number stood there at first. `holds(goal)` says whether the ranks were seen to hold what `goal` says (buffer ->
    [rank, chunk] of Cells, None where anything may stand).
    """
    moved = sum(int(np.sum(step.columns.count)) for step in schedule.steps)
    if moved and moved * schedule.ranks <= LARGEST and len(schedule.buffers) <= MOST_BUFFERS:
        vectors = {len(each): sum(each) for each in sorted(sizes.values(), key=sum)}  # chunks -> bytes of such a vector
        rooted = [(name, root) for name in ROOTED for root in range(schedule.ranks)]
        before = schedule_start(schedule, start)
        began, used = set().union(*map(_symbols, before.values())), _used(schedule, before)

        def fits(wanted: set[tuple[int, int]]) -> bool:
            return used <= wanted <= began and _in_one_buffer(wanted, before, sizes, stood)

        proof = cache(lambda: _proof(schedule, start))  # once, and only if a promise comes that far
        for collective, root in [*((name, None) for name in ROOTLESS), *rooted]:
            for chunks in sorted(vectors, reverse=True):
                for result in schedule.buffers:
                    for goal in _promises(schedule, collective, root, result, chunks, fits):
                        if _reaches(proof(), goal) and holds(goal):
                            how = algorithm(schedule, collective, root, before, sizes, vectors[chunks])
                            return Found(collective, how, root, result, goal)
    return Found("recorded", "recorded", None, schedule.buffers[0])


def _in_one_buffer(symbols: set[tuple[int, int]], start: dict[str, np.ndarray], sizes, stood) -> bool:
    """Whether one buffer, as long as that or with nothing else in it, held all that at first: what one rank has in its
    `x` and another in a part of its `y` is not what one call of a collective is given."""
    chunks = 1 + max(chunk for _, chunk in symbols)
    for buffer, cells in start.items():
        filled = {(rank, chunk) for rank, chunk in np.ndindex(cells.shape) if cells[rank, chunk]}
        alone = len(sizes.get(buffer, ())) == chunks or filled <= symbols
        if alone and all(stood(rank, buffer, chunk) for rank, chunk in symbols):
            return True
    return False


def schedule_start(schedule: Schedule, start) -> dict[str, np.ndarray]:
    """Buffer -> [rank, chunk] of the Cells before the first step."""
    parts = {"buffers": schedule.buffers, "start": start}
    return Schedule("", "", schedule.ranks, schedule.chunks, (), **parts).start().cells


def _promises(schedule: Schedule, collective: str, root, result: str, chunks: int, fits: Callable[[set], bool]):
    """The goals of the collective on vectors of so many chunks, if the symbols that ranks begin with then fit: with
    blocks in their places, and with a rank's block in a buffer of its own, in which its first chunk is chunk 0.

    The latter is the result of reduce_scatter and scatter (`out`), or what ranks bring along to gather and all_gather
    (`x`).
    """
    ranks, block = schedule.ranks, chunks // schedule.ranks
    promise = Schedule(collective, "", ranks, chunks, (), root=root, buffers=(result,), result=result)
    try:
        usual = (spec.goal(promise) or {})[result] if fits(_symbols(spec.start(promise)[result])) else None
    except ScheduleError:  # chunks that cannot be dealt out evenly
        return
    if usual is not None:
        yield _goal(schedule, result, usual)
    if chunks % ranks:
        return
    cells = np.full((ranks, chunks), None, dtype=object)
    if collective in GATHERING:
        if fits({(rank, chunk) for rank in range(ranks) for chunk in range(block)}):
            row = [Cell(((c // block, c % block),)) for c in range(chunks)]
            cells[slice(None) if root is None else root] = row
            yield _goal(schedule, result, cells)
    elif collective in ("reduce_scatter", "scatter") and usual is not None:
        for rank in range(ranks):
            if rank != root:  # scatter's root has its own block where it scatters from
                cells[rank, :block] = usual[rank, rank * block : (rank + 1) * block]
        yield _goal(schedule, result, cells)


def _goal(schedule: Schedule, result: str, cells: np.ndarray) -> dict[str, np.ndarray]:
    wide = np.full((schedule.ranks, schedule.chunks), None, dtype=object)
    wide[:, : cells.shape[1]] = cells
    return {result: wide}


def _proof(schedule: Schedule, start) -> Proof | None:
    """The moves, run on symbols; None if they are wrong whatever is promised."""
    promises = Schedule(
        "", "", schedule.ranks, schedule.chunks, schedule.steps, buffers=schedule.buffers, start=start, goal={}
    )
    try:
        return Proof(promises)
    except ScheduleError:
        return None


def _reaches(proof: Proof | None, goal: dict[str, np.ndarray]) -> bool:
    if proof is None:
        return False
    try:
        proof.promise(goal)
    except ScheduleError:
        return False
    return True


def _used(schedule: Schedule, start: dict[str, np.ndarray]) -> set[tuple[int, int]]:
    """The symbols of all that is ever sent, added or copied."""
    state, found = State({name: cells.copy() for name, cells in start.items()}), set()
    for step in schedule.steps:
        for t in step.transfers:
            if t.op != "new":
                found |= _symbols(state.cells[t.src_buffer][t.src, t.chunk : t.chunk + t.count])
        state.apply(step.moves)
        for t in step.transfers:  # what ranks copy within a step they have received in it
            if t.src == t.dst and t.op != "new":
                found |= _symbols(state.cells[t.dst_buffer][t.dst, t.dst_chunk : t.dst_chunk + t.count])
    return found


def _symbols(cells: np.ndarray) -> set[tuple[int, int]]:
    return {origin for cell in cells.flat for origin in cell.origins}


def algorithm(schedule: Schedule, collective: str, root, start: dict, sizes: dict[str, list[int]], whole: int) -> str:
    """The name of the textbook's algorithm that sends the same messages, else "recorded"; of several the one that sends
    them in the same steps, else the simplest."""
    alike: list[tuple[bool, str]] = []
    mine = _messages(schedule, start, sizes, whole)
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
        theirs = _textbook(make, schedule.ranks, root)
        if theirs is not None and theirs.messages == mine:
            alike.append((theirs.pairs != _pairs(schedule), name))
    return min(alike, key=lambda each: each[0])[1] if alike else "recorded"


class _Known(NamedTuple):
    """What is compared of a textbook's algorithm."""

    messages: Counter
    pairs: list[set[tuple[int, int]]]


@lru_cache(maxsize=256)  # of the few that a notebook's runs are held against, one after the other
def _textbook(make: Callable[..., Schedule], ranks: int, root: int | None) -> _Known | None:
    """None: not for this number of ranks, or it needs to be told more."""
    try:
        schedule = make(ranks) if root is None else make(ranks, root=root)
    except (ScheduleError, TypeError, ValueError):
        return None
    equal = {buffer: [1] * schedule.chunks for buffer in schedule.buffers}
    return _Known(_messages(schedule, schedule.start().cells, equal, schedule.chunks), _pairs(schedule))


def _pairs(schedule: Schedule) -> list[set[tuple[int, int]]]:
    """Who sends to whom, step by step."""
    steps = ({(t.src, t.dst) for t in step.transfers if t.src != t.dst} for step in schedule.steps)
    return [pairs for pairs in steps if pairs]


def _messages(schedule: Schedule, start: dict, sizes: dict[str, list[int]], whole: int) -> Counter:
    """(src, dst, share of the vector, whose data) -> how many such messages there are.

    Which chunk a ring begins with, and how many steps its calls take, are the student's own affair.
    """
    state = State({name: cells.copy() for name, cells in start.items()})
    found: Counter = Counter()
    for step in schedule.steps:
        sent: dict[tuple[int, int], tuple[int, set]] = {}
        for t in step.transfers:
            if t.src != t.dst:
                nbytes, ranks = sent.get((t.src, t.dst), (0, set()))
                held = state.cells[t.src_buffer][t.src, t.chunk : t.chunk + t.count]
                ranks = ranks | {rank for cell in held for rank in cell.contributors}
                size = sum(sizes[t.src_buffer][t.chunk : t.chunk + t.count])
                sent[t.src, t.dst] = (nbytes + size, ranks)
        for (src, dst), (nbytes, ranks) in sent.items():
            found[src, dst, round(nbytes / whole, 6), tuple(sorted(ranks))] += 1
        state.apply(step.moves)
    return found
