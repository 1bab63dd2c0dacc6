"""`%ranks attach`: what a student reads while machines come, and the command that starts them.

An engine that is there already (torchrun, Slurm) places one `python -m launch.machine` on each machine; these dial out
to the notebook (kernel/attach.py), and every `%%ranks` cell runs there from then on.

Left out: starting machines. The engine does that, and the student pastes the command into it.
"""

from __future__ import annotations

import shlex

from launch.ranks import Ranks
from launch.shared.errors import RanksStopped, UsageError

COMMAND = """\
On every machine, where Ringside is installed; with torchrun, for two of them:
  torchrun --nnodes=2 --nproc-per-node=1 --rdzv-backend=c10d --rdzv-endpoint=FIRST_MACHINE:29500 -m launch.machine {0}
With Slurm:
  srun --nodes=2 --ntasks-per-node=1 python -m launch.machine {0}
The file holds a one-time key that only you can read. Machines without your home folder need a copy of it: scp -p.
To give up, stop this cell."""


def attach(ranks: Ranks, where: str) -> str:
    """`%ranks attach`, `%ranks attach 10.0.0.1:5000`, `%ranks attach off`."""
    if where == "off":
        return "ranks are on this machine again" if ranks.detach() else "no machines are attached"
    if len(where.split()) > 1:
        raise UsageError("%ranks attach takes one address of this machine, as in %ranks attach 10.0.0.1, or off")
    try:
        count = ranks.attach(where, lambda ticket: print(COMMAND.format(shlex.quote(ticket)), flush=True), progress)
    except KeyboardInterrupt:
        print()
        raise RanksStopped("stopped; no machine is attached, and the ranks are where they were") from None
    are = "machine is" if count == 1 else "machines are"
    return f"\n{count} {are} attached: %%ranks {2 * count} runs a cell on {2 * count} ranks there"


def progress(here: list[str], expected: int) -> None:
    """One line, written again when one more has come."""
    line = f"{len(here)} of {expected} machines here: {', '.join(here)}" if here else "no machine is here yet"
    print(f"\r{line}", end="", flush=True)
