"""torch's TCPStore, made to listen where its host name says and nowhere else.

`init_process_group` in a cell of `%%ranks --bare` makes rank 0 the master of a TCPStore, and torch lets that listen on
every network interface, though it is asked for at MASTER_ADDR, 127.0.0.1. The store has no key: whoever reaches it can
read and write what the ranks meet by. Here the socket is bound first and handed over.

Left out: the address itself. A cell that sets MASTER_ADDR to one that others can reach is reached there. The ranks' own
group needs no port at all (rank/_store.py).
"""

from __future__ import annotations

import datetime
import importlib
import os
import socket

import torch.distributed as dist

from launch.rank import interruptible
from launch.rank._regroup import Regrouper
from launch.rank.patches import replace

_everywhere = dist.TCPStore
_opened: set[int] = set()  # ports of the masters that this process has opened
PATIENCE = datetime.timedelta(seconds=300)  # torch's own


class LoopbackStore(_everywhere):  # type: ignore[valid-type, misc]
    """A TCPStore; what it is given means what it means there."""

    regrouper: Regrouper

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: datetime.timedelta = PATIENCE,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ):
        if is_master and master_listen_fd is None:
            try:
                listening = socket.create_server((host_name, port))
            except OSError as error:
                if port not in _opened:
                    raise
                if not multi_tenant:
                    own = self.regrouper.bare and str(port) == os.environ.get("MASTER_PORT")
                    instead = "run the cell again, MASTER_PORT is a new one now" if own else "take another port"
                    said = f"port {port} belongs to the store that an earlier cell made here: {instead}"
                    raise OSError(error.errno, said) from None
                # A group that was destroyed may live on in a DDP module; torch then shares its master with the next.
            else:
                # The store owns the socket from here on and closes it; only the libuv one can take it.
                port, master_listen_fd = listening.getsockname()[1], listening.detach()
                _opened.add(port)
            use_libuv = True
        more = (timeout, wait_for_workers, multi_tenant, master_listen_fd, use_libuv)
        # It waits for the others in C++: aside, so that the stop button reaches who waits for one that never comes.
        with self.regrouper.making_store(world_size):
            interruptible.wait(super().__init__, host_name, port, world_size, is_master, *more)


def install(regrouper: Regrouper) -> None:
    """From now on every way to a TCPStore in this process leads here; `regrouper` hears of their connections."""
    LoopbackStore.regrouper = regrouper
    # By name, since torch.distributed.rendezvous is a function that hides the module of the same name.
    for module in (dist, importlib.import_module("torch.distributed.rendezvous")):
        replace(module, "TCPStore", LoopbackStore)
