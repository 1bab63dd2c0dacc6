"""A start that is closed or that a process keeps waiting ends with a sentence, and nothing of it stays."""

import os
import resource
import signal
import threading
import time

import psutil
import pytest

import launch.kernel.supervisor
from launch.doctor.snapshot import How
from launch.ranks import Ranks
from launch.shared.errors import LaunchError


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
    limit = time.monotonic() + 60
    while ranks.supervisor._work is None and time.monotonic() < limit:
        starting.join(0.005)
    ranks.close()
    starting.join(60)
    assert not starting.is_alive() and said == ["stopped while the ranks were starting; none runs"]
    gone, alive = psutil.wait_procs(set(psutil.Process().children(recursive=True)) - before, timeout=60)
    assert not alive


def test_a_process_that_never_dials_in_ends_the_start_with_a_sentence(warm, monkeypatch):
    ranks, began, pids = Ranks(fork_from=warm), launch.kernel.supervisor.Worker.started, []

    def held_back(worker, pid, *more):
        pids.append(pid)
        if worker.rank == 1:
            os.kill(pid, signal.SIGSTOP)
        began(worker, pid, *more)

    try:
        ranks.ensure(2)
        with monkeypatch.context() as patch:
            patch.setattr(launch.kernel.supervisor, "COMING", 4)
            patch.setattr(launch.kernel.supervisor.Worker, "started", held_back)
            with pytest.raises(LaunchError, match="did not come up within 4 seconds: run the cell again"):
                ranks.ensure(3)
        assert not any(map(psutil.pid_exists, pids)), "also of those that came up"
        ranks.ensure(3)
    finally:
        ranks.close()


def test_none_is_left_of_ranks_that_are_stopped_while_they_are_forked(warm, monkeypatch):
    """Some have been told of, others not yet; most are never forked."""
    ranks, pids = Ranks(fork_from=warm), []
    ranks.ensure(2)
    on_agent = ranks.supervisor.agent.on_event

    def stop_at_the_first(event, fds):
        on_agent(event, fds)
        if event["event"] == "started":
            pids.append(event["pid"])
            if len(pids) == 1:
                ranks.supervisor.interrupt()

    try:
        monkeypatch.setattr(ranks.supervisor.agent, "on_event", stop_at_the_first)
        with pytest.raises(LaunchError, match="stopped while the ranks were starting; none runs"):
            ranks.ensure(40)
        ranks.ensure(2)  # whom the agent starts when it has ended all that it was told to
        assert len(pids) < 42 and [pid for pid in pids if psutil.pid_exists(pid)] == pids[-2:]
    finally:
        ranks.close()


def test_without_room_for_its_files_it_says_so(warm):
    """A limit on the size of a file stands for a full disk: both refuse to give the file its room."""
    ranks, (soft, hard) = Ranks(fork_from=warm), resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        ranks.ensure(1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
        with pytest.raises(
            LaunchError, match="^the ranks have no room for their files: .* TMPDIR set to another folder"
        ):
            ranks.ensure(2)
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        ranks.ensure(2)
        assert all(answer.how is How.LEFT for answer in ranks.execute("dist.barrier()"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        ranks.close()
