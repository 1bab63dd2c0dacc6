"""`check` in a real notebook: what it prints, and that it never raises and loses nothing."""

import json
import os

import pytest

from tests.launch.conftest import Notebook

RING = open(os.path.join(os.path.dirname(__file__), "../../course/solutions/ring_all_reduce.py")).read()


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    notebook = Notebook(environ={"JUPYTER_DATA_DIR": str(folder), "JUPYTER_PATH": os.environ.get("JUPYTER_PATH", "")})
    notebook.data = folder
    assert not notebook.run("%load_ext launch\nfrom course import check").error
    yield notebook
    notebook.close()


def check(notebook, arguments='"ring_all_reduce"'):
    output = notebook.run(f"check({arguments})")
    assert not output.error, output.traceback
    return output.stdout


def test_the_steps_of_a_student(notebook):
    assert "no ranks are running" in check(notebook)
    assert not notebook.run("%%ranks 4\ntable = torch.arange(4.0)\nmine = rank + 1").error
    assert "there is no function 'ring_all_reduce' yet" in check(notebook)
    notebook.run("%%ranks\ndef ring_all_reduce(x):\n    ...")
    assert "not written yet (about 16 lines)" in check(notebook)
    notebook.run("%%ranks\ndef ring_all_reduce(x):\n    x += table[rank]")
    assert "ring_all_reduce uses 'table', a Tensor from another cell" in check(notebook)
    notebook.run("%%ranks\ndef ring_all_reduce(x):\n    dist.all_reduce(x)")
    assert "it uses the built-in all_reduce" in check(notebook)
    notebook.run(f"%%ranks\n{RING}")
    first = check(notebook)
    assert first.endswith("Solved.\n") and first.count("  ok  on") == 3
    assert check(notebook) == first, "the verdict is the same every time"
    assert notebook.run("%%ranks\nmine").stdout.split() == "rank 0: 1 rank 1: 2 rank 2: 3 rank 3: 4".split()


def test_progress_is_kept_in_a_file_of_the_students(notebook):
    assert "done  ring_all_reduce" in check_progress(notebook)
    assert json.loads((notebook.data / "ringside" / "progress.json").read_text()) == ["ring_all_reduce"]
    (notebook.data / "ringside" / "progress.json").write_text("nonsense")
    assert "done" not in check_progress(notebook)


def check_progress(notebook):
    output = notebook.run("check.progress()")
    assert not output.error, output.traceback
    return output.stdout


def test_hints_come_one_at_a_time(notebook):
    assert check(notebook, '"ring_all_reduce", hint=1').startswith("Hint 1 of 4: Two halves")
    assert "has 4 hints: hint=1 to hint=4" in check(notebook, '"ring_all_reduce", hint=9')


def test_an_unknown_name_is_said(notebook):
    assert "There is no exercise 'rong'. There are: " in check(notebook, '"rong"')
