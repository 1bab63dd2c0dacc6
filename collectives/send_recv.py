"""Patterns of plain send and recv that many programs use: a token, a shift, and the exchange of edges.

They are not collectives of torch.distributed, so each brings its own goal: what must hold at the end.
"""

from typing import Any

import numpy as np

from collectives.columns import Columns, join, move, where
from collectives.errors import check_ranks, whole
from collectives.schedule import Phase, Schedule
from collectives.state import Cell, empty_cells


def ring_pass(ranks: int) -> Schedule:
    """Rank 0's vector goes round the ring and back to rank 0: p steps, one message of N bytes in each."""
    p = check_ranks("send_recv.ring_pass", ranks)
    token = Cell(((0, 0),))
    start = empty_cells(p, 1)
    start[0, 0] = token
    says = "The rank that has the vector passes it to the right"
    phases = [Phase("ring pass", p, lambda k: move(k, (k + 1) % p), says)]
    goal = np.full((p, 1), token, dtype=object)
    return Schedule.from_phases("send_recv", "ring_pass", p, 1, phases, start={"data": start}, goal={"data": goal})


def shift(ranks: int) -> Schedule:
    """Every rank sends its vector to the right at the same time: one step of p messages of N bytes."""
    p = check_ranks("send_recv.shift", ranks)
    rank = np.arange(p)
    goal = np.array([[Cell((((r - 1) % p, 0),))] for r in range(p)])
    says = "Every rank sends its vector to the right"
    phases = [Phase("shift", 1, lambda _: move(rank, (rank + 1) % p, dst_buffer=1), says)]
    more: dict[str, Any] = {"buffers": ("data", "inbox"), "result": "inbox", "goal": {"inbox": goal}}
    return Schedule.from_phases("send_recv", "shift", p, 1, phases, **more)


def halo_exchange(ranks: int, chunks: int = 4, periodic: bool = False) -> Schedule:
    """A line (periodic: a circle) cut into p pieces: every rank needs the cells next to its piece from its neighbours.

    chunks: the number of cells in a piece of N bytes. One step; every rank sends one cell to each neighbour, where it
    arrives in chunk 0 of "left" or "right".
    """
    name = "send_recv.halo_exchange"
    p, chunks = check_ranks(name, ranks), whole(name, chunks, "chunks", 1)
    rank = np.arange(p)
    left, right = 1, 2

    def edges(_: int) -> Columns:
        to_right = move(rank, (rank + 1) % p, chunks - 1, dst_chunk=0, dst_buffer=left)
        to_left = move(rank, (rank - 1) % p, 0, dst_chunk=0, dst_buffer=right)
        return join(to_right, to_left) if periodic else join(where(rank < p - 1, to_right), where(rank > 0, to_left))

    goal = {side: np.full((p, chunks), None, dtype=object) for side in ("left", "right")}
    for r in range(p):
        if periodic or r > 0:
            goal["left"][r, 0] = Cell((((r - 1) % p, chunks - 1),))
        if periodic or r < p - 1:
            goal["right"][r, 0] = Cell((((r + 1) % p, 0),))
    phases = [Phase("halo exchange", 1, edges, "Every rank sends its outermost cells to its neighbours")]
    buffers = ("data", "left", "right")
    return Schedule.from_phases("send_recv", "halo_exchange", p, chunks, phases, buffers=buffers, goal=goal)


ALGORITHMS = (ring_pass, shift, halo_exchange)
