"""How Ringside grows with the number of ranks, beside an import of torch, the least that a first cell can take.

The exponent is the slope of a line through the logarithms: 1 is proportional to the ranks, 0 does not grow. One run for
each number of ranks, in a new kernel. bench_schedules has the growth of schedules, bench_player that of the Player.
"""

import math
import statistics
import subprocess
import sys
import time

from tests.benchmarks.bench_peers import ROWS, SCALE, WAYS, measured

RANKS = (2, 4, 8, 16, 32, 64, 128)


def main(ranks: tuple[int, ...] = RANKS) -> None:
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import torch"], check=True)
    print(f"import torch: {time.monotonic() - began:.2f} s")
    runs = [measured(WAYS[0], sys.executable, n, short=True) for n in ranks]
    for row in runs[0]:
        found = {n: run[row] for n, run in zip(ranks, runs, strict=True) if isinstance(run.get(row), float)}
        told = ", ".join(f"{n}: {value * SCALE.get(row, 1):.3g}" for n, value in found.items())
        print(f"{ROWS[row]}: {told}; exponent {exponent(found):.2f}")


def exponent(found: dict[int, float]) -> float:
    logs = ([math.log(value) for value in values] for values in (found, found.values()))
    return statistics.linear_regression(*logs).slope


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or RANKS)
