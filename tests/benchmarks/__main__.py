"""Run every benchmark beside this file, or those named: `python -m tests.benchmarks [schedules ranks ...]`.

Each `bench_NAME.py` has a `main()` that prints its figures as ratios against a peer or a goal measured in the same
run. Nothing here is asserted in the test suite: a loaded machine would make a true figure a false alarm.
"""

import importlib
import sys
from pathlib import Path

import pytest

names = sys.argv[1:] or sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))
for name in names:
    print(f"== {name}", flush=True)
    try:
        importlib.import_module(f"tests.benchmarks.bench_{name}").main()
    except pytest.skip.Exception as why:  # what a test would be skipped for is lacking, and the others go on
        print(f"  left out: {why}", flush=True)
