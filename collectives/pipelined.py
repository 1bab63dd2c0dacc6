"""How long the first byte takes if ranks do not run in step: the longest chain of messages that wait for each other.

A library that cuts messages into slices passes a slice on as soon as it has it. A call then takes the latency of a
chain of hops, each with its own alpha, plus the time that links need for all their bytes. NCCL estimates it like this
(src/graph/tuning.cc): a ring of 4 x 8 GPUs takes 54 hops inside machines and 8 between them; if each step waited for
its slowest message, it would take 62 between them.

Left out: that slices have a length, and that a rank which sends to several at once serves them one after the other.
"""

from typing import TYPE_CHECKING

import numpy as np

from collectives.columns import NEW, REDUCE, Columns, where
from collectives.network import Network, Topology

if TYPE_CHECKING:
    from collectives.schedule import Schedule


def latencies(schedule: "Schedule", network: Network | Topology) -> list[float]:
    """For each step, the seconds that the longest chain up to its end takes if messages have no length."""
    late = np.zeros((len(schedule.buffers), schedule.ranks, schedule.chunks))  # when the content of each place arrived
    ends: list[float] = []
    for step in schedule.steps:
        moves = where(np.asarray(step.columns.op) != NEW, step.columns)
        remote = np.asarray(moves.src != moves.dst)
        messages = where(remote, moves)
        alpha = network.alphas(messages.src, messages.dst, step.in_network)
        ends.append(max(ends[-1] if ends else 0.0, _arrive(late, messages, alpha)))
        local = where(~remote, moves)
        _arrive(late, local, np.zeros(len(local.src)))
    return ends


def _arrive(late: np.ndarray, moves: Columns, alpha: np.ndarray) -> float:
    """Writes to `late` when each of these transfers arrives, and returns when the last one does.

    A transfer of several chunks leaves when the last of them is ready.
    """
    src, dst, chunk, dst_chunk, count, op, src_buffer, dst_buffer = map(np.asarray, moves)
    if not len(src):
        return 0.0
    begins = np.cumsum(count) - count
    index = np.repeat(np.arange(len(src)), count)
    offset = np.arange(len(index)) - begins[index]
    leaves = np.maximum.reduceat(late[src_buffer[index], src[index], chunk[index] + offset], begins)
    arrives = leaves + alpha
    place = (dst_buffer[index], dst[index], dst_chunk[index] + offset)
    added = op[index] == REDUCE
    there = late[place]
    late[place] = 0.0
    np.maximum.at(late, place, np.where(added, np.maximum(there, arrives[index]), arrives[index]))
    return float(arrives.max())
