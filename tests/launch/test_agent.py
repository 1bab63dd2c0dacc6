"""What the agent imports before it forks, ranks need not import."""

import socket
import threading

import pytest

from launch.kernel.site import AgentLink
from launch.ranks import Ranks
from launch.shared.errors import LaunchError


def test_ranks_have_what_the_notebook_said_they_will_import(warm):
    ranks = Ranks(fork_from=warm)
    try:
        ranks.will_import("no_such_module")
        ranks.will_import("this")  # which prints: nobody is to see that
        ranks.ensure(2)
        had = "import sys; had = [name in sys.modules for name in ('this', 'antigravity')]"
        assert [str(answer.out) for answer in ranks.execute(had)] == ["", ""]
        assert ranks.pull("had") == [[True, False]] * 2
    finally:
        ranks.close()


def test_students_files_with_the_names_of_such_modules_end_no_agent(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.py").write_text("1 / 0")
    (tmp_path / "other.py").write_text("import sys; sys.exit('as a script')")
    ranks = Ranks()
    try:
        for name in ("one", "other", "this"):
            ranks.will_import(name)
        ranks.ensure(2)
        ranks.execute("import sys; had = 'this' in sys.modules")
        assert ranks.pull("had") == [True, True]
    finally:
        ranks.close()


def test_what_an_agent_said_last_is_shown_when_it_dies_as_it_starts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torch.py").write_text("raise ValueError('not the torch that you know')")
    ranks = Ranks()
    try:
        with pytest.raises(LaunchError) as caught:
            ranks.ensure(2)
    finally:
        ranks.close()
    first, *log = str(caught.value).splitlines()
    assert first == "ranks cannot be started on this machine: the agent has died"
    assert log[-1] == "ValueError: not the torch that you know"


def test_that_all_is_imported_is_no_news_for_others():
    """The supervisor, and a machine that passes on what its agent says, hear of ranks alone."""
    link, heard = object.__new__(AgentLink), []
    link.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link.ahead, link.on_event = threading.Event(), lambda event, fds: heard.append(event["event"])
    with link.socket, theirs:
        for said in (b'{"event": "ahead"}', b'{"event": "exited"}'):
            theirs.send(said)
            link._receive()
    assert link.ahead.is_set() and heard == ["exited"]
