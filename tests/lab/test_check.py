"""A check in JupyterLab: it moves while it works, stop ends it, and nothing of that stays in the notebook."""

import time

import pytest

from tests.lab.conftest import LIMIT

pytestmark = pytest.mark.timeout(900)

SLOW = """%%ranks 4
import os, time
def shift(x):
    open(f"{gates}/begun on {{rank}}", "w")
    while os.path.exists(f"{gates}/{{world_size}}"):
        time.sleep(0.01)
    arriving = torch.empty_like(x)
    sending = dist.isend(x, (rank + 1) % world_size)
    dist.recv(arriving, (rank - 1) % world_size)
    sending.wait()
    return arriving
"""


@pytest.fixture
def gates(tmp_path):
    """Files, one for each number of ranks: as long as there is one, the function of so many ranks does not go on."""
    for ranks in (4, 2, 3):
        (tmp_path / f"{ranks}").touch()
    return tmp_path


def cells(gates):
    return ["%load_ext launch\nfrom course import check", SLOW.format(gates=gates), 'check("shift")']


def test_a_check_moves_while_it_works_and_leaves_nothing_of_it(open_notebook, gates):
    notebook = open_notebook("moving.ipynb", cells(gates))
    notebook.run_all()
    page = notebook.page
    for where in ("4 ranks, float32", "2 ranks, float64", "3 ranks, int64"):
        page.wait_for_selector(f".jp-OutputArea-output:has(progress):has-text('checking shift: on {where}')")
        (gates / where[0]).unlink()
    notebook.wait_until_idle()
    assert page.locator("progress").count() == 0
    assert "Solved." in notebook.outputs()[-1]
    assert "checking" not in notebook.outputs()[-1] and "progress" not in notebook.outputs()[-1]
    assert not page.complaints


def test_the_stop_button_ends_a_check(open_notebook, gates):
    notebook = open_notebook("stopped.ipynb", cells(gates))
    notebook.run_all()
    notebook.page.wait_for_selector("progress")
    # Its first line comes before the ranks are at work; stopped by then, it says that nothing more was tried.
    limit = time.monotonic() + LIMIT / 1000
    while len(list(gates.glob("begun on *"))) < 4:
        assert time.monotonic() < limit, "the function has not begun"
        notebook.page.wait_for_timeout(50)
    notebook.command("notebook:interrupt-kernel")
    notebook.wait_until_idle()
    assert "  stopped  on 4 ranks, float32: it was stopped before it had ended" in notebook.outputs()[-1]
    assert notebook.page.locator("progress").count() == 0
    notebook.append_and_run("%%ranks\nrank + 10")
    assert "rank 3: 13" in notebook.outputs()[-1], "the student's own ranks live on"
