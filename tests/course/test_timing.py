"""`course.timing.seconds` is the slowest rank's time in the fastest try, on ranks whose clocks the test sets."""

import pytest

from tests.launch.conftest import Notebook

CELL = """%%ranks 2
from types import SimpleNamespace
from course import timing
took = [[3, 1, 2], [1, 5, 4]][rank]  # in each try
readings = iter([0, took[0], 10, 10 + took[1], 20, 20 + took[2]])
timing.time, calls = SimpleNamespace(perf_counter=lambda: next(readings)), []
print(timing.seconds(lambda x, y: calls.append((x, y)), 7, "b"), calls)
"""


@pytest.fixture
def notebook():
    notebook = Notebook()
    assert not notebook.run("%load_ext launch").error
    yield notebook
    notebook.close()


def test_it_is_the_slowest_rank_in_the_fastest_try(notebook):
    """Rank 0 takes 3, 1, 2 and rank 1 takes 1, 5, 4: the tries take 3, 5, 4."""
    assert "[ranks 0-1] 3.0 [(7, 'b'), (7, 'b'), (7, 'b')]" in notebook.run(CELL).stdout


def test_fewer_tries_are_run_where_the_cell_says_so(notebook):
    fewer = CELL.replace('7, "b"', '7, "b", tries=2').replace("[3, 1, 2]", "[8, 1, 2]")
    assert "[ranks 0-1] 5.0 [(7, 'b'), (7, 'b')]" in notebook.run(fewer).stdout
