"""500 random faults in one session: explained rightly? variables kept? how long until usable? does anything grow?

`python -m tests.benchmarks soak`, or `python -m tests.benchmarks.bench_soak 100 7` for 100 faults from seed 7. The
number of ranks changes now and then, as a student's does; a rank that dies in a fault is the only one that may lose
its variable.
"""

import random
import re
import statistics
import sys
import time

import psutil

from launch import output
from launch.errors import RankError
from launch.ranks import Ranks
from tests.launch.faults import FAULTS

PER_SIZE = 50  # faults before the number of ranks changes
DELAYS = ("", "time.sleep(0.02 * rank)", "if rank == victim: time.sleep(0.1)", "if rank != victim: time.sleep(0.1)")


def main(faults: int = 500, seed: int = 0):
    rng, ranks = random.Random(seed), Ranks()
    seconds, wrong, lost, sizes = [], [], 0, []
    try:
        for number in range(faults):
            if number % PER_SIZE == 0:
                ranks.ensure(rng.choice([size for size in (2, 4, 8) if size != ranks.size]))
                run(ranks, "import time, os\nsentinel = 7 * rank")
                sizes.append(usage(ranks))
            name = rng.choice([name for name, fault in FAULTS.items() if ranks.size in fault.sizes])
            victim = rng.randrange(1, ranks.size) if name in ("root", "batch") else rng.randrange(ranks.size)
            fault = FAULTS[name]
            began = time.monotonic()
            said = run(ranks, fault.code(victim, rng.choice(DELAYS)))
            seconds.append(time.monotonic() - began)
            if not re.fullmatch(f"{fault.kind}: {fault.pattern(victim, ranks.size)}", said):
                wrong.append((name, said))
            lost += check(ranks, {victim} if fault.dies else set())
            run(ranks, "import time, os\nsentinel = 7 * rank")
        report(seconds, wrong, lost, sizes + [usage(ranks)])
    finally:
        ranks.close()


def run(ranks, code: str) -> str:
    """What the notebook would say: 'DeadlockError: ...', or '' if the cell went well."""
    try:
        output.raise_failures(ranks.execute(code))
    except RankError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def check(ranks, dead: set[int]) -> int:
    """All ranks must answer an all_reduce; how many living ones have lost their variable."""
    said = run(ranks, "probe = torch.ones(1)\ndist.all_reduce(probe)\nknown = globals().get('sentinel')")
    assert not said and [probe.item() for probe in ranks.pull("probe")] == [ranks.size] * ranks.size, said
    return sum(known != 7 * rank for rank, known in enumerate(ranks.pull("known")) if rank not in dead)


def usage(ranks) -> tuple[int, int, int, int]:
    """Megabytes and open files of this process, and the most that a rank has."""
    me = psutil.Process()
    members = [psutil.Process(member.pid) for member in ranks.crew.members]
    memory = max(process.memory_full_info().uss for process in members)
    return me.memory_info().rss >> 20, me.num_fds(), memory >> 20, max(process.num_fds() for process in members)


def report(seconds, wrong, lost, sizes):
    print(f"{len(seconds)} faults, {len(seconds) - len(wrong)} explained rightly, {lost} variables lost")
    print(f"seconds until the cell has ended and the ranks are usable: median {statistics.median(seconds):.2f}, "
          f"99 of 100 within {sorted(seconds)[int(len(seconds) * 0.99)]:.2f}, worst {max(seconds):.2f}")  # fmt: skip
    for name, place in (("driver MB", 0), ("driver open files", 1), ("rank MB (private)", 2), ("rank open files", 3)):
        print(f"{name}: {' '.join(str(size[place]) for size in sizes)}")
    for name, said in wrong[:20]:
        print(f"NOT EXPLAINED {name}: {said[:300]}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
