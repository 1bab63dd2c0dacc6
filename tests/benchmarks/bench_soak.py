"""500 random faults in one notebook kernel: explained rightly? variables kept? how long until usable? what grows?

`python -m tests.benchmarks soak`, or `python -m tests.benchmarks.bench_soak 100 7` for 100 faults from seed 7. The
kernel is driven over the Jupyter protocol, as JupyterLab drives it. The number of ranks changes now and then, as a
student's does; a rank that dies in a fault is the only one that may lose its variable.
"""

import random
import re
import statistics
import sys
import time

import psutil

from tests.launch.faults import FAULTS
from tests.launch.notebook import Notebook, Output

PER_SIZE = 50  # faults before the number of ranks changes
DELAYS = ("", "time.sleep(0.02 * rank)", "if rank == victim: time.sleep(0.1)", "if rank != victim: time.sleep(0.1)")
REMEMBER = "import time, os\nsentinel = 7 * rank"
PROBE = "probe = torch.ones(1)\ndist.all_reduce(probe)\nanswer = (probe.item(), globals().get('sentinel'))"


def main(faults: int = 500, seed: int = 0):
    rng, notebook = random.Random(seed), Notebook()
    size, seconds, wrong, lost, sizes = 0, [], [], 0, []
    well(notebook.run("%load_ext launch\nimport launch"))
    try:
        for number in range(faults):
            if number % PER_SIZE == 0:
                size = rng.choice([other for other in (2, 4, 8) if other != size])
                well(notebook.run(f"%%ranks {size}\n{REMEMBER}"))
                sizes.append(usage(notebook, size))
                print(f"{number} faults so far, now {size} ranks: {sizes[-1]}", flush=True)
            name = rng.choice([name for name, fault in FAULTS.items() if size in fault.sizes])
            victim = rng.randrange(1, size) if name in ("root", "batch") else rng.randrange(size)
            fault = FAULTS[name]
            code = fault.code(victim, rng.choice(DELAYS)).replace("\n", "; ", 1)  # %%ranks is line 1
            began = time.monotonic()
            said = notebook.run(f"%%ranks\n{code}").error
            seconds.append(time.monotonic() - began)
            if not re.fullmatch(f"{fault.kind}: {fault.pattern(victim, size)}", said):
                wrong.append((name, said))
            lost += check(notebook, size, {victim} if fault.dies else set())
            well(notebook.run(f"%%ranks\n{REMEMBER}"))
        sizes.append(usage(notebook, size))
    finally:  # also of a soak that is broken off
        report(seconds, wrong, lost, sizes)
        notebook.close()


def well(output: Output) -> None:
    assert not output.error, output.error


def check(notebook: Notebook, size: int, dead: set[int]) -> int:
    """All ranks must answer an all_reduce; how many living ones have lost their variable."""
    well(notebook.run(f"%%ranks\n{PROBE}"))
    answers = notebook.value("[tuple(answer) for answer in launch.pull('answer')]")
    assert [total for total, _ in answers] == [size] * size, answers
    return sum(known != 7 * rank for rank, (_, known) in enumerate(answers) if rank not in dead)


def usage(notebook: Notebook, size: int) -> dict[str, tuple[int, int]]:
    """(megabytes of its own, open files) of the kernel, of the agent, and the most that a rank has."""
    kernel = psutil.Process(notebook.pid)
    (agent,) = (child for child in kernel.children() if "launch.agent" in child.cmdline())
    ranks = agent.children()
    assert len(ranks) == size, f"{size} ranks and {len(ranks)} processes"
    own = {process: process.memory_full_info().uss >> 20 for process in (kernel, agent, *ranks)}
    return {
        "kernel": (own[kernel], kernel.num_fds()),
        "agent": (own[agent], agent.num_fds()),
        "rank": (max(own[rank] for rank in ranks), max(rank.num_fds() for rank in ranks)),
    }


def report(seconds, wrong, lost, sizes):
    print(f"{len(seconds)} faults, {len(seconds) - len(wrong)} explained rightly, {lost} variables lost")
    print(f"seconds until the cell has ended and the ranks are usable: median {statistics.median(seconds):.2f}, "
          f"99 of 100 within {sorted(seconds)[int(len(seconds) * 0.99)]:.2f}, worst {max(seconds):.2f}")  # fmt: skip
    for who in ("kernel", "agent", "rank"):
        print(f"{who} MB: {' '.join(str(size[who][0]) for size in sizes)}")
        print(f"{who} open files: {' '.join(str(size[who][1]) for size in sizes)}")
    for name, said in wrong[:20]:
        print(f"NOT EXPLAINED {name}: {said[:300]}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
