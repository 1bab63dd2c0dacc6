"""all_to_all: every rank has a chunk for every rank; at the end rank d has all chunks for d, in order of sender.

If a rank's input is a row of a matrix, this is the transpose. Every rank must send (p-1)/p of its N bytes; nothing can
be added up on the way, so, unlike in all_reduce, more steps only pay if they save messages (Bruck).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from collectives.captions import places
from collectives.columns import Columns, join, move
from collectives.errors import ScheduleError, check_ranks, whole
from collectives.groups import rounds
from collectives.schedule import Phase, Schedule
from collectives.state import Cell, empty_cells

INPUT, OUTPUT, SCRATCH = 0, 1, 2
OUT_OF_PLACE: dict[str, Any] = dict(buffers=("input", "output"), result="output")


def _keep_own(p: int) -> Columns:
    """Every rank's chunk for itself; it needs no message."""
    rank = np.arange(p)
    return move(rank, rank, rank, src_buffer=INPUT, dst_buffer=OUTPUT)


def linear(ranks: int) -> Schedule:
    """Every rank sends everything at once: one step of p(p-1) messages of N/p bytes."""
    p = check_ranks("all_to_all.linear", ranks)

    def to_everybody(_: int) -> Columns:
        src, hop = np.divmod(np.arange(p * (p - 1)), p - 1)
        dst = (src + 1 + hop) % p
        return join(move(src, dst, dst, dst_chunk=src, src_buffer=INPUT, dst_buffer=OUTPUT), _keep_own(p))

    phases = [Phase("exchange", 1, to_everybody, "Every rank sends every other the chunk meant for it")]
    return Schedule.from_phases("all_to_all", "linear", p, p, phases, **OUT_OF_PLACE)


def pairwise(ranks: int) -> Schedule:
    """In step k every rank sends to the rank k places on: p-1 steps of N/p bytes, one message per rank and step."""
    p = check_ranks("all_to_all.pairwise", ranks)
    rank = np.arange(p)

    def deliver(k: int) -> Columns:
        dst = (rank + 1 + k) % p
        message = move(rank, dst, dst, dst_chunk=rank, src_buffer=INPUT, dst_buffer=OUTPUT)
        return join(message, _keep_own(p)) if k == 0 else message

    def says(k: int) -> str:
        return f"Every rank sends the chunk for the rank {places(k + 1)} to the right"

    phases = [Phase("exchange", p - 1, deliver, says)]
    return Schedule.from_phases("all_to_all", "pairwise", p, p, phases, **OUT_OF_PLACE)


def bruck(ranks: int) -> Schedule:
    """Chunks jump 1, 2, 4, ... ranks; those that need the same jump go together: log2(p) steps, rounded up.

    Every message carries about N/2, so this suits short vectors. In "scratch", chunk i still has i places to go.
    """
    p = check_ranks("all_to_all.bruck", ranks)
    rank = np.arange(p)
    every, away = (side.ravel() for side in np.meshgrid(rank, rank, indexing="ij"))

    def by_distance(_: int) -> Columns:
        return move(every, every, (every + away) % p, dst_chunk=away, src_buffer=INPUT, dst_buffer=SCRATCH)

    def jump(k: int) -> Columns:
        distance = 1 << k
        start = np.arange(distance, p, 2 * distance)  # runs of chunks whose distance has this bit
        src, run = (side.ravel() for side in np.meshgrid(rank, start, indexing="ij"))
        count = np.minimum(distance, p - run)
        return move(src, (src + distance) % p, run, count=count, src_buffer=SCRATCH, dst_buffer=SCRATCH)

    def by_sender(_: int) -> Columns:
        return move(every, every, away, dst_chunk=(every - away) % p, src_buffer=SCRATCH, dst_buffer=OUTPUT)

    def says(k: int) -> str:
        return f"Every rank sends {places(1 << k)} to the right all chunks that need this jump"

    phases = [
        Phase("sort by distance", 1, by_distance, "Every rank sorts its chunks by how many places they have to go"),
        Phase("jumps", rounds(p), jump, says),
        Phase("sort by sender", 1, by_sender, "Every rank sorts what arrived by where it came from"),
    ]
    buffers = ("input", "output", "scratch")
    return Schedule.from_phases("all_to_all", "bruck", p, p, phases, buffers=buffers, result="output")


