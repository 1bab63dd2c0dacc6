"""The types that our Python states hold, checked by mypy: strictly in `collectives`, as pyproject.toml says elsewhere.

Left out: our JavaScript, whose types tests/widgets/test_types.py checks.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lean import LOCK, not_as_locked

ROOT = Path(__file__).parents[1]


@pytest.mark.timeout(600)  # two cores that are busy with other tests
@pytest.mark.parametrize("checked", [["--strict", "collectives"], ["widgets", "launch", "course"]], ids=" ".join)
def test_the_types_hold(checked, tmp_path):
    if differ := not_as_locked("".join(re.findall("^(?:mypy|numpy|torch)==.*\n", LOCK.read_text(), re.M))):
        pytest.skip(f"what mypy says depends on the versions, and here {', '.join(differ)} differ")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), *checked]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
