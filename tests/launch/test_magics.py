"""`%%ranks` and `%ranks` in a real notebook kernel: what they do, and the one sentence that bad input gets."""

import re
from argparse import Namespace
from pathlib import Path

import pytest

from launch.magics import COMMANDS, OPTIONS, PARSER, numbers, parse
from launch.shared.errors import UsageError

NONE = vars(parse(""))


def test_options():
    assert not any(NONE.values())
    assert parse("4 --bare --backend=gloo") == Namespace(**NONE | {"size": 4, "bare": True, "backend": "gloo"})
    assert parse("--only 0,2 --watch 8") == Namespace(**NONE | {"size": 8, "only": [0, 2], "watch": True})
    assert numbers("0-2,5,1") == [0, 1, 2, 5]


def test_the_table_of_the_reference_has_every_option_and_command_and_no_other():
    reference = (Path(__file__).parents[2] / "docs" / "reference.md").read_text()
    typed = [typed for row in re.findall(r"^\| (`.*?) \|", reference, re.M) for typed in re.findall(r"`([^`]*)`", row)]
    cells = [cell for cell in typed if cell.startswith("%%ranks")]
    for name, example in OPTIONS.items():
        assert any(f"{name} {example}" if example else name in cell for cell in cells), name
    for cell in cells:
        parse(cell.removeprefix("%%ranks"))
    named = [line.split()[1] for line in typed if line.startswith("%ranks ")]
    assert set(named) == set(COMMANDS)


def test_every_option_has_help():
    assert all(action.help in " ".join(PARSER.format_help().split()) for action in PARSER._actions)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("0", "%%ranks needs a number of ranks from 1 up, as in %%ranks 4, got 0"),
        ("four", "%%ranks needs a number of ranks from 1 up, as in %%ranks 4, got four"),
        ("4 5", "%%ranks takes one number of ranks, as in %%ranks 4, got 4 and 5"),
        ("--only", "--only needs a value, as in %%ranks --only 0,2"),
        ("--only x", "--only takes rank numbers, as in --only 0,2 or --only 0-3, got x"),
        ("--loud", "%%ranks knows no option --loud; there are --only 0,2, --record, "),
        ("--watch=1", "--watch takes no value"),
        ("--rec", "%%ranks knows no option --rec; there are"),
        ("--backend mpi", "--backend is gloo or nccl, got mpi"),
    ],
)
def test_bad_options(line, sentence):
    with pytest.raises(UsageError) as caught:
        parse(line)
    assert str(caught.value).startswith(sentence)


@pytest.fixture(scope="module")
def four(notebook):
    """A notebook in which four ranks hold a variable `kept`."""
    assert not notebook.run("%%ranks 4\nkept = rank").error
    return notebook


@pytest.mark.parametrize(
    ("cell", "error"),
    [
        ("%%ranks 0\n1", "UsageError: %%ranks needs a number of ranks"),
        ("%%ranks --only 7\n1", "UsageError: there is no rank 7: --only chooses among 4 ranks, 0 to 3"),
        ("%%ranks 1000000\n1", "UsageError: 1000000 ranks need about 62900 GB of memory and "),
        (
            "%%ranks 4 --backend nccl\n1",
            "UsageError: 4 ranks with nccl need 4 GPUs, this machine has 0: use --backend gloo",
        ),
        ("%%ranks\nx = (1,\n", "CellSyntaxError: '(' was never closed (line 2)"),
        ("launch.pull('nothing')", "RankError: ranks 0-3: there is no variable 'nothing'"),
        ("launch.push(f=print)", "TypeError: f is a builtin_function_or_method; what can travel are"),
        ("launch.pull('kep')", "RankError: ranks 0-3: there is no variable 'kep'; did you mean 'kept'?"),
        (
            "launch.pull('kept + 1')",
            'UsageError: launch.pull wants the name of one variable, as in launch.pull("x"), got',
        ),
        (
            "%%ranks --only 2\ninput('Name? ')",
            "RankError: rank 2: StdinNotImplementedError: ranks cannot ask: in a cell without %%ranks, "
            'launch.push(answer=input("...")) gives every rank what you type',
        ),
        (
            "%%ranks --only 2\nimport getpass; getpass.getpass()",
            "RankError: rank 2: StdinNotImplementedError: ranks cannot ask",
        ),
        ("launch.push(5)", "UsageError: launch.push wants a name for every value, as in launch.push(x=3)"),
        ("launch.push(rank=5)", "UsageError: every rank has its own rank, and cells count on it"),
        (
            "%ranks dance",
            "UsageError: %ranks says what the ranks are doing, %ranks restart makes new ones, %ranks stop",
        ),
        ("%ranks retsart", "UsageError: did you mean %ranks restart? "),
        (
            "%ranks 4 --watch",
            "UsageError: to run a cell on ranks, begin it with two percent signs: %%ranks 4 --watch in",
        ),
        ("# mine\n%%ranks 4\n1", "UsageError: %%ranks goes into the first line of the cell, also above comments"),
    ],
)
def test_bad_input_gets_one_sentence_and_loses_nothing(four, cell, error):
    output = four.run(cell)
    assert output.error.startswith(error)
    assert not output.stdout and not output.stderr
    assert four.value("launch.pull('kept')") == [0, 1, 2, 3]


