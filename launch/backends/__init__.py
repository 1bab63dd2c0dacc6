"""What torch.distributed's backends need of Ringside: which there are, and what each wants of machine and ranks.

A backend is one line of `BACKENDS`, read in the notebook's kernel and in the ranks. What only gloo has is in gloo.py,
which runs in a rank. A third backend has its place here; docs/adding.md tells what was tried.

The notebook's kernel imports this module and not torch. Left out: getting out of a wait in NCCL, which the stop button
and the doctor do for gloo. NCCL has not run here on GPUs yet.
"""

from __future__ import annotations

from dataclasses import dataclass

FORKED_RANK = 60 << 20  # bytes; measured PSS of a rank that shares the agent's pages, after its first cells
SPAWNED_RANK = 300 << 20  # bytes; a rank with its own copy of everything


@dataclass(frozen=True)
class Backend:
    """`in_torch` is its name for init_process_group. `gpus` a rank needs for itself. `forks`: whether ranks may be
    forked, each of which then takes `memory` bytes; else each is started as an interpreter of its own."""

    in_torch: str
    gpus: int
    forks: bool

    @property
    def memory(self) -> int:
        return FORKED_RANK if self.forks else SPAWNED_RANK


BACKENDS = {
    "gloo": Backend("gloo", gpus=0, forks=True),
    # Tensors in host memory still go through gloo. A process with a CUDA context must not be forked.
    "nccl": Backend("cpu:gloo,cuda:nccl", gpus=1, forks=False),
}


def gpu_count() -> int:
    """GPUs that torch could use, asked of NVML: a CUDA context in the agent would make forking unsafe."""
    import torch

    return max(0, torch.cuda._device_count_nvml()) if torch.distributed.is_nccl_available() else 0
