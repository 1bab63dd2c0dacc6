"""A check in JupyterLab: it moves while it works, stop ends it, and nothing of that stays in the notebook."""

SLOW = """%%ranks 4
import time
def shift(x):
    time.sleep(1.5)
    arriving = torch.empty_like(x)
    sending = dist.isend(x, (rank + 1) % world_size)
    dist.recv(arriving, (rank - 1) % world_size)
    sending.wait()
    return arriving
"""
CELLS = ["%load_ext launch\nfrom course import check", SLOW, 'check("shift")']


def test_a_check_moves_while_it_works_and_leaves_nothing_of_it(open_notebook):
    notebook = open_notebook("moving.ipynb", CELLS)
    notebook.run_all()
    page = notebook.page
    for where in ("4 ranks, float32", "2 ranks, float64", "3 ranks, int64"):
        page.wait_for_selector(f".jp-OutputArea-output:has(progress):has-text('checking shift: on {where}')")
    notebook.wait_until_idle()
    assert page.locator("progress").count() == 0
    assert "Solved." in notebook.outputs()[-1]
    assert "checking" not in notebook.outputs()[-1] and "progress" not in notebook.outputs()[-1]
    assert not page.complaints


def test_the_stop_button_ends_a_check(open_notebook):
    notebook = open_notebook("stopped.ipynb", [*CELLS[:1], SLOW.replace("1.5", "60"), *CELLS[2:]])
    notebook.run_all()
    notebook.page.wait_for_selector("progress")
    notebook.page.wait_for_selector(".jp-OutputArea-output:has-text('on 4 ranks, float32')")
    notebook.command("notebook:interrupt-kernel")
    notebook.wait_until_idle()
    assert "  stopped  on 4 ranks, float32: it was stopped before it had ended" in notebook.outputs()[-1]
    assert notebook.page.locator("progress").count() == 0
    notebook.append_and_run("%%ranks\nrank + 10")
    assert "rank 3: 13" in notebook.outputs()[-1], "the student's own ranks live on"
