"""From notebook to script: what `%ranks export` writes runs under the real torchrun, and reports what it left out."""

import __future__

import os
import subprocess
import sys

import pytest

from launch.export import GIVEN, Ran, export, program
from launch.shared.errors import UsageError
from launch.shared.processes import NOT_INHERITED

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
ALIKE = {"OMP_NUM_THREADS": "1", "RES_OPTIONS": "timeout:1 attempts:1", "GLOO_SOCKET_IFNAME": "lo"}

CELLS = (
    "x = torch.arange(4.0) + 10 * rank\ndist.all_reduce(x)\nx",
    "import sys\nsys.stdout.write(f'{rank} of {world_size}\\n');",
    "%time 1 + 1",
    "1 / 0",
    'if rank:\n    text = """é\n  indented"""\n    dist.send(torch.tensor([5.0]), 0)\nelse:\n    dist.recv(x[:1], 1)',
    "(\n    x[0]\n    + 10 * rank  # from rank 1\n)  # the end",
)


@pytest.fixture(scope="module")
def exported(notebook, tmp_path_factory):
    """(what `%ranks export` said, the file) of a notebook whose cells ran on 2 ranks, and one before that on 3."""
    path = tmp_path_factory.mktemp("script") / "ring.py"
    assert not notebook.run("%%ranks 3\nlonely = 1").error
    notebook.run("%%ranks 2\nx = wrong", "a")  # the notebook's cell a is corrected, and run again
    for source, cell in zip(CELLS, "abcdef", strict=True):
        notebook.run(f"%%ranks 2\n{source}", cell)
    assert not notebook.run('%%ranks --only 1\nlate = """a\nb"""\nlate', "g").error
    output = notebook.run(f"%ranks export {path}")
    assert not output.error, output.error
    return output.stdout, path


def number(text):
    """The lines of a script's ranks, in a fixed order: torchrun lets them print as they come, and gloo before torch
    2.13 prints one for every group."""
    return sorted(line for line in text.splitlines() if not line.startswith("[Gloo] "))


SHOWN = [
    "0 of 2",
    "1 of 2",
    "rank 0: tensor(5.)",
    "rank 0: tensor([10., 12., 14., 16.])",
    "rank 1: 'a\\nb'",
    "rank 1: tensor(20.)",
    "rank 1: tensor([10., 12., 14., 16.])",
]


def test_a_notebook_runs_unchanged_under_torchrun(exported):
    said, path = exported
    environ = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED} | ALIKE
    environ["TMPDIR"] = str(path.parent)  # torchrun leaves a folder behind
    run = subprocess.run([*TORCHRUN, str(path)], capture_output=True, text=True, env=environ, timeout=300)
    assert run.returncode == 0, run.stderr
    assert number(run.stdout) == SHOWN
    assert "launch" not in path.read_text() and "lonely" not in path.read_text()


def test_what_is_left_out_is_said(exported):
    said, path = exported
    first, *left_out = said.splitlines()
    assert first == f"{path} is written: torchrun --nproc-per-node=2 {path} runs it"
    assert [line.partition("is left out: ")[2] for line in left_out] == [
        "it ran on 3 ranks and the last one on 2; a script has one world_size",
        "line 2 is IPython syntax, not Python",
        "it failed or was stopped",
    ]
    assert all(f"# {line}\n" in path.read_text() for line in left_out)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("%ranks export", "UsageError: %ranks export needs the name of one file, as in %ranks export ring.py"),
        ("%ranks export a.py b.py", "UsageError: %ranks export needs the name of one file, as in"),
        ("%ranks export /nowhere/a.py", "UsageError: /nowhere/a.py cannot be written: No such file or directory"),
        ("%ranks export /tmp", "UsageError: /tmp is a folder: name a file in it, as in %ranks export /tmp/ring.py"),
        *(
            (
                f"%ranks export {name}.py",
                f"UsageError: a file {name}.py would hide Python's module {name} from all that runs in that folder, "
                "and no ranks would start there: choose another name",
            )
            for name in ("launch", "random", "torch")
        ),
        ("%ranks exprot ring.py", "UsageError: did you mean %ranks export? "),
    ],
)
def test_bad_input_gets_one_sentence_and_loses_nothing(exported, notebook, line, error):
    assert not notebook.run("%%ranks 2\nkept = rank").error
    assert notebook.run(line).error.startswith(error)
    assert notebook.value("launch.pull('kept')") == [0, 1]


