"""`%ranks attach`: cells on several hosts, which are network namespaces of this machine, started by the real torchrun.

The hosts' tests need root and iproute2 (tests/launch/hosts.py); they share two hosts and come in order, since the last
ones lose one host after the other.
"""

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import zmq
from zmq.utils.monitor import recv_monitor_message

from launch.machine.listener import KVStore
from launch.shared.processes import descendants
from tests.launch.hosts import Hosts, ahead_by, needs_root
from tests.launch.notebook import Notebook

ROOT = Path(__file__).parents[2]
PATIENCE = 120_000  # milliseconds; a bound
AHEAD = (7_200, 100_000)  # seconds that the clocks of the hosts are ahead of the notebook's
REFUSED = {zmq.EVENT_HANDSHAKE_FAILED_AUTH, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL, zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL}


class Attached:
    """A notebook and two hosts; `ticket` is what stood in its file while the notebook waited."""

    def __init__(self, home: Path):
        self.home, self.hosts = home, Hosts(2)
        self.notebook = Notebook({"HOME": str(home)})
        try:
            self.run("%load_ext launch\nimport launch, os")
            self.said = self.attach()
        except BaseException:
            self.close()
            raise

    def attach(self) -> str:
        """What `%ranks attach` has said when both hosts are there."""
        waiting = self.notebook.send(f"%ranks attach {self.hosts.outside}")
        shown = self.notebook.collect(waiting, lambda output, _: "no machine is here yet" in output.stdout).stdout
        (command,) = (line.split() for line in shown.splitlines() if "torchrun --" in line)
        self.path = Path(command[-1])
        self.mode, self.ticket = self.path.stat().st_mode & 0o777, json.loads(self.path.read_text())
        self.refusals = [self.refused(how) for how in (in_clear, with_another_key)]
        for host in range(2):
            self.start(host, command)
        return self.notebook.collect(waiting).stdout

    def start(self, host: int, command: list[str]) -> None:
        """What a student pastes there; torchrun does not know namespaces, and is told who is the first machine."""
        words = " ".join(command).replace("FIRST_MACHINE", self.hosts.addresses[0]).split()
        words[0:1] = [sys.executable, "-m", "torch.distributed.run", f"--rdzv-conf=is_host={int(host == 0)}"]
        environ = {**os.environ, "RES_OPTIONS": "timeout:1 attempts:1", "PYTHONPATH": str(ROOT)}
        environ["TMPDIR"] = str(self.home)  # torchrun leaves a folder behind
        words = [*ahead_by(AHEAD[host]), *words]
        self.hosts.run(host, words, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def refused(self, how) -> int:
        """The event with which a stranger's attempt ends."""
        with zmq.Context() as context, context.socket(zmq.DEALER) as stranger:
            stranger.linger = 0
            how(stranger, self.ticket)
            events = stranger.get_monitor_socket()
            stranger.connect(self.ticket["address"])
            stranger.send_multipart([b"come", b'{"index": 0, "of": 1, "name": "stranger", "address": "10.0.0.1"}'])
            while events.poll(PATIENCE):
                event = recv_monitor_message(events)["event"]
                assert event != zmq.EVENT_HANDSHAKE_SUCCEEDED
                if event in REFUSED:
                    break
            assert not stranger.poll(0)
            stranger.disable_monitor()
            return event

    def run(self, code: str) -> str:
        output = self.notebook.run(code)
        assert not output.error, output.error
        return output.stdout

    def fails(self, code: str) -> str:
        return self.notebook.run(code).error

    def close(self) -> None:
        self.notebook.close()
        self.hosts.close()


def in_clear(stranger, ticket):
    pass


def with_another_key(stranger, ticket):
    stranger.curve_serverkey = ticket["server"].encode()
    stranger.curve_publickey, stranger.curve_secretkey = zmq.curve_keypair()


@pytest.fixture(scope="module")
def attached(tmp_path_factory):
    needs_root()
    found = Attached(tmp_path_factory.mktemp("home"))
    yield found
    found.close()


def test_what_is_shown_while_machines_come(attached):
    assert "2 of 2 machines here: " in attached.said
    assert attached.said.endswith("\n2 machines are attached: %%ranks 4 runs a cell on 4 ranks there\n")
    assert all(address in attached.said for address in attached.hosts.addresses)


def test_the_key_is_in_a_file_of_this_user_alone_until_the_machines_are_here(attached):
    assert attached.mode == 0o600 and not attached.path.exists()
    assert not any(attached.ticket[key] in attached.said for key in ("server", "secret"))
    processes = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert any(b"launch.machine" in words for words in processes)
    assert not any(attached.ticket["secret"].encode() in words for words in processes)


def test_a_stranger_learns_nothing(attached):
    assert set(attached.refusals) <= REFUSED
    host, port = attached.ticket["address"].removeprefix("tcp://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as line:
        line.sendall(b"GET / HTTP/1.0\r\n\r\n" + bytes(100))
        said = b""
        with contextlib.suppress(ConnectionResetError):
            while more := line.recv(4096):
                said += more
    assert len(said) <= 64  # zmq's greeting: its version, and that it wants CURVE


def test_the_ticket_is_good_for_once(attached, tmp_path):
    copy = tmp_path / "ticket"
    copy.write_text(json.dumps(attached.ticket))
    copy.chmod(0o600)
    assert joins(copy) == "the notebook waits for no more machines: run %ranks attach again"


def test_a_cell_runs_on_both(attached):
    out = attached.run("%%ranks 4\nimport os\nx = torch.arange(2.0) + 10 * rank\ndist.all_reduce(x)\nkept = rank\nx")
    assert out == "ranks 0-3: tensor([60., 64.])\n"
    attached.run("%%ranks\nwhere = os.readlink('/proc/self/ns/net') + ' ' + os.environ['LOCAL_RANK']")
    (a, b), places = (2, 2), attached.notebook.value("[w.split() for w in launch.pull('where')]")
    assert [local for _, local in places] == ["0", "1", "0", "1"]
    namespaces = [space for space, _ in places]
    assert namespaces[:a] == namespaces[:1] * a and namespaces[a:] == namespaces[a : a + 1] * b
    here = os.readlink("/proc/self/ns/net")
    assert len({*namespaces, here}) == 3
    rows = [line.split() for line in attached.run("%ranks").splitlines()]
    assert rows[0][-1] == "machine"
    assert [row[-1].strip("()") for row in rows[1:]] == [a for a in attached.hosts.addresses for _ in range(2)]


def test_no_line_is_lost(attached):
    out = attached.run("%%ranks\nfor i in range(5000): print(rank, i)")
    assert out.splitlines() == [f"[rank {rank}] {rank} {i}" for rank in range(4) for i in range(5000)]


def test_a_deadlock_across_machines_is_explained(attached):
    error = attached.fails("%%ranks\nif rank != 1: dist.all_reduce(x)")
    assert error.startswith("DeadlockError: ranks 0, 2, 3 wait in all_reduce #1 (line 2")
    assert attached.notebook.value("launch.pull('kept')") == [0, 1, 2, 3]


def test_a_mismatch_between_machines_is_explained(attached):
    error = attached.fails("%%ranks\ndist.all_reduce(torch.ones(3 if rank < 2 else 4))")
    assert error.startswith("MismatchError: ranks 0, 1 call all_reduce #1 with 3 elements (line 2); ranks 2, 3")


def test_a_run_is_recorded(attached):
    attached.run("%%ranks --record\nif rank == 1: dist.send(x, 2)\nif rank == 2: dist.recv(x, 1)")
    moves = "[(t.src, t.dst) for s in launch.recording().steps for t in s.transfers]"
    assert attached.notebook.value(moves) == [(1, 2)]


def test_times_are_by_one_clock(attached):
    """Nobody is through an all_reduce before all have come to it. By the hosts' own clocks they are 25 hours apart."""
    attached.run("import time\nfrom collectives.timed import uncertainty\nfrom launch.magics import session")
    attached.run("%%ranks --record\ndist.all_reduce(x)")
    clocks = attached.notebook.value("[tuple(clock) for clock in launch.recording().clocks]")
    assert [ranks for ranks, _, _ in clocks] == [(0, 1), (2, 3)]
    for (_, offset, error), ahead in zip(clocks, AHEAD, strict=True):
        assert abs(offset - ahead) <= error + 1e-6 and error < 100
    calls = attached.notebook.value("[(e.start, e.end) for e in launch.recording().events]")
    wrong = attached.notebook.value("uncertainty(launch.recording().clocks)")
    assert len(calls) == 4 and 0 < wrong == clocks[0][2] + clocks[1][2]
    assert max(start for start, _ in calls) <= min(end for _, end in calls) + wrong
    since = attached.notebook.value("[time.monotonic() - one.doing.since for one in session().status()]")
    assert len(since) == 4 and all(-100 < seconds < 1000 for seconds in since), (
        "what a rank is doing has one clock, too"
    )


def test_the_stop_button_reaches_all(attached):
    cell = attached.notebook.send("%%ranks\nprint('here', flush=True)\nif rank: dist.barrier()\nwhile not rank: pass")
    attached.notebook.collect(cell, lambda output, live: sum("here" in line for line in live) == 4)
    attached.notebook.interrupt()
    assert attached.notebook.collect(cell).ename == "RanksStopped"
    assert attached.run("%%ranks\nkept") == "rank 0: 0\nrank 1: 1\nrank 2: 2\nrank 3: 3\n"


def test_a_rank_that_dies_is_replaced_on_its_machine(attached):
    error = attached.fails("%%ranks\nif rank == 3: os.kill(os.getpid(), 9)\ndist.barrier()")
    assert error == "RankError: rank 3 died (killed by SIGKILL)"
    out = attached.run("%%ranks\ny = torch.ones(1)\ndist.all_reduce(y)\ny, globals().get('kept')")
    assert out.splitlines()[-1] == "rank 3: (tensor([4.]), None)" and "rank 2: (tensor([4.]), 2)" in out


def test_a_network_is_played_on_one_machine_only(attached):
    assert attached.fails("%%ranks --network ethernet\nkept") == (
        "UsageError: a network is played on one machine, and the machines that are attached have a real one: leave out "
        "--network, or %ranks network off"
    )


def test_there_is_a_gpu_for_each_rank_or_no_nccl(attached):
    where = f"{socket.gethostname()} ({attached.hosts.addresses[0]})"
    assert attached.fails("%%ranks 5 --backend nccl\n1") == (
        f"UsageError: 5 ranks with nccl need 3 GPUs on {where}, which has 0: use --backend gloo"
    )


def test_a_host_that_is_cut_off(attached):
    attached.run("%%ranks\nkept = rank")
    attached.hosts.cut(1)
    name = f"{socket.gethostname()} ({attached.hosts.addresses[1]})"
    error = attached.fails("%%ranks\ndist.barrier()")
    assert error == f"RankError: ranks 2-3 died (its machine {name} does not answer any more)"
    out = attached.run("%%ranks\ny = torch.ones(1)\ndist.all_reduce(y)\ny, globals().get('kept')")
    assert out == "rank 0: (tensor([4.]), 0)\nrank 1: (tensor([4.]), 1)\nranks 2-3: (tensor([4.]), None)\n"
    assert attached.run("%ranks").count(f"({attached.hosts.addresses[0]})") == 4


def test_an_engine_that_ends(attached):
    attached.hosts.started[0].terminate()
    ended = f"{socket.gethostname()} ({attached.hosts.addresses[0]}) was ended by its engine"
    for cell in ("%%ranks\nwhile True: pass", "%%ranks 4\n1"):
        assert attached.fails(cell) == (
            f"LaunchError: {ended}, and no other is left: %ranks attach off, then attach others"
        )
    assert attached.run("%ranks attach off") == "ranks are on this machine again\n"
    assert attached.run("%%ranks 2\nx = 1\nx") == "ranks 0-1: 1\n"
    assert attached.run("%ranks attach off") == "no machines are attached\n"


def test_the_one_that_was_cut_off_can_be_attached_again_and_ends_when_it_is_let_go_or_the_notebook_has_gone(attached):
    notebook, hosts = attached.notebook, attached.hosts
    attached.run("%ranks attach off")
    hosts.connect(1)
    for engine in hosts.started:
        engine.terminate()
    for engine in hosts.started:
        engine.wait(PATIENCE / 1000)
    for last in (False, True):
        cell, ticket = wait_for(notebook, hosts.outside)
        machine = hosts.run(1, [sys.executable, "-m", "launch.machine", str(ticket)], cwd=ROOT)  # without torchrun
        assert "1 machine is attached" in notebook.collect(cell).stdout
        assert attached.run("%%ranks 2\ny = torch.tensor([rank])\ndist.all_reduce(y)\ny") == "ranks 0-1: tensor([1])\n"
        assert attached.run("%ranks").count(f"({hosts.addresses[1]})") == 2
        assert attached.fails("%ranks attach").startswith("UsageError: machines are attached already")
        (agent,) = descendants(machine.pid, deep=False)
        assert len(descendants(agent, deep=False)) == 2
        folder = Path(Path(f"/proc/{agent}/cmdline").read_text().split("\0")[-2])
        assert (folder / "shell").exists() and not list(folder.glob("start-*"))  # the key of all messages
        if last:
            os.kill(notebook.pid, signal.SIGKILL)
        else:
            assert attached.run("%ranks attach off") == "ranks are on this machine again\n"
        assert machine.wait(timeout=120) == 0
        assert not Path(f"/proc/{agent}").exists()


# Without hosts


def joins(ticket: Path) -> str:
    """What a machine with that ticket says."""
    command = [sys.executable, "-m", "launch.machine", str(ticket)]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert run.returncode == 1
    return run.stderr.strip()


def test_a_ticket_that_others_can_read_is_refused(tmp_path):
    ticket = tmp_path / "ticket"
    assert joins(ticket) == f"the ticket {ticket} cannot be read (No such file or directory): run %ranks attach again"
    ticket.write_text("{")
    ticket.chmod(0o644)
    assert joins(ticket).startswith(f"others can read the ticket {ticket}: chmod 600")
    ticket.chmod(0o600)
    assert joins(ticket) == f"the ticket {ticket} cannot be read (it is not one): run %ranks attach again"


def wait_for(notebook, where: str) -> tuple[str, Path]:
    """A notebook that waits for machines: (which cell, the ticket)."""
    cell = notebook.send(f"%ranks attach {where}")
    output = notebook.collect(cell, lambda output, _: "no machine is here yet" in output.stdout)
    assert not output.error, output.error
    return cell, Path(shlex.split(re.search("launch.machine (.*)", output.stdout)[1])[0])


@pytest.fixture
def at_home(notebook, tmp_path):
    """The notebook, with a home of its own for its tickets."""
    assert not notebook.run(f"import os\nhome, os.environ['HOME'] = os.environ['HOME'], {str(tmp_path)!r}").error
    yield notebook
    assert not notebook.run("os.environ['HOME'] = home").error


def test_waiting_can_be_stopped(at_home):
    notebook = at_home
    assert not notebook.run("%%ranks 2\nkept = rank").error
    for where in ("", "127.0.0.1"):
        waiting, ticket = wait_for(notebook, where)
        assert ticket.stat().st_mode & 0o777 == 0o600 and ticket.parent.stat().st_mode & 0o777 == 0o700
        notebook.interrupt()
        stopped = notebook.collect(waiting)
        assert stopped.error == "RanksStopped: stopped; no machine is attached, and the ranks are where they were"
        assert not ticket.exists()
    assert notebook.run("%ranks attach off").stdout == "no machines are attached\n"
    assert notebook.run("%%ranks\nkept").stdout == "rank 0: 0\nrank 1: 1\n"
    error = notebook.run("%ranks attach 192.0.2.7").error
    assert error.startswith("UsageError: the notebook cannot listen at 192.0.2.7: ")
    assert notebook.run("%ranks attach a b").error.startswith("UsageError: %ranks attach takes one address")


@pytest.mark.parametrize("port", ["99999", "-1", "0", "http", ""])
def test_a_port_that_is_none_is_refused(notebook, port):
    assert notebook.run(f"%ranks attach 127.0.0.1:{port}").error == (
        f"UsageError: a port is a number from 1 to 65535, as in %ranks attach 127.0.0.1:5000, got 127.0.0.1:{port}"
    )


def test_help_of_the_machine_says_how_it_is_used():
    command = [sys.executable, "-m", "launch.machine", "--help"]
    run = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert run.returncode == 0 and run.stdout.startswith("usage: python -m launch.machine TICKET\n")


def test_a_machine_whose_agent_dies_as_it_starts_shows_the_log(at_home, tmp_path):
    cell, ticket = wait_for(at_home, "127.0.0.1")
    (tmp_path / "torch.py").write_text("raise ValueError('not the torch that you know')")
    command, environ = [sys.executable, "-m", "launch.machine", str(ticket)], {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environ, timeout=300)
    assert "the agent has ended (exited with code 1); the end of its log:\n" in run.stdout
    assert "\nValueError: not the torch that you know\n" in run.stdout
    assert "has lost its agent (ValueError: not the torch that you know)" in at_home.collect(cell).error


def test_the_store_answers_as_a_store_of_torch_does(tmp_path):
    import torch.distributed as dist

    calls = [("set", "a", "1"), ("get", "a"), ("add", "n", "3"), ("add", "n", "-1"), ("get", "n"), ("num_keys",)]
    calls += [
        ("compare_set", "c", "", "x"),
        ("compare_set", "c", "y", "z"),
        ("compare_set", "c", "x", "z"),
        ("get", "c"),
    ]
    calls += [("check", "a", "c"), ("check", "a", "d"), ("delete_key", "a"), ("delete_key", "a"), ("check", "a")]
    store, theirs = KVStore(), dist.HashStore()
    for number, (do, *words) in enumerate(calls):
        answered, value = json.loads(store.answer(json.dumps([number, do, *words]).encode()))
        given = [list(words)] if do == "check" else [words[0], int(words[1])] if do == "add" else words
        meant = getattr(theirs, do)(*given)
        assert (answered, value) == (number, meant.decode() if isinstance(meant, bytes) else meant), (do, words)
