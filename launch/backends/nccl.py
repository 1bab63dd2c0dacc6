"""What is NCCL's alone: a GPU for every rank.

Left out: getting out of a wait in NCCL, which the stop button and the doctor do for gloo (gloo.py). It has not run on
GPUs yet.
"""

from __future__ import annotations

import torch


def gpu_count() -> int:
    """GPUs that torch could use, asked of NVML: a CUDA context in the agent would make forking unsafe."""
    return max(0, torch.cuda._device_count_nvml()) if torch.distributed.is_nccl_available() else 0


def settle(rank: int) -> None:
    """The rank's own GPU, which everything of it goes to that names no other."""
    torch.cuda.set_device(rank)
