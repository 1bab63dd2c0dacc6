"""The student's own copies: what they wrote is never lost, and they see no answer before its question."""

import importlib
import json
import subprocess
import sys

import nbformat
import pytest

from course import chapters, own

CHAPTER = "02_messages.ipynb"


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course of two chapters, which can change."""
    folder = tmp_path / "course"
    folder.mkdir()
    for name in ("00_start_here.ipynb", CHAPTER):
        (folder / name).write_bytes((chapters.FOLDER / name).read_bytes())
    monkeypatch.setattr(chapters, "FOLDER", folder)
    return folder


def change(course, text="# a new title"):
    notebook = nbformat.read(course / CHAPTER, as_version=4)
    notebook.cells[0].source = text
    nbformat.write(notebook, course / CHAPTER)


def names(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def test_the_copies_are_the_chapters_without_outputs_and_nothing_else(tmp_path):
    assert own.hand_out(tmp_path / "mine") == []
    assert names(tmp_path / "mine") == [path.name for path in chapters.notebooks()]
    for path in (tmp_path / "mine").glob("*.ipynb"):
        ours, theirs = (nbformat.read(folder / path.name, as_version=4) for folder in (chapters.FOLDER, path.parent))
        nbformat.validate(theirs)
        assert [cell.source for cell in ours.cells] == [cell.source for cell in theirs.cells]
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in theirs.cells)
        assert any(cell.get("outputs") for cell in ours.cells), "else this test would show nothing"


def test_a_second_start_changes_nothing(course, tmp_path):
    own.hand_out(tmp_path / "mine")
    (tmp_path / "mine" / CHAPTER).write_text("what the student wrote")
    before = {path.name: path.read_bytes() for path in (tmp_path / "mine").iterdir()}
    assert own.hand_out(tmp_path / "mine") == []
    assert {path.name: path.read_bytes() for path in (tmp_path / "mine").iterdir()} == before


def test_a_chapter_that_changed_stands_beside_one_that_was_touched_once(course, tmp_path):
    mine = tmp_path / "mine"
    own.hand_out(mine)
    (mine / CHAPTER).write_text("what the student wrote")
    change(course)
    said = f"{CHAPTER} has changed since you began it: the new one is beside yours, as 02_messages (new).ipynb"
    assert own.hand_out(mine) == [said]
    assert own.hand_out(mine) == []
    assert (mine / CHAPTER).read_text() == "what the student wrote"
    assert nbformat.read(mine / "02_messages (new).ipynb", as_version=4).cells[0].source == "# a new title"
    change(course, "# another one")
    assert own.hand_out(mine) == [said.replace("(new)", "(new 2)")]
    assert names(mine) == ["00_start_here.ipynb", "02_messages (new 2).ipynb", "02_messages (new).ipynb", CHAPTER]


def test_a_chapter_that_changed_takes_the_place_of_one_nobody_has_touched(course, tmp_path):
    own.hand_out(tmp_path / "mine")
    change(course)
    assert own.hand_out(tmp_path / "mine") == []
    assert names(tmp_path / "mine") == ["00_start_here.ipynb", CHAPTER]
    assert nbformat.read(tmp_path / "mine" / CHAPTER, as_version=4).cells[0].source == "# a new title"


def test_a_chapter_is_begun_afresh_by_deleting_it(course, tmp_path):
    own.hand_out(tmp_path / "mine")
    given = (tmp_path / "mine" / CHAPTER).read_bytes()
    (tmp_path / "mine" / CHAPTER).unlink()
    own.hand_out(tmp_path / "mine")
    assert (tmp_path / "mine" / CHAPTER).read_bytes() == given


@pytest.mark.parametrize("text", ["", "[]", "not json", '{"02_messages.ipynb": 3}'])
def test_of_a_folder_from_elsewhere_everything_counts_as_touched(course, tmp_path, text):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / CHAPTER).write_text("what the student wrote")
    (mine / own.GIVEN).write_text(text)
    assert len(own.hand_out(mine)) == 1
    assert (mine / CHAPTER).read_text() == "what the student wrote"
    assert set(json.loads((mine / own.GIVEN).read_text())) == {"00_start_here.ipynb", CHAPTER}


def test_the_command_says_once_where_the_copies_are(tmp_path):
    command = [sys.executable, "-m", "course.own", str(tmp_path / "mine")]
    first, second = (subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(2))
    assert f"Your own copies of the chapters are in {tmp_path / 'mine'};" in first.stderr
    assert first.stdout == second.stdout == second.stderr == ""


def test_a_folder_that_cannot_be_made_is_said(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert own.main([str(tmp_path / "file" / "mine")]) == 1
    assert "Name another folder" in capsys.readouterr().err


def test_where_nothing_can_be_written_beside_the_course_it_is_in_the_home_folder(tmp_path, monkeypatch):
    assert own.own_folder() == chapters.FOLDER.parent / "my-course"
    monkeypatch.setattr(own.os, "access", lambda path, mode: False)  # root may write everywhere
    monkeypatch.setenv("HOME", str(tmp_path))
    assert own.own_folder() == tmp_path / "ringside"


@pytest.mark.parametrize("program", ["own", "pages", "pack.__main__", "site.__main__"])
def test_help_is_no_folder(tmp_path, monkeypatch, capsys, program):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"course.{program}").main(["--help"])
    assert ended.value.code == 0 and "folder" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