def test_imports_from_the_future_come_first(tmp_path):
    cells = (
        "x = 1",
        "from __future__ import annotations\ndef f(x: int): return 1\nf(1)",
        "from __future__ import annotations, division; y = 2",
    )
    text, _, said = program(ran(*cells), "ring.py")
    compiled = compile(text, "ring.py", "exec", dont_inherit=True)
    assert compiled.co_flags & __future__.annotations.compiler_flag and text.count("__future__") == 2
    assert "\ny = 2\n" in text and "def f(x: int): return 1\n_show(f(1))" in text and not said
    text, *_ = program(ran("from __future__ import annotations\ny = 1", more={"only": [0]}), "ring.py")
    assert compile(text, "ring.py", "exec", dont_inherit=True) and "if rank in {0}:\n    y = 1\n" in text


# The text alone


def ran(*sources, **how):
    return [
        Ran(count, "", source, how.get("size", 2), "gloo", **{"ended": True, **how.get("more", {})})
        for count, source in enumerate(sources, 1)
    ]


def test_nothing_is_written_over_a_file_of_the_students_own(tmp_path):
    path = tmp_path / "ring.py"
    path.write_text("mine = 1\n")
    with pytest.raises(UsageError, match="is there already and %ranks export has not written it"):
        export(str(path), ran("x = 1"))
    assert path.read_text() == "mine = 1\n"
    path.unlink()
    export(str(path), ran("x = 1"))
    export(str(path), ran("x = 2"))  # ours may be written anew
    assert "x = 2\n" in path.read_text() and "x = 1\n" not in path.read_text()


def test_nothing_to_export():
    for cells in ([], ran("1 / 0", more={"ended": False})):
        with pytest.raises(UsageError, match="there is nothing to export"):
            program(cells, "ring.py")


@pytest.mark.parametrize(
    ("source", "needs"),
    [
        ("y = pushed + 1", "pushed"),
        ("def f(a, *b, c=1, **d):\n    return [e for e in (a, b, c, d)]\nimport numpy as np\nf(np.pi)", None),
        ("try:\n    x: int = 1\nexcept ValueError as error:\n    print(error)", None),
        ("match rank:\n    case [a, *b]: a, b\n    case {'k': v, **rest}: v, rest\n    case z: z", None),
        ("from math import *\nsin(later)", None),
        ("class A: pass\nwith open('/dev/null') as f: print(A, f, __name__, __file__, rank, dist, torch)", None),
    ],
)
def test_a_name_that_no_cell_sets_is_said(source, needs):
    _, _, said = program(ran(source), "ring.py")
    assert said == (
        [f"the script needs {needs}, which none of its cells sets: set it in a %%ranks cell, and export again"]
        if needs
        else []
    )


@pytest.mark.parametrize(
    ("source", "body"),
    [
        ("x", "_show(x)"),
        ("x;  # quiet", "x;  # quiet"),
        ("'é'; (x\n + 1)  # c", "'é'; _show((x\n + 1))  # c"),
        ("print(x)", "print(x)"),
        ("x = 1", "x = 1"),
        ("# nothing", "# nothing"),
    ],
)
def test_the_value_of_the_last_line_is_shown(source, body):
    text, _, _ = program(ran("x = 5", source), "ring.py")
    assert text.partition("cell 2\n")[2].startswith(body + "\n")


@pytest.mark.parametrize(
    "source",
    ["if rank:\n    t = '''a\n  b'''\n\n    u = f'''{t}\n c'''", "# nothing at all", "t = ('a'\n'b')\n#end"],
)
def test_on_some_of_the_ranks_a_cell_is_the_same_cell(source):
    text, _, _ = program(ran(source, more={"only": [1]}), "ring.py")
    body = text.partition("cell 1\n")[2].partition("\n\nif dist.")[0]
    found, meant = {"rank": 1}, {"rank": 1}
    exec(body, found)
    exec(source, meant)
    assert {name: found[name] for name in found if name != "__builtins__"} == {
        name: meant[name] for name in meant if name != "__builtins__"
    }
    nothing = {"rank": 0}
    exec(body, nothing)
    assert nothing.keys() - {"__builtins__"} == {"rank"}


def test_what_belongs_to_a_bare_cell_and_to_gpus():
    bare, _, said = program(ran("dist.init_process_group('gloo')", "rank", more={"bare": True}), "ring.py")
    assert 'int(os.environ["RANK"])' in bare and bare.count("init_process_group") == 1 and not said
    cells = ran("x = 1", more={"bare": True}) + [Ran(2, "", "x = 2", 2, "nccl", ended=True)]
    text, size, said = program(cells, "ring.py")
    assert size == 2
    assert said == ["cell 1 is left out: it ran with --bare, unlike the last one"]
    assert text.index("set_device") < text.index('init_process_group("cpu:gloo,cuda:nccl")')
    _, _, said = program(ran("x = 1", more={"played": True}), "ring.py")
    assert said == ["the script runs on your real network: only Ringside plays another one"]
    assert GIVEN == {"rank", "world_size", "torch", "dist"}
