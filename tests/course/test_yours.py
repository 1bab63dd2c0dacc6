"""`from course.yours import NAME` gives the function that passed its check, else ours, on real ranks."""

import pytest

from course import memory, yours
from tests.launch.conftest import Notebook

MINE = """def double(x):
    return 2 * x
def shift(x):
    return double(x) + rank + 10 * world_size
"""


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    notebook = Notebook(environ={"JUPYTER_DATA_DIR": str(folder)})
    assert not notebook.run("%load_ext launch\nfrom course import check, memory").error
    yield notebook
    notebook.close()


def test_ours_runs_until_the_check_passes_and_then_theirs(notebook):
    cell = "%%ranks 2\nfrom course.yours import shift\nshift(torch.tensor(rank)).item(), shift.__module__"
    first = notebook.run(cell)
    assert "[ranks 0-1] with our shift: yours is not solved yet" in first.stdout
    assert "rank 0: (1, 'course.solutions.shift')" in first.stdout
    assert not notebook.run(f"memory.solved('shift', {MINE!r})").error
    second = notebook.run(cell)
    assert "with our" not in second.stdout and "rank 1: (23, 'course.yours')" in second.stdout


def test_a_check_that_passes_keeps_what_it_has_judged(notebook):
    notebook.run("%%ranks 4\ndef my_share(x):\n    return x.tensor_split(world_size)[rank]")
    assert "Solved." in notebook.run('check("my_share")').stdout
    kept = notebook.run(
        "%%ranks\nfrom course.yours import my_share\nmy_share.__module__, my_share(torch.arange(9)).tolist()"
    )
    assert "rank 0: ('course.yours', [0, 1, 2])" in kept.stdout


CHAIN = {
    "shift": """
def shift(x):
    arriving = torch.empty_like(x)
    sending = dist.isend(x, (rank + 1) % world_size)
    dist.recv(arriving, rank - 1 if rank else world_size - 1)
    sending.wait()
    return arriving""",
    "ring_all_gather": """from course.yours import shift
def ring_all_gather(x):
    pieces = [x] * world_size
    for step in range(world_size - 1):
        pieces[(rank - 1 - step) % world_size] = shift(pieces[(rank - step) % world_size])
    return torch.cat(pieces)""",
    "ring_reduce_scatter": """from course.yours import shift
def ring_reduce_scatter(x):
    chunks = x.chunk(world_size)
    for step in range(world_size - 1):
        chunks[(rank - 2 - step) % world_size].add_(shift(chunks[(rank - 1 - step) % world_size]))""",
    "ring_all_reduce": """from course.yours import ring_all_gather, ring_reduce_scatter
def ring_all_reduce(x):
    ring_reduce_scatter(x)
    x.copy_(ring_all_gather(x.chunk(world_size)[rank]))""",
}


def test_one_solution_is_under_the_next(notebook):
    for name, text in CHAIN.items():
        notebook.run(f"%%ranks 4\n{text}")
        said = notebook.run(f'check("{name}")').stdout
        assert "Solved." in said and "it printed" not in said, said
    last = notebook.run("%%ranks\nfrom course.yours import ring_all_reduce as mine\nmine.__module__")
    assert "with our" not in last.stdout and "ranks 0-3: 'course.yours'" in last.stdout


def test_a_name_for_ours_is_not_kept_as_theirs(data):
    memory.solved("shift", "from course.yours import shift as shift")
    assert not yours.kept("shift").exists()


def test_names_beside_the_function_come_from_its_exercise(data, capsys):
    from course.yours import F, G

    assert (F.__module__, G.__name__) == ("course.solutions.f_and_g", "G")
    assert capsys.readouterr().out.splitlines()[0] == "with our f_and_g: yours is not solved yet"


def test_without_solutions_torchs_own_runs(data, monkeypatch, capsys):
    monkeypatch.setattr(yours, "SOLUTIONS", data / "none")
    from course.yours import shift

    assert shift.__module__ == "course.instead"
    assert capsys.readouterr().out.startswith("with a stand-in for shift: yours is not solved yet")


def test_a_name_that_is_no_exercise_is_an_import_error(data):
    with pytest.raises(ImportError, match="shfit"):
        from course.yours import shfit  # noqa: F401
