"""The rules of the house that a machine can hold: ruff, a docstring per module, modules that fit in a head."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("collectives", "widgets", "launch", "course")
LONGEST = 500
"""Lines of one module. What is split is split by idea; but what is longer than this has more than one."""

SOURCES = [path for package in PACKAGES for end in ("py", "js") for path in sorted((ROOT / package).rglob(f"*.{end}"))]
SOLUTIONS = ROOT / "course" / "solutions"


@pytest.mark.parametrize("command", [["check", "."], ["format", "--check", "."]], ids=["check", "format"])
def test_ruff(command):
    run = subprocess.run([sys.executable, "-m", "ruff", *command], cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_fits_in_a_head(path):
    assert len(path.read_text().splitlines()) <= LONGEST


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_what_it_is(path):
    text = path.read_text()
    if path.suffix == ".js":
        assert text.lstrip().startswith(("/**", "//"))
    elif path.parent != SOLUTIONS:  # a solution is read in a cell, where the chapter has said what it is
        assert ast.get_docstring(ast.parse(text))
