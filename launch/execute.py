"""Runs a Schedule on real ranks with torch's point-to-point calls.

A schedule holds what every rank sends. This cuts it into one program per rank and sends it there, where rank/perform.py
executes it. So a textbook algorithm can be compared with the built-in on the same data, recorded and timed.

Left out: speed. Chunks that arrive are buffered until their step is over, as a schedule demands; a library that
pipelines is faster.
"""

from itertools import groupby

from launch.kernel import output
from launch.ranks import Ranks
from launch.shared.errors import UsageError

CELL = """
from launch.rank.perform import run as _run
{name} = _run(_programs, {name}, rank)
del _run, _programs
"""


def execute(schedule, name: str = "x", ranks: Ranks | None = None) -> None:
    """Executes `schedule` on the ranks, with each rank's one-dimensional tensor `name` as its first buffer.

    The tensor is as long as the whole first buffer (`schedule.chunks` chunks of equal length), whatever part of it is
    filled at the start; afterwards `name` is the buffer of the result. With all_gather, rank r's own numbers are in the
    r-th chunk before, and all chunks are filled after.

    `ranks` are the notebook's unless others are given. UsageError if their number is not the schedule's; RankError if
    a rank has no such tensor, or it does not divide into the schedule's chunks.
    """
    if ranks is None:
        from launch.magics import session

        ranks = session()
    if ranks.size != schedule.ranks:
        raise UsageError(f"this schedule is for {schedule.ranks} ranks and {ranks.size or 'none'} are running")
    if schedule.chunk_bytes is not None:
        raise UsageError("a schedule whose chunks differ in size, such as a recording, cannot be executed")
    if not name.isidentifier():
        raise UsageError(f"execute needs the name of a variable of the ranks, as in execute(schedule, 'x'), got {name}")
    ranks.push(_programs=programs(schedule))
    output.raise_failures(ranks.execute(CELL.format(name=name)))


def programs(schedule) -> dict:
    """The program of each rank, as lists and dicts in units of chunks: see `rank.perform`."""
    steps: list[list[dict]] = [[] for _ in range(schedule.ranks)]
    for step in schedule.steps:
        for rank, part in enumerate(_parts(step, schedule.ranks)):
            steps[rank].append(part)
    return {"buffers": list(schedule.buffers), "result": schedule.result, "chunks": schedule.chunks, "steps": steps}


def _parts(step, ranks: int) -> list[dict]:
    """One step, cut up by rank. The pieces of a message are in the same order at both ends."""
    parts = [{"sends": [], "recvs": [], "locals": []} for _ in range(ranks)]
    messages = [transfer for transfer in step.transfers if transfer.src != transfer.dst]
    for (src, dst), group in groupby(sorted(messages, key=_ends), key=_ends):
        pieces = list(group)
        parts[src]["sends"].append([dst, [[t.src_buffer, [t.chunk, t.count]] for t in pieces]])
        parts[dst]["recvs"].append([src, [[t.dst_buffer, [t.dst_chunk, t.count], t.op] for t in pieces]])
    for t in step.transfers:
        if t.src == t.dst:
            piece, target = [t.chunk, t.count], [t.dst_chunk, t.count]
            parts[t.src]["locals"].append([t.src_buffer, piece, t.dst_buffer, target, t.op])
    return parts


def _ends(transfer) -> tuple[int, int]:
    return transfer.src, transfer.dst
