"""What the tests of this folder share: a forking process for plain ranks, and real notebook kernels."""

import pytest

from tests.launch.forked import Gang
from tests.launch.notebook import Notebook


@pytest.fixture(scope="session")
def gang():
    with Gang() as started:
        yield started


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