def test_a_syntax_error_is_shown_once_with_its_line(four):
    output = four.run("%%ranks\ngood = 1\nbad = = 2")
    assert output.traceback.count("SyntaxError") == 1 and "line 3" in output.traceback
    assert "launch/" not in output.traceback


def test_a_variable_that_one_rank_lacks(four):
    four.run("%%ranks --only 0,1,3\nmine = rank")
    output = four.run("launch.pull('mine')")
    assert output.result == "{0: 0, 1: 1, 3: 3}"
    assert output.stdout == "rank 2 has no variable mine; this is {rank: mine} of ranks 0-1,3\n"


def test_variables_go_out_and_in(four):
    four.run("import torch\nlaunch.push(t=torch.arange(3.), text='é', nested={'a': [1, (2,)], 3: None})")
    four.run("%%ranks\nback = (t * rank, text, nested)")
    assert four.value("[(t.tolist(), text, nested) for t, text, nested in launch.pull('back')]") == [
        ([0.0, 1.0 * rank, 2.0 * rank], "é", {"a": [1, (2,)], 3: None}) for rank in range(4)
    ]


def test_the_namespace_and_the_answer(four):
    output = four.run("%%ranks\nx = torch.tensor([float(rank)])\ndist.all_reduce(x)\nassert world_size == 4\nx")
    assert output.stdout == "ranks 0-3: tensor([6.])\n" and not output.error


def test_status(four):
    lines = four.run("%ranks").stdout.splitlines()
    assert lines[0].split() == ["rank", "pid", "backend", "memory", "doing"]
    assert [line.split()[0] for line in lines[1:]] == ["0", "1", "2", "3"]
    for line in lines[1:]:
        _, pid, backend, megabytes, unit, doing = line.split()
        assert int(pid) > 1 and (backend, unit, doing) == ("gloo", "MB", "ready") and 10 < float(megabytes) < 200


def test_the_lines_of_a_traceback_are_those_of_the_cell(four):
    output = four.run("%%ranks\ny = 1\nif rank == 1:\n    raise ValueError('no')")
    assert output.error == "RankError: rank 1: ValueError: no"
    assert "----> 4     raise ValueError('no')" in output.traceback and "line 4" in output.traceback
    assert "launch/" not in output.traceback


def test_a_traceback_gives_the_cell_the_number_that_stands_beside_it(four):
    number = four.value("len(In)")
    assert f"Cell In[{number}], line 2" in four.run("%%ranks\n1 / 0").traceback
    assert f"Cell In[{number + 1}], line 2" in four.run("%%ranks\n(1").traceback
    assert f"Cell In[{number + 2}], line 1" in four.run("1 / 0").traceback


def test_cell_magics_and_await_inside(four):
    assert "Wall time" in four.run("%%ranks\n%%time\n1").stdout
    assert four.run("%%ranks\nimport asyncio\nawait asyncio.sleep(0)\n'done'").stdout == "ranks 0-3: 'done'\n"
    assert four.run("%%ranks\n!echo hello").stdout == "[ranks 0-3] hello\n"


def test_recording_and_watching(four):
    four.run("%%ranks --record\nx = torch.ones(2)\nif rank == 0: dist.send(x, 1)\nif rank == 1: dist.recv(x, 0)")
    assert four.value("(launch.recording().counts().messages, launch.recording().counts().total_bytes)") == (1, 8)
    assert not four.run("%%ranks\ndist.all_reduce(torch.ones(2))").error, "what a recording has replaced is put back"
    output = four.run("%%ranks --watch\nif rank == 2: dist.send(x, 3)\nif rank == 3: dist.recv(x, 2)")
    assert [data["text/plain"].partition("(")[0] for data in output.rich] == ["Player"]


