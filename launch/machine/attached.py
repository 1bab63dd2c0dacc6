"""`%ranks attach`: waits until other machines have joined; from then on ranks run there.

An engine that exists already (torchrun, Slurm) starts one `python -m launch.machine` on each machine, with the command
that is printed here. Starting machines ourselves is left out.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable
from concurrent.futures import wait
from functools import partial
from typing import Any

from collectives.timed import Clock
from launch.backends import BACKENDS
from launch.kernel.site import Site
from launch.machine.listener import Listener, Machine, Offset, meanwhile
from launch.shared.errors import LaunchError, RanksStopped, UsageError
from launch.shared.flight_recorder import Board

WAITING = 0.2  # seconds between two checks of which machines have joined
COMMAND = """\
On every machine, where Ringside is installed; with torchrun, for two of them:
  torchrun --nnodes=2 --nproc-per-node=1 --rdzv-backend=c10d --rdzv-endpoint=FIRST_MACHINE:29500 -m launch.machine {0}
With Slurm:
  srun --nodes=2 --ntasks-per-node=1 python -m launch.machine {0}
The file holds a one-time key that only you can read. Machines without your home folder need a copy of it: scp -p.
To give up, stop this cell."""


class Attached(Site):
    """Machines that have joined. Ranks in a row share one; a rank whose machine is lost comes back on another."""

    late = True

    def __init__(self, listener: Listener, machines: list[Machine]):
        self.listener, self._all = listener, machines
        for each in machines:
            each.on_event = partial(self._hears, each)

    def _hears(self, machine: Machine, event: dict, fds: list[int]) -> None:
        self.on_event(machine, event, fds)

    def machines(self) -> list[Machine]:
        """Those that are still there, in the order of their numbers."""
        return [each for each in self._all if not each.has_ended()]

    async def prepare(self, size: int, backend: str | None, running: int) -> str:
        if not (here := self.machines()):
            last = max(self._all, key=lambda each: each.heard)
            raise LaunchError(f"{last} {last.why}, and no other is left: %ranks attach off, then attach others")
        backend = backend or "gloo"
        for index, each in enumerate(here):
            needed = BACKENDS[backend].gpus * sum(index_of(rank, size, len(here)) == index for rank in range(size))
            if needed > (gpus := each.ready.result()):
                why = f"{size} ranks with {backend} need {needed} GPUs on {each}, which has {gpus}"
                raise UsageError(f"{why}: use --backend gloo")
        return backend

    def link_for(self, rank: int, size: int, before: Any = None) -> Machine:
        if before is not None and not before.has_ended():
            return before
        here = self.machines()
        return here[index_of(rank, size, len(here))]

    def check_network(self) -> None:
        raise UsageError(
            "a network is played on one machine, and the machines that are attached have a real one: leave out "
            "--network, or %ranks network off"
        )

    def open(self, board: Board, number: int) -> None:
        self.listener.board, self.listener.number = board, number
        for each in self._all:
            each.ranks.clear()

    def publish(self, offset: int, raw: bytes) -> None:
        self.listener.publish(offset, raw)

    async def refresh(self) -> None:
        await asyncio.gather(*(each.look() for each in self.machines()))
        for each in self.machines():
            each.set_clock()

    def meeting_place(self) -> dict[str, str]:
        return super().meeting_place() | {"MASTER_ADDR": self.link_for(0, 1).address}

    async def read_clocks(self) -> dict[Machine, Offset]:
        here = self.machines()
        found = await asyncio.gather(*(each.read_clock() for each in here))
        return {each: offset for each, offset in zip(here, found, strict=True) if offset}

    def clocks_of_ranks(self, before: dict[Machine, Offset], after: dict[Machine, Offset]) -> tuple[Clock, ...]:
        seen = {each: meanwhile(before[each], after[each]) for each in after if each in before and each.ranks}
        return tuple(Clock(tuple(sorted(each.ranks)), offset.seconds, offset.error) for each, offset in seen.items())

    async def close(self) -> None:
        await self.listener.close()


def index_of(rank: int, size: int, machines: int) -> int:
    """The index of the machine that a rank is on: ranks in a row share one."""
    return rank * machines // size


def attach(ranks: Any, where: str) -> str:
    """`%ranks attach`, `%ranks attach 10.0.0.1:5000`, `%ranks attach off` for these launch.ranks.Ranks."""
    attached = isinstance(ranks.supervisor.site, Attached)
    if where == "off":
        if not attached:
            return "no machines are attached"
        ranks.move(None)
        return "ranks are on this machine again"
    if len(where.split()) > 1:
        raise UsageError("%ranks attach takes one address of this machine, as in %ranks attach 10.0.0.1, or off")
    if attached:
        raise UsageError("machines are attached already: %ranks attach off lets them go")
    listener = Listener(ranks.hub)
    ticket = ranks.hub.run(listener.listen(where)).result()
    print(COMMAND.format(shlex.quote(ticket)), flush=True)
    try:
        machines = joined(ranks.hub, listener, progress)
    except KeyboardInterrupt:
        print()
        raise RanksStopped("stopped; no machine is attached, and the ranks are where they were") from None
    ranks.move(Attached(listener, machines))
    count = len(machines)
    are = "machine is" if count == 1 else "machines are"
    return f"\n{count} {are} attached: %%ranks {2 * count} runs a cell on {2 * count} ranks there"


def joined(hub, listener: Listener, on_more: Callable[[list[str], int], None]) -> list[Machine]:
    """The machines, when all have joined; the stop button ends the waiting. on_more(names, expected) for each."""
    waiting, told = hub.run(listener.all_here()), -1
    try:
        while not waiting.done():
            here = [str(machine) for machine in list(listener.machines.values())]
            if len(here) != told:
                told = len(here)
                on_more(here, listener.expected)
            wait([waiting], timeout=WAITING)
        return waiting.result()
    except BaseException:
        waiting.cancel()
        hub.run(listener.close()).result()
        raise


def progress(here: list[str], expected: int) -> None:
    """Rewrites one line."""
    line = f"{len(here)} of {expected} machines here: {', '.join(here)}" if here else "no machine is here yet"
    print(f"\r{line}", end="", flush=True)
