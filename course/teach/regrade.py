"""What was handed in, judged once more on the lecturer's machine: a file of progress can be edited, a verdict cannot.

The functions of one student are tried in a process of their own (this module as a script: functions in, verdicts out).
It has an empty home folder and environment, and limits on memory, processes, file sizes and time. Where Linux lets an
ordinary user have them (`unshare`), it has no network and sees no other processes.

Left out: what a container is for. A function runs as you: it can read and write your files, and one that is written to
attack the judge can forge its verdict. It keeps out accidents, loops and downloads, not an attacker: judge the files of
people you do not trust in a container that has nothing else in it.
"""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from course.exercises import TASKS

ROOT = Path(__file__).parents[2]
FIRST, EACH = 60, 60
"""Seconds for the ranks to start, and for each function; a trial that hangs is stopped earlier (judge/trial.py)."""

LIMITS = {
    resource.RLIMIT_DATA: 4 * 2**30,  # bytes, of each process
    resource.RLIMIT_FSIZE: 64 * 2**20,  # bytes in a file
    resource.RLIMIT_NPROC: 4096,  # processes and threads
    resource.RLIMIT_CORE: 0,
}
ALONE = ["unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]


def alone() -> list[str]:
    """The command in front that takes away the network and other processes; [] where it cannot be had."""
    with contextlib.suppress(OSError):
        if subprocess.run([*ALONE, "true"], capture_output=True).returncode == 0:
            return ALONE
    return []


def judged(functions: dict[str, str], front: list[str]) -> dict[str, str]:
    """By exercise the first fault that its function has now, "" if it is right; "it was not judged ..." if the process
    did not live to say it. `front` is what `alone` gives."""
    functions = {name: text for name, text in functions.items() if name in TASKS}
    with tempfile.TemporaryDirectory() as home:
        environ = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT), "HOME": home, "TMPDIR": home}
        environ |= {"JUPYTER_DATA_DIR": home, "JUPYTER_RUNTIME_DIR": home, "IPYTHONDIR": home}
        process = subprocess.Popen(
            [*front, sys.executable, "-m", "course.teach.regrade"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=home,
            env=environ,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(json.dumps(functions), FIRST + EACH * len(functions))
        except subprocess.TimeoutExpired:
            said = ""
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    found = dict.fromkeys(functions, "it was not judged: the time was over, or it ended the judge")
    for line in said.splitlines():
        with contextlib.suppress(ValueError):  # a line that a function has written there
            verdict = json.loads(line)
            if isinstance(verdict, dict):
                found |= {name: str(fault) for name, fault in verdict.items() if name in found}
    return found


def _limit() -> None:
    for what, most in LIMITS.items():
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def _loopback() -> None:
    """Ranks meet at 127.0.0.1, which is down in a network of one's own."""
    import fcntl
    import socket
    import struct

    set_flags, up = 0x8914, 0x1  # SIOCSIFFLAGS, IFF_UP
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket, contextlib.suppress(OSError):
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh14x", b"lo", up))


def fault(name: str, source: str) -> str:
    """The first fault of the function, "" if it is right. Of a wrong result also the variant that it is right for."""
    from course.judge.trial import trials

    task = TASKS[name]
    trial, found = next(((each, why) for each in trials(task, source) if (why := each.fault())), (None, ""))
    if trial is None:
        return ""
    others = [each for each in TASKS.values() if each.name == task.name and each is not task and not trial.failure]
    theirs = next((each for each in others if not any(other.fault() for other in trials(each, source))), None)
    asked = f"; {name} asks: {task.asks}" if theirs or task.variant > 1 else ""
    return f"{found}{f'; it is right for {theirs.key}' if theirs else ''}{asked}"


def main() -> None:
    """In the process: functions from standard input, one verdict a line to standard output."""
    _limit()
    _loopback()
    from course.judge.trial import close_ranks

    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what anything else prints is no verdict
    try:
        for name, source in json.load(sys.stdin).items():
            print(json.dumps({name: fault(name, source)}), file=out, flush=True)
    finally:
        close_ranks()


if __name__ == "__main__":
    main()
