"""Measured against predicted: cells on a network of one's choice, beside what `cost` says of the same network.

Every all_reduce algorithm carried out from its schedule by `launch.execute`'s programs, and every built-in, whose
price is that of the steps that gloo takes (launch/backends/gloo.py). On 4 and 8 ranks, flat and on two machines, with
64 kB, 1 MB and 16 MB. One table: predicted, measured, their ratio; and how much longer naive takes than the ring, as
predicted and as measured. A ratio off by more than a fifth is marked. What explains it stands before it: the time that
the ranks' processes have computed in all, shared out to the processors. Nothing can be quicker than that, and of eight
ranks on two cores it is soon as long as what the network needs; so those calls are counted apart in which the network
dominates, where the ranks compute for less than a fifth of what is predicted. And `cost` lets a step begin when the
last one is over on all ranks, while real ranks go on as soon as they can: where that is quicker (swing on machines, of
which half the pairs cross between them in each step) the line says what is predicted without it. The load of the
machine stands beside each part: beside other programs that compute, little here means anything.

Then what the network leaves behind: calls on ranks whose network was turned off against ranks that never had one
(1.00 is right), and how long it takes to prove a deadlock on a slow network against none.

    python -m tests.benchmarks network                  all of it; after 15 minutes what is left is left out
    RINGSIDE_BENCH=quick python -m tests.benchmarks network       4 ranks and 1 MB alone
    RINGSIDE_BENCH=8 python -m tests.benchmarks network           8 ranks alone
    RINGSIDE_BENCH=off python -m tests.benchmarks network         no table, what is left behind alone
    RINGSIDE_BENCH_SECONDS=3600 ...                               more time
"""

import os
import time
from collections import defaultdict

import numpy as np

from collectives import (
    Link,
    Network,
    Schedule,
    ScheduleError,
    Topology,
    Transfer,
    all_gather,
    all_reduce,
    all_to_all,
    broadcast,
    gather,
    scatter,
)
from collectives.catalogue import CATALOGUE, build
from collectives.units import duration, size
from launch.backends.gloo import steps_of
from launch.doctor.snapshot import How
from launch.execute import programs
from launch.networks import table
from launch.ranks import Ranks
from launch.shared.wires import Links

SECONDS = float(os.environ.get("RINGSIDE_BENCH_SECONDS", 900))
DOMINATES = 5  # times as long as the ranks compute: then the network does
LONG = 1.0  # seconds of a call that is done once, and not three times after one that does not count
FLAT = Network(alpha=2e-3, beta=1 / 25e6, name="flat")
INSIDE, BETWEEN = Link(alpha=1e-3, beta=1 / 100e6), Link(alpha=4e-3, beta=1 / 12.5e6)
SIZES = (64_000, 1_024_000, 16_384_000)
ROUNDS = 15  # in turns, of ranks whose network is off and ranks that had none


def of_gloo(op: str):
    """ranks -> what gloo sends inside, as a Schedule that has a price; it says nothing about the data."""

    def steps(p: int) -> Schedule:
        moves = [[Transfer(src, dst, 0, count=max(1, round(share * p))) for src, dst, share in step]
                 for step in steps_of(op, p, 0)]  # fmt: skip
        return Schedule.from_steps(op, "gloo", p, p, [("", "", step) for step in moves])

    return steps


