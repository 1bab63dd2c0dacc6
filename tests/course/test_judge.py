"""`check` in a real notebook: what it prints, and that it never raises and loses nothing."""

import json
import os
import re
import time

import pytest

from course import check as check_here
from course.exercises import EXERCISES
from course.judge.carry import blanks
from course.judge.check import _unwritten
from tests.launch.notebook import PATIENCE, Notebook

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
    for line in output.stdout.splitlines():
        assert len(line) <= 98 or any(len(word) > 80 for word in line.split()), line
    return as_one_line(output.stdout)


@pytest.mark.parametrize(
    "source, line, said",
    [
        ("def shift(x):\n    y = ...\n    return y\n", 1, ": a blank is left in line 2. Replace the ..."),
        (
            "def shift(x):\n    y = ...\n    ...\n    return y\n",
            1,
            ": 2 blanks are left, in lines 2 and 3. Replace each",
        ),
        (
            "def turn(x):\n    return ...\n\ndef shift(x):\n    return turn(x)\n",
            4,
            ": a blank is left in turn. Replace",
        ),
        (
            "def turn(x):\n    ...\n\ndef shift(x):\n    turn(...)\n",
            4,
            ": 2 blanks are left, in turn and in shift. Replace",
        ),
        (
            "def turn(x):\n    y = x\n    return y\n\ndef shift(x):\n    ...\n",
            1,
            ": a blank is left in shift. Replace the",
        ),
    ],
)
def test_it_says_where_blanks_are_left(source, line, said):
    carried = {"source": source, "line": line, "blanks": blanks(source), "stub": False}
    assert _unwritten(EXERCISES["shift"], carried).startswith(said)


def as_one_line(printed):
    """Sentences that were too long for a line."""
    return printed.replace("\n        ", " ")


def test_the_steps_of_a_student(notebook):
    assert "no ranks are running" in check(notebook)
    assert not notebook.run("%%ranks 4\ntable = torch.arange(4.0)\nmine = rank + 1").error
    assert "there is no function 'ring_all_reduce' on the ranks yet" in check(notebook)
    notebook.run("%%ranks\ndef ring_all_reduce(x):\n    ...")
    assert "not written yet (about 12 lines)" in check(notebook)
    notebook.run("%%ranks\ndef ring_all_reduce(x):\n    for step in range(3):\n        ...\n    x += ...")
    assert "not written yet: 2 blanks are left, in lines 4 and 5. Replace each ... and run the cell, then" in check(
        notebook
    )
    notebook.run("%%ranks\ndef ring_all_reduce(x):\n    x += ...")
    assert "not written yet: a blank is left in line 3. Replace the ... and run the cell, then" in check(notebook)
    notebook.run("%%ranks\ndef ring_all_reduce(x):\n    x += table[rank]")
    assert "ring_all_reduce uses 'table', a Tensor that is made outside of it; make it inside ring_all_reduce" in check(
        notebook
    )
    notebook.run("%%ranks\ndef ring_all_reduce(x):\n    dist.all_reduce(x)")
    assert "it uses the built-in all_reduce" in check(notebook)
    notebook.run(f"%%ranks\n{RING}")
    first = check(notebook)
    assert first.endswith("Solved.\nYour run on 4 ranks:\nBy the book, all_reduce ring:\n")
    assert first.count("  ok  on") == 4
    assert check(notebook) == first, "the verdict is the same every time"
    assert notebook.run("%%ranks\nmine").stdout.split() == "rank 0: 1 rank 1: 2 rank 2: 3 rank 3: 4".split()


