"""A start that is closed or that a process keeps waiting ends with a sentence, and nothing of it stays."""

import os
import signal
import threading
import time

import psutil
import pytest

import launch.crew
from launch.errors import LaunchError
from launch.ranks import Ranks


def test_closing_during_a_start_ends_it_with_a_sentence():
    ranks, said = Ranks(), []

    def start():
        try:
            ranks.ensure(4)
        except LaunchError as error:
            said.append(str(error))

    before = set(psutil.Process().children(recursive=True))
    starting = threading.Thread(target=start)
    starting.start()
    limit = time.monotonic() + 30
    while ranks.crew._work is None and time.monotonic() < limit:
        starting.join(0.005)
    ranks.close()
    starting.join(30)
    assert not starting.is_alive() and said == ["stopped while the ranks were starting; none runs"]
    gone, alive = psutil.wait_procs(set(psutil.Process().children(recursive=True)) - before, timeout=10)
    assert not alive


def test_a_process_that_never_dials_in_ends_the_start_with_a_sentence(monkeypatch):
    ranks, began, pids = Ranks(), launch.crew.Member.started, []

    def held_back(member, pid, *more):
        pids.append(pid)
        if member.rank == 1:
            os.kill(pid, signal.SIGSTOP)
        began(member, pid, *more)

    try:
        ranks.ensure(2)
        with monkeypatch.context() as patch:
            patch.setattr(launch.crew, "COMING", 2)
            patch.setattr(launch.crew.Member, "started", held_back)
            with pytest.raises(LaunchError, match="did not come up within 2 seconds: run the cell again"):
                ranks.ensure(3)
        assert len(pids) == 3 and not any(map(psutil.pid_exists, pids))
        ranks.ensure(3)
    finally:
        ranks.close()