BUILT_IN = {  # call, and what it costs: a Schedule, and its N as a multiple of x
    "all_reduce": ("dist.all_reduce(x)", all_reduce.ring, 1),
    "reduce_scatter_single": ("dist.reduce_scatter_single(piece, x)", all_reduce.ring, 1),
    "all_gather_single": ("dist.all_gather_single(x, piece)", all_gather.ring, 1),
    "broadcast": ("dist.broadcast(x, 0)", broadcast.binomial, 1),
    "reduce": ("dist.reduce(y, 0)", of_gloo("reduce"), 1),
    "barrier": ("dist.barrier()", of_gloo("barrier"), 1e-9),
    "gather": ("dist.gather(piece, list(x.chunk(world_size)) if rank == 0 else None, 0)", gather.flat, 1),
    "scatter": ("dist.scatter(piece, list(x.chunk(world_size)) if rank == 0 else None, 0)", scatter.flat, 1),
    "all_to_all_single": ("dist.all_to_all_single(y, x)", all_to_all.linear, 1),
}
SETUP = """
import resource, time
from launch.rank.perform import run as perform
x = torch.ones(NUMBERS)
y, piece = torch.empty_like(x), torch.empty(NUMBERS // world_size)
def computed():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
def together():
    "All ranks go on at the same moment: from a barrier, one comes earlier than the other. Late is late."
    soon = torch.tensor([time.monotonic() + 0.1], dtype=torch.float64)
    dist.broadcast(soon, 0)
    time.sleep(max(0, soon.item() - time.monotonic()))
    return soon.item()
def timed(call, times):
    if times > 1: call()
    found = []
    for _ in range(times):
        began, before = together(), computed()
        call()
        found.append((began, time.monotonic(), computed() - before))
    return found
"""
HEAD = f"  {'call':<36} {'predicted':>10} {'computed':>10} {'measured':>10} {'ratio':>6}"


def seconds(ranks: Ranks, call: str, times: int = 3) -> float:
    """From when all ranks began until the last was done: the best of so many."""
    return timed(ranks, call, times)[0]


def timed(ranks: Ranks, call: str, times: int) -> tuple[float, float]:
    """The same, and what all ranks computed in that turn, shared out to the processors."""
    for answer in ranks.execute(f"times = timed(lambda: {call}, {times})"):
        assert answer.how is How.LEFT, f"{call}: {answer.ename} {answer.evalue}"
    found = np.array(ranks.pull("times"))  # rank, turn, began or ended or computed
    took = found[:, :, 1].max(axis=0) - found[:, :, 0].min(axis=0)
    best = int(took.argmin())
    return float(took[best]), float(found[:, best, 2].sum()) / (os.cpu_count() or 1)


