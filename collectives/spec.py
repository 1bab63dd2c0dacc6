"""What each collective promises: what every rank holds before the first step, and what it must hold after the last.

This is the specification that `Schedule.check` proves algorithms against, written down without any algorithm. With `c`
chunks and `p` ranks, block `r` is the chunks `r * c / p` up to `(r + 1) * c / p`: the part that belongs to rank `r`.

| collective | at the start | at the end |
|---|---|---|
| broadcast | the root's buffer is full | every rank holds the root's buffer |
| scatter | the root's buffer is full | rank r holds the root's block r |
| gather | rank r holds its block r | the root holds all blocks |
| all_gather | rank r holds its block r | every rank holds all blocks |
| reduce | every rank's buffer is full | the root holds the sum of all ranks |
| reduce_scatter | every rank's buffer is full | rank r holds block r of the sum of all ranks |
| all_reduce | every rank's buffer is full | every rank holds the sum of all ranks |
| all_to_all | every rank's "input" is full | block s of rank r's "output" is block r of rank s's "input" |
| barrier | every rank knows of itself | every rank knows of all ranks |

Other names (send_recv, a recording of something else) promise nothing unless the schedule brings its own `goal`.
"""

from typing import TYPE_CHECKING

import numpy as np

from collectives.errors import ScheduleError
from collectives.state import Cell, empty_cells

if TYPE_CHECKING:
    from collectives.schedule import Schedule

SAYS = {
    "broadcast": "One rank, the root, has a vector of N bytes; at the end every rank has it.",
    "scatter": "The root has a vector of N bytes in p chunks; rank r gets chunk r.",
    "gather": "Rank r has chunk r of p; at the end the root has all of them, N bytes in total. Scatter backwards.",
    "reduce": "Every rank has a vector of N bytes; at the end the root has the sum of all of them.",
    "all_gather": "Rank r has chunk r of p; at the end every rank has all of them, N bytes in total (not N each).",
    "reduce_scatter": "Every rank has a vector of N bytes; rank r gets chunk r (of p) of the sum. "
    "All-gather backwards.",
    "all_reduce": "Every rank has a vector of N bytes; at the end every rank has the sum of all of them.",
    "all_to_all": "Every rank has a chunk for every rank; at the end rank d has, in order of rank, what all had for d.",
    "barrier": "No rank leaves before every rank has entered. Only that news is sent, so messages have no bytes.",
    "send_recv": "Patterns of plain send and recv that programs are full of: "
    "a token, a shift, and the exchange of edges.",
}
"""Each collective in one sentence; N is the larger buffer of one rank in bytes, p the number of ranks."""

GETS = {
    "broadcast": "every rank gets the root's data",
    "scatter": "each rank gets its own chunk of the root's data",
    "gather": "the root gets the chunks of all {ranks}",
    "reduce": "the root gets the sum of all {ranks}",
    "all_gather": "every rank gets the chunks of all {ranks}",
    "reduce_scatter": "each rank gets its own chunk of the sum of all {ranks}",
    "all_reduce": "every rank gets the sum of all {ranks}",
    "all_to_all": "each rank gets what all {ranks} have for it",
    "barrier": "every rank gets the news that all {ranks} are there",
}
"""Its goal in a clause, for titles: what is there at the end."""


def full(schedule: "Schedule") -> np.ndarray:
    """Every chunk of every rank has its own data: rank 2's chunk 1 is `c1`."""
    cells = empty_cells(schedule.ranks, schedule.chunks)
    for rank in range(schedule.ranks):
        for chunk in range(schedule.chunks):
            cells[rank, chunk] = Cell(((rank, chunk),))
    return cells


def owner(schedule: "Schedule", chunk: int) -> int:
    """The rank whose block has this chunk."""
    if schedule.chunks % schedule.ranks:
        raise ScheduleError(
            f"{schedule.collective} splits its chunks evenly over the ranks: {schedule.chunks} chunks do not divide "
            f"by {schedule.ranks} ranks; give the schedule its own start and goal"
        )
    return chunk * schedule.ranks // schedule.chunks


def root_of(schedule: "Schedule") -> int:
    """The root of a collective that has one."""
    if schedule.root is None:
        raise ScheduleError(f"{schedule.collective} has a root; say which rank it is, as in root=0")
    return schedule.root


def start(schedule: "Schedule") -> dict[str, np.ndarray]:
    """Buffer name -> array [rank, chunk] of Cells before the first step."""
    cells = {name: empty_cells(schedule.ranks, schedule.chunks) for name in schedule.buffers}
    first = cells[schedule.buffers[0]]
    match schedule.collective:
        case "broadcast" | "scatter":
            for chunk in range(schedule.chunks):
                first[root_of(schedule), chunk] = Cell(((root_of(schedule), chunk),))
        case "gather" | "all_gather":
            for chunk in range(schedule.chunks):
                first[owner(schedule, chunk), chunk] = Cell(((owner(schedule, chunk), chunk),))
        case _:
            first[:] = full(schedule)
    return cells


def goal(schedule: "Schedule") -> dict[str, np.ndarray] | None:
    """Buffer name -> array [rank, chunk] of the Cells that must be there at the end; None if anything may be."""
    ranks, chunks = schedule.ranks, schedule.chunks
    cells = np.full((ranks, chunks), None, dtype=object)
    for chunk in range(chunks):
        everybody = Cell((rank, chunk) for rank in range(ranks))
        match schedule.collective:
            case "broadcast":
                cells[:, chunk] = Cell(((root_of(schedule), chunk),))
            case "scatter":
                cells[owner(schedule, chunk), chunk] = Cell(((root_of(schedule), chunk),))
            case "gather":
                cells[root_of(schedule), chunk] = Cell(((owner(schedule, chunk), chunk),))
            case "all_gather":
                cells[:, chunk] = Cell(((owner(schedule, chunk), chunk),))
            case "reduce":
                cells[root_of(schedule), chunk] = everybody
            case "reduce_scatter":
                cells[owner(schedule, chunk), chunk] = everybody
            case "all_reduce" | "barrier":
                cells[:, chunk] = everybody
            case "all_to_all":
                sender, block = owner(schedule, chunk), chunks // ranks
                for rank in range(ranks):
                    cells[rank, chunk] = Cell(((sender, rank * block + chunk % block),))
            case _:
                return None
    return {schedule.result: cells}
