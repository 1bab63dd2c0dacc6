"""`check` in a real notebook: what it prints, and that it never raises and loses nothing."""

import json
import os
import re
import time

import pytest

from tests.launch.conftest import Notebook

RING = open(os.path.join(os.path.dirname(__file__), "../../course/solutions/ring_all_reduce.py")).read()


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    notebook = Notebook(environ={"JUPYTER_DATA_DIR": str(folder), "JUPYTER_PATH": os.environ.get("JUPYTER_PATH", "")})
    notebook.data = folder
    assert not notebook.run("%load_ext launch\nimport launch\nfrom course import check").error
    yield notebook
    notebook.close()


def check(notebook, arguments='"ring_all_reduce"'):
    output = notebook.run(f"check({arguments})")
    assert not output.error, output.traceback
    return output.stdout


def test_the_steps_of_a_student(notebook):
    assert "no ranks are running" in check(notebook)
    assert not notebook.run("%%ranks 4\ntable = torch.arange(4.0)\nmine = rank + 1").error
    assert "there is no function 'ring_all_reduce' on the ranks yet" in check(notebook)
    notebook.run("%%ranks\ndef ring_all_reduce(x):\n    ...")
    assert "not written yet (about 16 lines)" in check(notebook)
    notebook.run("%%ranks\ndef ring_all_reduce(x):\n    x += table[rank]")
    assert "ring_all_reduce uses 'table', a Tensor from another cell" in check(notebook)
    notebook.run("%%ranks\ndef ring_all_reduce(x):\n    dist.all_reduce(x)")
    assert "it uses the built-in all_reduce" in check(notebook)
    notebook.run(f"%%ranks\n{RING}")
    first = check(notebook)
    assert first.endswith("Solved.\nYour run on 4 ranks:\nBy the book, all_reduce ring:\n")
    assert first.count("  ok  on") == 3
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
    assert check(notebook, '"ring_all_reduce", hint=4').startswith("Hint 4 of 4: ")


@pytest.mark.parametrize("hint", ["0", "5", "-1", "'1'", "1.5"])
def test_a_hint_that_is_not_there_is_said(notebook, hint):
    told = check(notebook, f'"ring_all_reduce", hint={hint}')
    assert told == "ring_all_reduce has 4 hints: hint=1 to hint=4.\n"


def test_an_unknown_name_is_said(notebook):
    assert check(notebook, '"wrong"').startswith("There is no exercise 'wrong'. There are: pass_it_on, my_share, ")
    assert check(notebook, '"ring all reduce"').startswith(
        "There is no exercise 'ring all reduce'. Did you mean 'ring_all_reduce'? There are: pass_it_on, "
    )


@pytest.mark.parametrize("name", ["", "3", "['shift']", "None"])
def test_what_is_no_name_is_said(notebook, name):
    assert f"There is no exercise {name or repr('')}. " in check(notebook, name)


TRIED = "no  on 4 ranks, float32: "
AT_MIDNIGHT = {  # what is in the cell: (the cell, what the verdict says of it)
    "a number": ("shift = 3", "no  'shift' is no function, but of type int; define it with def shift"),
    "nothing": (
        "def shift(x):\n    pass",
        f"{TRIED}rank 0: the answer should be a tensor and is None: the function must return it",
    ),
    "a wrong signature": (
        "def shift():\n    return 1",
        f"{TRIED}ranks 0-3: TypeError: shift() takes 0 positional arguments but 1 was given",
    ),
    "a print": (
        "def shift(x):\n    print('hello')\n    return x.zero_()",
        f"{TRIED}rank 0: the answer should hold d0: no rank has sent anything, so rank 3's numbers are not in it; "
        "send them; "
        "in numbers 0 0 ... where # # ... should be; ranks 1-3 are wrong too",
    ),
    "sys.exit": ("import sys\ndef shift(x):\n    sys.exit()", f"{TRIED}ranks 0-3: SystemExit"),
    "os._exit": ("import os\ndef shift(x):\n    os._exit(3)", f"{TRIED}ranks 0-3 died (exited with code 3)"),
    "an error on one rank, in two lines": (
        "def shift(x):\n    if rank == 1:\n        raise ValueError('one\\ntwo')\n    return x",
        f"{TRIED}rank 1: ValueError: one two",
    ),
    "an endless error": (
        "def shift(x):\n    raise ValueError(500 * 'x')",
        f"{TRIED}ranks 0-3: ValueError: {377 * 'x'} ...",
    ),
    "a variable that differs": (
        "me = rank\ndef shift(x):\n    return x + me",
        "no  shift is not the same on rank 0 and on rank 1: run its cell on all ranks, and make inside it what differs "
        "from rank to rank",
    ),
    "the end of the group": (
        "def shift(x):\n    dist.destroy_process_group()\n    return x.tolist()",
        f"{TRIED}rank 0: the answer should be a tensor and is list",
    ),
    "a deadlock on line 6": (
        "import time\n\ndef shift(x):\n    got = torch.empty_like(x)\n    dist.recv(got, (rank - 1) % world_size)",
        f"{TRIED}ranks 0-3 wait in recv from the previous rank (line 6, float32[20])",
    ),
}


