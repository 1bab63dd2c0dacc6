"""What the tests of this folder share: the ranks that trials run on, of every world size."""

import os

import pytest

from course.judge import trial


@pytest.fixture(scope="session", autouse=True)
def kept_ranks(tmp_path_factory):
    os.environ["BACK_DOOR"] = str(tmp_path_factory.mktemp("back-door"))  # tests/course/attempts/families.py
    trial.LARGEST_KEPT = 16
    yield
    trial.close_ranks()
