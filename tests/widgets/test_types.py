"""The types that our JavaScript states in JSDoc hold: checked by TypeScript's `tsc`, from the npm registry, in CI only.

What is checked and how strictly says `widgets/js/jsconfig.json`, which editors read too. That `tsc` sees through our
files, and is not merely content with them, is tried out on modules that misuse them.
"""

import platform
import shutil
import subprocess
import sys

import pytest

from widgets import base

MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
PACKAGE = f"@typescript/typescript-{sys.platform}-{MACHINE}@7.0.2"
"""A program for each operating system, with an eighth of the CPU of the last one that ran on Node."""

JS = base.HERE / "js"


MISTAKES = {  # what a module beside ours could do wrong, and what `tsc` calls that
    "text where a number is wanted": ('import { plural } from "./words.js";\nplural("four", "rank");', "TS2345"),
    "a null that nobody looked at": (
        'import { Run } from "./schedule.js";\nexport const last = (/** @type {Run} */ run) => run.lastWrite(0).step;',
        "TS2531",
    ),
    "a misspelt property": (
        'import { Run } from "./schedule.js";\nexport const sent = (/** @type {Run} */ run) => run.latest[0].amuont;',
        "TS2551",
    ),
    "a name that is not exported": ('import { plurals } from "./words.js";\nplurals(4, "rank");', "TS2724"),
    "what nothing uses": ("const left = 1;\nexport const right = 2;", "TS6133"),
}


@pytest.fixture(scope="session")
def complaints(npm, tmp_path_factory):
    """What `tsc` says of a copy of our modules with a module for every mistake beside them: its lines."""
    program = npm(PACKAGE) / "lib" / "tsc"
    copy = tmp_path_factory.mktemp("mistaken") / "js"
    shutil.copytree(JS, copy)
    for number, (text, _) in enumerate(MISTAKES.values()):
        (copy / f"mistake{number}.js").write_text(text)
    command = [program, "--pretty", "false", "--project", copy / "jsconfig.json"]
    return subprocess.run(command, cwd=copy, capture_output=True, text=True).stdout.splitlines()


def test_the_types_hold(complaints):
    assert [line for line in complaints if not line.startswith(("mistake", " "))] == []  # " ": the line above goes on


@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_found(complaints, what):
    number = list(MISTAKES).index(what)
    of_it = [line for line in complaints if line.startswith(f"mistake{number}.js")]
    assert f"error {MISTAKES[what][1]}" in "".join(of_it)
