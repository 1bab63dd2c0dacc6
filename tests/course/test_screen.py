"""Which cell is judged, and what is not: in a real notebook, with the front end's names for its cells."""

import pytest

from tests.course.test_judge import as_one_line
from tests.launch.conftest import Notebook

GOOD = """%%ranks 4
def shift(x):
    return helper(x)
"""
HELPER = "%%ranks 4\ndef helper(x):\n    return x\n"


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    notebook = Notebook(environ={"JUPYTER_DATA_DIR": str(tmp_path_factory.mktemp("data"))})
    assert not notebook.run("%load_ext launch\nimport launch\nfrom course import check").error
    yield notebook
    notebook.close()


@pytest.fixture
def defined(notebook):
    """The number of the cell that defines shift, and is called "shift" by the front end."""
    notebook.run(HELPER, cell="helper")
    assert not notebook.run(GOOD, cell="shift").error
    return notebook.value("len(In)") - 2


def verdict(notebook):
    output = notebook.run('check("shift")')
    assert not output.error, output.traceback
    return as_one_line(output.stdout).splitlines()[1]


def test_the_cell_that_is_judged_is_named(notebook, defined):
    assert verdict(notebook) == f"  judging shift as defined in cell [{defined}]"
    notebook.run(GOOD, cell="shift")
    assert verdict(notebook) == f"  judging shift as defined in cell [{defined + 3}]", "the run, not the cell"


def test_a_cell_with_a_syntax_error_is_not_judged_by_its_last_version(notebook, defined):
    notebook.run(GOOD.replace("helper(x)", "(helper(x)"), cell="shift")
    assert verdict(notebook) == (
        f"  not judged: cell [{defined + 2}], which defines shift, failed with SyntaxError: '(' was never closed "
        f"(line 3); the ranks still have the one of cell [{defined}]: fix that and run it again"
    )


def test_a_cell_that_failed_before_it_defined_the_function_is_named(notebook, defined):
    notebook.run(GOOD.replace("4\n", "4\n1/0\n"), cell="shift")
    assert (
        f"  not judged: cell [{defined + 2}], which defines shift, failed with RankError: ranks 0-3: Zero"
        in verdict(notebook)
    )


def test_a_cell_that_failed_after_it_defined_the_function_is_judged(notebook, defined):
    notebook.run(GOOD + "1/0\n", cell="shift")
    assert verdict(notebook) == f"  judging shift as defined in cell [{defined + 2}]"


def test_a_forgotten_magic_is_named(notebook, defined):
    assert not notebook.run(GOOD.partition("\n")[2], cell="shift").error
    assert verdict(notebook) == (
        f"  not judged: cell [{defined + 2}] defines shift without %%ranks at its top, so only the notebook knows it, "
        f"and the ranks still have the one of cell [{defined}]; put %%ranks on its first line and run it again"
    )


def test_another_name_is_noticed_where_the_front_end_names_its_cells(notebook, defined):
    notebook.run(GOOD.replace("shift", "my_shift"), cell="shift")
    assert verdict(notebook) == (
        f"  not judged: the cell that defined shift as [{defined}] was run again as [{defined + 2}] and defines it no "
        f"more "
        "but my_shift; give the function its name shift again and run the cell"
    )
    notebook.run(GOOD, cell="elsewhere")
    assert verdict(notebook).startswith("  judging shift as"), "it is in another cell now"


def test_a_helper_that_was_not_renewed_is_named(notebook, defined):
    notebook.run(HELPER.replace("return x", "return (x"), cell="helper")
    assert f"  not judged: cell [{defined + 2}], which defines helper, failed with SyntaxError: " in verdict(notebook)


@pytest.mark.parametrize(
    "cell",
    [
        "%%ranks\nx = shift(torch.ones(1))",
        "%%ranks\nother = shift\nshift = other",
        "shift = 3  # a variable of the notebook",
        "%%ranks\n1/0",
        "# def shift(x): pass",
    ],
)
def test_other_cells_make_nothing_stale(notebook, defined, cell):
    notebook.run(cell, cell="other")
    assert verdict(notebook) == f"  judging shift as defined in cell [{defined}]"


def test_a_function_that_was_given_another_is_the_other_cells(notebook, defined):
    notebook.run("%%ranks\ndef mine(x):\n    return 2 * x\nshift = mine", cell="mine")
    assert not verdict(notebook).startswith("  not judged: cell")


def test_what_was_imported_is_judged_as_that(notebook):
    notebook.run("%%ranks 4\nfrom course.solutions.shift import shift")
    assert verdict(notebook) == "  judging shift of course.solutions.shift"


def test_ranks_that_are_gone_are_not_blamed_on_the_cell(notebook, defined):
    notebook.run("%ranks restart")
    assert verdict(notebook) == (
        f"  not judged: cell [{defined}] defines shift, and yet rank 0 lacks it; run that cell again, on all ranks"
    )
