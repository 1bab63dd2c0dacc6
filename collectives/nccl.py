"""What NCCL would take: its all-reduce algorithms and protocols on machines of 8 H100, priced by this package's model.

NCCL estimates for each call the time of every algorithm with every protocol, and takes the least (src/graph/tuning.cc).
So does `choose`, with schedules instead of formulas: the latency of the longest chain, and the bytes of the busiest
link (`pipelined`), on the bandwidths that NCCL reaches (`presets.EFFECTIVE`).

Left out: that NCCL takes fewer channels and threads for short vectors, its correction factors for vectors of middle
length, the latencies of its own for trees (between machines 5 us instead of 2.7 for LL; for NVLSTree 14 in NCCL 2.28,
as here, but 20.9 from 2.29 on), the least that it charges for a hop of a ring on several machines (1 us or more),
CollNet, and every other machine.
"""

from functools import lru_cache
from typing import NamedTuple

from collectives import all_reduce
from collectives.errors import ScheduleError, whole
from collectives.network import Topology
from collectives.pipelined import latencies
from collectives.presets import PROTOCOLS, dgx_h100
from collectives.schedule import Schedule

PIECES = 8  # that trees cut their share into; pipelined, only their number of steps depends on it

# The most busbw that NCCL counts for LL on Hopper: 1, 2 and more machines (NCCL 2.28, src/graph/tuning.cc, llMaxBws).
LL_MOST = (141e9, 45e9, 35e9)


class Choice(NamedTuple):
    """An algorithm of `collectives.all_reduce` with a protocol; `busbw` in bytes per second, as in nccl-tests."""

    algorithm: str
    protocol: str
    seconds: float
    busbw: float


def choices(nbytes: float, machines: int = 1, nvls: bool = True) -> list[Choice]:
    """Everything that NCCL could take for an all_reduce of `nbytes` on `machines` machines of 8 H100, fastest first.

    `nvls=False` is what NCCL_NVLS_ENABLE=0 does. ScheduleError for no machine, and for a negative nbytes.
    """
    machines = whole("nccl.choices", machines, "machines", 1)
    if nbytes < 0:
        raise ScheduleError(f"nccl.choices: nbytes must not be negative, got {nbytes}")
    found = []
    for protocol, how in PROTOCOLS.items():
        network = _network(machines, protocol)
        for schedule in _algorithms(machines, nvls and protocol == "Simple"):
            cost = schedule.cost(nbytes, network=network, pipelined=True)
            seconds = how.call * (not schedule.algorithm.startswith("nvls")) + cost.seconds
            if protocol == "LL":
                sent = 2 if schedule.algorithm == "nccl_tree" else 2 * (schedule.ranks - 1) / schedule.ranks
                latency = how.call + latencies(schedule, network)[-1]
                seconds = max(seconds, latency + sent * nbytes / LL_MOST[min(machines, 3) - 1])
            found.append(Choice(schedule.algorithm, protocol, seconds, cost.busbw * cost.seconds / seconds))
    return sorted(found, key=lambda choice: choice.seconds)


def choose(nbytes: float, machines: int = 1, nvls: bool = True) -> Choice:
    """The fastest of `choices`."""
    return choices(nbytes, machines, nvls)[0]


@lru_cache  # the same objects for every size, whose latencies are then known
def _network(machines: int, protocol: str) -> Topology:
    return dgx_h100(machines, protocol, effective=True)


@lru_cache
def _algorithms(machines: int, nvls: bool) -> list[Schedule]:
    """Ring and Tree; where switches add, which is with the protocol Simple only, NVLS in one machine, NVLSTree in more.
    In one machine all of Tree is a chain, which NCCL takes with LL and LL128 only, and a ring is faster."""
    if machines == 1:
        return [all_reduce.ring(8), *([all_reduce.nvls(8)] if nvls else [])]
    trees = [all_reduce.nvls_tree(machines, 8, PIECES)] if nvls else []
    return [all_reduce.multi_ring(machines, 8), all_reduce.nccl_tree(machines, 8, PIECES), *trees]
