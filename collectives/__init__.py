"""Collective communication as plain data: schedules, what they do to buffers, what they cost. Needs numpy alone.

from collectives import Network, all_reduce, compare
ring = all_reduce.ring(ranks=4)
ring.check()
ring.counts(nbytes=1_000_000).busiest
ring.cost(nbytes=1_000_000, network=Network(alpha=1e-5, beta=1e-9)).seconds
"""

from collectives import (
    all_gather,
    all_reduce,
    all_to_all,
    barrier,
    broadcast,
    gather,
    memory,
    nccl,
    pipeline,
    presets,
    reduce,
    reduce_scatter,
    scatter,
    send_recv,
)
from collectives.catalogue import CATALOGUE, algorithms, build
from collectives.compare import compare
from collectives.network import Link, Network, Topology
from collectives.run import Run
from collectives.saved import SavedRun, load
from collectives.schedule import Cell, Schedule, ScheduleError, State, Step, Transfer
from collectives.trace import Trace

__all__ = [
    "CATALOGUE",
    "Cell",
    "Link",
    "Network",
    "Run",
    "SavedRun",
    "Schedule",
    "ScheduleError",
    "State",
    "Step",
    "Topology",
    "Trace",
    "Transfer",
    "algorithms",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "barrier",
    "broadcast",
    "build",
    "compare",
    "gather",
    "load",
    "memory",
    "nccl",
    "pipeline",
    "presets",
    "reduce",
    "reduce_scatter",
    "scatter",
    "send_recv",
]
