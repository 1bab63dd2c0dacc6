"""torch's TCPStore, made to listen where its host name says and nowhere else.

`init_process_group` in a cell of `%%ranks --bare` makes rank 0 the master of a TCPStore, and torch lets that listen on
every network interface, though it is asked for at MASTER_ADDR, 127.0.0.1. The store has no key: whoever reaches it can
read and write what the ranks meet by. Here the socket is bound first and handed over.

Left out: the address itself. A cell that sets MASTER_ADDR to one that others can reach is reached there. The ranks' own
group needs no port at all (rank/store.py).
"""

from __future__ import annotations

import datetime
import importlib
import socket

import torch.distributed as dist

_everywhere = dist.TCPStore
PATIENCE = datetime.timedelta(seconds=300)  # torch's own


class LoopbackStore(_everywhere):
    """A TCPStore; what it is given means what it means there."""

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
            listening = socket.create_server((host_name, port))
            # The store owns the socket from here on and closes it; only the libuv one can take it.
            port, master_listen_fd, use_libuv = listening.getsockname()[1], listening.detach(), True
        more = (timeout, wait_for_workers, multi_tenant, master_listen_fd, use_libuv)
        super().__init__(host_name, port, world_size, is_master, *more)


def install() -> None:
    """From now on every way to a TCPStore in this process leads here."""
    # By name, since torch.distributed.rendezvous is a function that hides the module of the same name.
    dist.TCPStore = importlib.import_module("torch.distributed.rendezvous").TCPStore = LoopbackStore
