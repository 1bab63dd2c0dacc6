"""`stops`: how long saving a checkpoint to a slow disk stops training (chapter 18).

Left out: how long the write itself takes.
"""

import time
from collections.abc import Callable
from typing import Any

import torch.distributed as dist
from torch.distributed.checkpoint import FileSystemWriter


class SlowDisk(FileSystemWriter):
    """Half a second slower, as a disk that many jobs share."""

    def write_data(self, plan, planner):
        time.sleep(0.5)
        return super().write_data(plan, planner)


def stops(save: Callable[..., Any], state: dict, folder: str, **more: Any) -> tuple[float, Any]:
    """Seconds until `save` returns, and what it returns; every rank must call it."""
    dist.barrier()
    start = time.perf_counter()
    saving = save(state, storage_writer=SlowDisk(folder), **more)
    return time.perf_counter() - start, saving
