"""What several test folders share: a real Chromium, packages of npm, and what `-m quick` runs."""

import functools
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.chromium import NoChromium, launched

HERE = Path(__file__).parent
QUICK = [
    HERE / name
    for name in (
        "collectives",
        "test_style.py",
        "test_arrows.py",
        "course/test_amount.py",
        "course/test_ask.py",
        "course/test_carry.py",
        "course/test_verdict.py",
        "launch/test_codec.py",
        "launch/test_doctor.py",
        "launch/test_flight_recorder.py",
        "launch/test_matches.py",
        "launch/test_output.py",
        "launch/test_text.py",
        "widgets/test_join.py",
        "widgets/test_python.py",
    )
]
"""What needs neither ranks nor a browser: `pytest -m quick` while one works on it, in less than two minutes."""


def pytest_collection_modifyitems(config, items):
    assert all(path.exists() for path in QUICK), [path for path in QUICK if not path.exists()]
    for item in items:
        if any(item.path.is_relative_to(quick) for quick in QUICK):
            item.add_marker("quick")


@pytest.fixture(scope="session")
def browser():
    """Headless Chromium.

    Without one the test is skipped with a line that says what to install; with CI=true it fails, since a green run
    that has looked at nothing would be a lie.
    """
    try:
        with launched() as chromium:
            yield chromium
    except NoChromium as missing:
        complain = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        complain(str(missing))


@pytest.fixture(scope="session")
def npm(tmp_path_factory):
    """npm("axe-core@4.10.3") -> folder of that package, fetched from the npm registry; in CI only.

    One tarball without what it depends on, nothing of it is run by npm, and npm compares it with the registry's hash.
    """
    if os.environ.get("CI") != "true":
        pytest.skip("packages are fetched from the npm registry in CI only (set CI=true)")

    @functools.cache
    def fetch(package):
        folder = tmp_path_factory.mktemp("npm")
        assert shutil.which("npm"), "CI=true and no npm: install npm, as .ci/run does"
        command = ["npm", "pack", "--silent", "--ignore-scripts", package]
        packed = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
        with tarfile.open(folder / packed.stdout.split()[-1]) as archive:
            archive.extractall(folder, filter="data")
        return folder / "package"

    return fetch


@pytest.fixture(scope="session")
def axe(npm):
    """The source of axe-core."""
    return (npm("axe-core@4.10.3") / "axe.min.js").read_text()
