"""Every fault and every mistake of the campaign, twenty times: are they always told in the same words?

`python -m tests.benchmarks words`, or `python -m tests.benchmarks.bench_words 5 1 2`: five times, the second half.
A line for each that was told in more than one way, and one at the end. Takes half an hour on two cores.
"""

import sys
import time

from launch.ranks import Ranks
from tests.launch.faults import FAULTS, HEAD
from tests.launch.mistakes import ALONE, MISTAKES, SIZE, VICTIM
from tests.launch.test_fault_campaign import in_words, of_size

BETWEEN = 30.0  # seconds between two lines that say how far it is


def cells() -> list[tuple[str, int, str]]:
    """(name, how many ranks, the cell)."""
    faults = [(name, size := max(fault.sizes[:2]), fault.code(1 % size)) for name, fault in FAULTS.items()]
    head = HEAD.format(victim=VICTIM, late="pass")
    mistakes = [(name, SIZE, head + cell) for name, (cell, _) in MISTAKES.items()]
    head = HEAD.format(victim=0, late="pass")
    return faults + mistakes + [(name, 1, head + cell) for name, (cell, _) in ALONE.items()]


def main(times: int = 20, part: int = 0, parts: int = 1) -> None:
    ranks, varying, said_at = Ranks(), 0, time.monotonic()
    try:
        chosen = cells()[part::parts]
        for number, (name, size, cell) in enumerate(chosen):
            if time.monotonic() - said_at > BETWEEN:
                said_at = time.monotonic()
                print(f"{number} of {len(chosen)}", flush=True)
            words = set()
            for _ in range(times):
                of_size(ranks, size)
                words.add(in_words(ranks, cell))
            varying += len(words) > 1
            if len(words) > 1:
                print(f"{name}, {size} ranks:", *sorted(words), sep="\n    ", flush=True)
        print(f"{len(chosen)} cells, {times} times each: {len(chosen) - varying} always in the same words")
    finally:
        ranks.close()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
