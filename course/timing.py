"""How long ranks take for something together: `seconds`, which chapter 5 shows in full and later chapters import.

Left out: where the time goes. A Timeline shows that.
"""

import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist


def seconds(function: Callable[..., Any], *arguments: Any, tries: int = 3) -> float:
    """The time of `function(*arguments)` on the slowest rank, in the fastest of the tries; every rank must call it."""
    best = float("inf")
    for _ in range(tries):
        dist.barrier()
        start = time.perf_counter()
        function(*arguments)
        took = torch.tensor(time.perf_counter() - start, dtype=torch.float64)
        dist.all_reduce(took, op=dist.ReduceOp.MAX)  # not timed: the slowest rank's time, on every rank
        best = min(best, took.item())
    return best
