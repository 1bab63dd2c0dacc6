"""Ranks on attached machines against a script of the same under plain torchrun, on two hosts of two ranks each and four
of eight, and all_reduce over a limited link against what `cost` says of it.

The hosts are network namespaces of this machine (tests/launch/hosts.py), so this needs root and iproute2. Each figure
is a ratio against plain torchrun in the same run: from the command until the first all_reduce is done, which contains
Python's imports on both sides, and the all_reduce itself. Then both links are limited to RATE with tc's token bucket,
and the flat ring and the hierarchical all_reduce, carried out message by message, stand beside their price.

Left out: latency, which this kind of queue does not add, and real networks. Where other programs compute, only the
limited link means anything: it is slow enough to be what is waited for.
"""

import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from collectives import Link, Topology
from collectives.catalogue import build
from collectives.units import duration, size
from launch.execute import programs
from launch.ranks import Ranks
from tests.benchmarks.bench_network import SETUP, load, seconds
from tests.launch.hosts import Hosts, needs_root

ROOT = Path(__file__).parents[2]
RATE = 100  # Mbit/s
OF_FRAMES = 1448 / 1514  # what of an Ethernet frame is data
NBYTES = 8_192_000
LINES = 20_000
PORTS = count(29500)  # where the torchruns of one job meet; those of the last one may still be there
PLAIN = """
import torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, world_size = dist.get_rank(), dist.get_world_size()
dist.all_reduce(torch.ones(1))
FIRST = __import__("time").monotonic()
SETUP
x = torch.ones(NUMBERS)
found = timed(lambda: dist.all_reduce(x), 3)
mine = torch.tensor(found, dtype=torch.float64)
all_of_them = [torch.empty_like(mine) for _ in range(world_size)]
dist.all_gather(all_of_them, mine)
times = torch.stack(all_of_them)
if rank == 0:
    print(FIRST, (times[:, :, 1].amax(0) - times[:, :, 0].amin(0)).min().item())
dist.destroy_process_group()
"""


def start(hosts: Hosts, home: str, port: int, per_host: int, words: list[str]) -> list[subprocess.Popen]:
    """torchrun on all hosts."""
    at, nodes = f"--rdzv-endpoint={hosts.addresses[0]}:{port}", f"--nnodes={len(hosts.addresses)}"
    command = [sys.executable, "-m", "torch.distributed.run", nodes, f"--nproc-per-node={per_host}"]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "RES_OPTIONS": "timeout:1 attempts:1", "TMPDIR": home}
    environ |= {"GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1"}
    return [
        hosts.run(
            host,
            [
                *command,
                "--rdzv-backend=c10d",
                at,
                f"--rdzv-conf=is_host={int(host == 0)}",
                f"--local-addr={hosts.addresses[host]}",
                *words,
            ],
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for host in range(len(hosts.addresses))
    ]


def plain(hosts: Hosts, home: str, per_host: int) -> tuple[float, float]:
    """(seconds until the first all_reduce was done, of an all_reduce) of a script under torchrun."""
    script = Path(home) / "plain.py"
    script.write_text(PLAIN.replace("SETUP", SETUP.replace("from launch.rank.perform import run as perform", ""))
                      .replace("NUMBERS", str(NBYTES // 4)))  # fmt: skip
    began = time.monotonic()
    said = [process.communicate()[0] for process in start(hosts, home, next(PORTS), per_host, [str(script)])]
    first, took = map(float, "".join(said).split())
    return first - began, took


@contextmanager
def attached(count: int, per_host: int):
    """So many hosts with so many ranks each: (hosts, ranks, a folder, seconds until the first all_reduce was done)."""
    hosts, ranks = Hosts(count), Ranks()
    try:
        with tempfile.TemporaryDirectory() as home:
            began = []

            def on_ticket(ticket: str) -> None:
                began.append(time.monotonic())
                start(hosts, home, next(PORTS), 1, ["-m", "launch.machine", ticket])

            ranks.attach(hosts.outside, on_ticket, lambda here, expected: None)
            ranks.ensure(count * per_host)
            ranks.execute("dist.all_reduce(torch.ones(1))")
            first = time.monotonic() - began[0]
            print(f"{count} hosts x {per_host} ranks, {size(NBYTES)}; {load()}", flush=True)
            yield hosts, ranks, home, first
    finally:
        ranks.close()
        hosts.close()


def main():
    needs_root()
    with attached(4, 8) as (hosts, _, home, first):
        row("first all_reduce", first, plain(hosts, home, 8)[0])
    with attached(2, 2) as (hosts, ranks, home, first):
        row("first all_reduce", first, (peer := plain(hosts, home, 2))[0])
        ranks.execute(SETUP.replace("NUMBERS", str(NBYTES // 4)))
        call = "dist.all_reduce(x)"
        row("all_reduce, links as they are", seconds(ranks, call), peer[1])
        began = time.monotonic()
        ranks.execute(f"for i in range({LINES}): print(rank, i)")
        took = time.monotonic() - began
        print(f"  {4 * LINES} lines of four ranks: {duration(took)}, {4 * LINES / took:.0f} lines a second")
        hosts.limit(RATE)
        between = Link(alpha=2e-4, beta=8 / (RATE * 1e6 * OF_FRAMES))
        network = Topology.machines(2, 2, inside=Link(alpha=5e-5, beta=1 / 2e9), between=between, nic="machine")
        print(f"  {f'links of {RATE} Mbit/s':<36} {'predicted':>10} {'measured':>10} {'ratio':>6}; {load()}")
        for name in ("ring", "hierarchical"):
            schedule = build("all_reduce", name, 4, local=2)
            ranks.push(_programs=programs(schedule))
            price = schedule.cost(nbytes=NBYTES, network=network).seconds
            took = seconds(ranks, "perform(_programs, x, rank)")
            print(f"  {name:<36} {duration(price):>10} {duration(took):>10} {took / price:>6.2f}", flush=True)
        row(f"all_reduce, links of {RATE} Mbit/s", seconds(ranks, call), plain(hosts, home, 2)[1])


def row(what: str, here: float, peer: float) -> None:
    print(
        f"  {what:<36} attached {duration(here)}, plain torchrun {duration(peer)}: {here / peer:.2f}",
        flush=True,
    )
