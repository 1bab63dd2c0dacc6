"""Schedules at scale: seconds of one core and memory to count and cost them, against the goals, and growth with p.

Every case runs in a fresh process, so that its peak memory is its own; imports are not counted.
"""

import os
import subprocess
import sys
import time

GOALS = {  # case: (what, seconds, megabytes)
    "ring": ("ring all-reduce, 4,096 ranks, 33.5 million transfers: counts and cost", 2.0, 1000),
    "trees": ("six trees and halving-doublings, 65,536 ranks, the slowest: counts and cost", 2.0, 1000),
    "sweep": ("all-reduce: 200 sizes, all algorithms, 256 ranks on 32 machines", 1.0, 1000),
}
GROWTH = (256, 1024, 4096)


def ring(ranks=4096):
    from collectives import Network, all_reduce

    schedule = all_reduce.ring(ranks)
    assert schedule.counts(nbytes=2**30).messages == 2 * ranks * (ranks - 1)
    assert schedule.cost(nbytes=2**30, network=Network(1e-5, 1e-9, 1e-10)).seconds > 0


def trees(ranks=65536):
    from collectives import Network, all_reduce, broadcast, reduce

    slowest = 0.0
    makers = (all_reduce.tree, all_reduce.pipelined_tree, all_reduce.double_tree, all_reduce.halving_doubling)
    for make in (*makers, broadcast.binomial, reduce.binomial):
        began = time.process_time()
        schedule = make(ranks)
        schedule.counts(nbytes=2**30)
        schedule.cost(nbytes=2**30, network=Network(1e-5, 1e-9, 1e-10))
        slowest = max(slowest, time.process_time() - began)
    return slowest


def sweep():
    """The algorithms of all-reduce, but for those that need other switches; pipelined ones four times each."""
    from collectives import compare, presets

    found = compare("all_reduce", 256, [10 ** (2 + i / 25) for i in range(200)], presets.dgx_h100(32))
    assert set(found.skipped) == {"nvls", "sharp"} and len(found.seconds) > 10


def measured(case: str, *arguments: str) -> tuple[float, float]:
    """Seconds and peak megabytes of a case in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks.bench_schedules", case, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    seconds = float(process.stdout.read())
    _, _, usage = os.wait4(process.pid, 0)
    return seconds, usage.ru_maxrss / 1000


def main():
    for case, (what, goal_seconds, goal_megabytes) in GOALS.items():
        seconds, megabytes = measured(case)
        print(f"{what}: {seconds:.2f} s ({seconds / goal_seconds:.2f} of the goal), {megabytes:.0f} MB "
              f"({megabytes / goal_megabytes:.2f})")  # fmt: skip
    for case, sizes in (("ring", GROWTH), ("trees", tuple(16 * ranks for ranks in GROWTH))):
        told = (f"p={ranks}: {measured(case, str(ranks))[0]:.3f} s" for ranks in sizes)
        print(f"growth of {case}: {', '.join(told)}")


if __name__ == "__main__":
    import collectives  # noqa: F401  (the import is not part of the figure)

    began = time.process_time()
    own = globals()[sys.argv[1]](*map(int, sys.argv[2:]))
    print(own or time.process_time() - began)
