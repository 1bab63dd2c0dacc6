"""The job behind `%%plain`: reads a program from stdin, runs it on plain processes, answers with what each one said.

It imports torch once and forks (where that is not safe, it spawns). A rank whose program is over stays until all of
them are, as in a job that goes on to something else: else the others would see its connections end. A rank that dies is
gone. Everything ends by itself after `LIMIT` seconds.

Left out: the notebook's side (`course/plain.py`).
"""

import contextlib
import gc
import json
import os
import re
import signal
import sys
import sysconfig
import tempfile
import threading
import traceback
from datetime import timedelta
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path

gc.disable()  # it would take a quarter of the time that torch's import takes
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

gc.freeze()
gc.enable()

TIMEOUT, LIMIT = 2, 60
"""Seconds: that a call may wait (torch's own time-out for gloo is 30 minutes), and that all of it may take."""

CELL = "<the cell>"

OWN = re.compile(r'  File ".*(plain_job\.py|/multiprocessing/\w+\.py|frozen runpy.*)", line .*\n')
"""Lines of a stack that every program here has."""


def main(size: int, source: str) -> list[str]:
    """What each rank said, by rank."""
    signal.alarm(LIMIT + 30)  # the ranks end before, so that what they said is still told
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
    method = get_context("fork") if sys.platform == "linux" else get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        ranks = []
        for rank in range(size):
            here, there = method.Pipe()
            process = method.Process(target=be_rank, args=(rank, size, source, folder, there))
            process.start()
            there.close()
            ranks.append((process, here))
        for process, here in ranks:
            wait([process.sentinel, here])  # it is dead, or its program is over
        for process, here in ranks:
            with contextlib.suppress(BrokenPipeError):  # of a dead one
                here.send("all are done")
            process.join()
        return [read(Path(folder, str(rank)), process.exitcode) for rank, (process, _) in enumerate(ranks)]


def be_rank(rank: int, size: int, source: str, folder: str, parent: Connection) -> None:
    """Run the program as this rank; what it says goes to a file of its own."""
    signal.alarm(LIMIT)
    words = os.open(Path(folder, str(rank)), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(words, 1)
    os.dup2(words, 2)
    sys.stdout = sys.stderr = open(1, "w", buffering=1, closefd=False)
    connect(rank, size, dist.FileStore(f"{folder}/store", size))
    try:
        exec(compile(source, CELL, "exec"), {"rank": rank, "world_size": size, "torch": torch, "dist": dist})
    except BaseException as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == CELL]
        at = f" (line {lines[-1]})" if lines else ""
        print(f"{type(error).__name__}{at}: {' '.join(str(error).split())}")
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    parent.send("done")
    parent.recv()  # until all are
    os._exit(0)


def connect(rank: int, size: int, store: dist.Store) -> None:
    """Make the process group, and return when all have: who dies in its program dies to none that still connects."""
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=TIMEOUT))
    store.set(f"connected/{rank}", "")
    store.wait([f"connected/{each}" for each in range(size)])


def read(file: Path, exitcode: int | None) -> str:
    """What the rank said, with paths as they are below the folder of packages; and how it died, if it did."""
    text = OWN.sub("", file.read_text(errors="replace") if file.exists() else "")
    text = text.replace(sysconfig.get_paths()["purelib"] + os.sep, "")
    text = re.sub(r"0x[0-9a-f]{6,}", "0x...", text)  # addresses say nothing here, and differ on each run
    if exitcode:
        ended = f"was killed by {signal.Signals(-exitcode).name}" if exitcode < 0 else f"exited with code {exitcode}"
        text += f"({ended})\n"
    return text


if __name__ == "__main__":
    answer = main(int(sys.argv[1]), sys.stdin.read())
    print(json.dumps(answer))
