"""Who can reach the ranks: tried from outside, as another user and as a process that does not have the key."""

import ast
import hmac
import os
import secrets
import socket
import stat
from pathlib import Path

import psutil
import pytest
import zmq
from jupyter_client.session import Session

from launch.shared.processes import write_start_file
from tests.launch.notebook import Notebook

LAUNCH = Path(__file__).parents[2] / "launch"
CHANNELS = ("shell", "control", "iopub")
NOBODY = 65534  # the user id that owns nothing
LOADERS = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "multiprocessing"}
METHODS = {"recv_pyobj", "send_pyobj", "load_module", "unsafe_load"}


@pytest.fixture(scope="module")
def three(notebook):
    """A notebook in which three ranks hold a variable `kept`."""
    assert not notebook.run("from launch import magics\nhub = magics.session().hub").error
    assert not notebook.run("%%ranks 3\nkept = 7 * rank").error
    return notebook


@pytest.fixture
def folder(three) -> Path:
    return Path(three.value("hub.folder"))


def usable(notebook: Notebook) -> None:
    output = notebook.run("%%ranks\nx = torch.ones(1)\ndist.all_reduce(x)\n(x.item(), kept == 7 * rank)")
    assert (output.error, output.stdout.strip()) == ("", "ranks 0-2: (3.0, True)")


def session_of(notebook: Notebook) -> list[psutil.Process]:
    """The kernel, the agent and the ranks."""
    kernel = psutil.Process(notebook.pid)
    processes = [kernel, *kernel.children(recursive=True)]
    assert len(processes) >= 5
    return processes


# The folder and the key


def test_the_folder_and_all_that_lies_in_it_is_this_users_alone(folder):
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {path.name for path in folder.iterdir()} >= set(CHANNELS)
    for path in [folder, *folder.rglob("*")]:
        assert path.stat().st_uid == os.getuid()


def test_the_file_with_the_key_is_readable_by_this_user_only_and_gone_after_the_start(tmp_path, folder):
    old = os.umask(0)
    try:
        path = write_start_file(str(tmp_path), b"key", 1)
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert not list(folder.glob("start-*"))


def test_the_key_stands_in_no_command_line_no_environment_and_no_file(three, folder):
    key = three.value("hub.key")
    assert len(key) == 32
    for written in (key, key.hex().encode(), key.hex().upper().encode()):
        for process in session_of(three):
            for file in ("cmdline", "environ"):
                assert written not in Path(f"/proc/{process.pid}/{file}").read_bytes()
        for path in folder.rglob("*"):
            assert not path.is_file() or written not in path.read_bytes()
    three.run(f"%%ranks\nimport os\nleaked = any({key.hex()!r} in value for value in os.environ.values())")
    assert three.value("__import__('launch').pull('leaked')") == [False] * 3


@pytest.mark.skipif(os.getuid() != 0, reason="becoming another user takes root")
def test_another_user_reaches_no_socket(folder):
    for channel in CHANNELS:
        with socket.socket(socket.AF_UNIX) as ours, socket.socket(socket.AF_UNIX) as theirs:
            ours.connect(str(folder / channel))  # the control: the same attempt as this user
            os.seteuid(NOBODY)
            try:
                with pytest.raises(PermissionError):
                    theirs.connect(str(folder / channel))
            finally:
                os.seteuid(0)


# A process of this user that has found the folder, but not the key


@pytest.fixture
def dial(folder):
    """dial(channel, identity) -> a socket connected there as a rank connects; closed after the test."""
    context = zmq.Context()

    def connect(channel: str, identity: bytes = b"") -> zmq.Socket:
        dialled = context.socket(zmq.PUB if channel == "iopub" else zmq.DEALER)
        dialled.linger = 200
        if identity:
            dialled.identity = identity
        dialled.connect(f"ipc://{folder}/{channel}")
        return dialled

    yield connect
    context.destroy()


@pytest.fixture
def names(three) -> list[str]:
    """What the ranks are called on the wire."""
    return three.value("[member.name for member in magics.session().supervisor.workers]")


