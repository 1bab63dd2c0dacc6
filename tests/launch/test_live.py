"""What the log says live of each rank: in words, from records written by hand, and in a real notebook."""

import ast
import time
from types import SimpleNamespace

import pytest

from launch.kernel.watchdog import Live, doing
from launch.shared.flight_recorder import Board, Slot, Status


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (Status("waiting", "all_reduce", "world", 2, None, 4), "all_reduce #2, line 4"),
        (Status("waiting", "recv", "world", 1, 3, 7), "recv from rank 3, line 7"),
        (Status("waiting", "isend", "world", 1, 0), "isend to rank 0"),
        (Status("running"), "running Python code"),
        (Status(), "starting"),
    ],
)
def test_what_a_rank_is_doing_in_words(status, words):
    assert doing(status) == words


class Viewer:
    """Remembers what it was told last of each rank, and how often it was told anything."""

    def __init__(self):
        self.said, self.times = {}, 0

    def state(self, rank, name, note="", seconds=0):
        self.said[rank], self.times = (name, note, seconds), self.times + 1


@pytest.fixture
def live(tmp_path):
    """Live over a board of three ranks; `slots` are what the ranks write with."""
    board = Board(tmp_path / "board", 3)
    live = Live(Viewer(), board, SimpleNamespace(lines={}, stuck={}))
    live.slots = [Slot(board.path, rank) for rank in range(3)]
    return live


def test_places_and_proofs_stand_beside_the_ranks_and_only_changes_are_told(live):
    live.absent([2])
    live.slots[0].cell("running")
    live.slots[1].cell("running")
    live.slots[1].enter("recv", "world", 1, 0, 5)
    live.watchdog.lines = {0: "line 7", 1: "line 5"}
    for _ in range(3):
        live.look({0, 1}, stopping=False)
    there = {0: ("running", "line 7", 0), 1: ("waiting", "recv from rank 0, line 5", 0), 2: ("not in this cell", "", 0)}
    assert live.viewer.said == there and live.viewer.times == 3
    live.watchdog.stuck = {1: "recv from rank 0, line 5"}
    live.look({0, 1}, stopping=False)
    assert live.viewer.said[1] == ("stuck", "recv from rank 0, line 5", 0)
    live.look({0, 1}, stopping=True)
    assert all(note == "stopping; this takes three seconds at most" for _, note, _ in live.viewer.said.values() if note)
    live.ended(0, freed=False, failure="ValueError")
    live.ended(1, freed=True, failure="RuntimeError")
    assert live.viewer.said[0] == ("failed", "ValueError", 0)
    assert live.viewer.said[1] == ("stuck", "recv from rank 0, line 5", 0)
    live.ended(0, freed=True, failure="RuntimeError")  # gloo's, whose other side has died
    assert live.viewer.said[0] == ("stuck", "", 0)
    live.ended(0, freed=False, failure="KeyboardInterrupt, line 3", stopped=True)
    assert live.viewer.said[0] == ("stopped", "", 0)


def test_the_chips_say_what_happened_and_where(notebook):
    notebook.run("%%ranks 4\nimport os")
    notebook.run(
        "%%ranks\nif rank == 0:\n    1 / 0\nif rank == 1: os._exit(3)\nif rank > 2: dist.recv(torch.ones(1), 1)"
    )
    said = ast.literal_eval(notebook.states)
    assert said[:3] == [
        ["failed", "ZeroDivisionError, line 3", 0],
        ["failed", "died: exited with code 3", 0],
        ["done", "", 0],
    ]
    assert said[3][0] == "stuck"  # and in what, if that was proved before the connection broke
    cell = notebook.send("%%ranks\nprint('here', flush=True)\nwhile True: pass")
    notebook.collect(cell, until=lambda _, live: sum("here" in line for line in live) == 4)
    notebook.interrupt()
    assert notebook.collect(cell).ename == "RanksStopped"
    assert ast.literal_eval(notebook.states) == [["stopped", "", 0]] * 4


def test_how_long_is_said_from_two_seconds_on_and_not_of_the_time_before_the_cell(live, monkeypatch):
    live.slots[0].cell("running")
    live.slots[1].cell("idle")
    now = time.monotonic()
    for later, seconds in ((1.9, 0), (2.5, 2), (75.2, 75)):
        monkeypatch.setattr(time, "monotonic", lambda later=later: now + later)
        live.look({0, 1}, stopping=False)
        assert live.viewer.said == {0: ("running", "", seconds), 1: ("running", "", 0)}


def test_a_straggler_is_seen_with_its_line_and_since_when(notebook):
    assert not notebook.run("%%ranks 3\nimport time").error
    cell = notebook.send("%%ranks\nif rank == 1:\n    for _ in range(60): time.sleep(0.1)\ndist.barrier()")
    wanted, seen = {("running", "line 3", 2), ("waiting", "barrier #1, line 4", 2)}, set()

    def all_seen(*_):  # a rank that began a moment later is at its 2 seconds when another is at its 3
        seen.update(map(tuple, ast.literal_eval(notebook.states or "[]")))
        return wanted <= seen

    notebook.collect(cell, until=all_seen)
    assert wanted <= seen
    assert not notebook.collect(cell).error


def test_who_is_stuck_is_said_while_another_rank_still_computes(notebook, tmp_path):
    assert not notebook.run("%%ranks 3\nimport os, time\nx = torch.ones(1)").error
    gate = tmp_path / "gate"
    computes = f"while not os.path.exists('{gate}'): time.sleep(0.1)"
    cell = notebook.send(f"%%ranks\nif rank < 2: dist.recv(x, 1 - rank)\nelse:\n    {computes}")
    stuck = [["stuck", f"recv from rank {1 - rank}, line 2", 0] for rank in range(2)]
    notebook.collect(cell, until=lambda *_: notebook.states and ast.literal_eval(notebook.states)[:2] == stuck)
    assert ast.literal_eval(notebook.states)[2][0] == "running"
    gate.touch()
    assert notebook.collect(cell).ename == "DeadlockError"
    assert ast.literal_eval(notebook.states) == [*stuck, ["done", "", 0]]
