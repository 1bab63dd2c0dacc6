"""The file that remembers what is solved: whatever stands in it, nothing raises and nothing is lost."""

import json

import pytest

from course import progress


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Where the progress is kept; nothing on the way there exists yet."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data" / "ringside" / "progress.json"


def shown(capsys) -> list[str]:
    progress.show()
    return capsys.readouterr().out.splitlines()


def test_before_anything_is_solved(file, capsys):
    lines = shown(capsys)
    assert lines[0] == "  open  pass_it_on" and lines[-1] == "0 of 23 solved" and not file.exists()


def test_what_is_solved_stays_solved(file, capsys):
    progress.solved("shift")
    progress.solved("my_share")
    progress.solved("shift")
    lines = shown(capsys)
    assert "  done  shift" in lines and "  open  swap" in lines and lines[-1] == "2 of 23 solved"
    assert [path.name for path in file.parent.iterdir()] == ["progress.json"]


@pytest.mark.parametrize("text", ["nonsense", "", "[[1]]", "null", "3", '{"a": 1}', '["shift"', "\udc80"])
def test_a_spoilt_file_counts_as_none_and_is_replaced(file, capsys, text):
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert shown(capsys)[-1] == "0 of 23 solved"
    progress.solved("swap")
    assert "swap" in json.loads(file.read_text()) and shown(capsys)[-1] == "1 of 23 solved"


def test_names_of_another_version_are_kept_and_not_counted(file, capsys):
    file.parent.mkdir(parents=True)
    file.write_text('["moe_dispatch", "shift"]')
    progress.solved("swap")
    assert json.loads(file.read_text()) == ["moe_dispatch", "shift", "swap"]
    assert shown(capsys)[-1] == "2 of 23 solved"


def test_a_place_that_cannot_be_written_to_costs_only_the_memory(file, capsys):
    file.parent.parent.mkdir()
    file.parent.write_text("a file where the folder should be")
    progress.solved("swap")
    assert capsys.readouterr().out == "(Your progress could not be kept in progress.json: File exists.)\n"
    assert shown(capsys)[-1] == "0 of 23 solved"


def test_an_interrupted_write_loses_nothing(file, monkeypatch):
    progress.solved("swap")
    monkeypatch.setattr(type(file), "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    progress.solved("shift")
    assert json.loads(file.read_text()) == ["swap"]