def main():
    asked, until = os.environ.get("RINGSIDE_BENCH", ""), time.monotonic() + SECONDS
    left_behind()
    if asked == "off":
        return
    sizes = SIZES[1:2] if asked == "quick" else SIZES
    calls: list[tuple[float, bool]] = []
    for p in {"quick": (4,), "8": (8,)}.get(asked, (4, 8)):
        machines = Topology.machines(2, gpus=p // 2, inside=INSIDE, between=BETWEEN, name=f"2 machines x {p // 2}")
        ranks = Ranks()
        try:
            ranks.ensure(p)
            for network, nbytes in ((network, nbytes) for nbytes in sizes for network in (FLAT, machines)):
                ranks.play(network)
                calls += case(ranks, p, network, nbytes, until)
        finally:
            ranks.close()
    summary("all calls", [ratio for ratio, _ in calls])
    summary("where the network dominates", [ratio for ratio, dominates in calls if dominates])


def summary(which: str, ratios: list[float]) -> None:
    if ratios:
        good = sum(0.8 <= ratio <= 1.2 for ratio in ratios)
        print(f"{which}: {good} of {len(ratios)} within 20 %; median {np.median(ratios):.2f}, "
              f"middle half {np.quantile(ratios, 0.25):.2f} to {np.quantile(ratios, 0.75):.2f}; {load()}")  # fmt: skip


def load() -> str:
    return f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"


def case(ranks: Ranks, p: int, network, nbytes: int, until: float) -> list[tuple[float, bool]]:
    """One part of the table: all calls with so many bytes on one network. Of each call how many times as long as
    predicted it took, and whether the network dominates in it."""
    print(f"{p} ranks, {network.name}, {size(nbytes)}; {load()}\n{HEAD}", flush=True)
    ranks.execute(SETUP.replace("NUMBERS", str(nbytes // 4 // (32 * p) * 32 * p)))
    calls = []
    for name in CATALOGUE["all_reduce"]:
        try:
            schedule = build("all_reduce", name, p, local=p // 2)
            schedule.cost(nbytes=nbytes, network=network)
        except ScheduleError:
            continue  # it does not take this p, or needs a switch that adds
        calls.append((f"{name} by hand", "perform(_programs, x, rank)", schedule, nbytes))
    for name, (call, algorithm, times) in BUILT_IN.items():
        calls.append((f"built-in {name}", call, algorithm(p), times * nbytes))
    found: dict[str, tuple[float, float, float]] = {}
    for name, call, schedule, amount in calls:
        predicted = schedule.cost(nbytes=amount, network=network).seconds
        times = 1 if predicted > LONG else 3
        if time.monotonic() + times * predicted > until:
            continue
        ranks.push(_programs=programs(schedule) if call.startswith("perform") else None)
        measured, computed = timed(ranks, call, times)
        found[name] = predicted, measured, computed
        print(line(name, predicted, computed, measured, at_once(schedule, amount, network)), flush=True)
    if len(found) < len(calls):
        print(f"  no time for {len(calls) - len(found)} more")
    if {"naive by hand", "ring by hand"} <= found.keys():
        naive, ring = found["naive by hand"], found["ring by hand"]
        print(f"  naive takes {naive[0] / ring[0]:.2f} times as long as the ring as predicted, "
              f"{naive[1] / ring[1]:.2f} times as measured")  # fmt: skip
    return [
        (measured / predicted, DOMINATES * computed <= predicted) for predicted, measured, computed in found.values()
    ]


def at_once(schedule: Schedule, nbytes: float, network) -> float:
    """Seconds that it takes if a rank begins a step as soon as its own part of the last one is over."""
    plan = table(network, schedule.ranks)
    links, ready = Links(len(plan["betas"]), schedule.ranks), [0.0] * schedule.ranks
    for step in schedule.steps:
        chunks: dict[tuple[int, int], int] = defaultdict(int)
        for t in step.transfers:
            if t.src != t.dst:
                chunks[t.src, t.dst] += t.count
        after = list(ready)
        for begins, (src, dst) in sorted((max(ready[src], ready[dst]), (src, dst)) for src, dst in chunks):
            carried = round(chunks[src, dst] * nbytes / schedule.chunks)
            left, arrives = links.send(plan["ways"][src][dst], plan["betas"], begins, carried)
            after[src], after[dst] = max(after[src], left), max(after[dst], arrives)
        ready = after
    return max(ready)


def line(name: str, predicted: float, computed: float, measured: float, at_once: float) -> str:
    ratio = measured / predicted
    mark = "" if 0.8 <= ratio <= 1.2 else "  <--"
    mark += f"  {duration(at_once)} if no rank waits for the others' step" if at_once < 0.95 * predicted else ""
    return (
        f"  {name:<36} {duration(predicted):>10} {duration(computed):>10} {duration(measured):>10} {ratio:>6.2f}{mark}"
    )


def left_behind() -> None:
    """What a network that was turned off costs, and what a slow one costs the doctor."""
    never, off = Ranks(), Ranks()
    try:
        for ranks in (never, off):
            ranks.ensure(4)
            ranks.execute(SETUP.replace("NUMBERS", "262144"))
        off.play(FLAT)
        off.execute("dist.all_reduce(x)")
        off.play(None)
        print(f"a network that was turned off against none, medians of {ROUNDS} in turns; {load()}")
        for call in ("dist.all_reduce(x)", "dist.send(x, rank + 1) if rank % 2 == 0 else dist.recv(x, rank - 1)"):
            both = np.array([[seconds(ranks, call) for ranks in (off, never)] for _ in range(ROUNDS)])
            was_on, was_not = np.median(both, axis=0)
            print(
                f"  {call.partition('(')[0]} of 1 MB: {was_on / was_not:.2f} ({duration(was_on)}, {duration(was_not)})"
            )
        off.play(Network(alpha=1.0, beta=1 / 1e5))
        both = np.array([[proof(off), proof(never)] for _ in range(5)])
        slow, without = np.median(both, axis=0)
        print(f"  proof of a deadlock, network of 1 s and 100 kB/s against none: {slow / without:.2f} "
              f"({duration(slow)}, {duration(without)}); {load()}")  # fmt: skip
    finally:
        never.close()
        off.close()


def proof(ranks: Ranks) -> float:
    began = time.perf_counter()
    answers = ranks.execute("if rank != 2: dist.all_reduce(x)")
    assert answers[0].trouble is not None
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
