"""What a rank has to know when it starts: one JSON file in the private folder, readable by this user only.

It carries the key that signs every message, which therefore never stands in a command line.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import sys

from launch.shared.errors import LaunchError

NO_WIDGETS = "SPYDER_NO_WIDGETS"  # by its beginning tqdm.auto knows a kernel without widgets, in which a bar is text
NOT_INHERITED = ("JPY_PARENT_PID", "JPY_SESSION_NAME", "PYTEST_CURRENT_TEST")


def start_file(folder: str, serial: int) -> str:
    return f"{folder}/start-{serial}.json"


def write_start_file(folder: str, key: bytes, serial: int, **session) -> str:
    """Writes the file of the start `serial` and returns its path. `session` is what a rank reads beyond that."""
    path = start_file(folder, serial)
    content = {
        "folder": folder,
        "file": path,
        "serial": serial,
        "key": key.hex(),
        "store": f"{folder}/store",
        "cwd": os.getcwd(),
        "path": sys.path,
        **session,
    }
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(content, file)
    return path


def fresh_environ() -> dict[str, str]:
    """The notebook's environment for its ranks. RANK, MASTER_ADDR and so on come later."""
    environ = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    environ["GLOO_SOCKET_IFNAME"] = "lo"
    environ.setdefault("OMP_NUM_THREADS", "1")
    # torch's TCPStore looks up the name of 127.0.0.1; without an answer that would take five seconds per connection
    environ.setdefault("RES_OPTIONS", "timeout:1 attempts:1")
    return environ


def meeting_place() -> dict[str, str]:
    """Where ranks meet that make a process group themselves."""
    return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}


def free_port() -> int:
    """A port that nobody uses now. It may be long until somebody listens there, and Linux and macOS give ports from
    32,768 on to whoever connects to anything, as gloo does all the time: so it is one below those."""
    for port in random.SystemRandom().sample(range(20_000, 32_768), 100):  # cells may have seeded the other one
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise LaunchError("a hundred ports were tried at 127.0.0.1 and each is in use: does another program take them all?")
