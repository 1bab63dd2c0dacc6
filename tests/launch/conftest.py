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


@pytest.fixture(scope="session")
def kernels():
    """The notebook that modules share, if there is one: its kernel and its agent cost as much as fifty cells."""
    kept: list[Notebook] = []
    yield kept
    for notebook in kept:
        notebook.close()


AS_NEW = """
%ranks stop
%ranks network off
import launch.magics
launch.magics._ran.clear()
get_ipython().reset()
import launch
"""


@pytest.fixture(scope="module")
def notebook(kernels, request):
    """A notebook as if it were new, for the tests of a module; each test leaves its ranks usable."""
    failed = request.session.testsfailed
    if not kernels:
        kernels.append(Notebook())
        assert not kernels[0].run("%load_ext launch\nimport launch").error
    yield kernels[0]
    if request.session.testsfailed > failed:
        kernels.pop().close()  # whatever state it is in
    else:
        assert not kernels[0].run(AS_NEW).error


@pytest.fixture(scope="module")
def imported(notebook):
    """Its agent has imported all that ranks may need: else each rank that uses DDP does so by itself, for a second."""
    assert not notebook.run(AHEAD).error
