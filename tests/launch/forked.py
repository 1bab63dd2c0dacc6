"""Real ranks for the tests of the tap, without Jupyter: a process that has imported torch and forks a gang on request.

`run(source, ranks)` executes the source like a notebook cell on that many gloo ranks with the tap installed and gives
back what every rank reports: the recording, the values of `keep`, the error it raised. The forking process has one
thread and runs no torch op itself, so that forking is safe whatever the test process has done.
"""

import base64
import contextlib
import gc
import importlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from importlib.metadata import version
from pathlib import Path

HEAVY = ("torch.distributed.tensor", "torch.distributed.fsdp", "torch._dynamo", "torch._functorch.aot_autograd")
"""What torch imports late, for a second or two on each rank: here once, before the first program that needs one."""
NEEDS_IT = re.compile(
    r"torch\.compile|_functional_collectives|device_mesh|fsdp|distributed\.tensor|DistributedDataParallel"
)
TORCH = tuple(map(int, version("torch").split(".")[:2]))
HAS_ALL_TO_ALL = TORCH >= (2, 13)  # with a list of tensors, on gloo
ROOT = Path(__file__).parents[2]
LIMIT = 200  # seconds; a bound for what takes a fraction of one
LOOK = 0.05  # seconds between two looks at ranks of which some may be stuck
ASLEEP = 20  # looks at which no rank would run if it could: then what is left is stuck


class Gang:
    """The forking process. Use it as a context manager, one for many runs."""

    def __enter__(self):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        command = [sys.executable, __file__]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, text=True, cwd=ROOT, env=environment, **pipes)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def run(self, source: str, ranks: int, *, record=True, keep=(), guard=True, stuck=False, cells=()) -> list[dict]:
        """One dict per rank: "recording" (or None), "keep" (name -> nested list), "error" (text or ""), and what the
        shared memory said when the rank had ended or was given up: "status", "open" (calls), "tallies".

        `cells` are run before, unrecorded. Where ranks are `stuck`, or once one has failed, those that are asleep
        are given up: "error" is "hung".
        """
        request = {
            "source": source,
            "ranks": ranks,
            "record": record,
            "keep": list(keep),
            "guard": guard,
            "stuck": stuck,
            "cells": list(cells),
        }
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline(), object_hook=_bytes_in)


def _bytes_in(found: dict):
    return base64.b64decode(found["base64"]) if found.keys() == {"base64"} else found


def _serve() -> None:
    sys.path.insert(0, str(ROOT))
    gc.disable()  # as the agent does, with the freeze below
    import torch.distributed  # noqa: F401  what the ranks inherit

    import launch.rank.tap  # noqa: F401

    gc.freeze()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a rank prints must not end up among the answers
    for line in sys.stdin:
        request = json.loads(line)
        if NEEDS_IT.search(request["source"]):
            for name in HEAVY:
                importlib.import_module(name)
            gc.freeze()
        with tempfile.TemporaryDirectory() as folder:
            answers.write(json.dumps(_gang(request, folder)) + "\n")
            answers.flush()
    os._exit(0)


def _gang(request, folder) -> list[dict]:
    from launch.shared import flight_recorder
    from launch.shared.flight_recorder import Board

    board = Board(f"{folder}/board", request["ranks"])
    pids, pipes = {}, {}
    for rank in range(request["ranks"]):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            gc.enable()
            _rank(request, rank, folder, writing)
        os.close(writing)
        pids[rank], pipes[reading] = pid, rank
    deadline = time.monotonic() + LIMIT
    left, stuck, asleep = set(pipes), request["stuck"], 0
    while left and asleep < ASLEEP and time.monotonic() < deadline:
        ready = select.select(left, [], [], LOOK)[0]
        left -= set(ready)  # closed: the rank has answered, or died
        stuck = stuck or any('"error": ""' not in _answer(folder, pipes[pipe]) for pipe in ready)
        asleep += stuck and not any(would_run(pids[pipes[pipe]]) for pipe in left)
    answers = []
    for reading, rank in pipes.items():
        answer = json.loads(_answer(folder, rank)) or {"error": "hung" if reading in left else "died"}
        answer["status"] = vars(board.read(rank))
        answer["open"] = _plain(flight_recorder.open_calls(board, rank))
        answer["tallies"] = _plain(flight_recorder.tallies(board, rank))
        answers.append(answer)
    for reading, rank in pipes.items():
        os.close(reading)
        pid = pids[rank]
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return answers


def would_run(pid: int) -> bool:
    """Whether a thread of the process runs or waits for the processor or the disk; on a busy machine many wait."""
    states = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError):  # it has ended since
            states.append(Path(f"/proc/{pid}/task/{thread}/stat").read_text().rpartition(")")[2].split()[0])
    return bool(set(states) & set("RD"))


def _answer(folder, rank) -> str:
    path = Path(f"{folder}/{rank}.json")
    return path.read_text() if path.exists() else "{}"


def _plain(rows) -> list[dict]:
    return [row._asdict() for row in rows]


def _rank(request, rank, folder, done: int) -> None:
    import torch
    import torch.distributed as dist

    from launch.rank.tap import Tap
    from launch.shared.flight_recorder import Slot

    answer = {"recording": None, "keep": {}, "error": ""}
    slot = Slot(f"{folder}/board", rank)
    dist.init_process_group(
        "gloo", store=dist.FileStore(f"{folder}/store", request["ranks"]), rank=rank, world_size=request["ranks"]
    )
    tap = Tap(slot, request["guard"])
    space = {"rank": rank, "world_size": request["ranks"], "torch": torch, "dist": dist, "tap": tap, "slot": slot}
    try:
        for number, cell in enumerate(request["cells"]):
            _execute(cell, f"<cell {number}>", space, slot)
        if request["record"]:
            tap.start()
        _execute(request["source"], "<cell x>", space, slot)
    except BaseException as error:
        answer["error"] = f"{type(error).__name__}: {error}"
        if os.environ.get("SHOW_TRACEBACKS"):
            traceback.print_exc()
    if request["record"]:
        answer["recording"] = tap.stop()
    answer["keep"] = {name: _listed(space.get(name)) for name in request["keep"]}
    Path(f"{folder}/{rank}.part").write_text(
        json.dumps(answer, default=lambda raw: {"base64": base64.b64encode(raw).decode()})
    )
    os.rename(f"{folder}/{rank}.part", f"{folder}/{rank}.json")
    os.close(done)
    signal.pause()  # who leaves first would break the others' connections


def _execute(source, name, space, slot) -> None:
    """Statement by statement, as IPython does it: each is a code object of its own with the cell's file name."""
    import ast
    import linecache

    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    slot.cell("running")
    try:
        for node in ast.parse(source).body:
            exec(compile(ast.Module([node], []), name, "exec"), space)
    finally:
        slot.cell("idle")


def _listed(value):
    if isinstance(value, (list, tuple)):
        return [_listed(item) for item in value]
    return value.tolist() if hasattr(value, "tolist") else value


if __name__ == "__main__":
    _serve()