def test_messages_signed_with_another_key_change_nothing(three, dial, names):
    """While a cell waits: forged output, replies, the end of the cell, and code to run; unsigned ones and garbage."""
    sockets = {channel: dial(channel) for channel in CHANNELS}
    cell = three.send("%%ranks\nimport time\nprint('begun', flush=True)\ntime.sleep(1)\n'the real value'")
    three.collect(cell, until=lambda output, live: any("begun" in text for text in live))
    evil = "open('/nowhere/touched', 'w'); kept = 'stolen'"
    for key in (secrets.token_bytes(32), b""):
        for name in names:
            forger = Session(key=key, session=name)
            for channel, kind, content in (
                ("iopub", "stream", {"name": "stdout", "text": "forged"}),
                ("iopub", "execute_result", {"data": {"text/plain": "forged"}, "metadata": {}}),
                ("iopub", "status", {"execution_state": "idle"}),
                ("shell", "execute_reply", {"status": "error", "ename": "Forged", "evalue": "", "traceback": []}),
                ("shell", "execute_request", {"code": evil, "silent": False}),
                ("control", "rank_request", {"do": "free", "cell": "any"}),
            ):
                forger.send(sockets[channel], forger.msg(kind, content))
    for dialled in sockets.values():
        for garbage in ([b""], [b"<IDS|MSG>"], [b"<IDS|MSG>", b"sig"], [secrets.token_bytes(99)] * 7):
            dialled.send_multipart(garbage)
    output = three.collect(cell)
    assert (output.error, output.stdout) == ("", "[ranks 0-2] begun\nranks 0-2: 'the real value'\n")
    usable(three)


def test_nobody_takes_the_place_of_a_rank_even_at_its_address(three, dial, names):
    """A rank's address is derived from the key. Here it is leaked, and a second socket that takes it gets nothing."""
    intruders = []
    for name in names:
        address = three.value(f"hub.address({name!r})")
        intruders += [dial(channel, address) for channel in ("shell", "control")]
    forger = Session(key=b"guess", session=names[0])
    for intruder in intruders:
        forger.send(intruder, forger.msg("execute_reply", {"status": "ok"}))
    usable(three)
    usable(three)
    assert not any(intruder.poll(0) for intruder in intruders)


def test_without_the_key_the_address_of_a_rank_is_not_known(three, names):
    address, key = three.value(f"hub.address({names[1]!r})"), three.value("hub.key")
    assert address == hmac.digest(key, names[1].encode(), "sha256")[:16]
    assert address != hmac.digest(secrets.token_bytes(32), names[1].encode(), "sha256")[:16]


# Which ports are open, and what received bytes can become


def test_nothing_listens_beyond_loopback(three):
    """With a group made by us, and in `--bare` with torch's own TCPStore, which by default listens everywhere."""
    loopback = {"127.0.0.1", "::1"}
    for cell in (
        "%%ranks\ndist.barrier()\nhalf = dist.new_group([0, 1])",
        "%%ranks 3 --bare\ndist.init_process_group('gloo')\ndist.barrier()",
    ):
        assert not three.run(cell).error
        found = {
            process.pid: {c.laddr.ip for c in process.net_connections("inet") if c.status in ("LISTEN", "NONE")}
            for process in session_of(three)
        }
        assert all(addresses <= loopback for addresses in found.values()), found
        assert sum(bool(addresses) for addresses in found.values()) >= 4  # gloo listens in every rank, so we do see it
    assert not three.run("%%ranks 3\nkept = 7 * rank").error


def test_the_store_of_a_bare_cell_answers_at_loopback_and_nowhere_else(three):
    three.run("%%ranks 3 --bare\nimport os\ndist.init_process_group('gloo')\nport = int(os.environ['MASTER_PORT'])")
    port = three.value("__import__('launch').pull('port')[0]")
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), timeout=5)  # another address of this machine
    assert not three.run("%%ranks 3\nkept = 7 * rank").error


@pytest.mark.parametrize("path", sorted(LAUNCH.rglob("*.py")), ids=lambda path: str(path.relative_to(LAUNCH)))
def test_no_module_can_turn_received_bytes_into_objects_with_code(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            assert not {alias.name.split(".")[0] for alias in node.names} & LOADERS
        elif isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] not in LOADERS
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("eval", "exec", "__import__")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
            assert node.func.attr not in METHODS and (owner, node.func.attr) not in {("torch", "load"), ("np", "load")}
            assert "allow_pickle" not in {word.arg for word in node.keywords}
