"""A function is judged again in a process of its own, whatever the file claims, and what it must not do has an end."""

import json
from pathlib import Path

import pytest

from course.teach import handed_in, regrade

OURS = (Path(regrade.__file__).parents[1] / "solutions" / "swap.py").read_text()
FORGED = "def shift(x):\n    return x"
GREEDY = "def my_share(x):\n    bytearray(6 * 2**30)"
WRITES = "def flat_gather(x):\n    open('big', 'wb').write(bytes(2**27))"
CALLS = "import socket\ndef pass_it_on(x):\n    socket.create_connection(('192.0.2.1', 80), timeout=1)"


def test_a_claim_is_judged_again(tmp_path, capsys):
    functions = {"swap": OURS, "shift": FORGED, "my_share": GREEDY, "flat_gather": WRITES, "pass_it_on": CALLS}
    solved = {name: {"solved": "forged"} for name in [*functions, "ring_all_reduce"]}
    (tmp_path / "anna.json").write_text(json.dumps({"exercises": solved, "functions": functions}))
    assert handed_in.main([str(tmp_path), "--judge"]) == 0
    out = capsys.readouterr().out
    assert "1 of 5 functions are right when judged again" in out
    assert "anna, ring_all_reduce: handed in as solved, without its function" in out
    assert "anna, shift: rank 0: " in out and "anna, my_share: ranks 0-3: MemoryError" in out
    assert "anna, flat_gather: ranks 0-3: OSError: [Errno 27] File too large" in out
    if regrade.alone():
        assert "anna, pass_it_on: ranks 0-3: OSError: [Errno 101] Network is unreachable" in out
    else:
        assert "judged with the network in reach" in out


def test_a_judge_that_has_no_time_or_dies_is_said(monkeypatch):
    monkeypatch.setattr(regrade, "FIRST", -regrade.EACH)
    assert regrade.judged({"swap": OURS, "no exercise": ""}, []) == {
        "swap": "it was not judged: the time was over, or it ended the judge"
    }


@pytest.mark.parametrize("wrong", [None, 3, {"swap": 3}, {"none": "x"}])
def test_what_is_no_function_is_not_judged(tmp_path, wrong):
    (tmp_path / "anna.json").write_text(json.dumps({"exercises": {}, "functions": wrong}))
    _, _, texts, _, _ = handed_in.read(tmp_path)
    assert not texts.get("anna")