def test_progress_is_kept_in_a_file_of_the_students(notebook):
    assert "done  ring_all_reduce" in check_progress(notebook)
    kept = json.loads((notebook.data / "ringside" / "progress.json").read_text())["ring_all_reduce"]
    assert kept["attempts"] >= 1 and len(kept["solved"]) == 64
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
    "a number": ("shift = 3", "not judged: 'shift' is no function, but of type int; define it with def shift"),
    "nothing": (
        "def shift(x):\n    pass",
        f"{TRIED}rank 0: the answer should be a tensor and is None: the function must return it",
    ),
    "a wrong signature": (
        "def shift():\n    return 1",
        f"{TRIED}ranks 0-3: TypeError: shift() takes 0 positional arguments but 1 was given; check calls shift(x)",
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
        f"{TRIED}rank 1: ValueError: one two (line 4)",
    ),
    "an endless error": (
        "def shift(x):\n    raise ValueError(500 * 'x')",
        f"{TRIED}ranks 0-3: ValueError: {377 * 'x'} ... (line 3)",
    ),
    "a variable that differs": (
        "me = rank\ndef shift(x):\n    return x + me",
        "not judged: shift uses me from outside of it, which is not the same on all ranks (rank 0: me = 0; rank 1: "
        "me = 1); work it out inside shift, from rank and world_size",
    ),
    "the neighbours of another cell": (
        "left, right = (rank - 1) % world_size, (rank + 1) % world_size\n"
        "def shift(x):\n    work = dist.isend(x, right)\n    dist.recv(x, left)\n    return x",
        "not judged: shift uses left and right from outside of it, which are not the same on all ranks (rank 0: "
        "left = 3, right = 1; rank 1: left = 0, right = 2); work them out inside shift, from rank and world_size",
    ),
    "the end of the group": (
        "def shift(x):\n    dist.destroy_process_group()\n    return x.tolist()",
        f"{TRIED}rank 0: the answer should be a tensor and is a list",
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
    asks, *more = check(notebook, '"shift"').splitlines()
    assert asks.startswith("shift: it returns the x of the left-hand neighbour")
    if more[0].startswith("  judging"):
        assert more.pop(0) == f"  judging shift as defined in cell [{notebook.value('len(In)') - 3}]"
    verdict, *more = more
    assert re.fullmatch(re.escape(f"  {words}").replace(r"\#", r"-?\d+"), verdict), verdict
    printed = ["      it printed:", "      [ranks 0-3] hello"] if what == "a print" else []
    if what == "a deadlock on line 6":
        assert more.pop(0).startswith("      each of them waits for a message, and none gets as far as its send")
    assert more in ([], [*printed, 'Not yet. A hint: check("shift", hint=1)'])
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
    notebook.run("import course.judge.trial\ncourse.judge.trial.LIMIT = course.judge.trial.GRACE = 1")
    notebook.run(f"%%ranks 4\nimport time\ndef shift(x):\n    {LOOPS[loop]}")
    assert "  no  on 4 ranks, float32: it had not ended after 1 s and was stopped: is there a loop" in check(
        notebook, '"shift"'
    )
    notebook.run("course.judge.trial.LIMIT, course.judge.trial.GRACE = 20, 2")


def test_the_stop_button_ends_a_check_and_is_not_taken_for_the_limit(notebook):
    begun = notebook.data / "begun"
    begun.mkdir()
    notebook.run(f"%%ranks 4\ndef shift(x):\n    open(f'{begun}/{{rank}}', 'w')\n    while True:\n        pass")
    asked = notebook.send('check("shift")')
    limit = time.monotonic() + PATIENCE
    while len(list(begun.iterdir())) < 4:
        assert time.monotonic() < limit, "the function has not begun"
    notebook.interrupt()
    output = notebook.collect(asked)
    assert not output.error and "it was stopped before it had ended" in as_one_line(output.stdout)


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
        in as_one_line(output.stdout)
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


def test_a_run_without_messages_shows_nothing_but_who_waits_for_whom(notebook):
    notebook.run("%%ranks 4\ndef my_share(x):\n    return torch.tensor_split(x, world_size)[rank]")
    output = notebook.run('check("my_share")', cell="alone")
    assert output.stdout.endswith("Solved.\n") and not output.rich
    notebook.run("%%ranks 4\ndef swap(x):\n    dist.send(x, rank ^ 1)\n    return x")
    output = notebook.run('check("swap")', cell="stuck")
    assert "wait in send" in output.stdout.replace("waits", "wait")
    assert pictures(notebook, "stuck") == ["WaitFor(ranks=4, waiting=4)"]
    assert notebook.value("launch.recording().counts().messages") == 0, "the run that hung, not the one before"
    assert notebook.value("launch.recording().stuck[0]") == (0, 1, "send", 3)


def shows(notebook, cell):
    """What the displays of a cell held, one after the other: text by display, "" for an empty one."""
    asked, held, printed = notebook.send(cell), {}, ""
    while True:
        message = notebook.client.get_iopub_msg(timeout=PATIENCE)
        if message["parent_header"].get("msg_id") != asked:
            continue
        kind, content = message["msg_type"], message["content"]
        if kind in ("display_data", "update_display_data"):
            name = content.get("transient", {}).get("display_id")
            held.setdefault(name, []).append(content["data"].get("text/plain", ""))
        elif kind == "stream":
            printed += content["text"]
        elif kind == "status" and content["execution_state"] == "idle":
            return held, printed


def test_a_check_shows_what_it_does_and_leaves_nothing_of_it(notebook):
    notebook.run("%%ranks 4\ndef my_share(x):\n    return torch.tensor_split(x, world_size)[rank]")
    notebook.run("import course.judge.trial\ncourse.judge.trial.end_ranks()")
    held, printed = shows(notebook, 'check("my_share")')
    (texts,) = held.values()
    assert texts[0] == texts[-1] == "", "empty in the saved notebook, whether it keeps the first or the last"
    assert texts[1] == "checking my_share: starting 4 ranks ... (the stop button ends it)"
    said = [text.partition(": ")[2].partition(" ...")[0] for text in texts[1:-1]]
    assert said[:5] == ["starting 4 ranks", "on 4 ranks, float32", "starting 2 ranks", *said[3:5]]
    assert [text for text in said if text.startswith("on ")][:3] == [
        "on 4 ranks, float32",
        "on 2 ranks, float64",
        "on 3 ranks, int64",
    ]
    assert "starting" not in printed and "checking" not in printed
    notebook.run("%%ranks 4\ndef my_share(x):\n    ...")
    assert shows(notebook, 'check("my_share")')[0] == {}, "where nothing is tried there is nothing to show"


def test_ranks_that_cannot_be_had_are_no_fault_of_the_function(notebook):
    notebook.run("%%ranks 4\ndef my_share(x):\n    return torch.tensor_split(x, world_size)[rank]")
    notebook.run("import course.judge.trial\ncourse.judge.trial.end_ranks()\nimport launch.kernel.host as host")
    notebook.run("free = host.available_memory\nhost.available_memory = lambda: 100 << 20")
    told = check(notebook, '"my_share"')
    notebook.run("host.available_memory = free")
    assert "  not tried  on 4 ranks, float32: 4 ranks need about" in told and "Not yet" not in told


def test_what_helps_with_an_error_stands_below_it(notebook):
    notebook.run(
        "%%ranks 4\ndef shift(x):\n    inbox = torch.empty_like(x)\n    dist.recv(rank - 1, inbox)\n    return inbox"
    )
    told = check(notebook, '"shift"').splitlines()
    assert told[2].startswith("  no  on 4 ranks, float32: ranks 0-3: TypeError: Invalid function argument. ")
    assert told[3] == "      ranks 0-3: the tensor comes first: dist.recv(inbox, rank - 1)"
    assert told[4] == 'Not yet. A hint: check("shift", hint=1)'


def test_a_function_without_quotes_and_a_hint_without_number(notebook):
    notebook.run("def shift(x): return x")
    assert check(notebook, "shift") == 'check wants the name in quotes: check("shift")\n'
    assert check(notebook, '"shift", hint=True') == "shift has 3 hints: hint=1 to hint=3.\n"
    output = notebook.run("del shift\ncheck(shift)")
    assert output.traceback.splitlines()[-1] == 'check wants the name in quotes: check("shift")'


def test_our_solution_comes_in_a_cell_of_its_own(notebook):
    asked, given = notebook.send('check.solution("shift")'), []
    reply = notebook.client.get_shell_msg(timeout=PATIENCE)
    while reply["parent_header"].get("msg_id") != asked:
        reply = notebook.client.get_shell_msg(timeout=PATIENCE)
    given = [payload["text"] for payload in reply["content"]["payload"] if payload["source"] == "set_next_input"]
    assert len(given) == 1 and given[0].startswith("%%ranks\n")
    assert not notebook.run(given[0]).error
    assert "\nSolved.\n" in check(notebook, '"shift"')


def test_a_solution_that_is_withheld_is_said(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("course.judge.check.COURSE", tmp_path)
    check_here.solution("shift")
    assert capsys.readouterr().out.startswith("Our solution is withheld in this copy")


def test_a_check_without_the_launcher_says_what_to_run(capsys, monkeypatch):
    monkeypatch.setattr("launch.magics._session", None)
    check_here("shift")
    assert capsys.readouterr().out.endswith("\n  not judged: run %load_ext launch first\n")