@pytest.mark.parametrize("what", AT_MIDNIGHT)
def test_one_clear_line_for_whatever_stands_in_the_cell(notebook, what):
    """And the notebook's own ranks keep what they have."""
    cell, words = AT_MIDNIGHT[what]
    notebook.run("%%ranks 4\nmine = rank + 1")
    assert not notebook.run(f"%%ranks\n{cell}").error
    asks, verdict, *more = check(notebook, '"shift"').splitlines()
    assert asks.startswith("shift: it returns the x of the left-hand neighbour")
    assert re.fullmatch(re.escape(f"  {words}").replace(r"\#", r"-?\d+"), verdict), verdict
    assert more in ([], ['Not yet. A hint: check("shift", hint=1)'])
    assert notebook.value("launch.pull('mine')") == [1, 2, 3, 4]
    assert "open  shift" in check_progress(notebook)


def test_a_rank_that_lacks_the_function_is_named(notebook):
    notebook.run("%%ranks 4\nshift = None\ndel shift")
    notebook.run("%%ranks --only 0,1,3\ndef shift(x):\n    return x")
    assert "shift is not the same on rank 0 and on rank 2: run its cell on all ranks" in check(notebook, '"shift"')


LOOPS = {
    "busy": "while True:\n        pass",
    "deaf": "while True:\n        try:\n            time.sleep(0.1)\n        except BaseException:\n            pass",
}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_without_an_end_is_stopped(notebook, loop):
    """The second catches even the stop."""
    notebook.run("import course.trial\ncourse.trial.LIMIT = course.trial.GRACE = 1")
    notebook.run(f"%%ranks 4\nimport time\ndef shift(x):\n    {LOOPS[loop]}")
    assert "  no  on 4 ranks, float32: it had not ended after 1 s and was stopped: is there a loop" in check(
        notebook, '"shift"'
    )
    notebook.run("course.trial.LIMIT, course.trial.GRACE = 20, 2")


def test_the_stop_button_ends_a_check_and_is_not_taken_for_the_limit(notebook):
    begun = notebook.data / "begun"
    begun.mkdir()
    notebook.run(f"%%ranks 4\ndef shift(x):\n    open(f'{begun}/{{rank}}', 'w')\n    while True:\n        pass")
    asked = notebook.send('check("shift")')
    limit = time.monotonic() + 15
    while len(list(begun.iterdir())) < 4:
        assert time.monotonic() < limit, "the function has not begun"
    notebook.interrupt()
    output = notebook.collect(asked)
    assert not output.error and "it was stopped before it had ended" in output.stdout


TWICE = """%%ranks 4
def tree_reduce(x):
    got = torch.empty_like(x)
    if rank:
        dist.send(x, 0)
    for src in range(1, world_size) if rank == 0 else ():
        dist.recv(got, src)
        x += got if src != 2 else 2 * got
"""


def pictures(notebook, cell):
    """What the last run of a cell displayed, as it calls itself."""
    return notebook.value(f"[repr(each) for each in launch.magics._shown.get({cell!r}, ())]")


def test_a_failed_run_plays_with_its_first_wrong_cell_framed(notebook):
    assert not notebook.run("%%ranks 2 --record\ndist.all_reduce(torch.ones(1))").error
    assert notebook.value("launch.recording().ranks") == 2
    notebook.run(TWICE)
    output = notebook.run('check("tree_reduce")', cell="failing")
    assert (
        "rank 0: x holds a0 + b0 + c0 + c0 + d0 and should hold a0 + b0 + c0 + d0: rank 2's was added twice (line 8)"
        in (output.stdout)
    )
    assert [each["text/plain"] for each in output.rich] == pictures(notebook, "failing")
    assert pictures(notebook, "failing") == ["Player(your run, 4 ranks, 3 steps)"]
    assert notebook.value("launch.magics._shown['failing'][0].meta['framed']") == 0, "chunk 0 of rank 0's first buffer"
    assert notebook.value("(launch.recording().ranks, launch.recording().counts().messages)") == (4, 3)
    shown = notebook.value("launch.magics._shown['failing'][0].schedule is launch.recording()")
    assert shown, "what plays is what launch.recording() has"


def test_a_solved_run_stands_beside_ours(notebook):
    notebook.run(f"%%ranks 4\n{RING}")
    output = notebook.run('check("ring_all_reduce")', cell="solving")
    assert pictures(notebook, "solving") == [
        "Player(your run: all_reduce ring, 4 ranks, 6 steps)",
        "Player(all_reduce ring, 4 ranks, 6 steps)",
    ]
    assert len(output.rich) == 2
    assert notebook.value("(launch.recording().title, launch.recording().ranks)") == ("your run: all_reduce ring", 4)


def test_a_run_without_messages_shows_nothing(notebook):
    notebook.run("%%ranks 4\ndef my_share(x):\n    return torch.tensor_split(x, world_size)[rank]")
    output = notebook.run('check("my_share")', cell="alone")
    assert output.stdout.endswith("Solved.\n") and not output.rich
    notebook.run("%%ranks 4\ndef swap(x):\n    dist.send(x, rank ^ 1)\n    return x")
    output = notebook.run('check("swap")', cell="stuck")
    assert "wait in send" in output.stdout.replace("waits", "wait") and not output.rich
    assert notebook.value("launch.recording().counts().messages") == 0, "the run that hung, not the one before"
