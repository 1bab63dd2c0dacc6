"""How long the first byte takes if ranks do not run in step: the longest chain of messages that wait for each other.

A library that cuts messages into slices passes a slice on as soon as it has it. A call then takes the latency of a
chain of hops, each with its own alpha, plus the time that links need for all their bytes. NCCL estimates it like this
(src/graph/tuning.cc): a ring of 4 x 8 GPUs takes 54 hops inside machines and 8 between them; if each step waited for
its slowest message, it would take 62 between them.

Left out: that slices have a length, and that a rank which sends to several at once serves them one after the other.
"""

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from collectives.columns import NEW, REDUCE, Columns, where
from collectives.network import Network, Topology

if TYPE_CHECKING:
    from collectives.schedule import Schedule


# They are the same for every N, and 1,024 ranks take seconds. Weak: a recording must not outlive its last user here.
_known: WeakKeyDictionary["Schedule", dict[Network | Topology, tuple[float, ...]]] = WeakKeyDictionary()


def latencies(schedule: "Schedule", network: Network | Topology) -> tuple[float, ...]:
    """For each step, the seconds that the longest chain up to its end takes if messages have no length."""
    known = _known.setdefault(schedule, {})
    if network not in known:
        known[network] = _latencies(schedule, network)
    return known[network]


def _latencies(schedule: "Schedule", network: Network | Topology) -> tuple[float, ...]:
    late = np.zeros((len(schedule.buffers), schedule.ranks, schedule.chunks))  # when the content of each place arrived
    ends: list[float] = []
    for step in schedule.steps:
        moves = step.columns
        remote, sent = np.asarray(moves.src != moves.dst), np.asarray(moves.op) != NEW
        messages = where(remote & sent, moves)
        alpha = network.alphas(messages.src, messages.dst, step.in_network)
        ends.append(max(ends[-1] if ends else 0.0, _arrive(late, messages, alpha)))
        local = where(~remote & sent, moves)
        _arrive(late, local, np.zeros(len(local.src)))
    return tuple(ends)


def _arrive(late: np.ndarray, moves: Columns, alpha: np.ndarray) -> float:
    """Writes to `late` when each of these transfers arrives, and returns when the last one does.

    A transfer of several chunks leaves when the last of them is ready.
    """
    if not len(moves.src):
        return 0.0
    count = np.asarray(moves.count)
    begins = np.cumsum(count) - count
    index = np.repeat(np.arange(len(count)), count)
    offset = np.arange(len(index)) - begins[index]
    _, ranks, chunks = late.shape
    flat = late.reshape(-1)  # one number for each place: numpy is far slower with three
    first = (moves.src_buffer * ranks + moves.src) * chunks + moves.chunk
    place = ((moves.dst_buffer * ranks + moves.dst) * chunks + moves.dst_chunk)[index] + offset
    arrives = (np.maximum.reduceat(flat[first[index] + offset], begins) + alpha)[index]
    added = np.asarray(moves.op == REDUCE)[index]
    latest = np.where(added, np.maximum(flat[place], arrives), arrives)
    flat[place] = 0.0
    np.maximum.at(flat, place, latest)
    return float(arrives.max())
