"""Several hosts on one machine: network namespaces, each with its own address, behind one bridge.

What runs in a host sees no other network than this one, so that a host can be cut off and connected again. It needs
root and Debian's iproute2; processes, files and clocks are those of the one machine.
"""

import contextlib
import os
import secrets
import shutil
import signal
import subprocess

import pytest


def needs_root():
    """Skips the test where namespaces cannot be made; with CI=true it fails instead."""
    if os.geteuid() or not shutil.which("ip"):
        complain = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        complain("several hosts are network namespaces: they need root and the package iproute2")


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Hosts:
    """`count` hosts with addresses[i]; the notebook, outside of them, is at `outside`."""

    def __init__(self, count: int):
        self.tag = secrets.token_hex(3)
        net = f"10.{secrets.randbelow(100) + 100}.{secrets.randbelow(250)}"
        self.outside, self.addresses = f"{net}.1", [f"{net}.{10 + index}" for index in range(count)]
        ip("link", "add", f"rs{self.tag}", "type", "bridge")
        ip("addr", "add", f"{self.outside}/24", "dev", f"rs{self.tag}")
        ip("link", "set", f"rs{self.tag}", "up")
        for index, address in enumerate(self.addresses):
            ip("netns", "add", self.name(index))
            ip("link", "add", self.wire(index), "type", "veth", "peer", "name", "eth0", "netns", self.name(index))
            ip("link", "set", self.wire(index), "master", f"rs{self.tag}", "up")
            for command in (f"addr add {address}/24 dev eth0", "link set eth0 up", "link set lo up"):
                ip("-n", self.name(index), *command.split())
        self.started: list[subprocess.Popen] = []

    def name(self, index: int) -> str:
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

    def close(self) -> None:
        for index in range(len(self.addresses)):
            inside = subprocess.run(["ip", "netns", "pids", self.name(index)], capture_output=True, text=True)
            for pid in inside.stdout.split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            ip("link", "del", self.wire(index))  # the namespace may live on for as long as one of its connections
            ip("netns", "del", self.name(index))
        for process in self.started:
            process.wait()
        ip("link", "del", f"rs{self.tag}")
