"""Measured against predicted: cells on a network of one's choice, beside what `cost` says of the same network.

Every all_reduce algorithm carried out from its schedule by `launch.execute`'s programs, and every built-in, whose
price is that of the steps that gloo takes (launch/rank/inside.py). On 4 and 8 ranks, flat and on two machines, from
64 kB to 16 MB. One table of measured / predicted, best of three. Ratios off by more than a fifth are marked: at 64 kB
Python needs as long for a message as the network does, and on two cores eight ranks take turns.

    python -m tests.benchmarks network                all of it, ten minutes
    RINGSIDE_BENCH=quick python -m tests.benchmarks network     4 ranks and 1 MB alone
"""

import os

import numpy as np

from collectives import (
    Link,
    Network,
    ScheduleError,
    Topology,
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    gather,
    scatter,
)
from collectives.catalogue import CATALOGUE, build
from collectives.compare import duration, size
from launch.doctor.snapshot import How
from launch.execute import programs
from launch.ranks import Ranks

FLAT = Network(alpha=2e-3, beta=1 / 25e6)
INSIDE, BETWEEN = Link(alpha=1e-3, beta=1 / 100e6), Link(alpha=4e-3, beta=1 / 12.5e6)
SIZES = (64_000, 1_024_000, 16_384_000)
BUILT_IN = {  # call, and what it costs: a Schedule, and its N as a multiple of x
    "all_reduce": ("dist.all_reduce(x)", all_reduce.ring, 1),
    "reduce_scatter_single": ("dist.reduce_scatter_single(piece, x)", all_reduce.ring, 1),
    "all_gather_single": ("dist.all_gather_single(x, piece)", all_gather.ring, 1),
    "broadcast": ("dist.broadcast(x, 0)", broadcast.binomial, 1),
    "gather": ("dist.gather(piece, list(x.chunk(world_size)) if rank == 0 else None, 0)", gather.flat, 1),
    "scatter": ("dist.scatter(piece, list(x.chunk(world_size)) if rank == 0 else None, 0)", scatter.flat, 1),
    "all_to_all_single": ("dist.all_to_all_single(y, x)", all_to_all.linear, 1),
}
SETUP = """
import time
from launch.rank.perform import run as perform
x = torch.ones(NUMBERS)
y, piece = torch.empty_like(x), torch.empty(NUMBERS // world_size)
def timed(call, times=3):
    call()
    found = []
    for _ in range(times):
        dist.barrier()
        began = time.monotonic()
        call()
        found.append((began, time.monotonic()))
    return found
"""


def seconds(ranks: Ranks, call: str) -> float:
    """From when the first rank began until the last was done: the best of three."""
    for answer in ranks.execute(f"times = timed(lambda: {call})"):
        assert answer.how is How.LEFT, f"{call}: {answer.ename} {answer.evalue}"
    times = np.array(ranks.pull("times"))  # rank, turn, began or ended
    return float((times[:, :, 1].max(axis=0) - times[:, :, 0].min(axis=0)).min())


def main():
    quick = os.environ.get("RINGSIDE_BENCH") == "quick"
    ratios = []
    ranks = Ranks()
    try:
        for p in (4,) if quick else (4, 8):
            ranks.ensure(p)
            machines = Topology.machines(2, gpus=p // 2, inside=INSIDE, between=BETWEEN, name=f"2 machines x {p // 2}")
            for network in (FLAT, machines):
                ranks.play(network)
                for nbytes in SIZES[1:2] if quick else SIZES:
                    ratios += case(ranks, p, network, nbytes)
    finally:
        ranks.close()
    good = sum(0.8 <= ratio <= 1.2 for ratio in ratios)
    print(f"{good} of {len(ratios)} within 20 %; median {np.median(ratios):.2f}, "
          f"middle half {np.quantile(ratios, 0.25):.2f} to {np.quantile(ratios, 0.75):.2f}")  # fmt: skip


def case(ranks: Ranks, p: int, network, nbytes: int) -> list[float]:
    ranks.execute(SETUP.replace("NUMBERS", str(nbytes // 4 // (32 * p) * 32 * p)))
    print(f"{p} ranks, {network.name or 'flat'}, {size(nbytes)}")
    found = []
    for name in CATALOGUE["all_reduce"]:
        try:
            schedule = build("all_reduce", name, p, local=p // 2)
            schedule.cost(nbytes=nbytes, network=network)
        except ScheduleError:
            continue  # it does not take this p, or needs a switch that adds
        ranks.push(_programs=programs(schedule))
        found.append(line(f"by hand {name}", seconds(ranks, "perform(_programs, x, rank)"), schedule, nbytes, network))
    for name, (call, algorithm, times) in BUILT_IN.items():
        found.append(line(f"built-in {name}", seconds(ranks, call), algorithm(p), times * nbytes, network))
    return found


def line(name: str, measured: float, schedule, nbytes: int, network) -> float:
    predicted = schedule.cost(nbytes=nbytes, network=network).seconds
    ratio = measured / predicted
    mark = "" if 0.8 <= ratio <= 1.2 else "  <-- "
    print(
        f"  {name:32} measured {duration(measured):>8}  predicted {duration(predicted):>8}  {ratio:5.2f}{mark}",
        flush=True,
    )
    return ratio


if __name__ == "__main__":
    main()
