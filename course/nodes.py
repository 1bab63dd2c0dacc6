"""`scratch()`: what chapter 18 needs to start torchrun from its cells: a folder of its own, a port, and a quiet log.

Left out: anything that a job on a cluster needs.
"""

import os
import random
import sys
import tempfile
from pathlib import Path

_folders: list[tempfile.TemporaryDirectory] = []
"""They are deleted when the kernel stops."""


def scratch() -> None:
    """Make a scratch folder the working directory, and set the environment of the processes that cells start."""
    _folders.append(tempfile.TemporaryDirectory())
    os.chdir(_folders[-1].name)
    os.environ |= {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # torchrun is in the same folder as python
        "PORT": str(random.randrange(20_000, 29_000)),  # outside the range that the OS assigns
        "OMP_NUM_THREADS": "1",  # torchrun warns if this is missing
        "TORCH_CPP_LOG_LEVEL": "ERROR",
        "TORCH_LOGS": "-torch.distributed.elastic.rendezvous",  # no warning from the node that finishes last
        "RES_OPTIONS": "timeout:1 attempts:1",  # skip a slow reverse-DNS lookup
    }
