"""What the tests of this folder share: a forking process for plain ranks, and real notebook kernels."""

import pytest

from launch.ranks import Ranks
from launch.replay.recording import Recording
from tests.launch.forked import Gang
from tests.launch.notebook import AHEAD, PATIENCE, Notebook


@pytest.fixture(scope="session")
def gang():
    with Gang() as started:
        yield started


@pytest.fixture(scope="session")
def recorded(gang):
    """recorded(source, ranks) -> the Recording of that program, run on real ranks."""
    return lambda source, ranks: Recording([a["recording"] for a in gang.run(source, ranks)])


@pytest.fixture(scope="session")
def warm():
    """Has an agent and no ranks: what is made beside it need not import torch again, nor what torch imports late."""
    ranks = Ranks()
    assert ranks.supervisor.agent.ahead.wait(PATIENCE)
    yield ranks
    ranks.close()


@pytest.fixture
def new_notebook():
    """Makes notebooks with `%load_ext launch` done; ends them after the test."""
    opened = []

    def make(load: bool = True, **options) -> Notebook:
        notebook = Notebook(**options)
        opened.append(notebook)
        if load:
            assert not notebook.run("%load_ext launch").error
        return notebook

    yield make
    for notebook in opened:
        notebook.close()


@pytest.fixture(scope="module")
def notebook():
    """One notebook for the tests of a module; each test leaves its ranks usable."""
    notebook = Notebook()
    assert not notebook.run("%load_ext launch\nimport launch").error
    yield notebook
    notebook.close()


@pytest.fixture(scope="module")
def imported(notebook):
    """Its agent has imported all that ranks may need: else each rank that uses DDP does so by itself, for a second."""
    assert not notebook.run(AHEAD).error
