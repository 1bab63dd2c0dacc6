"""`%%plain 4`: the cell on four plain processes, with torch and gloo as they come: no guard, no doctor, a time-out.

That is how a fault of the clinic looks elsewhere. `%load_ext course.plain` brings the magic; behind the number stand
environment variables of the job, as in `%%plain 4 TORCH_DISTRIBUTED_DEBUG=DETAIL`. What the ranks said is printed when
all of them are done, in rank order; what all of them said alike, once. `course/plain_job.py` is the job.

Left out: values of a last expression, variables that live on, output while the job runs.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from launch.shared.errors import UsageError, name_ranks

LONG, HEAD, TAIL = 320, 200, 90
"""Characters of a line: of longer ones the beginning and the end are shown, and dots between."""

QUIET = {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "FATAL"}
"""One thread, so that the job may be forked; and torch's log in C++, which repeats the exceptions, with a time each."""


def load_ipython_extension(shell) -> None:
    """What `%load_ext course.plain` calls."""
    shell.register_magic_function(plain, "cell", "plain")


def plain(line: str, cell: str) -> None:
    """%%plain: runs the cell on plain processes and prints what they said."""
    size, variables = parse(line)
    environment = {**os.environ, **QUIET, **variables}
    for rank, text in enumerate(said := run(size, f"#%%plain {line}\n{cell}", environment)):
        if text and text not in said[:rank]:
            same = [other for other, theirs in enumerate(said) if theirs == text]
            print("".join(f"[{name_ranks(same)}] {shortened(each)}\n" for each in text.splitlines()), end="")


def parse(line: str) -> tuple[int, dict[str, str]]:
    """How many ranks, and the variables; UsageError says what is wrong with the line."""
    size, *variables = shlex.split(line) or ["4"]
    if not size.isdecimal() or not 1 <= int(size) <= 8:
        raise UsageError(f"%%plain needs a number of ranks from 1 to 8, as in %%plain 4, got {size}")
    for each in variables:
        if "=" not in each:
            raise UsageError(f"%%plain takes environment variables, as in %%plain 4 NAME=value, got {each}")
    return int(size), dict(each.split("=", 1) for each in variables)


def run(size: int, source: str, environment: dict[str, str]) -> list[str]:
    """What each rank of the job said, by rank. The stop button ends the job with all its ranks."""
    program = [sys.executable, "-P", str(Path(__file__).with_name("plain_job.py")), str(size)]
    job = subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )
    try:
        return json.loads(job.communicate(source)[0])
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()


def shortened(text: str) -> str:
    """The line without its middle, if it is very long."""
    return text if len(text) <= LONG else f"{text[:HEAD]} ... {text[-TAIL:]}"
