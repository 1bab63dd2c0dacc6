"""Several hosts on one machine: network namespaces, each with its own address, behind one bridge.

What runs in a host sees no other network than this one, so that a host can be cut off and connected again. The bridge
and the notebook have a namespace of their own, too: a browser stops what it is loading when a network of its machine
changes (ERR_NETWORK_CHANGED), and other tests have browsers. It needs root and Debian's iproute2. Processes and files
are those of the one machine, and so are clocks unless `ahead_by` says otherwise (Linux 6, util-linux).
"""

import contextlib
import ctypes
import os
import secrets
import select
import shutil
import subprocess

import psutil
import pytest

LIMIT = 60  # seconds; a bound


def needs_root():
    """Skips the test where namespaces cannot be made; with CI=true it fails instead."""
    made = shutil.which("ip") and shutil.which("unshare") and os.path.exists("/proc/self/ns/time")
    if os.geteuid() or not made:
        complain = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        complain("several hosts are namespaces: they need root, Linux 6, and the packages iproute2 and util-linux")


def ahead_by(seconds: int) -> list[str]:
    """What goes before a command that is to have a clock of its own, ahead of this machine's: a time namespace. The
    command takes the place of this one, as with `ip netns exec`."""
    return ["unshare", "--time", "--monotonic", str(seconds)]


def is_machine(process: psutil.Process) -> bool:
    """Whether it is launch.machine itself, and not the torchrun that has started it."""
    with contextlib.suppress(psutil.NoSuchProcess):
        words = process.cmdline()
        return "launch.machine" in words and "torch.distributed.run" not in words
    return False


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def enter(namespace: int) -> None:
    """From now on this thread, and what it starts, is in the namespace of this open file."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, 0):
        raise OSError(ctypes.get_errno(), "setns")


class Hosts:
    """`count` hosts with addresses[i]. The notebook, outside of them, is at `outside`; the caller's thread is there
    until `close`."""

    def __init__(self, count: int):
        self.tag = secrets.token_hex(3)
        self.before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        ip("netns", "add", self.name("home"))
        with open(f"/run/netns/{self.name('home')}") as home:
            enter(home.fileno())
        ip("link", "set", "lo", "up")
        net = f"10.{secrets.randbelow(100) + 100}.{secrets.randbelow(250)}"
        self.outside, self.addresses = f"{net}.1", [f"{net}.{10 + index}" for index in range(count)]
        ip("link", "add", f"rs{self.tag}", "type", "bridge")
        ip("addr", "add", f"{self.outside}/24", "dev", f"rs{self.tag}")
        ip("link", "set", f"rs{self.tag}", "up")
        ip("route", "add", "default", "dev", f"rs{self.tag}")
        for index, address in enumerate(self.addresses):
            ip("netns", "add", self.name(index))
            ip("link", "add", self.wire(index), "type", "veth", "peer", "name", "eth0", "netns", self.name(index))
            ip("link", "set", self.wire(index), "master", f"rs{self.tag}", "up")
            for command in (f"addr add {address}/24 dev eth0", "link set eth0 up", "link set lo up"):
                ip("-n", self.name(index), *command.split())
        self.started: list[subprocess.Popen] = []

    def name(self, index: int | str) -> str:
        return f"rs{self.tag}-{index}"

    def wire(self, index: int) -> str:
        return f"rs{self.tag}v{index}"

    def run(self, index: int, command: list[str], **options) -> subprocess.Popen:
        process = subprocess.Popen(["ip", "netns", "exec", self.name(index), *command], **options)
        self.started.append(process)
        return process

    def cut(self, index: int) -> None:
        """Nothing goes in or out any more, and nobody is told."""
        ip("link", "set", self.wire(index), "down")

    def connect(self, index: int) -> None:
        """What `cut` has taken."""
        ip("link", "set", self.wire(index), "up")

    def limit(self, mbit: int) -> None:
        """Each host's link to so many Mbit/s, out and in."""
        shaped = f"root tbf rate {mbit}mbit burst 64kb latency 100ms".split()
        for index in range(len(self.addresses)):
            out = ["ip", "netns", "exec", self.name(index), "tc", "qdisc", "add", "dev", "eth0", *shaped]
            for command in (out, ["tc", "qdisc", "add", "dev", self.wire(index), *shaped]):
                subprocess.run(command, check=True, capture_output=True)

    def inside(self, index: int) -> list[psutil.Process]:
        """What runs in the host."""
        pids = subprocess.run(["ip", "netns", "pids", self.name(index)], capture_output=True, text=True).stdout.split()
        found = []
        for pid in pids:
            with contextlib.suppress(psutil.NoSuchProcess):
                found.append(psutil.Process(int(pid)))
        return found

    def close(self) -> None:
        """Ends what runs in the hosts. A machine that has joined is asked first, since it takes its folder away; it may
        be one that was cut off and does not know it yet."""
        left = [process for index in range(len(self.addresses)) for process in self.inside(index)]
        for process in left:
            if is_machine(process):
                with open(os.pidfd_open(process.pid)) as ended:  # readable as soon as it has, whoever is to reap it
                    process.terminate()
                    select.select([ended], [], [], LIMIT)
        for index in range(len(self.addresses)):
            for process in self.inside(index):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            ip("link", "del", self.wire(index))  # the namespace may live on for as long as one of its connections
            ip("netns", "del", self.name(index))
        for process in self.started:
            process.wait()
        enter(self.before)
        os.close(self.before)
        ip("netns", "del", self.name("home"))  # and the bridge with it