def through_a_file(notebook, folder):
    """Who was stuck in the recording that was saved and loaded."""
    file = str(folder / "stuck.json")
    notebook.run(f"import collectives\nlaunch.recording().save({file!r})")
    return notebook.value(f"collectives.load({file!r}).stuck")


def test_who_was_stuck_is_in_the_recording_and_in_the_picture(four, tmp_path):
    output = four.run(
        "%%ranks --watch\nx = torch.ones(1)\nif rank == 0: dist.send(x, 1)\nif rank: dist.recv(x, rank - 1)\n"
        "if rank == 1: dist.send(x, 2)"
    )
    assert output.ename == "DeadlockError"
    assert four.value("launch.recording().stuck") == through_a_file(four, tmp_path) == ((3, 2, "recv", 4),)
    assert four.value("(launch.recording().part(1, 1).stuck, len(launch.recording().part(2, 2).stuck))") == ((), 1)
    shown = [display for display in output.displays if "Player" in str(display)]
    assert "Stuck in recv, line 4: rank 3 waits for rank 2." in str(shown)
    assert (3, "x", 0, "1") in four.value("launch.recording().stale_values()")
    four.run("%%ranks --record\nx = torch.ones(1)\nif rank == 0: dist.send(x, 1)\nif rank == 1: dist.recv(x, 0)")
    assert four.value("launch.recording().stuck") == ()


def test_calls_that_do_not_fit_are_in_the_recording_and_in_the_picture(four, tmp_path):
    output = four.run(
        "%%ranks --watch\nx = torch.ones(2)\nif rank == 0:\n    dist.send(x, 1)\n    dist.send(x, 2)\n"
        "if rank in (1, 2): dist.recv(x[:3 - rank], 0)"
    )
    assert output.ename == "MismatchError"
    stuck = ((0, None, "send", 5), (2, None, "recv", 6))
    assert four.value("launch.recording().stuck") == through_a_file(four, tmp_path) == stuck
    words = "Refused, since the calls do not fit: rank 0 in send, line 5; rank 2 in recv, line 6."
    assert words in str([display for display in output.displays if "Player" in str(display)])
    assert four.run("%%ranks --watch\ndist.all_reduce(torch.ones(rank + 1))").ename == "MismatchError"
    assert four.value("[edge[:2] for edge in launch.recording().stuck]") == [(rank, None) for rank in range(4)]


def test_a_collective_that_one_rank_never_calls_moves_nothing(four):
    """No rank has a sum, so the picture shows none, whatever the library had already written."""
    cell = "%%ranks --record\nx = torch.tensor([1.0 * rank])\ndist.all_reduce(x)\nif rank: dist.all_reduce(x)"
    assert four.run(cell).ename == "DeadlockError"
    first, *later = four.value("[len(step.transfers) for step in launch.recording().steps]")
    assert first and not any(later)


@pytest.mark.parametrize(
    ("call", "absent", "holds", "symbols"),
    [
        ("dist.broadcast(x, 0)", 3, [0, 0, 0, 30], ["a0", "a0", "a0", ""]),
        ("dist.scatter(x, parts, 0)", 1, [0, 10, 2, 3], ["a0", "", "a2", "a3"]),
    ],
)
def test_what_a_root_hands_out_is_in_the_picture_though_one_rank_never_calls(four, call, absent, holds, symbols):
    cell = "x = torch.tensor([10.0 * rank])\nparts = None if rank else [*torch.arange(4.0).split(1)]"
    assert four.run(f"%%ranks --record\n{cell}\nif rank != {absent}: {call}").ename == "DeadlockError"
    assert four.value("[float(x) for x in launch.pull('x')]") == holds
    assert four.value("[str(row[0]) for row in launch.recording().states(-1).cells['x']]") == symbols


def test_an_error_before_the_first_message_is_shown_without_an_empty_picture(four):
    output = four.run("%%ranks --watch\nraise ValueError('too early')")
    assert output.ename == "RankError" and not any("Player" in str(display) for display in output.displays)
    output = four.run("%%ranks --watch\ndist.all_reduce(torch.ones(2))\nraise ValueError('later')")
    assert output.ename == "RankError" and any("Player" in str(display) for display in output.displays)
    output = four.run("%%ranks --watch\n1 + 1")
    assert (
        output.stdout == "ranks 0-3: 2\nnothing was sent in this cell, so there is nothing to watch\n"
        and not output.rich
    )