def hierarchical(nodes: int, local: int) -> Schedule:
    """For `nodes` machines of `local` ranks each: a chunk first goes to its receiver's place inside the machine, then
    to the receiver's machine.

    Between machines a rank sends nodes - 1 messages of `local` chunks instead of (nodes - 1) * local of one: the same
    bytes, 1/local of the latencies. Mixture-of-experts layers do this over many machines: Rajbhandari et al.,
    "DeepSpeed-MoE" (ICML 2022), and Hwang et al., "Tutel" (MLSys 2023), where it is called 2DH.
    """
    name = "all_to_all.hierarchical"
    nodes, local = whole(name, nodes, "nodes", 1), whole(name, local, "local ranks", 1)
    p = check_ranks(name, nodes * local)
    every, machine = (side.ravel() for side in np.meshgrid(np.arange(p), np.arange(nodes), indexing="ij"))
    rank, home, place = np.arange(p), np.arange(p) // local, np.arange(p) % local

    def to_place(hop: int) -> Columns:
        """All chunks for the local rank `hop` places on, for every machine; in scratch by machine, then sender."""
        there = (every % local + hop) % local
        chunk, lands = machine * local + there, machine * local + every % local
        dst = every // local * local + there
        return move(every, dst, chunk, dst_chunk=lands, src_buffer=INPUT, dst_buffer=SCRATCH)

    def inside(k: int) -> Columns:
        return join(to_place(1), to_place(0)) if k == 0 and local > 1 else to_place(k + (local > 1))

    def to_machine(hop: int) -> Columns:
        there = (home + hop) % nodes
        chunk, lands = there * local, home * local
        dst = chunk + place
        return move(rank, dst, chunk, dst_chunk=lands, count=local, src_buffer=SCRATCH, dst_buffer=OUTPUT)

    def between(k: int) -> Columns:
        return join(to_machine(1), to_machine(0)) if k == 0 and nodes > 1 else to_machine(k + (nodes > 1))

    says = "Every rank sends, inside its machine, all chunks for the ranks that stand where the receiver does"
    over = "Every rank sends its like in another machine all chunks that its own machine has for it"
    phases = [
        Phase("exchange inside", max(local - 1, 1), inside, says),
        Phase("exchange between", max(nodes - 1, 1), between, over),
    ]
    more: dict[str, Any] = dict(buffers=("input", "output", "scratch"), result="output", local=local)
    return Schedule.from_phases("all_to_all", "hierarchical", p, p, phases, **more)


def uneven(splits: Sequence[Sequence[int]]) -> Schedule:
    """all_to_all_single with split sizes: rank r sends splits[r][d] rows to rank d, in p-1 pairwise steps.

    splits: square matrix of row counts [sender, receiver]. A chunk is one row; `chunks` is the number
    of rows in the longest buffer of any rank, and N its bytes. Rank d's output has the rows of rank 0 first, then those
    of rank 1, ...
    """
    rows = _matrix(splits)
    p = check_ranks("all_to_all.uneven", len(rows))
    chunks = int(max(rows.sum(0).max(), rows.sum(1).max(), 1))
    lies_at = np.cumsum(rows, axis=1) - rows  # in the sender's input
    lands_at = np.cumsum(rows, axis=0) - rows  # in the receiver's output
    rank = np.arange(p)

    def deliver(k: int) -> Columns:
        src = rank[rows[rank, (rank + k) % p] > 0]
        dst = (src + k) % p
        read, written, count = lies_at[src, dst], lands_at[src, dst], rows[src, dst]
        return move(src, dst, read, dst_chunk=written, count=count, src_buffer=INPUT, dst_buffer=OUTPUT)

    def step(k: int) -> Columns:
        return join(deliver(1), deliver(0)) if k == 0 else deliver(k + 1)  # local rows go with the first

    def says(k: int) -> str:
        return f"Every rank sends the rows for the rank {places(k + 1)} to the right"

    phases = [Phase("exchange", p - 1, step, says)]
    start = {"input": empty_cells(p, chunks), "output": empty_cells(p, chunks)}
    goal = {"output": empty_cells(p, chunks)}
    for src, dst in np.argwhere(rows):
        for row in range(rows[src, dst]):
            cell = Cell(((int(src), int(lies_at[src, dst] + row)),))
            start["input"][src, lies_at[src, dst] + row] = cell
            goal["output"][dst, lands_at[src, dst] + row] = cell
    return Schedule.from_phases("all_to_all", "uneven", p, chunks, phases, start=start, goal=goal, **OUT_OF_PLACE)


def _matrix(splits: Sequence[Sequence[int]]) -> np.ndarray:
    """`splits` as a square int array; ScheduleError if it is not square."""
    width = len(splits)
    if any(len(row) != width for row in splits):
        raise ScheduleError(
            f"all_to_all.uneven needs the rows from each rank to each: {width} lists of {width} numbers, not others"
        )
    return np.array([[whole("all_to_all.uneven", rows, "rows in every split", 0) for rows in row] for row in splits])


ALGORITHMS = (linear, pairwise, bruck, hierarchical)
