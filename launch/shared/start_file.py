"""What a rank has to know when it starts: one JSON file in the private folder, readable by this user only.

It carries the key that signs every message, which therefore never stands in a command line.
"""

from __future__ import annotations

import json
import os
import socket
import sys

NO_WIDGETS = "SPYDER_NO_WIDGETS"  # by its beginning tqdm.auto knows a kernel without widgets, in which a bar is text
NOT_INHERITED = ("JPY_PARENT_PID", "JPY_SESSION_NAME", "PYTEST_CURRENT_TEST")


def write_start_file(folder: str, key: bytes, serial: int, **session) -> str:
    """Writes the file of the start `serial` and returns its path. `session` is what a rank reads beyond that."""
    path = f"{folder}/start-{serial}.json"
    content = {
        "folder": folder,
        "file": path,
        "serial": serial,
        "key": key.hex(),
        "cwd": os.getcwd(),
        "path": sys.path,
        **session,
    }
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(content, file)
    return path


def fresh_environ() -> dict[str, str]:
    """The notebook's environment for its ranks, with what torch.distributed looks for. RANK and so on come later."""
    environ = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    environ.update(meeting_place(), GLOO_SOCKET_IFNAME="lo")
    environ.setdefault("OMP_NUM_THREADS", "1")
    # torch's TCPStore looks up the name of 127.0.0.1; without an answer that would take five seconds per connection
    environ.setdefault("RES_OPTIONS", "timeout:1 attempts:1")
    return environ


def meeting_place() -> dict[str, str]:
    """Where ranks meet that make a process group themselves: a port that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(probe.getsockname()[1])}