def test_another_number_of_ranks_restarts_and_says_so(new_notebook):
    notebook = new_notebook()
    assert notebook.run("%ranks").stdout == "no ranks are running: start some with %%ranks 4\n"
    assert notebook.run("import launch\nlaunch.pull('x')").error.startswith("UsageError: no ranks are running")
    assert notebook.run("launch.recording()").error.startswith("UsageError: nothing has been recorded yet")
    assert notebook.run("%%ranks 2\nx = 1; world_size").stdout == "ranks 0-1: 2\n"
    output = notebook.run("%%ranks 3\n'x' in globals(), world_size")
    assert output.stdout == (
        "restarted with 3 ranks instead of 2; the ranks' variables are new\nranks 0-2: (False, 3)\n"
    )
    assert notebook.run("%ranks restart").stdout == "3 ranks restarted; their variables are new\n"
    assert notebook.run("%ranks stop").stdout == "3 ranks stopped\n"
    bare = "import os\ndist.init_process_group('gloo')\ny = torch.ones(1)\ndist.all_reduce(y)\n"
    environ = "y, os.environ['WORLD_SIZE'], os.environ['MASTER_ADDR'], os.environ['RANK'] == str(rank)"
    output = notebook.run(f"%%ranks 2 --bare\nassert not dist.is_initialized()\n{bare}{environ}")
    assert output.stdout == "ranks 0-1: (tensor([2.]), '2', '127.0.0.1', True)\n"
    assert not notebook.value("'torch' in __import__('sys').modules")  # all this without torch in the notebook


def test_what_a_cells_last_run_has_shown_is_closed_when_it_runs_again(notebook):
    """The page has dropped it by then; in the kernel and in the browser it would live on."""
    count = (
        "import gc\nfrom widgets import RankLog\n"
        "print(sum(issubclass(type(log), RankLog) and log.comm is not None for log in gc.get_objects()))"
    )
    for cell in ("first", "second", "first", "second", "first"):
        assert not notebook.run("%%ranks 2\nprint('hello')", cell=cell).error
    before = int(notebook.run(count).stdout)
    for cell in ("first", "second", "first", "second", "first"):
        assert not notebook.run("%%ranks 2\nprint('hello')", cell=cell).error
    assert int(notebook.run(count).stdout) == before
    assert not notebook.run("%%ranks 2\nprint('hello')", cell="third").error
    assert int(notebook.run(count).stdout) == before + 1


def test_status_says_what_has_to_be_put_right(notebook):
    notebook.run("%ranks stop")
    notebook.run("%%ranks 3\nimport os\nif rank == 1: os.kill(os.getpid(), 9)")
    notebook.run("%%ranks\nif rank == 0: work = dist.isend(torch.ones(1), 2)\nif rank == 2: rank = 5")
    output = notebook.run("%ranks").stdout
    assert output.splitlines()[4:] == [
        "rank 1: a new process, since the one before died: what cells set before that is gone",
        "rank 2: a cell has changed rank: rank = dist.get_rank() brings it back",
        "rank 0: send to rank 2 (line 2) has not ended: it needs its recv there, and a wait() here",
    ]
    notebook.run(
        "%%ranks\nrank = dist.get_rank()\nif rank == 2: dist.recv(torch.ones(1), 0)\nif rank == 0: work.wait()"
    )
    assert len(notebook.run("%ranks").stdout.splitlines()) == 5
    assert notebook.run("%ranks restart\n%ranks").stdout.count("\n") == 5


def test_how_long_many_ranks_take_to_start_is_said_before_and_the_log_moves_meanwhile(notebook):
    notebook.run("%ranks stop")
    cell = notebook.send("%%ranks 32\n1")
    output = notebook.collect(cell, lambda output, _: "connects to the others" in notebook.states)
    assert re.fullmatch(r"32 ranks take about \d+ seconds to start here\n", output.stdout)
    assert "ranks 0-31: 1\n" in notebook.collect(cell).stdout
    assert notebook.run("%%ranks 32\n1").stdout == "ranks 0-31: 1\n"
