"""Run every benchmark beside this file, or those named: `python -m tests.benchmarks [schedules ranks ...]`.

Each `bench_NAME.py` has a `main()` that prints its figures as ratios against a peer or a goal measured in the same
run. Nothing here is asserted in the test suite: a loaded machine would make a true figure a false alarm.
"""

import argparse
import importlib
from pathlib import Path

import pytest

ALL = sorted(path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py"))

parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description="Runs all benchmarks, or those named.")
parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(ALL))
for name in parser.parse_args().names or ALL:
    if name not in ALL:
        parser.error(f"there is no benchmark {name}")
    print(f"== {name}", flush=True)
    try:
        importlib.import_module(f"tests.benchmarks.bench_{name}").main()
    except pytest.skip.Exception as why:  # a requirement that a test would be skipped for
        print(f"  left out: {why}", flush=True)
